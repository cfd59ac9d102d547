"""The trajectories of a sweep: checked, cut into chunks, and computed one chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from ..losses import as_loss
from ..penalties import as_penalty
from ..rules import Rule, has_eta
from ..solvers.fingerprint import describe, known_by_name
from ..solvers.loop import Loop, StoppingCriterion
from ..solvers.minimize import as_solver
from ..solvers.problem import Problem
from ..solvers.result import Status
from ..solvers.state import State

CHUNK_BYTES = 1 << 21  # size of the predictions, or of the iterates, of a chunk that fits the cache
CHUNK_COLUMNS = 32  # preferred columns of a chunk: sparse products are slow with fewer
FEWEST_COLUMNS = 4  # columns that a chunk keeps when it is cut to occupy another core
LARGE_COLUMN = 1e4  # coordinates and predictions of a trajectory that is worth a core of its own
FLOAT64_BYTES = 8
RUNNING_ARRAYS, AVERAGES_ARRAYS = 16, 4  # arrays like x in a running trajectory, and with averages
RECORD_ARRAYS = 8  # arrays of recorded values: as they are collected, and in the result
RECORDED = ("objective", "mean_step")
CHUNK_ENDS = (Status.MAX_ITER, Status.NOT_FINITE, Status.DIVERGED)

Arrays = dict[str, np.ndarray]


class Chunk(NamedTuple):
    """Columns low, ..., high - 1 of one rule.

    A column is a pair (eta, start), and starts vary fastest.
    """

    rule: str
    low: int
    high: int

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.high - self.low


class Trajectories:
    """Every rule with every eta from every start, after all arguments have been checked."""

    def __init__(
        self,
        loss: Any,
        penalty: Any,
        rules: Any,
        etas: Any,
        x0s: Any,
        n_iter: int,
        record: int,
        keep_x: bool,
        averages: bool,
    ):
        self.loss, self.penalty = as_loss(loss), as_penalty(penalty)
        factories = rule_factories(rules)
        self.etas, self.x0s = _step_sizes(etas), _starts(x0s, self.loss.shape)
        self.starts = self.x0s.shape[-1]
        self.n_iter = _check.count(n_iter, "n_iter", "sweep", least=1)
        self.record = _check.count(record, "record", "sweep", least=1)
        self.keep_x, self.averages = bool(keep_x), bool(averages)
        self.rules = {
            name: stack_rules([make_rule(name, factory, eta) for eta in self.etas.tolist()])
            for name, factory in factories.items()
        }
        recorded = np.arange(self.record, self.n_iter + 1, self.record)
        self.iterations = np.union1d(recorded, [self.n_iter])
        names = ("loss", "penalty", "etas", "x0s", "rules", "n_iter", "record", "keep_x")
        #: Everything that determines the results. A stateful loss is described before it is called.
        self.description: dict[str, Any] = describe({name: getattr(self, name) for name in names})
        if self.averages:
            self.description["averages"] = True
        problem, x = Problem.at(self.loss, self.penalty, self.x0s, None)
        if problem.trajectories is None:
            raise _check.InputError(
                "The loss must return one value per column of x, as 'x0s' has one start per column."
            )
        self.size, self.shape, self.dtype = len(x), problem.shape, problem.dtype
        with np.errstate(all="ignore"):  # values that overflow are recorded as they are
            f, g = problem.evaluate(x)
            phi = problem.phi(x)
            self.objective_start = f + phi
        digits = np.finfo(self.dtype).precision // 2  # other machines round the rest differently
        starts = {
            name: [f"{value:.{digits}g}" for value in np.ravel(array)]
            for name, array in (("loss", f), ("penalty", phi), ("gradient", abs(g).max(axis=0)))
        }
        #: The description and values at the starts, which reveal edited functions.
        self.fingerprint = {**self.description, "starts": starts}

    @property
    def column_bytes(self) -> int:
        """The memory of a trajectory while it runs."""
        arrays = RUNNING_ARRAYS + (AVERAGES_ARRAYS if self.averages else 0)
        numbers = arrays * self.size + RECORD_ARRAYS * self.iterations.size
        return int(2 * self.loss.predictions * self.dtype.itemsize + FLOAT64_BYTES * numbers)

    def plan(self, budget: float, jobs: int) -> list[Chunk]:
        """Return chunks of which `jobs` at the same time stay within the budget (in bytes).

        If possible, each of them fits the cache, and there are enough of them for all jobs.
        """
        if self.column_bytes > budget:
            raise _check.InputError(
                "The 'memory' parameter of sweep is too small: a trajectory needs "
                f"{ceil(self.column_bytes / 1e4) / 100:g} MB. Give at least that for each that is "
                "to run at the same time."
            )
        jobs = min(jobs, int(budget / self.column_bytes))
        largest = self.dtype.itemsize * max(self.loss.predictions, self.size)
        preferred = max(CHUNK_COLUMNS, CHUNK_BYTES / largest)
        width = int(min(budget / jobs / self.column_bytes, preferred))
        is_large = self.size + self.loss.predictions > LARGE_COLUMN
        fewest = 1 if is_large else min(FEWEST_COLUMNS, width)
        chunks = []
        for name, rule in self.rules.items():
            # A list of rules runs one eta at a time.
            groups = self.etas.size if isinstance(rule, list) else 1
            columns = self.etas.size * self.starts // groups
            needed = ceil(columns / width)
            share = ceil(jobs / (len(self.rules) * groups))  # jobs for each group of columns
            pieces = max(needed, min(ceil(needed / share) * share, columns // fewest))
            cuts = np.linspace(0, columns, pieces + 1).round().astype(int).tolist()
            for first in range(0, groups * columns, columns):
                chunks += [Chunk(name, first + low, first + high) for low, high in pairwise(cuts)]
        return chunks

    def empty(self, width: int) -> Arrays:
        """Return the results of `width` trajectories that have not begun."""
        arrays: Arrays = {
            "objective_best": np.full(width, np.nan),
            "objective_average": np.full(width, np.nan),
            "nit": np.zeros(width, np.int64),
            "status": np.full(width, Status.INTERRUPTED, np.int64),
        }
        recorded = {name: np.full((self.iterations.size, width), np.nan) for name in RECORDED}
        if self.keep_x:
            arrays["x"] = np.full((*self.shape, width), np.nan, self.dtype)
        return {**recorded, **arrays}

    def fits(self, chunk: Chunk, arrays: Arrays) -> bool:
        """Return whether arrays from a file can be the results of a chunk."""
        if _signature(arrays) != _signature(self.empty(chunk.width)):
            return False
        ends, nit = np.isin(arrays["status"], CHUNK_ENDS), arrays["nit"]
        return bool(np.all(ends & (nit == nit.clip(0, self.n_iter))))

    def run(self, chunk: Chunk, stop: Callable[[], bool] | None = None) -> Arrays:
        """Return the results of a chunk.

        `stop` is called after each iteration. If it returns True, the trajectories that are still
        running get the status INTERRUPTED.
        """
        columns = np.arange(chunk.low, chunk.high)
        rules, etas = self.rules[chunk.rule], columns // self.starts
        rule = rules[etas[0]] if isinstance(rules, list) else rules.select(etas)
        with add_note(chunk.rule, self.etas[etas]):
            solver, x0 = as_solver(rule, self.loss), self.x0s[..., columns % self.starts]
            problem, x = Problem.at(self.loss, self.penalty, x0, rule.trajectories)
            averages, solver = self.averages or rule.average_power > 0, solver.prepared(problem)
            loop = Loop(
                solver,
                problem,
                State.first(solver, problem, x, averages=averages),
                StoppingCriterion(None),
                max_iter=self.n_iter,
                callback=None if stop is None else lambda loop: stop(),
                record=self.record,
                record_last=True,
                norms=False,
            )
            loop.run()
        loop.codes[loop.codes == Status.CALLBACK] = Status.INTERRUPTED
        history, state, arrays = loop.history(), loop.whole_state(), self.empty(chunk.width)
        rows = np.searchsorted(self.iterations, history.iteration)
        for name in RECORDED:
            arrays[name][rows] = getattr(history, name)
        arrays |= {"objective_best": state.fun_best, "nit": state.n, "status": loop.codes}
        if averages:
            problem = problem.narrowed(chunk.width)
            x = problem.layout.flat(state.x_avg)
            with np.errstate(all="ignore"):  # an overflow shows in the value
                values = problem.evaluate(x)[0] + problem.phi(x)
            arrays["objective_average"] = np.where(state.failed, np.nan, values)
        if self.keep_x:
            arrays["x"] = state.x
        return arrays


def _signature(arrays: Arrays) -> dict[str, Any]:
    """Return the shapes and dtypes of arrays."""
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}


def _step_sizes(etas: Any) -> np.ndarray:
    """Return the step sizes as an array."""
    _check.refuse_masked(etas, "'etas'")
    sizes = np.array([_check.positive(eta, "etas", "sweep") for eta in np.ravel(etas)])
    if np.ndim(etas) > 1 or not sizes.size or np.unique(sizes).size != sizes.size:
        raise _check.InputError("'etas' must be one or more positive numbers, each of them once.")
    return sizes


def _starts(x0s: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """Return a copy of the starts, one per column."""
    x0s = np.array(_check.finite(np.atleast_1d(_check.real_array(x0s, "x0s")), "x0s"))
    dims = shape or ("d",)
    columns: np.ndarray = x0s if x0s.ndim > len(dims) else x0s[..., None]
    if columns.size == 0 or shape not in (None, columns.shape[:-1]):
        wanted = ", ".join(map(str, dims))
        raise _check.InputError(
            f"'x0s' must have shape ({wanted}, starts). Got shape {x0s.shape} instead."
        )
    return columns


# ---------------------------------------------------------------------------------- rule factories


def rule_factories(rules: Any) -> dict[str, Callable[..., Any]]:
    """Return functions eta -> rule by name: the keys of a dict, or the names of the functions."""
    if not isinstance(rules, Mapping):
        factories = list(rules) if isinstance(rules, Iterable) else [rules]
        names = [getattr(factory, "__name__", type(factory).__name__) for factory in factories]
        if len(set(names)) < len(names) or "<lambda>" in names:
            names = [f"rule {k}" for k in range(len(names))]
        rules = dict(zip(names, factories, strict=True))
    if not rules or not all(callable(factory) for factory in rules.values()):
        raise TypeError(
            "'rules' must be rule classes, such as AdaGradDiff, or functions eta -> rule."
        )
    by_name = {str(name): factory for name, factory in rules.items()}
    if len(by_name) < len(rules):
        raise ValueError(f"'rules' must have different names. Got {list(rules)} instead.")
    return by_name


def make_rule(name: str, factory: Callable[..., Any], eta: float) -> Rule:
    """Return the rule for one eta. A class without a step size makes the same rule for each."""
    free = isinstance(factory, type) and issubclass(factory, Rule) and not has_eta(factory)
    with add_note(name, eta):
        rule = factory() if free else factory(eta)
    if not isinstance(rule, Rule):
        raise TypeError(
            f"'rules' must be rule classes or functions eta -> rule, but {name} made {rule!r}."
        )
    return rule


def stack_rules(rules: list[Any]) -> Any:
    """Return one rule for all etas, or the list if the rules differ in more than a number eta."""
    first = rules[0]

    def equal(one: Any, other: Any) -> bool:
        described = describe(one)  # equal names do not make functions equal
        same = described == describe(other) and not any(known_by_name(described))
        return one is other or same

    def matches(rule: Any) -> bool:
        pairs = [(value, vars(rule).get(k)) for k, value in vars(first).items() if k != "eta"]
        return type(rule) is type(first) and all(equal(*pair) for pair in pairs)

    if all(map(matches, rules)):
        etas = [rule.eta for rule in rules]
        if all(eta is None for eta in etas):
            return first
        if all(isinstance(eta, float) for eta in etas):
            return replace(first, eta=etas)
    return rules


@contextmanager
def add_note(name: str, etas: Any) -> Iterator[None]:
    """Add to errors for which rule and step sizes of the sweep they were raised."""
    try:
        yield
    except Exception as error:
        low, high = float(np.min(etas)), float(np.max(etas))
        span = f"{low} to {high}" if low < high else low
        error.add_note(f"This was rule {name!r} of the sweep, eta = {span}.")
        raise
