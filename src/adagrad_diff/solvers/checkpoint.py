"""Checkpoints: files that a computation resumes from, also after a kill.

A file is replaced in one step, carries a checksum that is verified before anything in it is used,
and is read without pickle. One computation at a time uses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._files import as_path, load_arrays, partial, reason, release, save_arrays, take
from .fingerprint import describe, difference
from .loop import History, Loop
from .result import BUDGETS, RUNNING, SILENT, Status
from .state import State, unpack

if TYPE_CHECKING:
    from .._files import Content

MINIMIZE_FORMAT = "adagrad-diff run 4"
HISTORY, DUAL_POINT = "history.", "dual_point"  # a prefix of names in the file of a run, and a name
RESTART = "Delete the checkpoint to begin again, or choose another 'checkpoint'"


class Checkpoint:
    """A checkpoint file, locked until it is closed. `content` is what it holds, or None."""

    def __init__(self, path: Any, file_format: str):
        self.path, self.format = as_path(path, "checkpoint"), file_format
        self.lock_path = self.path.with_name(f"{self.path.name}.lock")
        self._lock = take(
            self.lock_path,
            f"The checkpoint {self.path} is in use by another run. Wait for its end, or choose "
            "another 'checkpoint'.",
        )
        try:
            self.content = self._read()
        except BaseException:
            self.close()
            raise

    def check_writable(self) -> None:
        """Raise if the file cannot be created, and remove what a kill has left half-written."""
        with self._explained(), partial(self.path):
            pass

    def close(self) -> None:
        """Let other runs use the file."""
        release(self._lock)

    def write(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace the content of the file."""
        with self._explained():
            save_arrays(self.path, {"format": self.format, **header}, arrays)

    def refusal(self, what: str) -> ValueError:
        """Return the error for a file that belongs to something else."""
        return ValueError(
            f"The checkpoint {self.path} cannot be continued by this call: {what}. Give what it was made "
            "with, or choose another 'checkpoint'; nothing was changed in this one."
        )

    def unreadable(self, error: Exception) -> ValueError:
        """Return the error for a file whose content cannot be used."""
        why = str(error)[:200]
        return ValueError(f"{self.path} is no readable checkpoint: {why}. {RESTART}.")

    def _read(self) -> Content | None:
        try:
            return load_arrays(self.path, self.format)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OSError(
                f"The checkpoint {self.path} cannot be read: {reason(error)}. {RESTART}."
            ) from error
        except Exception as error:  # a damaged file can raise anything
            raise self.unreadable(error) from error

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Explain errors of writing."""
        try:
            yield
        except OSError as error:
            cause: Any = error.__cause__ or error
            good = (
                "The last good one is unchanged" if os.path.isfile(self.path) else "There is none"
            )
            failure = type(error)(
                f"The checkpoint {self.path} cannot be written: {reason(cause)}. {good}. Make room or "
                "choose another 'checkpoint', and call again."
            )
            failure.errno = error.errno
            raise failure from error


class RunCheckpoint(Checkpoint):
    """The checkpoint of a call of `minimize`: a state, the history, and how far budgets are used.

    `call` holds the arguments that decide when the call ends.
    """

    def __init__(self, path: Any, every: float, x0: Any, state: State | None, **call: Any):
        """Open the file. `state` becomes that of the file, if there is one."""
        super().__init__(path, MINIMIZE_FORMAT)
        try:
            self.check_writable()
            begun = None if state is None else int(np.max(state.n))
            x0 = None if x0 is None else _check.real_array(x0, "x0")
            start = {"x0": x0, "state": None if state is None else [begun, state.x]}
            self.header = {"start": describe(start), "begun": begun or 0, "seconds": 0.0}
            self.header |= {"call": call, "ended": False}
            self.state, self.every, self.due = state, every, perf_counter() + every
            if self.content is not None:
                self._open(*self.content)
        except BaseException:
            self.close()
            raise

    def _open(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Check and keep what the file holds."""
        try:
            self.codes = arrays.pop("codes")  # the status of each trajectory
            self.dual_point = arrays.pop(DUAL_POINT, None)  # of the best bound
            columns = {k: arrays.pop(k) for k in list(arrays) if k.startswith(HISTORY)}
            self.history = History(**{k.removeprefix(HISTORY): v for k, v in columns.items()})
            self.state = unpack(header["state"], arrays)
            if self.codes.shape != (np.size(self.state.f),):
                raise ValueError("its status codes are not those of a run")
            rows = {array.shape[:1] for array in self.history.arrays().values()}
            if len(rows) > 1 or self.history.objective.shape[1:] != np.shape(self.state.f):
                raise ValueError("the arrays of its history have different lengths")
        except Exception as error:
            raise self.unreadable(error) from error
        if (where := difference(header["start"], self.header["start"])) is not None:
            name = "state" if where.startswith("state") else "x0"
            raise self.refusal(f"its run began elsewhere, for {name!r} is not the same")
        self.before = header["call"]
        self.header |= {name: header[name] for name in ("begun", "seconds", "ended")}

    def restore(self, loop: Loop) -> bool:
        """Set budgets, history and status codes of a loop to what the file holds.

        Trajectories that have ended by themselves do not continue, unless another tolerance is
        asked. Return whether the run has ended and would end there again, with the budgets of this
        call. What the file says about the end is not believed: the point must be as good as it says.
        """
        header, call = self.header, self.header["call"]
        loop.left = max(0, loop.left - (loop.n - header["begun"]))
        loop.begin -= header["seconds"]
        loop.deadline -= header["seconds"]
        if self.content is None or self.state is None:
            return False
        loop.past, codes, before = self.history, self.codes, self.before
        if self.dual_point is not None and not loop.state.batched:
            loop.criterion.recall(self.dual_point, self.state.x)
        if any(call[name] != before[name] for name in ("tol", "stop", "finish")):
            return False
        more = {Status.MAX_ITER: "max_iter", Status.MAX_TIME: "max_time"}
        larger = any(call[name] > before[name] for code, name in more.items() if code in codes)
        if header["ended"] and not larger and not np.isin(codes, SILENT).any():
            loop.codes = codes
            loop.polished = self.state.x if loop.solver.answers_best else None
            if loop.holds():
                return True
            loop.polished = None
        loop.codes = np.where(np.isin(codes, (*BUDGETS, Status.INTERRUPTED)), RUNNING, codes)
        if not loop.holds():
            loop.codes[:] = RUNNING
        return False

    @contextmanager
    def about_file(self) -> Iterator[None]:
        """Turn an error about a state into one about the file, if the state is that of the file."""
        try:
            yield
        except ValueError as error:
            if self.content is None:
                raise
            what = str(error).partition(". ")[0].rstrip(".").replace("'state' ", "it ")
            raise self.refusal(what) from error

    def save_when_due(self, loop: Loop) -> None:
        """Write the file if the last time is `every` seconds ago."""
        if perf_counter() >= self.due:
            self.save(loop)

    def save(self, loop: Loop, final: State | None = None) -> None:
        """Write the file. `final` is the state at the answer of a run that has ended."""
        about, arrays = (final or loop.whole_state()).pack()
        arrays |= {f"{HISTORY}{name}": array for name, array in loop.history().arrays().items()}
        arrays["codes"] = loop.codes.astype(np.int64)
        if loop.criterion.dual_point is not None:
            arrays[DUAL_POINT] = loop.criterion.dual_point
        progress = {"seconds": loop.seconds, "ended": final is not None, "state": about}
        self.write(self.header | progress, arrays)
        self.due = perf_counter() + self.every
