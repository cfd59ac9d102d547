"""The trajectories of a sweep: columns of one matrix, cut into chunks, and put together again with labels."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..common import check
from ..common.describe import describe
from ..losses import Minibatch, as_loss
from ..penalties import as_penalty
from ..rules import Rule
from ..solve.algorithm import iterations, start
from ..solve.driver import Watch
from ..solve.state import State
from ..solve.status import BUDGETS, Status
from ..solve.step import penalised
from .checkpoint import Expected
from .makers import by_names, made, noted, together

if TYPE_CHECKING:
    import xarray

CHUNK_BYTES = 1 << 21  # bytes that the predictions, or the iterates, of one chunk may have
CHUNK_COLUMNS = 32  # columns that a chunk has at least, if memory and their number allow: a sparse product needs so many
FEWEST_COLUMNS = 4  # columns that it keeps when it is cut for the sake of another core,
LARGE_COLUMN = 1e4  # unless a single one has so many coordinates or predictions that it is worth a core
RECORDED = ("objective", "mean_step")
MEMORY = "state.memory."
SINGLE_DIGITS, DOUBLE_DIGITS = 3, 6  # of values at the starts: later ones are others on another machine
ENDS = (Status.MAX_ITER, Status.NOT_FINITE, Status.DIVERGED)


class Chunk(NamedTuple):
    """Columns low..high of one rule. A column is one (eta, start); the starts run fastest."""

    rule: str
    low: int
    high: int


class Trajectories:
    """Every rule with every eta from every start: what is to be computed, checked."""

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
        averages: bool = False,
    ):
        self.loss, self.penalty, makers = as_loss(loss), as_penalty(penalty), by_names(rules)
        check.refuse_masked(etas, "'etas'")
        self.etas = np.array([check.positive(eta, "etas", "sweep") for eta in np.ravel(etas)])
        if np.ndim(etas) > 1 or not self.etas.size or np.unique(self.etas).size != self.etas.size:
            raise check.InputError("'etas' must be one or more positive numbers, each of them once.")
        self.x0s = _starts(x0s, self.loss.shape)
        self.n_iter = check.count(n_iter, "n_iter", "sweep", least=1)
        self.record = check.count(record, "record", "sweep", least=1)
        self.keep_x, self.averages = bool(keep_x), bool(averages)
        several = {name: [made(name, make, float(eta)) for eta in self.etas] for name, make in makers.items()}
        self.rules = {name: together(rules) for name, rules in several.items()}
        problem = {"loss": self.loss, "penalty": self.penalty, "etas": self.etas, "x0s": self.x0s, "rules": self.rules}
        #: Everything the results depend on, before a loss that remembers something has seen the first x.
        self.description = {**describe(problem), "n_iter": self.n_iter, "record": self.record, "keep_x": self.keep_x}
        if self.averages:  # said only then: checkpoints of sweeps without them are older than this line
            self.description["averages"] = True
        self.first = start(self.loss, self.x0s, self.penalty, next(iter(several.values()))[0])
        if not self.first.batched:
            raise check.InputError("The loss must return one value per column of x, as 'x0s' has one start per column.")
        self.starts = self.x0s.shape[-1]
        recorded = np.arange(self.record, self.n_iter + 1, self.record)
        self.iterations = np.union1d(recorded, [self.n_iter])  # the last one always

    def at_starts(self) -> dict[str, Any]:
        """The values at the starts, roughly, and the size of the gradient: code that was edited still has its old name."""
        digits = SINGLE_DIGITS if self.first.x.dtype == np.float32 else DOUBLE_DIGITS
        gradient = np.abs(self.first.flat(self.first.g)).max(axis=0)
        values = {"loss": self.first.f, "penalty": self.first.phi, "gradient": gradient}
        return {name: [f"{number:.{digits}g}" for number in np.ravel(array)] for name, array in values.items()}

    @property
    def column(self) -> int:
        """Bytes that a trajectory takes while it runs."""
        size, predictions = self.first.x[..., 0].size, self.loss.predictions * self.first.x.itemsize
        # The predictions and what is computed of them, the state and its scratch, and the record as it grows and is kept.
        return 2 * predictions + (20 if self.averages else 16) * 8 * size + 8 * 8 * self.iterations.size

    def plan(self, budget: float, jobs: int) -> list[Chunk]:
        """Chunks of which `jobs` at once stay within the budget (bytes), and each of them in the cache if that is possible."""
        if self.column > budget:
            raise check.InputError(
                f"The 'memory' parameter of sweep is too small: a trajectory needs {-(-self.column // 10_000) / 100:g} MB. "
                "Give at least that for each that is to run at the same time."
            )
        jobs = min(jobs, int(budget / self.column))
        in_cache = CHUNK_BYTES / (self.first.x.itemsize * max(self.loss.predictions, self.first.x[..., 0].size))
        width = int(min(budget / jobs / self.column, max(CHUNK_COLUMNS, in_cache)))
        least = 1 if self.first.x[..., 0].size + self.loss.predictions > LARGE_COLUMN else min(FEWEST_COLUMNS, width)
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

    def check_plan(self, plan: Any) -> list[Chunk]:
        """The plan that was read from somewhere, if each column of each rule is in one chunk, in order."""
        if not isinstance(plan, list) or not all(isinstance(chunk, list) and len(chunk) == 3 for chunk in plan):
            raise ValueError("its plan is not a list of chunks (rule, low, high)")
        wanted = [(name, 0) for name in self.rules]  # where the chunks of the rules have to begin
        for rule, low, high in plan:
            if not wanted or [rule, low] != list(wanted[0]) or any(type(end) is not int for end in (low, high)):
                break
            columns = self.etas.size * self.starts
            end = columns if isinstance(self.rules[rule], Rule) else (low // self.starts + 1) * self.starts
            if not low < high <= end:
                break
            wanted[:1] = [(rule, high)] if high < columns else []
        else:
            if not wanted:
                return [Chunk(*chunk) for chunk in plan]
        raise ValueError("its plan does not have every trajectory once")

    def layout(self, width: int) -> dict[str, Expected]:
        """The results of a chunk."""
        layout = {name: Expected((self.iterations.size, width), np.dtype(np.float64)) for name in RECORDED}
        for name in ("objective_best", "objective_average"):
            layout[name] = Expected((width,), np.dtype(np.float64))
        layout["nit"] = Expected((width,), np.dtype(np.int64), range(self.n_iter + 1))
        layout["status"] = Expected((width,), np.dtype(np.int64), ENDS)
        if self.keep_x:
            layout["x"] = Expected((*self.first.x.shape[:-1], width), self.first.x.dtype)
        return layout

    def run(
        self, chunk: Chunk, kept: Callable[..., Any], seconds: float, watched: Callable[..., Any], pause: Callable[..., Any]
    ) -> tuple[dict[str, np.ndarray], bool]:
        """The results of one chunk, and whether it is finished.

        `kept(layout)` returns what was kept of it earlier, if anything was, as arrays of that layout. Every so many seconds,
        `pause(arrays)` may keep how far it is, and says whether to stop. `watched(watch)` hands out what knows that, too.
        """
        rule, etas, record, state, layout = self._begin(chunk)
        if (arrays := kept(layout)) is not None:
            record = {name: arrays.pop(name) for name in RECORDED}
            state.memory = {name: arrays.pop(f"{MEMORY}{name}") for name in state.memory}
            state = replace(state, **{name.removeprefix("state."): array for name, array in arrays.items()})
        regular = self.n_iter - self.n_iter % self.record
        while True:
            # Up to the last multiple of `record`; then the rest, of which only the end is recorded.
            n = int(state.n.max())
            goal, every = (regular, self.record) if n < regular else (self.n_iter, self.n_iter)
            watch = Watch(goal - n, perf_counter() + seconds, None, None, every, state, norms=False)
            watched(watch)
            with noted(chunk.rule, self.etas[etas]):
                status = watch.run(lambda rule, state: iterations(self.loss, self.penalty, rule, state), rule, state)
            if np.any(status == Status.INTERRUPTED):
                raise KeyboardInterrupt
            history = watch.history()
            rows = np.searchsorted(self.iterations, history.iteration)
            for name in RECORDED:
                record[name][rows] = getattr(history, name)
            running = np.isin(status, BUDGETS)
            finished = watch.n == self.n_iter or not running.any()
            if finished or pause({name: array for name, array in (record | _arrays(state)).items() if name in layout}):
                break
        status = np.where(running, Status.MAX_ITER if finished else Status.INTERRUPTED, status).astype(np.int64)
        answer = {**record, "objective_best": state.fun_best, "nit": state.n, "status": status}
        answer["objective_average"] = self.at_average(state)
        return {**answer, "x": state.x} if self.keep_x else answer, finished

    def _begin(self, chunk: Chunk) -> tuple[Rule, np.ndarray, dict[str, np.ndarray], State, dict[str, Expected]]:
        """A chunk before its first iteration, and the layout of what is kept of it on the way."""
        columns = np.arange(chunk.low, chunk.high)
        rules, etas = self.rules[chunk.rule], columns // self.starts
        rule = rules.select(etas) if isinstance(rules, Rule) else rules[etas[0]]
        record = {name: np.full((self.iterations.size, columns.size), np.nan) for name in RECORDED}
        with noted(chunk.rule, self.etas[etas]):
            state = start(self.loss, self.x0s[..., columns % self.starts], self.penalty, rule, averages=self.averages)
        layout = {name: Expected(array.shape, array.dtype) for name, array in (record | _arrays(state)).items()}
        layout["state.n"] = layout["state.n"]._replace(values=range(self.n_iter + 1))
        return rule, etas, record, state, layout

    def layout_on_the_way(self, chunk: Chunk) -> dict[str, Expected]:
        """What is kept of a chunk that is not finished."""
        return self._begin(chunk)[-1]

    def at_average(self, state: State) -> np.ndarray:
        """F at the average iterate, if it is known; NaN if not, and where a trajectory has failed."""
        if "average" not in state.memory and not self.averages:
            return np.full(state.f.shape, np.nan)
        x = np.ascontiguousarray(state.x_avg)
        with np.errstate(all="ignore"):  # what overflows is seen in the value
            values = self.loss.oracle(x)(x, np.empty_like(x)) + self.penalty.value(penalised(self.loss, state)(x))
        return np.where(state.failed, np.nan, values).astype(np.float64)

    def dataset(self, plan: list[Chunk], parts: list[dict[str, np.ndarray] | None]) -> xarray.Dataset:
        """The results of all chunks, labelled. None is a chunk that was not begun."""
        import xarray

        from ..common.version import __version__

        names, trajectory = list(self.rules), ("rule", "eta", "seed")
        coordinate = ("coordinate", *(f"coordinate_{axis}" for axis in range(1, self.x0s.ndim - 1)))
        variables: dict[str, Any] = {}
        for key, ((*leading, _), dtype, _) in self.layout(1).items():
            whole = np.empty((*leading, len(names), self.etas.size * self.starts), dtype)
            absent = {"nit": 0, "status": Status.INTERRUPTED}.get(key, np.nan)
            for chunk, part in zip(plan, parts, strict=True):
                values = absent if part is None else part.pop(key)  # so that it exists once only
                whole[..., names.index(chunk.rule), chunk.low : chunk.high] = values
            whole = whole.reshape(*leading, len(names), self.etas.size, self.starts)
            if key in RECORDED:
                variables[key] = ((*trajectory, "iteration"), np.moveaxis(whole, 0, -1))
            else:
                variables[key] = ((*(coordinate if key == "x" else ()), *trajectory), whole)
        variables |= {"objective_start": ("seed", self.first.fun), "start": ((*coordinate, "seed"), self.x0s)}
        coords: dict[str, Any] = {"rule": names, "eta": self.etas, "seed": np.arange(self.starts), "iteration": self.iterations}
        if isinstance(self.loss, Minibatch):
            coords["passes"] = ("iteration", self.loss.schedule(self.n_iter)[self.iterations - 1])
        versions = {"adagrad_diff": __version__, "numpy": np.__version__}
        data = xarray.Dataset(variables, coords, {**versions, "problem": json.dumps(self.description)})
        data.status.attrs = {"flag_values": [int(s) for s in Status], "flag_meanings": " ".join(s.name for s in Status)}
        return data


def _arrays(state: State) -> dict[str, np.ndarray]:
    """The arrays of a state, by the names that they have in a file."""
    values = {f"state.{field.name}": getattr(state, field.name) for field in fields(state)}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    return arrays | {f"{MEMORY}{name}": array for name, array in state.memory.items()}


def _starts(x0s: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """A copy of the starts, one per column."""
    x0s = np.array(check.finite(np.atleast_1d(check.real_array(x0s, "x0s")), "x0s"))
    columns: np.ndarray = x0s if x0s.ndim > len(shape or "d") else x0s[..., None]
    if columns.size == 0 or columns.shape[:-1] != (columns.shape[:-1] if shape is None else shape):
        wanted = "d" if shape is None else ", ".join(map(str, shape))
        raise check.InputError(f"'x0s' must have shape ({wanted}, starts). Got shape {x0s.shape} instead.")
    return columns
