"""The commands and their options. What they do is imported when they run: `--help` is fast."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click import Choice, IntRange, argument, option

from .. import _about
from .._messages import require
from .group import choose, clean, interrupted, main, say, strict

POSITIVE, FILE = IntRange(min=1), click.Path()
NEW_DIRECTORY, DIRECTORY = click.Path(file_okay=False), click.Path(exists=True, file_okay=False)
PAPER_PROBLEMS = ("hinge", "lad", "news20", "splice", "2moons")
TARGETS = (*PAPER_PROBLEMS, "fig1", "fig2", "fig3")

data_option = option("--data", type=DIRECTORY, help="Directory of the LIBSVM files.")
out_option = option(
    "--out", type=NEW_DIRECTORY, default="results", help="Directory for the results."
)


# ------------------------------------------------------------------------------ your data


def problem_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument and the options of `problem_of`."""
    options = (
        argument("data"),
        option(
            "--target", help="The column to predict. LIBSVM files and data sets have their own."
        ),
        option(
            "--loss",
            help="logistic, hinge, squared_hinge, multinomial; squared, lad, huber:1.5, "
            "quantile:0.9, poisson.  [default: logistic for two classes, multinomial for several, "
            "squared for numbers]",
        ),
        option("--positive", metavar="CLASS", help="The class to tell from all others."),
        option(
            "--penalty",
            default="l1",
            help="l1, l2, elasticnet:0.5, group (the categories of a column together), "
            "nonnegative or none.",
        ),
        option(
            "--alpha",
            type=float,
            help="Strength of the penalty.  [default: a hundredth of what makes all coefficients "
            "zero; for l2, 1 / samples]",
        ),
        option(
            "--intercept/--no-intercept",
            default=True,
            help="Whether there is an intercept, which is not penalized.",
        ),
        option(
            "--standardize/--no-standardize",
            default=True,
            help="Whether the penalty sees columns of numbers with mean 0 and standard deviation "
            "1. Coefficients are printed in the units of the file.",
        ),
        option(
            "--drop",
            multiple=True,
            metavar="COLUMN",
            help="A column to leave out; may be repeated.",
        ),
        option(
            "--missing",
            multiple=True,
            metavar="WORD",
            help="A word that means a missing value; may be repeated.",
        ),
        option(
            "--thousands",
            metavar="CHARACTER",
            help="The separator of thousands in a CSV file, as in 1,234.",
        ),
        option(
            "--impute",
            is_flag=True,
            help="Fill in missing values: the median, or a category of their own.",
        ),
        option(
            "--drop-missing-target", is_flag=True, help="Leave out rows whose target is missing."
        ),
        option(
            "--header/--no-header",
            default=True,
            help="Whether a CSV file names its columns in the first line.",
        ),
        option("--data", "directory", type=DIRECTORY, help="Directory of the LIBSVM files."),
    )
    for add in reversed(options):
        command = add(command)
    return command


@main.command()
@problem_options
@option(
    "--tol", type=click.FloatRange(min=0.0), default=1e-6, help="Relative duality gap to reach."
)
@option("--max-iter", type=POSITIVE, default=10000, help="Iterations at most.")
@option("--json", "as_json", is_flag=True, help="Print the model as JSON.")
@option("--out", type=FILE, help="A file for the model as JSON.")
@strict
def fit(**options: Any) -> None:
    """Fit a linear model to your data, with a proof.

    It prints the coefficients, and how close to the best they are proven to be. DATA is a CSV,
    Parquet, NPZ or LIBSVM file, or the name of a LIBSVM data set. Words become indicators, and
    dates become days. The exit code is 1 if the model is not proven to be within --tol of the best,
    and 2 if there is none.
    """
    require("pandas", "cli")
    require("sklearn", "cli")
    from .fit import fit_model

    fit_model(**options)


@main.command()
@problem_options
@option(
    "--rules",
    multiple=True,
    metavar="RULE[,RULE]...",
    help="The rules to compare.  [default: all]",
)
@option(
    "--budget",
    default="500",
    help="Iterations of each run, or a time for all of them: 60s, 5min.",
)
@option(
    "--etas",
    metavar="LOW:HIGH:COUNT",
    help="Step sizes; also 0.01,0.1,1.  [default: seven decades around the problem's]",
)
@option("--starts", type=POSITIVE, default=3, help="Starts of each run.")
@option(
    "--jobs",
    "n_jobs",
    type=POSITIVE,
    help="Chunks of runs that run in parallel.  [default: every core]",
)
@option(
    "--scheduler",
    metavar="ADDRESS",
    help="Of a Dask cluster that does the work, such as tcp://10.0.0.1:8786.",
)
@option("--out", type=FILE, default="report.html", help="The page; results are kept next to it.")
@option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
@strict
def compare(**options: Any) -> None:
    """Compare step-size rules on your data, as a page.

    Every rule runs with many step sizes. The page shows how much the step size matters. DATA is a
    CSV, Parquet, NPZ or LIBSVM file, or the name of a LIBSVM data set. After Ctrl-C, the same
    command continues. Every comparison is kept in a separate folder next to --out.

    DATA may also be MODULE:FUNCTION, a training function train(method, lr, seed) that returns a
    loss or a loss curve. Then --rules are the methods it knows, --etas learning rates, --starts
    seeds, and --jobs processes (one by default).
    """
    for package in ("pandas", "sklearn", "jinja2", "xarray", "tqdm", "threadpoolctl"):
        require(package, "cli")
    from .compare import TRAINING, compare_rules, compare_training

    if TRAINING.fullmatch(options["data"]) and not Path(options["data"]).exists():
        names = ("rules", "etas", "starts", "n_jobs", "scheduler", "out", "as_json")
        compare_training(options["data"], **{name: options[name] for name in names})
    else:
        compare_rules(**options)


