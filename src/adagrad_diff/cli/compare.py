"""`adagrad-diff compare`: step-size rules on the problem of a file, as a page and as numbers.

report.html                    the page of the last comparison
report.results/3f2a91c07b64/   one comparison: run.json, checkpoint/, page.html
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from .. import rules as all_rules
from .._check import InputError
from .._files import read_text
from .._messages import require
from .._version import __version__
from ..experiments import report, sensitivity
from ..solvers.fingerprint import describe
from .group import Problems, check_output, choose, interrupted, printable, say
from .problem import problem_of

FOLDER_DIGITS = 12  # in the name of a comparison's folder
PROBE_ITERATIONS = 50  # of a comparison that shows what an iteration costs, at most
MIN_ITERATIONS = 10  # whatever the time is: fewer show nothing
TRAINING = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # MODULE:FUNCTION
REPORT_MARK = '<meta name="generator" content="adagrad-diff'  # in every page
CONNECT_TIME = "10s"  # that a scheduler may take to answer
SHOWN = ("title", "about", "n_iter", "starts", "f_star", "scores", "verdict")


def compare_rules(
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
    """Compare rules, print their scores and write a page."""
    page, problems = Path(out), Problems()
    problems.check(check_output, page, REPORT_MARK, "a report")
    chosen = problems.check(_rules, rules)
    grid = problems.check(_etas, etas)
    n_iter, seconds = problems.check(_budget, budget) or (0, 0.0)
    problem = problem_of(problems, **options)
    parts = (problem.loss, problem.penalty, chosen, grid, starts, budget, __version__)
    identity = json.dumps(describe(parts))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:FOLDER_DIGITS]
    folder = page.with_suffix(".results") / digest
    begun = _begun(folder / "run.json")
    kept = "This comparison was begun before and continues" if begun else "Results are kept"
    say(f"{kept} in {folder}.")
    try:
        with _cluster(scheduler) as client:
            run = partial(
                sensitivity,
                problem.loss,
                problem.penalty,
                chosen,
                grid,
                starts,
                n_jobs=n_jobs,
                client=client,
            )
            n_iter = n_iter or begun or _affordable(run, seconds)
            folder.mkdir(parents=True, exist_ok=True)
            report.write_text(folder / "run.json", json.dumps({"n_iter": n_iter, **problem.facts}))
            found = run(n_iter, checkpoint=folder / "checkpoint")
    except KeyboardInterrupt:
        interrupted(
            f"Interrupted. What is finished is kept in {folder}; the same command continues."
        )
    about = [[name.capitalize(), str(fact)] for name, fact in problem.facts.items()]
    _report(found, page, folder, as_json, title=problem.title, about=about)


def compare_training(
    reference: str,
    rules: tuple[str, ...],
    etas: str | None,
    starts: int,
    n_jobs: int | None,
    scheduler: str | None,
    out: str,
    as_json: bool,
) -> None:
    """Compare the methods of a training function, print their scores and write a page."""
    page, problems = Path(out), Problems()
    problems.check(check_output, page, REPORT_MARK, "a report")
    train = problems.check(_training_function, reference)
    methods = [word.strip() for word in ",".join(rules).split(",") if word.strip()]
    if not methods:
        problems.append(f"--rules must name the methods of {reference}: --rules METHOD,METHOD.")
    grid = problems.check(_etas, etas)
    problems.raise_all()
    folder = page.with_suffix(".results") / reference.replace(":", ".")
    try:
        with _cluster(scheduler) as client:
            options: dict[str, Any] = {"n_jobs": n_jobs, "client": client, "checkpoint": folder}
            found = sensitivity(train, rules=methods, etas=grid, starts=starts, **options)
    except KeyboardInterrupt:
        interrupted(f"Interrupted. Complete runs are kept in {folder}; the same command continues.")
    except Exception as error:
        if not (notes := getattr(error, "__notes__", None)):
            raise
        traceback.print_exc()  # the notes name the run of the training function that failed
        message = f"{reference} raised {type(error).__name__}: {error}. {notes[0]}"
        raise InputError(message) from error
    _report(found, page, folder, as_json)


def _training_function(reference: str) -> Callable[..., Any]:
    """Return the function that MODULE:FUNCTION names, also of a module in this directory."""
    module, name = reference.split(":")
    sys.path.insert(0, "")
    try:
        function: Callable[..., Any] = getattr(import_module(module), name)
    except Exception as error:  # of any kind, while the module is imported
        raise InputError(f"There is no training function {reference}: {error}.") from error
    return function


def _report(found: Any, page: Path, folder: Path, as_json: bool, **about: Any) -> None:
    """Write the page, also into the folder of the comparison, and print the scores."""
    content = found.content(command=[shlex.join(["adagrad-diff", *sys.argv[1:]])], **about)
    page.parent.mkdir(parents=True, exist_ok=True)
    for path in (folder / "page.html", page):
        report.write(path, content)
    if as_json:
        shown = {"report": str(page), "results": str(folder)}
        shown |= {name: content[name] for name in SHOWN}
        click.echo(json.dumps(shown, indent=1, allow_nan=False))
    else:
        lines = [content["title"], "", str(found), "", "Files:", f"  {page}", f"  {folder}"]
        click.echo(printable("\n".join(lines)))


def _begun(path: Path) -> int:
    """Return the number of iterations of a comparison that was begun before, or 0."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        return int(json.loads(read_text(path))["n_iter"])
    return 0


