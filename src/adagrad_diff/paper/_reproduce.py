"""The paper's experiments from data to figures: what `adagrad-diff reproduce` does."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..common import check
from ..common.files import clear, reason
from ..common.threads import cores
from ..study.files import write_all
from . import figures, table
from .problems import PROBLEMS, Problem
from .protocol import Study, study

if TYPE_CHECKING:
    import pandas as pd

FIGURES = {"fig1": ("hinge", "lad"), "fig2": ("news20", "splice", "2moons"), "fig3": ("splice",)}
STEMS = {name: f"figA_{name}" for name in PROBLEMS} | {"splice": "fig3_splice"}  # figures with three panels
FROM_FILES = ("news20", "splice")  # problems that need a file

#: Size of the grid and options of the problems: the paper's sizes, and one that takes two minutes on two cores.
RUN_SCALES: dict[str, dict[str, tuple[int, dict[str, Any]]]] = {
    "full": {name: (200, {}) for name in PROBLEMS},
    "quick": {
        "hinge": (100, {"starts": 5}),
        "lad": (100, {"starts": 5}),
        "news20": (12, {"starts": 2, "n_iter": 250}),
        "splice": (80, {"starts": 4}),
        "2moons": (100, {}),
    },
}


@dataclass
class Reproduction:
    """What was made: the studies by problem, the table, and the files."""

    studies: dict[str, Study] = field(repr=False)
    table: pd.DataFrame = field(repr=False)
    files: list[Path]


def reproduce(
    targets: Iterable[str] = (),
    *,
    scale: str = "quick",
    out: str | os.PathLike[str] = "results",
    data: str | os.PathLike[str] | None = None,
    resume: bool = False,
    etas: int | None = None,
    starts: int | None = None,
    memory: str | float = "2GB",
    n_jobs: int | None = None,
    progress: bool | None = None,
    say: Callable[[str], Any] = lambda line: print(line, file=sys.stderr),
) -> Reproduction:
    """Run the paper's experiments and draw its figures.

    Parameters
    ----------
    targets : names of problems and figures
        "hinge", "lad", "news20", "splice", "2moons": everything about that problem. "fig1", "fig2", "fig3": that figure.
        All by default.
    scale : {"quick", "full"}
        Fewer step sizes and starts (and for news20, iterations), or the paper's sizes. On two cores, quick takes two
        minutes; full takes five for the four small problems and hours for news20.
    out : path
        Directory for figures (PDF, PNG), numbers (CSV), the table, and checkpoints.
    data : path, optional
        Directory of the LIBSVM files; see `adagrad_diff.datasets.load`. Where a file cannot be had, a stand-in is used,
        and every figure and table says so.
    resume : bool
        Whether to go on from the checkpoints in `out`. Without it, a directory with checkpoints is refused.
    etas, starts : int, optional
        Instead of the scale's.
    memory, n_jobs, progress
        As for `adagrad_diff.sweep`.
    say : callable
        What to do with messages; they go to stderr by default.

    Returns
    -------
    Reproduction

    Examples
    --------
    >>> import tempfile
    >>> from adagrad_diff.paper import reproduce
    >>> made = reproduce(["2moons"], out=tempfile.mkdtemp(), etas=20, starts=2, say=lambda line: None)
    >>> [path.name for path in made.files if path.suffix == ".png"]
    ['fig2.png', 'figA_2moons.png']
    """
    check.one_of(scale, tuple(RUN_SCALES), "scale", "reproduce")
    names, drawn = _chosen(tuple(targets))
    out = _directory(out, resume)
    begin = perf_counter()
    studies = {}
    for name in names:
        grid, options = RUN_SCALES[scale][name]
        if etas is not None:
            grid = etas
        problem = _problem(name, options if starts is None else {**options, "starts": starts}, data, say)
        say(f"{problem.title}: {grid} etas x {problem.x0s.shape[1]} starts x {problem.n_iter} iterations, two methods")
        place = out / "checkpoints" / f"{name}-{_digest(problem, grid)}"
        studies[name] = study(problem, etas=grid, checkpoint=place, memory=memory, n_jobs=n_jobs, progress=progress)

    files: list[Path] = []
    if "fig1" in drawn:
        files += figures.figure_1({k: s for k, s in studies.items() if k in drawn["fig1"]}, out)
    if "fig2" in drawn:
        files += figures.figure_2({k: s for k, s in studies.items() if k in drawn["fig2"]}, out)
    for name in drawn.get("panels", ()):
        files += figures.three_panels(studies[name], out, STEMS[name])
    files += table.write(studies, out)
    files += _write_run(studies, out, scale, perf_counter() - begin)
    return Reproduction(studies, table.summary(studies), files)


def _chosen(targets: tuple[str, ...]) -> tuple[list[str], dict[str, list[str]]]:
    """Which problems to study, and which of them to draw in which figure."""
    known = (*PROBLEMS, *FIGURES)
    for target in targets:
        if target not in known:
            raise ValueError(f"There is no problem or figure {target!r}. There are: {', '.join(known)}.")
    wanted: set[tuple[str, str]] = set()  # (figure, problem)
    for target in targets or tuple(PROBLEMS):
        if target in PROBLEMS:
            wanted |= {("panels", target), *((fig, target) for fig in ("fig1", "fig2") if target in FIGURES[fig])}
        else:
            wanted |= {("panels" if target == "fig3" else target, name) for name in FIGURES[target]}
    drawn: dict[str, list[str]] = {}
    for figure in ("fig1", "fig2", "panels"):
        if chosen := [name for name in PROBLEMS if (figure, name) in wanted]:
            drawn[figure] = chosen
    return [name for name in PROBLEMS if any(name in chosen for chosen in drawn.values())], drawn


def _directory(out: str | os.PathLike[str], resume: bool) -> Path:
    """The output directory, which must not hold somebody's unfinished work unless it is to be resumed.

    What a killed run has left half-written there is removed.
    """
    path = Path(out)
    if not resume and (path / "checkpoints").exists():
        raise ValueError(
            f"{path} holds checkpoints of an earlier run: add --resume to go on from them, or choose another --out."
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):  # whether that is possible
            clear(path)
    except OSError as error:
        raise OSError(f"The output directory {path} cannot be written: {reason(error)}. Choose another --out.") from error
    return path


def _problem(name: str, options: dict[str, Any], data: Any, say: Callable[[str], Any]) -> Problem:
    if name not in FROM_FILES:
        return PROBLEMS[name](**options)
    problem = PROBLEMS[name](data=data, stand_in=True, **options)
    if not problem.real:
        say(
            f"  The data of {name} were not found and could not be fetched: a generated {problem.data} is used, "
            "and figures and tables say so. With the file: --data DIR."
        )
    return problem


def _digest(problem: Problem, etas: int) -> str:
    """A name for checkpoints that differs whenever the study does."""
    content = json.dumps([problem.choices, problem.sha256, etas], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def _write_run(studies: dict[str, Study], out: Path, scale: str, seconds: float) -> list[Path]:
    """What was run, when and on what, for whoever finds the figures."""
    run = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "scale": scale,
        "seconds": round(seconds, 1),
        "machine": {"system": platform.platform(terse=True), "processor": platform.machine(), "cores": cores()},
        "problems": {
            name: {"data": found.data, "F_star": found.F_star, "reference_eta": found.reference_eta, "choices": found.choices}
            | found.provenance
            for name, found in studies.items()
        },
    }
    return write_all(out, {"run.json": lambda path: path.write_text(json.dumps(run, indent=1) + "\n")})
