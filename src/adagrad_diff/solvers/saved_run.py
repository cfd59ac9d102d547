"""What a checkpoint of `minimize` holds: a state, the history, how far budgets are used, and the end."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .. import _check
from .checkpoint import Checkpoint, Content
from .fingerprint import describe, difference
from .loop import History, Loop
from .result import BUDGETS, RUNNING, Status
from .state import State, unpack

SAVED_RUN_FORMAT = "adagrad-diff run 3"
COLUMNS = [f"history.{field.name}" for field in fields(History)]
BUDGET_STATUS = {"max_iter": Status.MAX_ITER, "max_time": Status.MAX_TIME}
RESUMABLE = (Status.CALLBACK, Status.INTERRUPTED)  # ends after which the same call continues


@dataclass
class SavedRun:
    """The content of a checkpoint."""

    state: State
    codes: np.ndarray  # the status of each trajectory; RUNNING if it has not ended
    history: History
    seconds: float  # that all calls have taken so far
    begun: int  # the iteration at which the first call began: not 0 if it was given a state
    start: dict[str, Any]  # x0 and state of that call
    call: dict[str, Any]  # what decides about its end: tol, stop, finish, max_iter, max_time
    ended: bool  # whether the run has ended: its result is computed again
    bound: tuple[np.ndarray, float] | None = (
        None  # of a run that has ended: dual point and dual value
    )


class RunCheckpoint:
    """The checkpoint of one call of `minimize`."""

    def __init__(self, path: Any, every: float, x0: Any, state: State | None, **call: Any):
        self.file, self.call = Checkpoint(path, SAVED_RUN_FORMAT, every), call
        try:
            self.file.check_writable()
            n = 0 if state is None else int(np.max(state.n))
            given = None if state is None else [n, state.x]
            x0 = None if x0 is None else _check.real_array(x0, "x0")
            self.start, self.begun, self.seconds = describe({"x0": x0, "state": given}), n, 0.0
            self.saved: SavedRun | None = None
            if self.file.content is not None:
                self._open(self.file.content)
        except BaseException:
            self.file.close()
            raise

    def _open(self, content: Content) -> None:
        try:
            saved = _saved_run(*content)
        except Exception as error:  # whatever is in the file
            raise self.file.unreadable(error) from error
        if where := difference(saved.start, self.start):
            name = "state" if where.startswith("state") else "x0"
            raise self.file.refusal(f"its run began elsewhere, for {name!r} is not the same")
        self.saved, self.begun, self.seconds = saved, saved.begun, saved.seconds

    def close(self) -> None:
        """Let other runs use the file."""
        self.file.close()

    def left(self, state: State, max_iter: int) -> int:
        """Return the iterations that are left: they are counted from the very first start."""
        return max(0, max_iter - (int(np.max(state.n)) - self.begun))

    def finished(self, loop: Loop) -> bool:
        """Return whether the run has ended and would end there again, with the budgets of this call.

        What the file says about the end is not believed: the point must be as good as it says.
        """
        saved = self.saved
        if saved is None or not saved.ended or not self._same_call():
            return False
        before = saved.call
        more = any(
            self.call[k] > before[k]
            for k, code in BUDGET_STATUS.items()
            if np.any(saved.codes == code)
        )
        if more or np.isin(saved.codes, RESUMABLE).any():
            return False
        if loop.gap is not None and saved.bound is not None:
            loop.gap.certifier.recall(*saved.bound, saved.state.x)
        codes, loop.codes = loop.codes, saved.codes
        if loop.holds():
            return True
        loop.codes = codes
        return False

    def codes(self) -> np.ndarray | None:
        """Return the status of each trajectory: those that have ended by themselves do not continue."""
        if self.saved is None:
            return None
        codes = self.saved.codes
        again = np.isin(codes, (*BUDGETS, Status.INTERRUPTED)) if self._same_call() else True
        return np.where(again, RUNNING, codes)

    def _same_call(self) -> bool:
        assert self.saved is not None
        return all(self.call[name] == self.saved.call[name] for name in ("tol", "stop", "finish"))

    def write(self, loop: Loop, ended: bool = False) -> None:
        """Write the file anew."""
        history = loop.record.history()
        about, arrays = loop.run.state().pack()
        header = {
            "start": self.start,
            "call": self.call,
            "seconds": loop.seconds,
            "begun": self.begun,
        }
        arrays["codes"] = loop.codes.astype(np.int64)
        arrays |= {name: getattr(history, name.partition(".")[2]) for name in COLUMNS}
        if ended and loop.gap is not None and loop.gap.certifier.point is not None:
            arrays["dual_point"] = loop.gap.certifier.point
            arrays["dual_value"] = np.array(loop.gap.certifier.value)
        self.file.write({**header, "state": about, "ended": ended}, arrays)


def _saved_run(header: dict[str, Any], arrays: dict[str, Any]) -> SavedRun:
    """Return the content of a file, checked."""
    codes, *columns = (arrays.pop(name) for name in ("codes", *COLUMNS))
    point, bound = arrays.pop("dual_point", None), None
    if point is not None:
        bound = (point, float(arrays.pop("dual_value")))
    state = unpack(header.pop("state"), arrays)
    shape, rows = np.shape(state.f), columns[0].shape
    wanted = [(rows, np.int64), *[((*rows, *shape), np.float64)] * 3, *[(rows, np.float64)] * 2]
    found = [(column.shape, column.dtype) for column in columns]
    if found != [(s, np.dtype(d)) for s, d in wanted] or len(rows) != 1:
        raise ValueError(
            f"the arrays of its history have shapes {[column.shape for column in columns]}"
        )
    if codes.shape != (np.size(state.f),) or not np.isin(codes, [RUNNING, *Status]).all():
        raise ValueError("its status codes are not those of a run")
    saved = SavedRun(state, codes, History(*columns), **header, bound=bound)
    budgets = [saved.call[name] for name in ("max_iter", "max_time", "tol", "stop", "finish")][:2]
    fits = (
        0 <= saved.seconds < math.inf and 0 <= saved.begun <= np.max(state.n) and min(budgets) >= 0
    )
    if not (
        fits and isinstance(saved.start, dict) and {*saved.start} and saved.ended in (False, True)
    ):
        raise ValueError("its header is not that of a checkpoint")
    return saved
