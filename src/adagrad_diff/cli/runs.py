"""Where comparisons are kept: each in a folder of its own beside the report, named after everything it depends on.

report.html                    the page
report.results/page.json       which run the page shows, and its checksum (and that of the page before)
report.results/3f2a91c07b64/   one run: run.json, checkpoint/, content.json
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ..common.files import reason, write

RUN_FORMAT = "adagrad-diff comparison 1"
RUN_NAME_DIGITS = 12  # of a run's name


class Run:
    """One comparison: `description` is everything it depends on, `out` the page that will show it."""

    def __init__(self, out: Path, description: dict[str, Any]):
        if out.is_dir():
            raise ValueError(f"--out names {str(out)!r}, which is a directory: name a file such as report.html.")
        text = json.dumps(description, sort_keys=True)
        self.out, self.description = out, json.loads(text)
        self.results = out.with_name(f"{out.stem}.results")
        self.folder = self.results / hashlib.sha256(text.encode()).hexdigest()[:RUN_NAME_DIGITS]
        self.checkpoint = self.folder / "checkpoint"
        self.kept = _read(self.folder / "run.json")
        if self.kept is not None and self.kept.get("description") != self.description:
            raise ValueError(f"{self.folder} holds something else than this comparison: choose another --out.")

    @property
    def sentence(self) -> str:
        """What becomes of results, for the user."""
        if self.kept is None:
            return f"Results are kept in {self.folder}; those of other problems stay as they are."
        return f"This comparison was begun before: it goes on in {self.folder}."

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

    def refuse_other_page(self) -> None:
        """A page is replaced by one of the same run only."""
        if not self.out.exists():
            return
        shown = _read(self.results / "page.json") or {}
        if shown.get("run") != self.folder.name or _checksum(self.out) not in (shown.get("sha256"), shown.get("before")):
            raise ValueError(
                f"{str(self.out)!r} is there already, and is not the report of this comparison: choose another --out."
            )

    def finish(self, content: dict[str, Any], page: bytes) -> None:
        """Keep the numbers, and write the page.

        What it is to be is written down first, and what is there before: after a kill in between, either is ours.
        """
        self._write(self.folder / "content.json", content)
        self.refuse_other_page()  # it may have come meanwhile
        about = {"run": self.folder.name, "sha256": hashlib.sha256(page).hexdigest()}
        self._write(self.results / "page.json", about | ({"before": _checksum(self.out)} if self.out.exists() else {}))
        with _sentences(self.out):
            write(self.out, lambda file: file.write(page))

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        with _sentences(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, lambda file: file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode()))


class _sentences:
    """What the system says about a file, as a sentence."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, where: Any) -> None:
        if isinstance(error, OSError):
            raise OSError(f"{str(self.path)!r} cannot be written: {reason(error)}. Choose another --out.") from error


def _read(path: Path) -> dict[str, Any] | None:
    """A JSON object, if there is one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} cannot be read: delete it, or choose another --out.") from error
    return found if isinstance(found, dict) else {}


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
