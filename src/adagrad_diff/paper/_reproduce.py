"""The paper's experiments from data to figures: what `adagrad-diff reproduce` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .. import _check
from .._messages import counted, require
from . import figures, table
from ._results import checkpoint, directory, others, write_run
from .pages import write_pages
from .problems import PROBLEMS, Problem
from .protocol import Study, study

if TYPE_CHECKING:
    import pandas as pd

FIGURES = {"fig1": ("hinge", "lad"), "fig2": ("news20", "splice", "2moons"), "fig3": ("splice",)}
STEMS = {name: f"figA_{name}" for name in PROBLEMS} | {
    "splice": "fig3_splice"
}  # figures with three panels
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
        Directory for figures (PDF, PNG), numbers (CSV), the table, a report page of each problem (HTML), and checkpoints.
        What it holds of other problems is kept, and drawn and listed with these.
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
    >>> made = reproduce(["2moons"], out=tempfile.mkdtemp(), etas=4, starts=1, say=lambda line: None)
    >>> [path.name for path in made.files if path.suffix == ".png"]
    ['fig2.png', 'figA_2moons.png']
    >>> made.files[-1].name
    'report_2moons.html'
    """
    _check.one_of(scale, tuple(RUN_SCALES), "scale", "reproduce")
    require("jinja2", "report")  # before any work is done
    names, drawn = _chosen(tuple(targets))
    out = directory(out, resume)
    begin = perf_counter()
    sizes: dict[str, tuple[int, dict[str, Any]]] = {}
    for name in names:
        grid, options = RUN_SCALES[scale][name]
        sizes[name] = (
            grid if etas is None else etas,
            options if starts is None else {**options, "starts": starts},
        )
    kept, drawn_before = others(out, names)
    if kept:
        say(
            f"{out} holds {', '.join(kept)} as well: the figures, the table and the pages show all of them."
        )
    studies, scales = {}, {}
    for name in PROBLEMS:
        if name not in (*sizes, *kept):
            continue
        grid, options = sizes.get(name) or kept[name][:2]
        scales[name] = scale if name in sizes else kept[name][2]
        problem = _problem(name, options, data, say)
        if name in sizes:
            runs = f"{grid} etas x {counted(problem.x0s.shape[1], 'start')} x {counted(problem.n_iter, 'iteration')}"
            say(f"{problem.title}: {runs}, two methods")
        place = checkpoint(out, problem, grid)
        studies[name] = study(
            problem, etas=grid, checkpoint=place, memory=memory, n_jobs=n_jobs, progress=progress
        )
    for figure, problems in drawn_before.items():
        drawn[figure] = [name for name in PROBLEMS if name in (*drawn.get(figure, ()), *problems)]

    files: list[Path] = []
    if "fig1" in drawn:
        files += figures.figure_1({k: s for k, s in studies.items() if k in drawn["fig1"]}, out)
    if "fig2" in drawn:
        files += figures.figure_2({k: s for k, s in studies.items() if k in drawn["fig2"]}, out)
    for name in drawn.get("panels", ()):
        files += figures.three_panels(studies[name], out, STEMS[name])
    files += table.write(studies, out)
    files += write_run(studies, out, scales, drawn, perf_counter() - begin)
    files += write_pages(studies, out, scales)
    return Reproduction(studies, table.summary(studies), files)


def _chosen(targets: tuple[str, ...]) -> tuple[list[str], dict[str, list[str]]]:
    """Which problems to study, and which of them to draw in which figure."""
    known = (*PROBLEMS, *FIGURES)
    for target in targets:
        if target not in known:
            raise _check.InputError(
                f"There is no problem or figure {target!r}. There are: {', '.join(known)}."
            )
    wanted: set[tuple[str, str]] = set()  # (figure, problem)
    for target in targets or tuple(PROBLEMS):
        if target in PROBLEMS:
            wanted |= {
                ("panels", target),
                *((fig, target) for fig in ("fig1", "fig2") if target in FIGURES[fig]),
            }
        else:
            wanted |= {("panels" if target == "fig3" else target, name) for name in FIGURES[target]}
    drawn: dict[str, list[str]] = {}
    for figure in ("fig1", "fig2", "panels"):
        if chosen := [name for name in PROBLEMS if (figure, name) in wanted]:
            drawn[figure] = chosen
    return [name for name in PROBLEMS if any(name in chosen for chosen in drawn.values())], drawn


def _problem(name: str, options: dict[str, Any], data: Any, say: Callable[[str], Any]) -> Problem:
    if name not in FROM_FILES:
        return PROBLEMS[name](**options)
    problem = PROBLEMS[name](data=data, **{"stand_in": True, **options})
    if not problem.real:
        say(
            f"  The data of {name} were not found and could not be fetched: a generated {problem.data} is used, "
            "and figures and tables say so. With the file: --data DIR."
        )
    return problem
