"""Checkpoints: files that a computation resumes from, and fingerprints of the problem they belong to.

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
from functools import cached_property
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._files import as_path, load_arrays, partial, reason, release, save_arrays, take

if TYPE_CHECKING:
    from .._files import Content
    from .problem import Problem
    from .proximal_gradient import Iterate
    from .state import State

T = TypeVar("T")
WRITTEN_OUT = 8  # entries up to which an array is written out,
READABLE_DTYPES = (np.float64, np.int64, np.bool_)  # if it has one of these dtypes
BUFFER_ENTRIES = 1 << 14  # of an array that are hashed together
PACKAGE_NAME = __name__.partition(".")[0]
DATA = ("A", "Q", "center", "predictions", "function")  # attributes of losses left out
NAME = "_adagrad_diff_name"  # the attribute that holds the name given by `named`
MAX_ULPS = 1e4  # units in the last place by which values may differ, as sums are ordered otherwise
MAX_GRADIENT_CHANGE = 1e-3  # relative difference of gradients, which jump at nonsmooth points


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
            f"The checkpoint {self.path} cannot be continued by this call: {what}. Give what it was made "
            "with, or choose another 'checkpoint'; nothing was changed in this one."
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
                f"The checkpoint {self.path} cannot be written: {reason(cause)}. {last}. Make room or "
                "choose another 'checkpoint', and call again."
            )
            failure.errno = error.errno
            raise failure from error


# ---------------------------------------------------------------------------- fingerprints


def named(name: str, thing: T) -> T:
    """Give a name to a function or an object of another package, so that checkpoints can identify it.

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


def check_state(problem: Problem, state: State, new: Iterate) -> None:
    """Raise unless a state has the arrays of a new iterate at its x, and the same values.

    Gradients are compared only where the data were not: at nonsmooth points, rounding decides.
    """
    s = state.iterate
    wanted, found = _shapes(new), _shapes(s)
    if wanted.keys() != found.keys():
        raise ValueError("'state' was made with another rule: it remembers other things.")
    if wanted != found:
        raise ValueError("'state' was made with other blocks than this rule's.")
    with np.errstate(all="ignore"):
        relative = MAX_ULPS * float(np.finfo(s.x.dtype).eps)
        size = np.maximum(np.abs(s.f), np.abs(state.f_first))
        same = np.abs(new.f - s.f) <= relative * size
        if problem.loss.whole.matrix is None:
            change, gradient = np.abs(new.g - s.g).max(axis=0), np.abs(s.g).max(axis=0)
            same &= change <= MAX_GRADIENT_CHANGE * np.maximum(gradient, state.g_first)
        near = np.abs(new.phi - s.phi) <= relative * (size + np.abs(s.phi))
    near = near | (new.phi == s.phi)
    for what, holds in {"data of the loss are": same, "penalty is": near}.items():
        if not np.all(holds | ~np.isfinite(s.f)):
            raise other_problem(f"the {what} not the same: there is another value or gradient at x")


def other_problem(what: str) -> ValueError:
    """Return the error for a state of another problem."""
    return ValueError(
        f"'state' belongs to another problem: {what}. Give what the state was made with, or start a "
        "new run from its iterate with x0=state.x."
    )


def _shapes(s: Iterate) -> dict[str, Any]:
    """Return the shapes of values, gradients and memories, also of states in the memory."""
    values = {
        name: _shapes(v.iterate) if hasattr(v, "iterate") else np.shape(v)
        for name, v in s.memory.items()
    }
    return values | {"iterate": (s.x.shape, np.shape(s.f), np.shape(s.g), np.shape(s.phi))}
