"""What a problem consists of, as plain data: to write down with results, and to tell one problem from another."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

SMALL = 8  # arrays up to this size are written out


def describe(value: Any) -> Any:
    """Numbers, strings, lists and dicts that say what `value` is: JSON can hold it.

    Arrays become dtype, shape and sha256; functions, the sha256 of their code and what they close over; other objects,
    their class and public attributes. What an object hides (compiled code, private attributes) is not seen.

    Examples
    --------
    >>> from adagrad_diff import L1
    >>> from adagrad_diff._describe import describe
    >>> describe(L1(0.5))
    {'class': 'L1', 'l1': [0.5], 'l2': [0.0]}
    """
    return _describe(value, ())


def _describe(value: Any, above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.dtype | type):
        return getattr(value, "__name__", str(value))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.tolist() if value.size <= SMALL else _digest(value)
    if id(value) in above:
        return "..."  # it contains itself
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return {str(key): _describe(item, above) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_describe(item, above) for item in value]
    if isinstance(value, set | frozenset | range | slice):
        return repr(sorted(value, key=repr) if isinstance(value, set | frozenset) else value)
    if isinstance(value, MethodType):
        return {"method": _describe(value.__func__, above), "of": _describe(value.__self__, above)}
    if isinstance(value, FunctionType):
        inside = [cell.cell_contents for cell in value.__closure__ or ()] + list(value.__defaults__ or ())
        return {"function": value.__qualname__, "code": _code(value.__code__), "uses": _describe(inside, above)}
    return {"class": type(value).__qualname__, **{name: _describe(item, above) for name, item in _attributes(value)}}


def _attributes(value: Any) -> list[tuple[str, Any]]:
    """Public attributes; of a sparse matrix, its arrays."""
    if hasattr(value, "indptr"):
        return [(name, getattr(value, name)) for name in ("shape", "data", "indices", "indptr")]
    names = [field.name for field in fields(value)] if is_dataclass(value) else sorted(getattr(value, "__dict__", ()))
    return [(name, getattr(value, name)) for name in names if not name.startswith("_")]


def _digest(array: np.ndarray) -> dict[str, Any]:
    digest = hashlib.sha256(np.ascontiguousarray(array).data)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "sha256": digest.hexdigest()}


def _code(code: CodeType) -> str:
    constants = [_code(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts]
    return hashlib.sha256(repr((code.co_code, constants, code.co_names)).encode()).hexdigest()


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """Where two descriptions first differ, as a path such as loss.A.sha256; None if they are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            inner = f"{path}.{key}" if path else key
            if key not in one or key not in other:
                return inner
            if found := difference(one[key], other[key], inner):
                return found
        return None
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = zip(one, other, strict=True)
        return next((found for i, (a, b) in enumerate(pairs) if (found := difference(a, b, f"{path}[{i}]"))), None)
    return None if one == other else path
