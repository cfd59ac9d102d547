"""The trajectories of a sweep: columns of one matrix, cut into chunks, and put together again with labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _check
from ._describe import describe
from ._driver import Watch
from ._minimize import iterations, start
from ._state import State
from ._status import BUDGETS, Status
from .losses import as_loss
from .penalties import as_penalty
from .rules import Rule

if TYPE_CHECKING:
    import xarray

CACHE = 1 << 21  # bytes that the predictions, or the iterates, of one chunk may have
WIDE = 32  # columns that a chunk has at least, if memory and their number allow: a sparse product needs so many
LEAST = 4  # columns that it keeps when it is cut for the sake of another core,
LARGE = 1e4  # unless a single one has so many coordinates or predictions that it is worth a core
RECORDED = ("objective", "mean_step")


class Chunk(NamedTuple):
    """Columns low..high of one rule. A column is one (eta, start); the starts run fastest."""

    rule: str
    low: int
    high: int


class Trajectories:
    """Every rule with every eta from every start: what is to be computed, checked."""

    def __init__(self, loss: Any, penalty: Any, rules: Any, etas: Any, x0s: Any, n_iter: int, record: int, keep_x: bool):
        self.loss, self.penalty, makers = as_loss(loss), as_penalty(penalty), _named(rules)
        self.etas = np.array([_check.positive(eta, "etas", "sweep") for eta in np.ravel(etas)])
        if np.ndim(etas) > 1 or not self.etas.size or np.unique(self.etas).size != self.etas.size:
            raise ValueError("'etas' must be one or more positive numbers, each of them once.")
        self.x0s = _starts(x0s, self.loss.shape)
        self.n_iter = _check.count(n_iter, "n_iter", "sweep", least=1)
        self.record = _check.count(record, "record", "sweep", least=1)
        self.keep_x = bool(keep_x)
        made = {name: [make(float(eta)) for eta in self.etas] for name, make in makers.items()}
        for name, several in made.items():
            for rule in several:
                if not isinstance(rule, Rule):
                    raise TypeError(f"'rules' must be rule classes or functions eta -> rule, but {name} made {rule!r}.")
        self.rules = {name: _together(several) for name, several in made.items()}
        problem = {"loss": self.loss, "penalty": self.penalty, "etas": self.etas, "x0s": self.x0s, "rules": self.rules}
        #: Everything the results depend on, before a loss that remembers something has seen the first x.
        self.description = {**describe(problem), "n_iter": self.n_iter, "record": self.record, "keep_x": self.keep_x}
        self.first = start(self.loss, self.x0s, self.penalty, next(iter(made.values()))[0])
        if not self.first.batched:
            raise ValueError("The loss must return one value per column of x, as 'x0s' has one start per column.")
        self.starts = self.x0s.shape[-1]
        recorded = np.arange(self.record, self.n_iter + 1, self.record)
        self.iterations = np.union1d(recorded, [self.n_iter])  # the last one always

    @property
    def column(self) -> int:
        """Bytes that a trajectory takes while it runs."""
        size, predictions = self.first.x[..., 0].size, self.loss.predictions * self.first.x.itemsize
        # The predictions and what is computed of them, the state and its scratch, and the record as it grows and is kept.
        return 2 * predictions + 16 * 8 * size + 8 * 8 * self.iterations.size

    def plan(self, budget: float, jobs: int) -> list[Chunk]:
        """Chunks of which `jobs` at once stay within the budget (bytes), and each of them in the cache if that is possible."""
        if self.column > budget:
            raise ValueError(
                f"The 'memory' parameter of sweep is too small: a trajectory needs {-(-self.column // 10_000) / 100:g} MB. "
                "Give at least that for each that is to run at the same time."
            )
        jobs = min(jobs, int(budget / self.column))
        in_cache = CACHE / (self.first.x.itemsize * max(self.loss.predictions, self.first.x[..., 0].size))
        width = int(min(budget / jobs / self.column, max(WIDE, in_cache)))
        least = 1 if self.first.x[..., 0].size + self.loss.predictions > LARGE else min(LEAST, width)
        chunks = []
        for name, rule in self.rules.items():
            groups = 1 if isinstance(rule, Rule) else self.etas.size  # or one eta at a time
            columns = self.etas.size * self.starts // groups
            equal = -(-jobs // (len(self.rules) * groups))  # as many chunks as occupy all cores, or a multiple of that
            pieces = max(1, min(-(-columns // width // equal) * equal, columns // least), -(-columns // width))
            cuts = np.linspace(0, columns, pieces + 1).round().astype(int)
            for offset in range(0, groups * columns, columns):
                chunks += [Chunk(name, *map(int, pair)) for pair in zip(offset + cuts[:-1], offset + cuts[1:], strict=True)]
        return chunks

    def run(
        self, chunk: Chunk, kept: tuple[dict, State] | None, seconds: float, watched: Callable, pause: Callable
    ) -> dict[str, np.ndarray] | None:
        """The trajectories of one chunk.

        Every so many seconds, `pause(record, state)` may keep them, and says whether to stop: then the answer is None.
        `watched(watch)` hands out what knows how far they are.
        """
        columns = np.arange(chunk.low, chunk.high)
        rules, etas = self.rules[chunk.rule], columns // self.starts
        rule = rules.select(etas) if isinstance(rules, Rule) else rules[etas[0]]
        record = {name: np.full((self.iterations.size, columns.size), np.nan) for name in RECORDED}
        if kept is None:
            state = start(self.loss, self.x0s[..., columns % self.starts], self.penalty, rule, averages=False)
        else:
            state = kept[1]
            for name in RECORDED:
                record[name][:] = kept[0][name]
        regular = self.n_iter - self.n_iter % self.record
        while True:
            # Up to the last multiple of `record`; then the rest, of which only the end is recorded.
            n = int(state.n.max())
            goal, every = (regular, self.record) if n < regular else (self.n_iter, self.n_iter)
            watch = Watch(goal - n, perf_counter() + seconds, None, None, every, state, norms=False)
            watched(watch)
            status = watch.run(lambda rule, state: iterations(self.loss, self.penalty, rule, state), rule, state)
            history = watch.history()
            rows = np.searchsorted(self.iterations, history.iteration)
            for name in RECORDED:
                record[name][rows] = getattr(history, name)
            running = np.isin(status, BUDGETS)
            if watch.n == self.n_iter or not running.any():
                break
            if pause(record, state):
                return None
        answer = {
            **record,
            "objective_best": state.fun_best,
            "nit": state.n,
            "status": np.where(running, Status.MAX_ITER, status),
        }
        return {**answer, "x": state.x} if self.keep_x else answer

    def dataset(self, plan: list[Chunk], parts: list[dict[str, np.ndarray]]) -> xarray.Dataset:
        """The results of all chunks, labelled."""
        import xarray

        from . import __version__

        names, trajectory = list(self.rules), ("rule", "eta", "seed")
        coordinate = ("coordinate", *(f"coordinate_{axis}" for axis in range(1, self.x0s.ndim - 1)))
        variables: dict[str, Any] = {}
        for key in tuple(parts[0]):
            *leading, _ = parts[0][key].shape
            whole = np.empty((*leading, len(names), self.etas.size * self.starts), parts[0][key].dtype)
            for chunk, part in zip(plan, parts, strict=True):
                whole[..., names.index(chunk.rule), chunk.low : chunk.high] = part.pop(key)  # so that it exists once only
            whole = whole.reshape(*leading, len(names), self.etas.size, self.starts)
            if key in RECORDED:
                variables[key] = ((*trajectory, "iteration"), np.moveaxis(whole, 0, -1))
            else:
                variables[key] = ((*(coordinate if key == "x" else ()), *trajectory), whole)
        variables |= {"objective_start": ("seed", self.first.fun), "start": ((*coordinate, "seed"), self.x0s)}
        coords = {"rule": names, "eta": self.etas, "seed": np.arange(self.starts), "iteration": self.iterations}
        versions = {"adagrad_diff": __version__, "numpy": np.__version__}
        data = xarray.Dataset(variables, coords, {**versions, "problem": json.dumps(self.description)})
        data.status.attrs = {"flag_values": [int(s) for s in Status], "flag_meanings": " ".join(s.name for s in Status)}
        return data


def _starts(x0s: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """A copy of the starts, one per column."""
    x0s = np.array(_check.finite(np.atleast_1d(_check.real_array(x0s, "x0s")), "x0s"))
    columns = x0s if x0s.ndim > len(shape or "d") else x0s[..., None]
    if columns.size == 0 or columns.shape[:-1] != (columns.shape[:-1] if shape is None else shape):
        wanted = "d" if shape is None else ", ".join(map(str, shape))
        raise ValueError(f"'x0s' must have shape ({wanted}, starts). Got shape {x0s.shape} instead.")
    return columns


def _together(rules: list[Rule]) -> Rule | list[Rule]:
    """One rule with an array of etas, if only these differ, and they are numbers."""

    def same(one: Rule, other: Rule) -> bool:
        pairs = [(item, vars(other).get(name)) for name, item in vars(one).items() if name != "eta"]
        return type(one) is type(other) and all(a is b or describe(a) == describe(b) for a, b in pairs)

    etas = [rule.eta for rule in rules if isinstance(rule.eta, float) and same(rules[0], rule)]
    return replace(rules[0], eta=etas) if len(etas) == len(rules) else rules


def _named(rules: Any) -> dict[str, Callable]:
    """Names for the rules: their own, or those of a dict."""
    if not isinstance(rules, Mapping):
        several = list(rules) if isinstance(rules, Iterable) else [rules]
        names = [getattr(rule, "__name__", type(rule).__name__) for rule in several]
        clear = len(set(names)) == len(names) and "<lambda>" not in names
        rules = dict(zip(names if clear else [f"rule {k}" for k in range(len(names))], several, strict=True))
    if not rules or not all(callable(rule) for rule in rules.values()):
        raise TypeError("'rules' must be rule classes, such as AdaGradDiff, or functions eta -> rule.")
    named = {str(name): rule for name, rule in rules.items()}
    if len(named) < len(rules):
        raise ValueError(f"'rules' must have different names. Got {list(rules)} instead.")
    return named
