"""What a problem consists of, as plain data: to write down with results, and to tell one problem from another."""

from __future__ import annotations

import copyreg
import dis
import hashlib
import math
from collections.abc import Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

SMALL = 8  # arrays up to this size are written out,
PLAIN = (np.float64, np.int64, np.bool_)  # if they are of a dtype that their entries tell


def describe(value: Any) -> Any:
    """Numbers, strings, lists and dicts that say what `value` is: JSON can hold it.

    Arrays become dtype, shape and sha256; functions, the sha256 of their code and what they use: closure, defaults,
    globals; objects of this package, their class and public attributes; other objects, the code of their class and what a
    copy of them is made of. Compiled code is not seen.

    Examples
    --------
    >>> from adagrad_diff import L1
    >>> from adagrad_diff.common.describe import describe
    >>> describe(L1(0.5))
    {'class': 'L1', 'l1': [0.5], 'l2': [0.0]}
    """
    return _describe(value, ())


def _describe(value: Any, above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)  # JSON has finite numbers only
    if isinstance(value, type | ModuleType):
        return value.__name__
    if isinstance(value, np.dtype | range | slice):
        return str(value)
    if isinstance(value, np.generic | bytes | bytearray):
        value = np.asarray(value) if isinstance(value, np.generic) else np.frombuffer(value, np.uint8)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        written = 0 < value.size <= SMALL and value.dtype in PLAIN
        return _describe(value.tolist(), above) if written else _digest(value)
    if id(value) in above:
        return "..."  # it contains itself
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return {str(key): _describe(item, above) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _describe(value.tolist(), above)
    if isinstance(value, list | tuple):
        return [_describe(item, above) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_describe(item, above) for item in value), key=repr)
    if isinstance(value, MethodType):
        return {"method": _describe(value.__func__, above), "of": _describe(value.__self__, above)}
    if isinstance(value, FunctionType):
        function = {"function": value.__qualname__, "code": _code(value.__code__)}
        return {**function, **_describe(_used(value), above)}
    return {"class": type(value).__qualname__, **_describe(_attributes(value), above)}


def _used(function: FunctionType) -> dict[str, Any]:
    """What a function finds outside its code. A global function of another module stands for itself."""
    uses = [cell.cell_contents for cell in function.__closure__ or ()]
    uses += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
    names = sorted(_global_names(function.__code__) & function.__globals__.keys())
    found = {name: function.__globals__[name] for name in names}
    for name, item in found.items():
        if isinstance(item, FunctionType) and item.__module__ != function.__module__:
            found[name] = _code(item.__code__)
    return {"uses": uses, "globals": found} if found else {"uses": uses}


def _attributes(value: Any) -> dict[str, Any]:
    """What makes an object what it is."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "adagrad_diff":  # what these hide is for themselves
        return {name: item for name, item in sorted(vars(value).items()) if not name.startswith("_")}
    for name in ("py_func", "__wrapped__"):  # compiled or cached functions
        if isinstance(inner := getattr(value, name, None), FunctionType):
            return {"of": inner}
    if hasattr(value, "tocsr"):  # a sparse matrix: it also keeps what it found out about itself
        rows = value.tocsr()
        return {name: getattr(rows, name) for name in ("shape", "data", "indices", "indptr")}
    about: dict[str, Any] = {"code": code} if (code := _class_code(kind)) else {}
    try:
        parts: Any = copyreg.dispatch_table.get(kind, lambda value: value.__reduce_ex__(4))(value)
    except TypeError:  # it cannot be copied
        return about
    if isinstance(parts, str):  # it is known by this name
        return {"name": parts}
    parts = [*parts[1:], None, None, None]  # arguments, state, items of a list, items of a dict
    about["made of"] = [item for item in parts[0] if item is not kind]
    about["made of"] += [list(items) for items in parts[2:4] if items is not None]
    state = parts[1] if isinstance(parts[1], dict) else {"state": parts[1]}
    # SciPy's operators keep their adjoint once it was asked for.
    return about | {name: item for name, item in state.items() if not str(name).endswith("__adj")}


def _digest(array: np.ndarray) -> dict[str, Any]:
    digest = hashlib.sha256()
    pieces: Any = np.nditer(array, ["external_loop", "buffered", "zerosize_ok"], order="C", buffersize=1 << 14)
    for piece in pieces:  # without a copy of the whole, whatever its strides
        digest.update(piece.tobytes())
    return {"dtype": str(array.dtype), "shape": list(array.shape), "sha256": digest.hexdigest()}


def _code(code: CodeType) -> str:
    return _hash([code.co_code, code.co_names, *map(_constant, code.co_consts)])


def _constant(item: Any) -> str:
    if isinstance(item, CodeType):
        return _code(item)
    return repr(sorted(map(repr, item)) if isinstance(item, frozenset) else item)  # a set has no order


def _class_code(kind: type) -> str | None:
    """The methods and constants of a class; None if they are compiled."""
    found = []
    for name, item in sorted(vars(kind).items()):
        function = getattr(item, "__func__", item)
        if isinstance(function, FunctionType):
            found.append((name, _code(function.__code__)))
        elif isinstance(item, int | float | str) and not name.startswith("__"):
            found.append((name, repr(item)))
    return _hash(found) if found else None


def _global_names(code: CodeType) -> set[str]:
    names = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return names.union(*(_global_names(item) for item in code.co_consts if isinstance(item, CodeType)))


def _hash(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


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
