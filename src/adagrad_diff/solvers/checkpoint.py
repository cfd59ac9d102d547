"""Checkpoints: files that a computation resumes from, and fingerprints of problems.

A file is replaced in one step, carries a checksum that is verified before anything in it is used,
and is read without pickle. One computation at a time uses it.

A fingerprint identifies data by their content, and code by its name, because functions cannot be
compared. It is plain data, so that an error can say what differs.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property
from time import perf_counter
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _check
from .._files import as_path, load_arrays, partial, reason, release, save_arrays, take
from .result import BUDGETS, RUNNING, SILENT, History, Status
from .state import State

if TYPE_CHECKING:
    from .._files import Content
    from .loop import Loop

T = TypeVar("T")
MINIMIZE_FORMAT = "adagrad-diff run 5"
HISTORY, DUAL_POINT = "history.", "dual_point"  # a prefix of names in the file of a run, and a name
WRITTEN_OUT = 8  # entries up to which an array is written out,
READABLE_DTYPES = (np.float64, np.int64, np.bool_)  # if it has one of these dtypes
BUFFER_ENTRIES = 1 << 14  # of an array that are hashed together
PACKAGE_NAME = __name__.partition(".")[0]
DATA = ("A", "Q", "center", "predictions", "function")  # attributes of losses left out
NAME = "_adagrad_diff_name"  # the attribute that holds the name given by `named`


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


# ---------------------------------------------------------------------------- fingerprints


def named(name: str, thing: T) -> T:
    """Name a function or an object of another package, so that checkpoints can identify it.

    After a change of what the function computes, use another name or another checkpoint.

    Parameters
    ----------
    name : str
        Any text.
    thing : function or object
        A loss, a penalty, an operator or a schedule. It is returned with the name attached.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, named
    >>> rule = AdaGradDiff(eta=named("1 / sqrt(n)", lambda n: n**-0.5))
    """
    if not isinstance(name, str) or not name:
        raise ValueError(
            f"The 'name' parameter of named must be a text that is not empty. Got {name!r} instead."
        )
    if isinstance(thing, MethodType) or not isinstance(getattr(thing, "__dict__", None), dict):
        raise TypeError(
            f"{type(thing).__name__} cannot keep a name: put it into a function, such as "
            "lambda x: it(x), and name that."
        )
    vars(thing)[NAME] = name
    return thing


def describe(value: Any, leave_out: tuple[str, ...] = ()) -> Any:
    """Return numbers, strings, lists and dicts, for JSON, that say what `value` is.

    - Arrays: dtype, shape and SHA-256; small ones are written out.
    - Objects of classes of this package, and of their subclasses: the class and the public
      attributes, except for those to `leave_out`.
    - Other objects, and functions: {"named": the name that `named` gave them}, or the name by which
      a module knows them, or else {"unnamed": their kind}.

    Examples
    --------
    >>> from adagrad_diff import L1
    >>> from .checkpoint import describe
    >>> describe(L1(0.5))
    {'class': 'L1', 'l1': [0.5], 'l2': [0.0]}
    >>> describe([print, lambda x: x])
    ['builtins.print', {'unnamed': 'lambda'}]
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)  # JSON has finite numbers only
    if isinstance(value, bytes | np.dtype | range | slice | complex | os.PathLike):
        return str(value)
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        written = 0 < value.size <= WRITTEN_OUT and value.dtype in READABLE_DTYPES
        return describe(value.tolist()) if written else _digest(value)
    if isinstance(value, Mapping):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [describe(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((describe(item) for item in value), key=repr)
    if isinstance(value, MethodType):
        return {"method": value.__name__, "of": describe(value.__self__)}
    if hasattr(value, "tocsr") and hasattr(value, "nnz"):  # a sparse matrix
        rows = value.tocsr()
        return {k: describe(getattr(rows, k)) for k in ("shape", "data", "indices", "indptr")}
    if any(kind.__module__.partition(".")[0] == PACKAGE_NAME for kind in type(value).__mro__):
        public = {k: v for k, v in sorted(vars(value).items()) if not k.startswith("_")}
        kept = {k: describe(v, leave_out) for k, v in public.items() if k not in leave_out}
        return {"class": _name(value, type(value))} | kept
    return _name(value, value)


def _name(value: Any, known: Any) -> Any:
    """Return the name that `value` was given, or else the one by which a module knows `known`."""
    if NAME in getattr(value, "__dict__", {}):
        return {"named": vars(value)[NAME]}
    if isinstance(known, ModuleType):
        return known.__name__
    home, name = str(getattr(known, "__module__", None)), str(getattr(known, "__qualname__", ""))
    found: Any = sys.modules.get(home)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or found is not known:
        return {"unnamed": name.rpartition(".")[2].strip("<>") or type(known).__qualname__}
    return name if home.partition(".")[0] == PACKAGE_NAME else f"{home}.{name}"


def _digest(array: np.ndarray) -> dict[str, Any]:
    digest, flags = hashlib.sha256(), ["external_loop", "buffered", "zerosize_ok"]
    parts: Any = np.nditer(array, flags, order="C", buffersize=BUFFER_ENTRIES)  # type: ignore[call-overload]
    for part in parts:  # without a copy of the whole array, whatever its strides
        digest.update(part.tobytes())
    return {"dtype": str(array.dtype), "shape": list(array.shape), "sha256": digest.hexdigest()}


def known_by_name(description: Any, path: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield where a description has functions or foreign objects, and their name or None.

    Places are paths such as loss.function.
    """
    if isinstance(description, dict):
        if description.keys() in ({"named"}, {"unnamed"}):
            yield path, description.get("named")
            return
        for key, item in description.items():
            yield from known_by_name(item, f"{path}.{key}" if path else key)
    elif isinstance(description, list):
        for k, item in enumerate(description):
            yield from known_by_name(item, f"{path}[{k}]")


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """Return where two descriptions first differ, as a path such as loss.A.sha256, or None."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        one, other = dict(enumerate(one)), dict(enumerate(other))
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return None if one == other else path
    for key in one | other:
        inner = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else key
        if key not in one or key not in other:
            return inner
        if found := difference(one[key], other[key], inner):
            return found
    return None


def describe_problem(loss: Any, penalty: Any, rule: Any) -> dict[str, Any]:
    """Return the description of a problem and a rule; of the data, only sums over A x.

    x is pseudo-random, and the sums are written to two thirds of their digits.
    """
    described = {"loss": describe(loss, leave_out=DATA), "penalty": describe(penalty)}
    matrix, sums = loss.whole.matrix, None
    if matrix is not None:
        samples, features = matrix.shape
        rng, z = np.random.default_rng(0), np.empty(samples, matrix.dtype)
        with np.errstate(all="ignore"):  # overflows show in the sums
            matrix.dot(rng.standard_normal(features).astype(matrix.dtype), z)
            values = rng.standard_normal(samples) @ z, np.linalg.norm(z.astype(np.float64))
        sums = [f"{value:.{2 * np.finfo(matrix.dtype).precision // 3}g}" for value in values]
    return described | {"rule": describe(rule), "data": sums}
