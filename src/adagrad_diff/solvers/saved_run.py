"""The checkpoint of a call of `minimize`: a state, the history, and how far budgets are used."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .checkpoint import Checkpoint
from .fingerprint import describe, difference
from .loop import History, Loop
from .result import BUDGETS, RUNNING, SILENT, Status
from .state import State, unpack

if TYPE_CHECKING:
    from .checkpoint import Content

SAVED_RUN_FORMAT = "adagrad-diff run 4"
COLUMNS = [f"history.{field.name}" for field in fields(History)]
BUDGET_STATUS = {"max_iter": Status.MAX_ITER, "max_time": Status.MAX_TIME}
DUAL_POINT = "dual_point"


class RunCheckpoint:
    """The checkpoint of one call of `minimize`; `call` holds the arguments that decide when it ends."""

    def __init__(self, path: Any, every: float, x0: Any, state: State | None, **call: Any):
        self.file, self.call = Checkpoint(path, SAVED_RUN_FORMAT, every), call
        try:
            self.file.check_writable()
            given = None if state is None else [int(np.max(state.n)), state.x]
            x0 = None if x0 is None else _check.real_array(x0, "x0")
            self.header: dict[str, Any] = {
                "start": describe({"x0": x0, "state": given}),
                "begun": 0 if state is None else int(np.max(state.n)),
                "seconds": 0.0,  # that all calls have taken so far
                "call": call,
                "ended": False,
            }
            self.state = state
            self.codes: Any = None  # the status of each trajectory
            self.history: Any = None
            self.dual_point: Any = None  # of the best bound
            if self.file.content is not None:
                self._open(self.file.content)
        except BaseException:
            self.file.close()
            raise

    def _open(self, content: Content) -> None:
        try:
            header, arrays = content
            self._read(header, arrays)
        except Exception as error:  # a damaged file can raise anything
            raise self.file.unreadable(error) from error
        if where := difference(header["start"], self.header["start"]):
            name = "state" if where.startswith("state") else "x0"
            raise self.file.refusal(f"its run began elsewhere, for {name!r} is not the same")
        self.header |= {k: header[k] for k in ("begun", "seconds", "ended")}
        self.before = header["call"]

    def _read(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Check and keep what a file holds."""
        self.codes, *columns = (arrays.pop(name) for name in ("codes", *COLUMNS))
        self.dual_point = arrays.pop(DUAL_POINT, None)
        self.state = unpack(header["state"], arrays)
        like, rows = History.empty(np.shape(self.state.f)), len(columns[0])
        for name, column, empty in zip(COLUMNS, columns, like.arrays().values(), strict=True):
            if column.shape != (rows, *empty.shape[1:]) or column.dtype != empty.dtype:
                raise ValueError(f"{name} has shape {column.shape} and dtype {column.dtype}")
        self.history = History(*columns)
        if (
            self.codes.shape != (np.size(self.state.f),)
            or not np.isin(self.codes, [RUNNING, *Status]).all()
        ):
            raise ValueError("its status codes are not those of a run")
        numbers = header["seconds"], header["call"]["max_iter"], header["call"]["max_time"]
        keys = {*self.header, "state"}
        fits = header.keys() == keys and header["start"].keys() == self.header["start"].keys()
        fits = (
            fits
            and header["ended"] in (False, True)
            and 0 <= header["begun"] <= np.max(self.state.n)
            and all(v >= 0 for v in numbers)
        )
        if not fits or header["seconds"] == math.inf or header["call"].keys() != self.call.keys():
            raise ValueError("its header is not that of a checkpoint")

    @property
    def found(self) -> bool:
        """Whether the file held a run."""
        return self.codes is not None

    def restore(self, loop: Loop) -> None:
        """Set the budgets, the history and the status codes of a loop to what the file holds.

        Trajectories that have ended by themselves do not continue, unless another tolerance is asked.
        """
        loop.left = max(0, loop.left - (loop.n - self.header["begun"]))
        loop.begin -= self.header["seconds"]
        loop.deadline -= self.header["seconds"]
        if self.codes is not None and self.history is not None:
            loop.past = self.history
            again = np.isin(self.codes, (*BUDGETS, Status.INTERRUPTED)) | ~self._same_call()
            loop.codes = np.where(again, RUNNING, self.codes)
            if self.dual_point is not None and not loop.state.batched:
                loop.criterion.recall(self.dual_point, self.state.x)  # type: ignore[union-attr]

    def finished(self, loop: Loop) -> bool:
        """Return whether the run has ended and would end there again, with the budgets of this call.

        What the file says about the end is not believed: the point must be as good as it says.
        """
        codes = self.codes
        if codes is None or self.state is None or not self.header["ended"] or not self._same_call():
            return False
        more = any(
            self.call[k] > self.before[k] for k, code in BUDGET_STATUS.items() if code in codes
        )
        if more or np.isin(codes, SILENT).any():
            return False
        before, loop.codes = loop.codes, codes
        loop.polished = self.state.x if loop.solver.answers_best else None
        if not loop.holds():
            loop.codes, loop.polished = before, None
            return False
        return True

    def _same_call(self) -> bool:
        return all(self.call[name] == self.before[name] for name in ("tol", "stop", "finish"))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn an error about a state into one about the file, if the state is that of the file."""
        try:
            yield
        except ValueError as error:
            if not self.found:
                raise
            what = str(error).partition(". ")[0].rstrip(".").replace("'state' ", "it ")
            raise self.file.refusal(what) from error

    def write_when_due(self, loop: Loop) -> None:
        """Write the file if that is due."""
        if perf_counter() >= self.file.due:
            self.write(loop)

    def close(self) -> None:
        """Let other runs use the file."""
        self.file.close()

    def write(self, loop: Loop, state: State | None = None) -> None:
        """Write the file. `state` is the final state of a run that has ended."""
        about, arrays = (loop.whole_state() if state is None else state).pack()
        arrays["codes"] = loop.codes.astype(np.int64)
        arrays |= dict(zip(COLUMNS, loop.history().arrays().values(), strict=True))
        if (point := loop.criterion.dual_point) is not None:
            arrays[DUAL_POINT] = point
        header = {"seconds": loop.seconds, "ended": state is not None, "state": about}
        self.file.write(self.header | header, arrays)
