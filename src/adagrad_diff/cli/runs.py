"""Where comparisons are kept: each in a folder of its own beside the report, named after everything it depends on.

report.html                    the page of the last one
report.results/pages.json      whose pages were written there
report.results/3f2a91c07b64/   one run: run.json, checkpoint/, content.json, page.html
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._check import InputError
from .._files import open_regular, read_text, reason, write

RUN_FORMAT = "adagrad-diff comparison 1"
RUN_NAME_DIGITS = 12  # of a run's name


class Run:
    """One comparison: `description` is everything it depends on, `out` the page that will show it."""

    def __init__(self, out: Path, description: dict[str, Any]):
        if out.is_dir():
            raise InputError(
                f"--out names {str(out)!r}, which is a directory: name a file such as report.html."
            )
        if out.exists() and not out.is_file():
            raise InputError(
                f"--out names {str(out)!r}, which is not a regular file: name a file such as report.html."
            )
        text = json.dumps(description, sort_keys=True)
        self.out, self.description = out, json.loads(text)
        self.results = out.with_name(f"{out.stem}.results")
        self.folder = self.results / hashlib.sha256(text.encode()).hexdigest()[:RUN_NAME_DIGITS]
        self.checkpoint = self.folder / "checkpoint"
        self.kept = _read(self.folder / "run.json")
        if self.kept is not None and self.kept.get("description") != self.description:
            raise InputError(
                f"{self.folder} holds something else than this comparison: choose another --out."
            )

    @property
    def sentence(self) -> str:
        """What becomes of results, for the user."""
        if self.kept is None:
            text = f"Results are kept in {self.folder}; those of other problems stay as they are."
        else:
            text = f"This comparison was begun before: it goes on in {self.folder}."
        if self.shown is not None and self.shown != self.folder:
            text += f" {self.out} shows another comparison now; a copy of that page stays in {self.shown}."
        return text

    @property
    def n_iter(self) -> int | None:
        """The iterations that were decided on when it was begun."""
        found = (self.kept or {}).get("n_iter")
        return found if isinstance(found, int) and found > 0 else None

    def begin(self, n_iter: int) -> None:
        """Keep what was decided, unless it is kept already."""
        if self.kept is None:
            self.kept = {"format": RUN_FORMAT, "description": self.description, "n_iter": n_iter}
            self._write(self.folder / "run.json", self.kept)

    def refuse_foreign_page(self) -> None:
        """A page is replaced only if it is one of ours, which the folder of its run keeps as well."""
        if self.out.exists() and self.shown is None:
            raise InputError(
                f"{str(self.out)!r} is there already, and is no report of ours, or was changed: choose another --out."
            )

    @property
    def shown(self) -> Path | None:
        """The folder of the run whose page is there now."""
        run = self._pages().get(_checksum(self.out)) if self.out.exists() else None
        return None if run is None else self.results / str(run)

    def _pages(self) -> dict[str, Any]:
        """By checksum, the run of every page that was written there."""
        found = (_read(self.results / "pages.json") or {}).get("pages")
        return found if isinstance(found, dict) else {}

    def finish(self, content: dict[str, Any], page: Callable[[dict[str, Any]], str]) -> None:
        """Keep the numbers and the page, and show it."""
        text = page(content).encode()
        self._write(self.folder / "content.json", content)
        self._write(self.folder / "page.html", text)
        self.refuse_foreign_page()  # it may have come meanwhile
        # First of all it is known as ours: whoever is killed here can go on.
        self._write(
            self.results / "pages.json",
            {"pages": self._pages() | {hashlib.sha256(text).hexdigest(): self.folder.name}},
        )
        self._write(self.out, text)

    def _write(self, path: Path, content: dict[str, Any] | bytes) -> None:
        text = (
            content
            if isinstance(content, bytes)
            else (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, lambda file: file.write(text))
        except OSError as error:
            raise OSError(
                f"{str(path)!r} cannot be written: {reason(error)}. Choose another --out."
            ) from error


def _read(path: Path) -> dict[str, Any] | None:
    """A JSON object, if there is one."""
    try:
        found = json.loads(read_text(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read: delete it, or choose another --out."
        ) from error
    return found if isinstance(found, dict) else {}


def _checksum(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
