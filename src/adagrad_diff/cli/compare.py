"""`adagrad-diff compare`: step-size rules on the problem of a file, as a page and as numbers.

report.html                    the page of the last comparison
report.results/3f2a91c07b64/   one comparison: run.json, checkpoint/, content.json, page.html
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import shlex
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from .. import rules as all_rules
from .._check import InputError
from .._files import read_text, write
from .._messages import require
from .._version import __version__
from ..solvers.fingerprint import describe
from .group import Problems, choose, click, interrupted, main, printable, say, strict
from .problem import Problem, problem_of, problem_options

FOLDER_DIGITS = 12  # in the name of a comparison's folder
PROBE_ITERATIONS = 50  # of a comparison that shows what an iteration costs, at most
MIN_ITERATIONS = 10  # whatever the time is: fewer show nothing
CONNECT_TIME = "10s"  # that a scheduler may take to answer
SHOWN = ("title", "about", "n_iter", "starts", "f_star", "scores", "verdict")


@main.command(short_help="How much does the step size matter on your data? A page.")
@problem_options
@click.option(
    "--rules",
    multiple=True,
    metavar="RULE[,RULE]...",
    help="The rules to compare.  [default: all]",
)
@click.option(
    "--budget",
    default="500",
    show_default=True,
    help="Iterations of each run, or a time for all of them: 60s, 5min.",
)
@click.option(
    "--etas",
    metavar="LOW:HIGH:COUNT",
    help="Step sizes; also 0.01,0.1,1.  [default: seven decades around the problem's]",
)
@click.option(
    "--starts", type=click.IntRange(min=1), default=3, show_default=True, help="Starts of each run."
)
@click.option(
    "--jobs",
    "n_jobs",
    type=click.IntRange(min=1),
    help="Chunks of runs that run in parallel.  [default: every core]",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Of a Dask cluster that does the work, such as tcp://10.0.0.1:8786.",
)
@click.option(
    "--out",
    default="report.html",
    show_default=True,
    type=click.Path(),
    help="The page; results are kept beside it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
@strict
def compare(
    rules: tuple[str, ...],
    budget: str,
    etas: str | None,
    starts: int,
    n_jobs: int | None,
    scheduler: str | None,
    out: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare step-size rules on DATA over many step sizes, and write a page that shows how sensitive each is.

    DATA is a CSV, Parquet, NPZ or LIBSVM file, or the name of a LIBSVM data set. After Ctrl-C, the
    same command continues. Every comparison is kept in a folder of its own beside --out.
    """
    require("jinja2", "cli")
    from ..study.report import page as page_of
    from ..study.sensitivity import sensitivity

    problems, page = Problems(), Path(out)
    run: dict[str, Any] = {"starts": starts, "n_jobs": n_jobs}
    results = page.with_name(f"{page.stem}.results")
    with problems.catch():
        _check_page(page, results)
    with problems.catch():
        run["rules"] = _rules(rules)
    with problems.catch():
        run["etas"] = None if etas is None else _etas(etas)
    with problems.catch():
        n_iter, seconds = _budget(budget)
    problem = problem_of(problems, **options)
    parts = (problem.loss, problem.penalty, run["rules"], run["etas"], starts, budget, __version__)
    identity = json.dumps(describe(parts))
    folder = results / hashlib.sha256(identity.encode()).hexdigest()[:FOLDER_DIGITS]
    begun = _begun(folder / "run.json")
    kept = "This comparison was begun before and continues" if begun else "Results are kept"
    say(f"{problem.message}\n{kept} in {folder}.")
    try:
        with _cluster(scheduler) as run["client"]:
            n_iter = n_iter or begun or _affordable(problem, run, seconds)
            _write(folder / "run.json", json.dumps({"n_iter": n_iter, "about": problem.about}))
            found = sensitivity(
                problem.loss,
                problem.penalty,
                n_iter=n_iter,
                checkpoint=folder / "checkpoint",
                **run,
            )
    except KeyboardInterrupt:
        interrupted(
            f"Interrupted. What is finished is kept in {folder}; the same command continues."
        )
    command = shlex.join(["adagrad-diff", *sys.argv[1:]])
    content = found.content(title=problem.facts["title"], about=problem.about, command=[command])
    copy = folder / "page.html"
    if not copy.exists():  # a page is written once, so that it is known later
        _write(folder / "content.json", json.dumps(content, indent=1, allow_nan=False))
        _write(copy, page_of(content))
    _check_page(page, results)  # another file may have come in the meantime
    _write(page, copy.read_text(encoding="utf-8"))
    if as_json:
        shown = {"report": out, "results": str(folder)} | {name: content[name] for name in SHOWN}
        click.echo(json.dumps(shown, indent=1, allow_nan=False))
        return
    lines = [content["title"], "", str(found), "", "Files:", f"  {out}", f"  {folder}"]
    click.echo(printable("\n".join(lines)))


