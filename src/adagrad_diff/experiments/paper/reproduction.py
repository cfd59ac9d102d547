"""The paper's experiments from data to figures: what `adagrad-diff reproduce` does."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ... import _check
from ..._files import clear, reason
from ..._messages import counted, require
from ..._threads import cores
from .. import report
from ..figures import save
from . import table
from .figures import figure_columns, three_panels
from .problems import PROBLEMS, Problem
from .protocol import Study, study

if TYPE_CHECKING:
    import pandas as pd

FIGURES = {"fig1": ("hinge", "lad"), "fig2": ("news20", "splice", "2moons"), "fig3": ("splice",)}
FROM_FILES = ("news20", "splice")  # problems that need a data file
RUN_FILE = "run.json"

#: Size of the grid and options of the problems: the paper's, and two minutes on two cores.
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


def to_stderr(line: str) -> None:
    """Print a message to stderr."""
    print(line, file=sys.stderr)


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
    say: Callable[[str], Any] = to_stderr,
) -> Reproduction:
    """Run the paper's experiments and draw its figures.

    Parameters
    ----------
    targets : names of problems and figures
        "hinge", "lad", "news20", "splice", "2moons": that problem. "fig1", "fig2", "fig3": the
        problems of that figure. All by default. All figures of these problems are drawn.
    scale : {"quick", "full"}
        Fewer step sizes and starts (and for news20, iterations), or the paper's sizes. On two
        cores, quick takes two minutes; full takes five for the four small problems and hours for
        news20.
    out : path
        Directory for figures (PDF, PNG), numbers (CSV), the table, a report page of each problem
        (HTML), and checkpoints. Problems of earlier runs there are drawn and listed with these.
    data : path, optional
        Directory of the LIBSVM files; see `adagrad_diff.datasets.load`. Where a file cannot be had,
        a stand-in is used, and every figure and table says so.
    resume : bool
        Whether to resume from the checkpoints in `out`. Without it, a directory with checkpoints is
        an error.
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
    >>> from adagrad_diff.experiments.paper import reproduce
    >>> out, quiet = tempfile.mkdtemp(), lambda line: None
    >>> made = reproduce(["2moons"], out=out, etas=4, starts=1, say=quiet)
    >>> [path.name for path in made.files if path.suffix == ".png"]
    ['fig2.png', 'figA_2moons.png']
    >>> made.files[-1].name
    'report_2moons.html'
    """
    _check.one_of(scale, tuple(RUN_SCALES), "scale", "reproduce")
    require("jinja2", "report")  # before any work is done
    wanted: set[str] = set()
    for target in tuple(targets) or tuple(PROBLEMS):
        if target not in (*PROBLEMS, *FIGURES):
            raise _check.InputError(
                f"There is no problem or figure {target!r}. There are: "
                f"{', '.join((*PROBLEMS, *FIGURES))}."
            )
        wanted.update(FIGURES.get(target, (target,)))
    folder, begin = _directory(Path(out), resume), perf_counter()
    plans = _earlier(folder)
    if others := [name for name in plans if name not in wanted]:
        say(f"{folder} holds {', '.join(others)} as well: figures, table and pages show all.")
    for name in wanted:
        grid, options = RUN_SCALES[scale][name]
        choices = options if starts is None else {**options, "starts": starts}
        plans[name] = {"etas": etas or grid, "choices": choices, "scale": scale}
    studies = {}
    for name in (name for name in PROBLEMS if name in plans):
        grid, problem = plans[name]["etas"], load_problem(name, data, say, **plans[name]["choices"])
        runs, n_iter = problem.x0s.shape[1], problem.n_iter
        if name in wanted:
            sizes = counted(runs, "start"), counted(n_iter, "iteration")
            say(f"{problem.title}: {grid} etas x {' x '.join(sizes)}, two methods")
        place = folder / "checkpoints" / f"{name}-{grid}-{runs}-{n_iter}"
        options = {"memory": memory, "n_jobs": n_jobs, "progress": progress}
        studies[name] = study(problem, etas=grid, checkpoint=place, **options)
    files: list[Path] = []
    for stem in ("fig1", "fig2"):
        if found := [studies[name] for name in FIGURES[stem] if name in studies]:
            files += save(*figure_columns(found), folder, stem)
    for name, one in studies.items():
        files += save(
            *three_panels(one), folder, "fig3_splice" if name == "splice" else f"figA_{name}"
        )
    frame = table.summary(studies)
    run = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(perf_counter() - begin, 1),
        "machine": f"{platform.platform(terse=True)}, {counted(cores(), 'core')}",
        "problems": {name: plans[name] | one.provenance for name, one in studies.items()},
    }
    texts = {
        "table.csv": frame.to_csv(index=False),
        "table.md": table.to_markdown(frame),
        RUN_FILE: json.dumps(run, indent=1) + "\n",
        **{f"report_{name}.html": _page(name, studies, plans[name]) for name in studies},
    }
    for name, text in texts.items():
        report.write_text(folder / name, text)
    return Reproduction(studies, frame, [*files, *(folder / name for name in texts)])


def _directory(path: Path, resume: bool) -> Path:
    """Return the output directory: without unfinished work unless it is to be resumed."""
    if not resume and (path / "checkpoints").exists():
        raise _check.InputError(
            f"{path} holds checkpoints of an earlier run: add --resume to continue from them, or "
            "choose another --out."
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
        clear(path)
        (path / "checkpoints").mkdir(exist_ok=True)
    except OSError as error:
        raise OSError(
            f"The output directory {path} cannot be written: {reason(error)}. Choose another --out."
        ) from error
    return path


def _earlier(folder: Path) -> dict[str, dict[str, Any]]:
    """Return etas, choices and scale of each problem of earlier runs in this directory."""
    try:
        found = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))["problems"]
        keys = ("etas", "choices", "scale")
        return {name: {key: found[name][key] for key in keys} for name in PROBLEMS if name in found}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _check.InputError(
            f"{folder} holds results whose {RUN_FILE} cannot be read: choose another --out."
        ) from error


def load_problem(
    name: str, data: Any = None, say: Callable[[str], Any] = to_stderr, **options: Any
) -> Problem:
    """Return a problem, on generated data if its file cannot be had, and say so."""
    if name in FROM_FILES:
        options |= {"data": data, "stand_in": True}
    problem = PROBLEMS[name](**options)
    if not problem.real:
        say(
            f"  The data of {name} were not found and could not be fetched: a generated "
            f"{problem.data} is used, and figures and tables say so. With the file: --data DIR."
        )
    return problem


def _page(name: str, studies: Mapping[str, Study], plan: Mapping[str, Any]) -> str:
    """Return the report page of a problem, which links to those of the others."""
    one = studies[name]
    sizes = f"--etas {len(one.grid.eta)} --starts {one.x0s.shape[1]}"
    data = one.data if one.real else f"{one.data}: generated, not the real data"
    about = [("Problem", one.title), ("Data", data)]
    about += [(label.replace("_", " "), value) for label, value in one.choices.items()]
    content = one.comparison.content(
        title=f"AdaGrad-Diff and AdaGrad: {one.title}",
        about=about,
        command=[f"adagrad-diff reproduce {name} --scale {plan['scale']} {sizes}"],
    )
    others = {k: other.title for k, other in studies.items() if k != name}
    content["others"] = [(title, f"report_{k}.html") for k, title in others.items()]
    return report.page(content)