# ------------------------------------------------------------------------------ the paper


@main.command()
@argument("targets", nargs=-1, type=Choice(TARGETS), metavar="[TARGET]...")
@option(
    "--scale",
    type=Choice(("quick", "full")),
    default="quick",
    help="Two minutes, or the paper's sizes.",
)
@out_option
@data_option
@option("--resume", is_flag=True, help="Continue from the checkpoints in --out.")
@option("--etas", type=IntRange(min=2), help="Step sizes, instead of the scale's.")
@option("--starts", type=POSITIVE, help="Starts, instead of the scale's.")
@option("--memory", default="2GB", help="For the trajectories that run at once.")
@option(
    "--jobs",
    "n_jobs",
    type=POSITIVE,
    help="Chunks of trajectories that run in parallel.  [default: every core]",
)
@clean
def reproduce(targets: tuple[str, ...], out: str, **options: Any) -> None:
    """Run the paper's experiments and draw its figures.

    All of them, or those of some targets. A TARGET is a problem (hinge, lad, news20, splice,
    2moons) or a figure (fig1, fig2, fig3). Figures come as PDF and PNG, with the numbers behind
    them as CSV. After Ctrl-C, --resume continues.
    """
    from ..experiments.paper import reproduce as run
    from ..experiments.paper.table import to_text

    try:
        made = run(targets, out=out, say=say, **options)
    except KeyboardInterrupt:
        words = [word for word in sys.argv[1:] if word != "--resume"]
        again = shlex.join(["adagrad-diff", *words, "--resume"])
        interrupted(f"Interrupted. What is finished is kept in {out}. To continue:\n  {again}")
    _print(to_text(made.table), made.files)


@main.command()
@argument("problems", nargs=-1, type=Choice(PAPER_PROBLEMS), metavar="[PROBLEM]...")
@option(
    "--eta",
    "etas",
    multiple=True,
    type=float,
    help="A step size; may be repeated.  [default: five over six decades]",
)
@option(
    "--iterations", type=POSITIVE, help="Of every run.  [default: 2000, and 20000 for the rates]"
)
@option("--seed", type=IntRange(min=0), default=0, help="Of data and starts.")
@data_option
@out_option
@clean
def verify(problems: tuple[str, ...], out: str, **options: Any) -> None:
    """Check the paper's inequalities and rates on recorded runs.

    A PROBLEM is hinge, lad, news20, splice or 2moons; all of them if none is named.

    One row per inequality: the smallest slack over all step sizes and blocks, relative to the
    magnitude of its terms, and where it is. The exit code is 1 if an inequality is violated that
    the paper states correctly.
    """
    from ..experiments.theory import verify as run

    found = run(problems, output=out, say=say, **options)
    _print(str(found), found.files)
    if not found.holds:
        raise click.ClickException("An inequality is violated: see the rows marked VIOLATED.")


def _print(text: str, files: Any) -> None:
    click.echo("\n".join([text, "", "Files:", *(f"  {path}" for path in files)]))


# ------------------------------------------------------------------------------ this machine


@main.group()
def datasets() -> None:
    """Data sets: which there are, and how to get them."""


@datasets.command("list")
@data_option
@clean
def list_(data: str | None) -> None:
    """All data sets, their sizes, and where they are."""
    from .. import datasets as sets

    for name in sets.names():
        rows, columns = sets.shape(name)
        click.echo(f"{name:<12} {rows:>6} x {columns:<6} {sets.where(name, data) or 'not here'}")


@datasets.command()
@argument("names", nargs=-1, required=True, metavar="NAME... | all")
@option("--out", type=NEW_DIRECTORY, help="Directory for the files.  [default: the cache]")
@clean
def fetch(names: tuple[str, ...], out: str | None) -> None:
    """Download data sets, and print where they are.

    They come from the LIBSVM page. Those of the package are written as LIBSVM's text, without a
    network.
    """
    from .. import datasets as sets

    known = sets.names()
    for name in known if names == ("all",) else [choose(name, known, "data set") for name in names]:
        click.echo(sets.fetch(name, out))


@datasets.command()
@argument("name")
@data_option
@clean
def where(name: str, data: str | None) -> None:
    """Print where a data set is.

    The exit code is 1 if it is not on this machine.
    """
    from .. import datasets as sets

    path = sets.where(choose(name, sets.names(), "data set"), data)
    if path is None:
        raise click.ClickException(
            f"{name} is not on this machine. adagrad-diff datasets fetch {name} downloads it."
        )
    click.echo(path)


@main.command()
@clean
def info() -> None:
    """Versions and machine, for a bug report."""
    from ..datasets import cache

    click.echo(f"{_about.report()}\n  data cache     {cache()}")