def _rules(texts: tuple[str, ...]) -> list[Any] | None:
    """Return rules by their names, in which case and hyphens do not matter."""
    known = {name.lower(): getattr(all_rules, name) for name in all_rules.__all__ if name != "Rule"}
    words = [word.strip() for word in ",".join(texts).lower().replace("-", "").split(",")]
    return [known[choose(word, known, "rule")] for word in dict.fromkeys(words) if word] or None


def _etas(text: str | None) -> np.ndarray | None:
    """Return the step sizes of 0.01,0.1,1, or of LOW:HIGH:COUNT on a logarithmic scale."""
    if text is None:
        return None
    with suppress(ValueError), np.errstate(all="ignore"):
        if ":" in text:
            low, high, count = text.split(":")
            etas = np.geomspace(float(low), float(high), int(count))
        else:
            etas = np.array(text.split(","), float)
        if etas.size and etas.min() > 0 and etas.max() < np.inf:
            return np.unique(etas)
    raise InputError(
        f"--etas must be positive numbers, such as 0.01,0.1,1 or 1e-4:1e3:15. Got {text!r}."
    )


def _budget(text: str) -> tuple[int, float]:
    """Return a number of iterations and a time in seconds, one of which is zero."""
    n_iter, seconds = 0, 0.0
    with suppress(ValueError):
        if text.isdigit():
            n_iter = int(text)
        else:
            seconds = pd.Timedelta(text).total_seconds()
    if not (n_iter or seconds > 0):
        raise InputError(
            "--budget must be a number of iterations, such as 500, or a time, such as 60s or 5min. "
            f"Got {text!r}."
        )
    return n_iter, seconds


def _affordable(run: Callable[..., Any], seconds: float) -> int:
    """Return the number of iterations for which the time suffices, from a short comparison."""
    took = 0.0
    for n_iter in (1, PROBE_ITERATIONS):  # the first one compiles and loads
        begin = time.perf_counter()
        run(n_iter, progress=False)
        took = time.perf_counter() - begin
    n_iter = max(MIN_ITERATIONS, int(PROBE_ITERATIONS * seconds / took))
    say(f"In {seconds:g} seconds there is time for about {n_iter} iterations of each run.")
    return n_iter


def _cluster(address: str | None) -> Any:
    """Return a connection to a Dask scheduler, closed in the end, or a context without any."""
    if address is None:
        return nullcontext()
    distributed = require("distributed", "dask")
    try:
        return distributed.Client(address, timeout=CONNECT_TIME, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--scheduler {address!r} does not answer: is it the address of a Dask scheduler?"
        ) from error
