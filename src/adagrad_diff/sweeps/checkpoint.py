"""A directory that a long computation writes its finished parts to, and continues from.

`manifest.json` says what is being computed, `part-0007.npz` is a finished part. Files appear complete
or not at all, and nothing in them is used before it has been compared with what is expected.
`sweep.lock` is held by the process that works here.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._check import InputError
from .._files import as_path, clear, read_text, reason, take, write
from ..solvers.checkpoint import load, save
from ..solvers.fingerprint import difference

SWEEP_FORMAT = "adagrad-diff sweep 4"
SWEEP_LOCK = "sweep.lock"
IN_USE = "The checkpoint in {} is in use by another sweep. Wait for its end, or choose another directory."


OVERHEAD = 1000  # bytes that a file may have for each array and for its header, beside the numbers


class Expected(NamedTuple):
    """What an array in a file must be: no kernel checks that again."""

    shape: tuple[int, ...]
    dtype: Any
    values: Container[int] | None = None  # which it may have; None: any


class Checkpoint:
    """The directory, for the computation that `description` describes, held from `with` to its end.

    `plan` is kept as it was when the computation was begun; `check(plan)` returns it if it is one, or raises ValueError.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        description: dict[str, Any],
        plan: Any,
        check: Callable[[Any], Any],
    ):
        self.directory = as_path(directory, "checkpoint")
        self.description, self.plan, self.check = description, plan, check
        self.manifest = self.directory / "manifest.json"

    def __enter__(self) -> Checkpoint:
        with self._writing():
            self.directory.mkdir(parents=True, exist_ok=True)
        if self.manifest.exists():
            self._read()  # what belongs to something else is not touched
        else:
            self._refuse_others()
        self._lock = take(self.directory / SWEEP_LOCK, IN_USE.format(self.directory))
        try:
            clear(self.directory)  # what a kill has left half-written
            if not self.manifest.exists():
                content = json.dumps(
                    {"format": SWEEP_FORMAT, "description": self.description, "plan": self.plan},
                    indent=1,
                )
                with self._writing():
                    write(self.manifest, lambda file: file.write(content.encode()))
            self.plan = self._read()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        if self._lock is not None:
            self._lock.close()

    def finished(self, part: int, layout: Mapping[str, Expected]) -> dict[str, np.ndarray] | None:
        """What was computed for this part, if it is complete."""
        return _load(self._path(part), layout)

    def finish(self, part: int, arrays: dict[str, np.ndarray]) -> None:
        """Keep a complete part."""
        with self._writing():
            save(self._path(part), {"format": SWEEP_FORMAT}, arrays)

    def _read(self) -> Any:
        """The plan of the sweep that was begun here, if it is this one."""
        try:
            content = json.loads(read_text(self.manifest))
            if not isinstance(content, dict) or not isinstance(
                kept := content.get("description"), dict
            ):
                raise ValueError("it does not describe one")
            if content.get("format") != SWEEP_FORMAT:
                raise ValueError(
                    f"its format is {str(content.get('format'))[:80]!r}, not {SWEEP_FORMAT!r}"
                )
            where = difference(kept, json.loads(json.dumps(self.description)))
            plan = None if where else self.check(content.get("plan"))
        except (OSError, ValueError, RecursionError) as error:
            reason = (
                "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
            )
            raise InputError(
                f"{self.manifest} is not the manifest of a sweep: {reason}. Choose another 'checkpoint'."
            ) from None
        if where:
            raise InputError(
                f"The checkpoint in {self.directory} belongs to another sweep: {where} is not the same. "
                "Choose another directory; nothing was changed in this one."
            )
        return plan

    def _refuse_others(self) -> None:
        """A directory without a manifest holds nothing but what a kill leaves before there is one."""
        ours = (SWEEP_LOCK, *(path.name for path in self.directory.glob("manifest.json.*.partial")))
        if foreign := next(
            (path.name for path in self.directory.iterdir() if path.name not in ours), None
        ):
            raise InputError(
                f"'checkpoint' must be an empty or new directory, or one that a sweep has written. "
                f"{self.directory} holds {foreign!r} and no manifest.json."
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(
                f"'checkpoint' cannot be written: {self.directory}: {reason(error)}."
            ) from error

    def _path(self, part: int) -> Path:
        return self.directory / f"part-{part:04d}.npz"


def _load(path: Path, layout: Mapping[str, Expected]) -> dict[str, np.ndarray] | None:
    """The arrays of a file, if there is one, and they are what is expected."""
    try:
        sizes = [
            math.prod(array.shape) * np.dtype(array.dtype).itemsize + OVERHEAD
            for array in layout.values()
        ]
        _, arrays = load(path, SWEEP_FORMAT, limit=2 * OVERHEAD + sum(sizes))
        for name in [*layout, *arrays]:
            if name not in layout or name not in arrays:
                raise ValueError(f"{name} is {'missing' if name in layout else 'unknown'}")
        for name, (shape, dtype, values) in layout.items():
            array = arrays[name]
            if array.shape != shape or array.dtype != dtype:
                raise ValueError(
                    f"{name} has shape {array.shape} and dtype {array.dtype} instead of {shape} and {dtype}"
                )
            if values is not None and (
                wrong := [value for value in np.unique(array).tolist() if value not in values]
            ):
                raise ValueError(f"{name} cannot be {wrong[0]}")
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be used: {error}. Delete it and run again: only that part is computed anew."
        ) from error
