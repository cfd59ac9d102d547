"""The directory of results: whether it may be used, what it holds of other problems, and what is written down about a run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from .._check import InputError
from .._files import clear, reason
from .._threads import cores
from ..study.files import write_all
from .problems import PROBLEMS, Problem
from .protocol import Study, recorded

RUN_FILE = "run.json"
Kept = dict[
    str, tuple[int, dict[str, Any], str]
]  # of each problem the size of the grid, its choices, and the scale


def directory(out: str | os.PathLike[str], resume: bool) -> Path:
    """The output directory, which must not hold somebody's unfinished work unless it is to be resumed.

    What a killed run has left half-written there is removed.
    """
    path = Path(out)
    if not resume and (path / "checkpoints").exists():
        raise InputError(
            f"{path} holds checkpoints of an earlier run: add --resume to go on from them, or choose another --out."
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):  # whether that is possible
            clear(path)
    except OSError as error:
        raise OSError(
            f"The output directory {path} cannot be written: {reason(error)}. Choose another --out."
        ) from error
    return path


def checkpoint(out: Path, problem: Problem, etas: int) -> Path:
    """Where a study keeps what is finished: a name that differs whenever the study does."""
    return out / "checkpoints" / f"{problem.name}-{_digest(problem.choices, problem.sha256, etas)}"


def _digest(choices: dict[str, Any], sha256: str, etas: int) -> str:
    content = json.dumps([choices, sha256, etas, recorded(choices["n_iter"])], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def others(out: Path, names: list[str]) -> tuple[Kept, dict[str, list[str]]]:
    """What the directory holds of other problems than these, and in which figures it was drawn.

    Figures and tables are drawn anew from all of it, so that nothing is lost; if that cannot be done, nothing is touched.
    """
    path = out / RUN_FILE
    if not path.exists():
        return {}, {}
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        drawn = {
            str(figure): [str(name) for name in problems]
            for figure, problems in run["drawn"].items()
        }
        problems = {name: found for name, found in run["problems"].items() if name not in names}
        missing = [
            name
            for name, found in problems.items()
            if name not in PROBLEMS
            or not (
                out
                / "checkpoints"
                / f"{name}-{_digest(found['choices'], found['sha256'], found['etas'])}"
            ).is_dir()
        ]
        kept = {
            name: (int(found["etas"]), dict(found["choices"]), str(found["scale"]))
            for name, found in problems.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{out} holds results whose {RUN_FILE} cannot be read: choose another --out."
        ) from error
    if missing:
        raise InputError(
            f"{out} holds results of {', '.join(missing)}, but not the checkpoints from which they could be drawn again. "
            "Choose another --out, so that they are not lost."
        )
    return kept, {
        figure: left
        for figure, found in drawn.items()
        if (left := [name for name in found if name in kept])
    }


def write_run(
    studies: dict[str, Study],
    out: Path,
    scales: dict[str, str],
    drawn: dict[str, list[str]],
    seconds: float,
) -> list[Path]:
    """What was run, when and on what, for whoever finds the figures."""
    run = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "machine": {
            "system": platform.platform(terse=True),
            "processor": platform.machine(),
            "cores": cores(),
        },
        "drawn": drawn,
        "problems": {
            name: {
                "scale": scales[name],
                "data": found.data,
                "F_star": found.F_star,
                "reference_eta": found.reference_eta,
                "choices": found.choices,
            }
            | found.provenance
            for name, found in studies.items()
        },
    }
    return write_all(
        out, {RUN_FILE: lambda path: path.write_text(json.dumps(run, indent=1) + "\n")}
    )
