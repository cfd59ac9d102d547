"""Checkpoints: files that a computation resumes from, also after a kill.

A file is replaced in one step, carries a checksum that is verified before anything in it is used,
and is read without pickle. One computation at a time uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._files import as_path, load_arrays, partial, reason, release, save_arrays, take
from .fingerprint import describe, difference
from .result import BUDGETS, RUNNING, SILENT, History, Status
from .state import State

if TYPE_CHECKING:
    from .._files import Content
    from .loop import Loop

MINIMIZE_FORMAT = "adagrad-diff run 5"
HISTORY, DUAL_POINT = "history.", "dual_point"  # a prefix of names in the file of a run, and a name


class Checkpoint:
    """A checkpoint file, locked until it is closed."""

    def __init__(self, path: Any, file_format: str):
        self.path, self.format = as_path(path, "checkpoint"), file_format
        self.lock_path = self.path.with_name(f"{self.path.name}.lock")
        self._lock = take(
            self.lock_path,
            f"The checkpoint {self.path} is in use by another run. Wait for its end, or choose "
            "another 'checkpoint'.",
        )

    def close(self) -> None:
        """Let other runs use the file."""
        release(self._lock)

    @cached_property
    def content(self) -> Content | None:
        """The header and the arrays that the file held when it was first read."""
        try:
            return load_arrays(self.path, self.format)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OSError(
                f"The checkpoint {self.path} cannot be read: {reason(error)}. Delete it to begin "
                "again, or choose another 'checkpoint'."
            ) from error
        except Exception as error:  # a damaged file can raise anything
            raise self.unreadable(error) from error

    def check_writable(self) -> None:
        """Raise if the file cannot be created, and remove what a kill has left half-written."""
        with self._explained(), partial(self.path):
            pass

    def write(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace the content of the file."""
        with self._explained():
            save_arrays(self.path, {"format": self.format, **header}, arrays)

    def refusal(self, what: str) -> ValueError:
        """Return the error for a file that belongs to something else."""
        return ValueError(
            f"The checkpoint {self.path} cannot be continued by this call: {what}. Give what it "
            "was made with, or choose another 'checkpoint'; nothing was changed in this one."
        )

    def unreadable(self, error: Exception) -> ValueError:
        """Return the error for a file whose content cannot be used."""
        return ValueError(
            f"{self.path} is no readable checkpoint: {str(error)[:200]}. Delete it to begin again, "
            "or choose another 'checkpoint'."
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Explain errors of writing."""
        try:
            yield
        except OSError as error:
            cause: Any = error.__cause__ or error
            last = "The last good one is unchanged" if self.path.is_file() else "There is none"
            failure = type(error)(
                f"The checkpoint {self.path} cannot be written: {reason(cause)}. {last}. Make room "
                "or choose another 'checkpoint', and call again."
            )
            failure.errno = error.errno
            raise failure from error


class RunCheckpoint(Checkpoint):
    """The checkpoint of a call of `minimize`: a state, the history, and the budgets used."""

    def __init__(self, path: Any, every: float):
        super().__init__(path, MINIMIZE_FORMAT)
        self.every, self.due = every, perf_counter() + every
        self.header: dict[str, Any] = {"begun": 0, "seconds": 0.0, "ended": False}

    def begin(self, x0: Any, state: State | None, call: dict[str, Any]) -> State | None:
        """Return the state in the file, or that of the call; `call` holds when the call ends."""
        content = self.content
        self.check_writable()
        begun = None if state is None else int(np.max(state.n))
        x0 = None if x0 is None else _check.real_array(x0, "x0")
        start = {"x0": x0, "state": None if state is None else [begun, state.x]}
        self.header |= {"start": describe(start), "begun": begun or 0, "call": call}
        if content is None:
            return state
        header, arrays = content
        try:
            self.codes = arrays.pop("codes")  # the status of each trajectory
            self.dual_point = arrays.pop(DUAL_POINT, None)  # of the best bound
            columns = [arrays.pop(HISTORY + field.name) for field in fields(History)]
            self.rows = list(zip(*columns, strict=True))
            state = State.unpack(header["state"], arrays)
            self.x = state.x  # the answer, if the run has ended
            if self.codes.shape != (np.size(state.f),):
                raise ValueError("its status codes are not those of a run")
        except Exception as error:  # a file that was made up can raise anything
            raise self.unreadable(error) from error
        if (where := difference(header["start"], self.header["start"])) is not None:
            name = "state" if where.startswith("state") else "x0"
            raise self.refusal(f"its run began elsewhere, for {name!r} is not the same")
        self.before = header["call"]
        self.header |= {name: header[name] for name in ("begun", "seconds", "ended")}
        return state

    def restore(self, loop: Loop) -> bool:
        """Set budgets, history and status codes of a loop to what the file holds.

        Trajectories that have ended by themselves do not continue, unless another tolerance is
        asked. Return whether the run has ended and would end there again, with the budgets of this
        call. What the file says about the end is not believed: the point must be as good as it
        says.
        """
        header, call, criterion = self.header, self.header["call"], loop.criterion
        loop.left = max(0, loop.left - (loop.n - header["begun"]))
        loop.begin -= header["seconds"]
        loop.deadline -= header["seconds"]
        if self.content is None:
            return False
        loop.rows, codes, before = self.rows, self.codes, self.before
        if self.dual_point is not None and criterion.certifier and not loop.state.batched:
            criterion.certifier.recall(self.dual_point, self.x)
        if any(call[name] != before[name] for name in ("tol", "stop", "finish")):
            return False
        more = {Status.MAX_ITER: "max_iter", Status.MAX_TIME: "max_time"}
        larger = any(call[name] > before[name] for code, name in more.items() if code in codes)
        converged = codes == Status.CONVERGED

        def holds() -> bool:
            if not converged.any() or criterion.tol is None:
                return not converged.any()
            return bool(np.all(criterion.reached(loop, last=True) | ~converged))

        with np.errstate(all="ignore"):
            if header["ended"] and not larger and not np.isin(codes, SILENT).any():
                loop.polished = self.x if loop.solver.answers_best else None
                if holds():
                    loop.codes = codes
                    return True
                loop.polished = None
            if holds():
                loop.codes = np.where(np.isin(codes, (*BUDGETS, *SILENT)), RUNNING, codes)
        return False

    def refused(self, error: ValueError) -> ValueError:
        """Return an error about a state as one about the file, if the state is that of the file."""
        if self.content is None:
            return error
        what = str(error).partition(". ")[0].rstrip(".")
        return self.refusal(what.replace("'state' ", "it "))

    def save(self, loop: Loop, final: State | None = None) -> None:
        """Write the file. `final` is the state at the answer of a run that has ended."""
        about, arrays = (final or loop.whole_state()).pack()
        arrays |= {HISTORY + name: array for name, array in vars(loop.history()).items()}
        arrays["codes"] = loop.codes.astype(np.int64)
        certifier = loop.criterion.certifier
        if certifier is not None and certifier.point is not None:
            arrays[DUAL_POINT] = certifier.point
        progress = {"seconds": loop.seconds, "ended": final is not None, "state": about}
        self.write(self.header | progress, arrays)
        self.due = perf_counter() + self.every
