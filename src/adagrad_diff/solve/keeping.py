"""The checkpoint of a run: its state, what was recorded, how far its budgets are used, and if it has ended, how.

One file of arrays and JSON, without pickle, which is replaced in a single step. Nothing in it is used before its checksum and
every field have been looked at; and it is continued on the problem that it belongs to, or not at all. While a run has it, a
file of the same name with .lock in the end is held: two runs would overwrite what the other has kept.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._files import as_path, partial, read_arrays, reason, release, take, write
from ..solvers.fingerprint import describe, difference
from .archive import pack
from .history import History
from .state import State, whole_state
from .status import BUDGETS, RUNNING, Status

if TYPE_CHECKING:
    from .driver import Watch

CHECKPOINT_FORMAT = "adagrad-diff checkpoint 3"
ABOUT = (
    "codes",
    *(f"history.{field.name}" for field in fields(History)),
)  # arrays beside those of the state
BUDGET_OF = {"max_iter": Status.MAX_ITER, "max_time": Status.MAX_TIME}
GOES_ON = (
    Status.CALLBACK,
    Status.INTERRUPTED,
)  # ends after which the same call goes on: somebody said stop, not the call
ANEW = "Delete it to begin anew, or choose another 'checkpoint'"


@dataclass
class Kept:
    """What a file holds."""

    state: State
    codes: Any  # the status of the run, or of each trajectory; RUNNING, if it has not ended
    history: History
    seconds: float  # that all calls have taken so far
    begun: (
        int  # the iteration at which the first of them began: not zero, if that was given a state
    )
    start: dict[str, Any]  # what that began with
    call: dict[str, Any]  # and what decides about its end: tol, stop, finish, max_iter, max_time
    ended: bool  # whether the run has: how, is computed again
    bound: tuple[np.ndarray, float] | None = (
        None  # of a run that has ended: the dual point, and its value
    )


class Keeper:
    """The file of a run, which is looked at, and tried, before anything is computed, and held until `close`."""

    def __init__(self, path: Any, every: float, x0: Any, state: State | None, **call: Any):
        self.path, self.every, self.call = as_path(path, "checkpoint"), every, call
        in_use = f"The checkpoint {self.path} is in use by another run. Wait for its end, or choose another 'checkpoint'."
        self._lock = take(self.path.with_name(f"{self.path.name}.lock"), in_use)
        try:
            self._open(x0, state)
        except BaseException:
            self.close()
            raise

    def _open(self, x0: Any, state: State | None) -> None:
        given = None if state is None else [int(np.max(state.n)), state.x]
        self.start = describe(
            {"x0": None if x0 is None else _check.real_array(x0, "x0"), "state": given}
        )
        self.kept = self._read()
        self.begun = self.kept.begun if self.kept else 0 if state is None else int(np.max(state.n))
        self.seconds = self.kept.seconds if self.kept else 0.0
        with self._writing(), partial(self.path):
            pass  # a file can be made here, and what a kill has left half-written is gone
        self.due = perf_counter() + self.every  # when to write next

    def close(self) -> None:
        """Let others have the file."""
        release(self._lock)

    def continued(self, state: State | None) -> State | None:
        """The state to go on from: that of the file, if there is one."""
        return self.kept.state if self.kept else state

    def left(self, state: State, max_iter: int) -> int:
        """Iterations that are left: they are counted from the very first start."""
        return max(0, max_iter - (int(np.max(state.n)) - self.begun))

    def finished(self, watch: Watch) -> State | None:
        """The state at the end of the run, if the same call would end there: not with more time or more iterations.

        What the file says about it is not believed: the point must be as good as it says.
        """
        if self.kept is None or not self.kept.ended or not self._same_call():
            return None
        codes, before = self.kept.codes, self.kept.call
        more = any(
            self.call[name] > before[name]
            for name, code in BUDGET_OF.items()
            if np.any(codes == code)
        )
        if more or np.isin(codes, GOES_ON).any():
            return None
        if watch.certifier is not None and self.kept.bound is not None:
            watch.certifier.recall(*self.kept.bound, self.kept.state.x)
        return self.kept.state if watch.holds(self.kept.state, codes) else None

    def codes(self, shape: tuple[int, ...]) -> np.ndarray:
        """The status of each trajectory: those that have ended by themselves do not go on."""
        running = np.full(shape, RUNNING)
        if self.kept is None or not self._same_call():
            return running
        return np.where(
            np.isin(self.kept.codes, (*BUDGETS, Status.INTERRUPTED)), RUNNING, self.kept.codes
        ).reshape(shape)

    def _same_call(self) -> bool:
        assert self.kept is not None
        return all(self.call[name] == self.kept.call[name] for name in ("tol", "stop", "finish"))

    def keep(
        self,
        state: State,
        codes: Any,
        history: History,
        seconds: float,
        ended: bool = False,
        bound: Any = None,
    ) -> None:
        """Write the file anew."""
        header: dict[str, Any] = {
            "format": CHECKPOINT_FORMAT,
            "start": self.start,
            "call": self.call,
        }
        header |= {"seconds": seconds, "begun": self.begun, "ended": ended}
        header["state"], arrays = pack(state)
        arrays["codes"] = np.asarray(codes, np.int64)
        arrays |= {
            f"history.{field.name}": getattr(history, field.name) for field in fields(History)
        }
        if bound is not None:
            arrays |= {"dual_point": bound[0], "dual_value": np.array(bound[1])}
        text = json.dumps(header)
        sums = {"header": np.array(text), "sha256": np.array(_checksum(text, arrays))}
        with self._writing():
            write(self.path, lambda file: np.savez(file, **arrays, **sums))  # type: ignore[arg-type]
        self.due = perf_counter() + self.every

    def refusal(self, what: str) -> ValueError:
        """What to say of a file that belongs to something else."""
        return ValueError(
            f"The checkpoint {self.path} cannot be continued by this call: {what}. Give what it was made with, or choose "
            "another 'checkpoint'; nothing was changed in this one."
        )

    def _read(self) -> Kept | None:
        try:
            kept = _kept(dict(read_arrays(self.path)))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OSError(
                f"The checkpoint {self.path} cannot be read: {reason(error)}. {ANEW}."
            ) from error
        except Exception as error:  # whatever is in the file
            raise ValueError(
                f"{self.path} is no readable checkpoint of minimize: {str(error)[:200]}. {ANEW}."
            ) from error
        if where := difference(kept.start, self.start):
            raise self.refusal(
                f"its run began elsewhere, for {'state' if where.startswith('state') else 'x0'!r} is not the same"
            )
        return kept

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = (
                f"The checkpoint {self.path} cannot be written: {reason(error.__cause__ or error)}"  # type: ignore[arg-type]
            )
            good = (
                "The last good one is unchanged" if os.path.isfile(self.path) else "There is none"
            )
            failure = type(error)(
                f"{what}. {good}. Make room or choose another 'checkpoint', and call again."
            )
            failure.errno = error.errno
            raise failure from error


@contextmanager
def trusted(keeper: Keeper | None) -> Iterator[None]:
    """Where a state is compared with the problem: if it is that of a file, what does not fit is said of the file."""
    try:
        yield
    except ValueError as error:
        if keeper is None or keeper.kept is None:
            raise
        raise keeper.refusal(
            str(error).partition(". ")[0].rstrip(".").replace("'state' ", "it ")
        ) from error


def _checksum(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Of everything that is in a file: members that are whole, but not where they belong, are seen, too."""
    digest = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _kept(arrays: dict[str, Any]) -> Kept:
    """The content of a file, checked."""
    text = str(arrays.pop("header"))
    if str(arrays.pop("sha256")) != _checksum(text, arrays):
        header = json.loads(text) if text.startswith("{") else {}
        if (
            isinstance(header, dict)
            and header.get("format", CHECKPOINT_FORMAT) != CHECKPOINT_FORMAT
        ):
            raise ValueError(
                f"its format is {str(header['format'])[:80]!r}, not {CHECKPOINT_FORMAT!r}"
            )
        raise ValueError("its checksum is not that of its content")
    header = json.loads(text)
    if (found := header.pop("format")) != CHECKPOINT_FORMAT:
        raise ValueError(f"its format is {str(found)[:80]!r}, not {CHECKPOINT_FORMAT!r}")
    codes, *columns = (arrays.pop(name) for name in ABOUT)
    point = arrays.pop("dual_point", None)
    bound = None if point is None else (point, float(arrays.pop("dual_value")))
    state = whole_state(header.pop("state"), arrays)
    shape, rows = np.shape(state.f), columns[0].shape
    wanted = [(rows, np.int64), *[((*rows, *shape), np.float64)] * 3, *[(rows, np.float64)] * 2]
    if (
        any(
            (c.shape, c.dtype) != (s, np.dtype(d))
            for c, (s, d) in zip(columns, wanted, strict=True)
        )
        or len(rows) != 1
    ):
        raise ValueError("its history is none")
    if codes.shape != shape or not np.isin(codes, [RUNNING, *Status]).all():
        raise ValueError("its codes are none")
    kept = Kept(state, codes, History(*columns), **header, bound=bound)
    budgets = [kept.call[name] for name in ("max_iter", "max_time", "tol", "stop", "finish")][:2]
    if not (
        0 <= kept.seconds < math.inf
        and 0 <= kept.begun <= np.max(state.n)
        and min(budgets) >= 0
        and {*kept.start}
        and kept.ended in (False, True)
    ):
        raise ValueError("its header is not that of a checkpoint")
    return kept
