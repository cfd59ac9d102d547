"""A directory that a long computation writes its finished parts to, and continues from.

`manifest.json` says what is being computed; `part-0007.npz` is a finished part, `part-0007.record.npz` and
`part-0007.state.npz` one in progress. Files appear complete or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ._describe import difference
from ._files import write
from ._state import State, load_state

FORMAT = "adagrad-diff sweep 1"


class Checkpoint:
    """The directory, for the computation that `description` describes. `plan` is kept as it was when it was begun."""

    def __init__(self, directory: str | os.PathLike, description: dict[str, Any], plan: Any):
        self.directory = Path(directory)
        path = self.directory / "manifest.json"
        with self._writing():
            self.directory.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                if foreign := next((p.name for p in self.directory.iterdir() if not p.name.endswith(".partial")), None):
                    raise ValueError(
                        f"'checkpoint' must be an empty or new directory, or one that a sweep has written. "
                        f"{self.directory} holds {foreign!r} and no manifest.json."
                    )
                write(path, lambda file: file.write(json.dumps(_manifest(description, plan), indent=1).encode()))
        self.plan = self._read(path, description)

    def _read(self, path: Path, description: dict[str, Any]) -> Any:
        """The plan of the sweep that was begun here, if it is this one."""
        try:
            content = json.loads(path.read_text())
            kept, plan = content["description"], [(str(rule), int(low), int(high)) for rule, low, high in content["plan"]]
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']!r}, not {FORMAT!r}")
            if not plan:
                raise ValueError("it has no plan")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not the manifest of a sweep: {error}. Choose another 'checkpoint'.") from None
        if where := difference(kept, json.loads(json.dumps(description))):
            raise ValueError(
                f"The checkpoint in {self.directory} belongs to another sweep: {where} is not the same. "
                "Choose another directory; nothing was changed in this one."
            )
        return plan

    def finished(self, part: int) -> dict[str, np.ndarray] | None:
        """What was computed for this part, if it is complete."""
        path = self._path(part)
        return _load(path) if path.exists() else None

    def finish(self, part: int, arrays: dict[str, np.ndarray]) -> None:
        """Keep a complete part."""
        with self._writing():
            write(self._path(part), lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
            for suffix in (".record", ".state"):
                self._path(part, suffix).unlink(missing_ok=True)

    def interrupted(self, part: int) -> tuple[dict[str, np.ndarray], State] | None:
        """Record and state of a part in progress, if there are any."""
        record, state = self._path(part, ".record"), self._path(part, ".state")
        return (_load(record), _load(state, load_state)) if record.exists() and state.exists() else None

    def keep(self, part: int, record: dict[str, np.ndarray], state: State) -> None:
        """Keep a part in progress. The record goes first: it may be ahead of the state, never behind."""
        with self._writing():
            write(self._path(part, ".record"), lambda file: np.savez(file, **record))  # type: ignore[arg-type]
            state.save(self._path(part, ".state"))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(f"'checkpoint' cannot be written: {self.directory}: {error.strerror}.") from error

    def _path(self, part: int, suffix: str = "") -> Path:
        return self.directory / f"part-{part:04d}{suffix}.npz"


def _manifest(description: dict[str, Any], plan: Any) -> dict[str, Any]:
    return {"format": FORMAT, "description": description, "plan": plan}


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _load(path: Path, read: Callable[[Path], Any] = _arrays) -> Any:
    try:
        return read(path)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Delete it and run again: only that part is computed anew."
        ) from error