def _check_page(page: Path, results: Path) -> None:
    """Raise if something else than the unchanged page of a comparison is in its place."""
    copies = results.glob("*/page.html")
    ours = page.is_file() and any(filecmp.cmp(page, copy, shallow=False) for copy in copies)
    if page.exists() and not ours:
        raise InputError(
            f"--out names {str(page)!r}, which exists and is not a report, or was changed: choose "
            "another name."
        )


def _begun(path: Path) -> int:
    """Return the number of iterations of a comparison that was begun before, or 0."""
    try:
        return int(json.loads(read_text(path))["n_iter"])
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read: delete it, or choose another --out."
        ) from error


def _write(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, lambda file: file.write(text.encode()))


def _rules(texts: tuple[str, ...]) -> list[Any] | None:
    """Return rules by their names, in which case and hyphens do not matter."""
    known = {name.lower(): getattr(all_rules, name) for name in all_rules.__all__ if name != "Rule"}
    words = [word.strip() for word in ",".join(texts).lower().replace("-", "").split(",")]
    return [known[choose(word, known, "rule")] for word in dict.fromkeys(words) if word] or None


def _etas(text: str) -> np.ndarray:
    """Return the step sizes of 0.01,0.1,1, or of LOW:HIGH:COUNT on a logarithmic scale."""
    try:
        if ":" in text:
            low, high, count = text.split(":")
            etas = np.geomspace(float(low), float(high), int(count))
        else:
            etas = np.array(text.split(","), float)
        if (np.isfinite(etas) & (etas > 0)).all() and etas.size:
            return np.unique(etas)
    except ValueError:
        pass
    raise InputError(
        f"--etas must be positive numbers, such as 0.01,0.1,1 or 1e-4:1e3:15. Got {text!r}."
    )


def _budget(text: str) -> tuple[int, float]:
    """Return a number of iterations and a time in seconds, one of which is zero."""
    if text.isdigit() and int(text):
        return int(text), 0.0
    try:
        seconds = require("pandas", "cli").Timedelta(text).total_seconds()
    except ValueError:
        seconds = 0.0
    if text.isdigit() or not seconds > 0:
        raise InputError(
            "--budget must be a number of iterations, such as 500, or a time, such as 60s or 5min. "
            f"Got {text!r}."
        )
    return 0, seconds


def _affordable(problem: Problem, run: dict[str, Any], seconds: float) -> int:
    """Return the number of iterations for which the time suffices, from a short comparison."""
    from ..study.sensitivity import sensitivity

    took = 0.0
    for n_iter in (1, PROBE_ITERATIONS):  # the first one compiles and loads
        begin = time.perf_counter()
        sensitivity(problem.loss, problem.penalty, n_iter=n_iter, progress=False, **run)
        took = time.perf_counter() - begin
    n_iter = max(MIN_ITERATIONS, int(PROBE_ITERATIONS * seconds / took))
    say(f"In {seconds:g} seconds there is time for about {n_iter} iterations of each run.")
    return n_iter


def _cluster(address: str | None) -> Any:
    """Return a connection to a Dask scheduler that is closed in the end, or a context without any."""
    if address is None:
        return nullcontext()
    distributed = require("distributed", "dask")
    try:
        return distributed.Client(address, timeout=CONNECT_TIME, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--scheduler {address!r} does not answer: is it the address of a Dask scheduler?"
        ) from error
