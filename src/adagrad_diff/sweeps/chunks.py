"""The trajectories of a sweep: columns of one matrix, cut into chunks, and put together again with labels."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _check
from ..losses import Minibatch, as_loss
from ..penalties import as_penalty
from ..solvers.fingerprint import describe
from ..solvers.loop import Loop
from ..solvers.minimize import as_solver
from ..solvers.problem import problem_at
from ..solvers.result import Status
from ..solvers.run import Run
from .checkpoint import Expected
from .makers import by_names, made, noted, together

if TYPE_CHECKING:
    import xarray

CHUNK_BYTES = 1 << 21  # bytes that the predictions, or the iterates, of one chunk may have
CHUNK_COLUMNS = 32  # columns that a chunk has at least, if memory and their number allow: a sparse product needs so many
FEWEST_COLUMNS = 4  # columns that it keeps when it is cut for the sake of another core,
LARGE_COLUMN = (
    1e4  # unless a single one has so many coordinates or predictions that it is worth a core
)
RECORDED = ("objective", "mean_step")
SINGLE_DIGITS, DOUBLE_DIGITS = (
    3,
    6,
)  # of values at the starts: later ones are others on another machine
ENDS = (Status.MAX_ITER, Status.NOT_FINITE, Status.DIVERGED)


Arrays = dict[str, np.ndarray]


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
        _check.refuse_masked(etas, "'etas'")
        self.etas = np.array([_check.positive(eta, "etas", "sweep") for eta in np.ravel(etas)])
        if np.ndim(etas) > 1 or not self.etas.size or np.unique(self.etas).size != self.etas.size:
            raise _check.InputError(
                "'etas' must be one or more positive numbers, each of them once."
            )
        self.x0s = _starts(x0s, self.loss.shape)
        self.n_iter = _check.count(n_iter, "n_iter", "sweep", least=1)
        self.record = _check.count(record, "record", "sweep", least=1)
        self.keep_x, self.averages = bool(keep_x), bool(averages)
        several = {
            name: [made(name, make, float(eta)) for eta in self.etas]
            for name, make in makers.items()
        }
        self.rules = {name: together(rules) for name, rules in several.items()}
        problem = {
            "loss": self.loss,
            "penalty": self.penalty,
            "etas": self.etas,
            "x0s": self.x0s,
            "rules": self.rules,
        }
        #: Everything the results depend on, before a loss that remembers something has seen the first x.
        self.description = {
            **describe(problem),
            "n_iter": self.n_iter,
            "record": self.record,
            "keep_x": self.keep_x,
        }
        if (
            self.averages
        ):  # said only then: checkpoints of sweeps without them are older than this line
            self.description["averages"] = True
        started, x = problem_at(self.loss, self.x0s, self.penalty, None)
        if started.trajectories is None:
            raise _check.InputError(
                "The loss must return one value per column of x, as 'x0s' has one start per column."
            )
        self.starts, self.shape, self.dtype = self.x0s.shape[-1], started.shape, started.dtype
        self.first = Run.begin(
            as_solver(next(iter(several.values()))[0]), started, x, averages=False
        ).progress.iterate
        recorded = np.arange(self.record, self.n_iter + 1, self.record)
        self.iterations = np.union1d(recorded, [self.n_iter])  # the last one always

    def at_starts(self) -> dict[str, Any]:
        """The values at the starts, roughly, and the size of the gradient: code that was edited still has its old name."""
        digits = SINGLE_DIGITS if self.dtype == np.float32 else DOUBLE_DIGITS
        gradient = np.abs(self.first.g).max(axis=0)
        values = {"loss": self.first.f, "penalty": self.first.phi, "gradient": gradient}
        return {
            name: [f"{number:.{digits}g}" for number in np.ravel(array)]
            for name, array in values.items()
        }

    @property
    def column(self) -> int:
        """Bytes that a trajectory takes while it runs."""
        size, predictions = len(self.first.x), self.loss.predictions * self.dtype.itemsize
        # The predictions and what is computed of them, the state and its scratch, and the record as it grows and is kept.
        return (
            2 * predictions
            + (20 if self.averages else 16) * 8 * size
            + 8 * 8 * self.iterations.size
        )

    def plan(self, budget: float, jobs: int) -> list[Chunk]:
        """Chunks of which `jobs` at once stay within the budget (bytes), and each of them in the cache if that is possible."""
        if self.column > budget:
            raise _check.InputError(
                f"The 'memory' parameter of sweep is too small: a trajectory needs {-(-self.column // 10_000) / 100:g} MB. "
                "Give at least that for each that is to run at the same time."
            )
        jobs = min(jobs, int(budget / self.column))
        in_cache = CHUNK_BYTES / (
            self.dtype.itemsize * max(self.loss.predictions, len(self.first.x))
        )
        width = int(min(budget / jobs / self.column, max(CHUNK_COLUMNS, in_cache)))
        least = (
            1
            if len(self.first.x) + self.loss.predictions > LARGE_COLUMN
            else min(FEWEST_COLUMNS, width)
        )
        chunks = []
        for name, rule in self.rules.items():
            groups = self.etas.size if isinstance(rule, list) else 1  # or one eta at a time
            columns = self.etas.size * self.starts // groups
            equal = -(
                -jobs // (len(self.rules) * groups)
            )  # as many chunks as occupy all cores, or a multiple of that
            pieces = max(
                1,
                min(-(-columns // width // equal) * equal, columns // least),
                -(-columns // width),
            )
            cuts = np.linspace(0, columns, pieces + 1).round().astype(int)
            for offset in range(0, groups * columns, columns):
                chunks += [
                    Chunk(name, *map(int, pair))
                    for pair in zip(offset + cuts[:-1], offset + cuts[1:], strict=True)
                ]
        return chunks

    def check_plan(self, plan: Any) -> list[Chunk]:
        """The plan that was read from somewhere, if each column of each rule is in one chunk, in order."""
        if not isinstance(plan, list) or not all(
            isinstance(chunk, list) and len(chunk) == 3 for chunk in plan
        ):
            raise ValueError("its plan is not a list of chunks (rule, low, high)")
        wanted = [(name, 0) for name in self.rules]  # where the chunks of the rules have to begin
        for rule, low, high in plan:
            if (
                not wanted
                or [rule, low] != list(wanted[0])
                or any(type(end) is not int for end in (low, high))
            ):
                break
            columns = self.etas.size * self.starts
            one_eta = isinstance(self.rules[rule], list)
            end = (low // self.starts + 1) * self.starts if one_eta else columns
            if not low < high <= end:
                break
            wanted[:1] = [(rule, high)] if high < columns else []
        else:
            if not wanted:
                return [Chunk(*chunk) for chunk in plan]
        raise ValueError("its plan does not have every trajectory once")

    def layout(self, width: int) -> dict[str, Expected]:
        """The results of a chunk."""
        layout = {
            name: Expected((self.iterations.size, width), np.dtype(np.float64)) for name in RECORDED
        }
        for name in ("objective_best", "objective_average"):
            layout[name] = Expected((width,), np.dtype(np.float64))
        layout["nit"] = Expected((width,), np.dtype(np.int64), range(self.n_iter + 1))
        layout["status"] = Expected((width,), np.dtype(np.int64), ENDS)
        if self.keep_x:
            layout["x"] = Expected((*self.shape, width), self.dtype)
        return layout

    def run(
        self, chunk: Chunk, cancelled: Callable[[], bool], watched: Callable[[Loop], None]
    ) -> tuple[Arrays, bool]:
        """Return the results of a chunk, and whether it is finished: `cancelled` may stop it.

        `watched` gets the loop, which knows how far it is.
        """
        columns = np.arange(chunk.low, chunk.high)
        rules, etas = self.rules[chunk.rule], columns // self.starts
        rule = rules[etas[0]] if isinstance(rules, list) else rules.select(etas)
        with noted(chunk.rule, self.etas[etas]):
            solver, x0 = as_solver(rule, self.loss), self.x0s[..., columns % self.starts]
            run = Run.begin(
                solver,
                *problem_at(self.loss, x0, self.penalty, solver.trajectories),
                averages=self.averages,
            )
            options: dict[str, Any] = {"record": self.record, "record_end": True, "norms": False}
            loop = Loop(run, max_iter=self.n_iter, cancelled=cancelled, **options)
            watched(loop)
            loop.iterate()
        if loop.interrupted:
            raise KeyboardInterrupt
        history, p = loop.record.history(), run.all
        arrays = {name: np.full((self.iterations.size, columns.size), np.nan) for name in RECORDED}
        for name in RECORDED:
            arrays[name][np.searchsorted(self.iterations, history.iteration)] = getattr(
                history, name
            )
        status = np.where(loop.codes == Status.MAX_TIME, Status.INTERRUPTED, loop.codes)
        finished = not (status == Status.INTERRUPTED).any()
        arrays |= {
            "objective_best": p.fun_best,
            "nit": p.iterate.n,
            "status": status.astype(np.int64),
        }
        arrays["objective_average"] = self.at_average(run)
        return arrays | (
            {"x": p.iterate.x.reshape(*self.shape, -1)} if self.keep_x else {}
        ), finished

    def at_average(self, run: Run) -> np.ndarray:
        """Return F at the average iterate; NaN where it is not known, and where a trajectory has failed."""
        p = run.all
        if run.solver.averages:
            x = run.solver.average(p.iterate)
        elif p.x_sum is not None:
            n = np.maximum(p.iterate.n, 1)
            x = np.where(p.iterate.n == 0, p.iterate.x, p.x_sum / n)
        else:
            return np.full(p.failed.shape, np.nan)
        problem = run.problem.narrowed(p.failed.size)
        x = x.astype(problem.dtype)
        with np.errstate(all="ignore"):  # what overflows is seen in the value
            values = problem.evaluate(x)[0] + problem.phi(x)
        return np.where(p.failed, np.nan, values)

    def dataset(
        self, plan: list[Chunk], parts: list[dict[str, np.ndarray] | None]
    ) -> xarray.Dataset:
        """The results of all chunks, labelled. None is a chunk that was not begun."""
        import xarray

        from .._version import __version__

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
        variables |= {
            "objective_start": ("seed", self.first.f + self.first.phi),
            "start": ((*coordinate, "seed"), self.x0s),
        }
        coords: dict[str, Any] = {
            "rule": names,
            "eta": self.etas,
            "seed": np.arange(self.starts),
            "iteration": self.iterations,
        }
        if isinstance(self.loss, Minibatch):
            coords["passes"] = ("iteration", self.loss.schedule(self.n_iter)[self.iterations - 1])
        versions = {"adagrad_diff": __version__, "numpy": np.__version__}
        data = xarray.Dataset(
            variables, coords, {**versions, "problem": json.dumps(self.description)}
        )
        data.status.attrs = {
            "flag_values": [int(s) for s in Status],
            "flag_meanings": " ".join(s.name for s in Status),
        }
        return data


def _starts(x0s: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """A copy of the starts, one per column."""
    x0s = np.array(_check.finite(np.atleast_1d(_check.real_array(x0s, "x0s")), "x0s"))
    columns: np.ndarray = x0s if x0s.ndim > len(shape or "d") else x0s[..., None]
    if columns.size == 0 or columns.shape[:-1] != (columns.shape[:-1] if shape is None else shape):
        wanted = "d" if shape is None else ", ".join(map(str, shape))
        raise _check.InputError(
            f"'x0s' must have shape ({wanted}, starts). Got shape {x0s.shape} instead."
        )
    return columns
