"""`adagrad-diff compare`: how much the step size matters on your data, rule by rule, as a page and as numbers."""

from __future__ import annotations

import json
import re
import shlex
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from .._check import InputError
from .group import click, interrupted, main, one_line, say, strict
from .options import problem_options

TRAINING = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # a function in a module
SHOWN = ("title", "about", "n_iter", "starts", "f_star", "scores", "verdict")


@main.command(short_help="How much does the step size matter on your data? A page.")
@problem_options
@click.option(
    "--rules",
    multiple=True,
    metavar="RULE[,RULE]...",
    help="The rules to compare.  [default: all there are]",
)
@click.option(
    "--budget",
    default="500",
    show_default=True,
    help="Iterations of each run, or a time for all: 60s, 5min.",
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
    "--jobs", type=click.IntRange(min=1), help="Chunks of runs side by side.  [default: every core]"
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
    jobs: int | None,
    scheduler: str | None,
    out: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare step-size rules on DATA over many step sizes, and write a page that shows how sensitive each is.

    DATA is a CSV, Parquet, svmlight or NPZ file, or the name of a LIBSVM data set. Ctrl-C loses nothing: the same command goes
    on. Every comparison has a folder of its own beside --out, with its page: those of other problems are never lost.

    DATA may also be MODULE:FUNCTION, a training function train(method, lr, seed) that returns a loss or a loss curve. Then
    --rules are the methods it knows, --etas learning rates, --starts seeds and --jobs processes (one by default).
    """
    if TRAINING.fullmatch(options["data"]) and not Path(options["data"]).exists():
        compare_training(options["data"], rules, etas, starts, jobs, scheduler, out, as_json)
        return
    from .comparison import Comparison

    comparison = Comparison(options, rules, budget, etas, starts, jobs, Path(out), scheduler)
    for note in comparison.notes:
        say(one_line(note))
    try:
        found, content = comparison.run(shlex.join(["adagrad-diff", *sys.argv[1:]]), say)
    except KeyboardInterrupt:
        interrupted(
            f"Interrupted. What is finished is kept in {comparison.kept.folder}; the same command goes on."
        )
    if as_json:
        shown = {name: content[name] for name in SHOWN}
        click.echo(
            json.dumps(
                {"report": out, "results": str(comparison.kept.folder), **shown},
                indent=1,
                allow_nan=False,
            )
        )
        return
    for line in (
        content["title"],
        "",
        *str(found).splitlines(),
        "",
        "Files:",
        f"  {out}",
        f"  {comparison.kept.folder}",
    ):
        click.echo(one_line(line))


def compare_training(
    reference: str,
    rules: tuple[str, ...],
    etas: str | None,
    starts: int,
    jobs: int | None,
    scheduler: str | None,
    out: str,
    as_json: bool,
) -> None:
    """Compare the methods of a training function, print their scores and write a page."""
    from ..experiments import report, sensitivity
    from .choices import etas_of
    from .comparison import client_of

    module, name = reference.split(":")
    sys.path.insert(0, "")  # the current directory
    try:
        train = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"There is no training function {reference}: {error}.") from error
    methods = [word.strip() for word in ",".join(rules).split(",") if word.strip()]
    if not methods:
        raise InputError(f"Name the methods of {reference} with --rules METHOD,METHOD.")
    folder = Path(out).with_suffix(".results") / reference.replace(":", ".")
    try:
        with nullcontext() if scheduler is None else client_of(scheduler) as client:
            grid = None if etas is None else etas_of(etas)
            options: dict[str, Any] = {"n_jobs": jobs, "client": client, "checkpoint": folder}
            found = sensitivity(train, rules=methods, etas=grid, starts=starts, **options)
    except KeyboardInterrupt:
        interrupted(f"Interrupted. Complete runs are kept in {folder}; the same command goes on.")
    content = found.content(command=[shlex.join(["adagrad-diff", *sys.argv[1:]])])
    report.write(out, content)
    if as_json:
        shown = {"report": out, "results": str(folder)} | {key: content[key] for key in SHOWN}
        click.echo(json.dumps(shown, indent=1, allow_nan=False))
        return
    for line in (
        content["title"],
        "",
        *str(found).splitlines(),
        "",
        "Files:",
        f"  {out}",
        f"  {folder}",
    ):
        click.echo(one_line(line))
