"""The commands that call the library as they are: `reproduce`, `verify`, `datasets` and `info`."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from .. import _about
from .group import choose, clean, click, interrupted, main, say

PROBLEMS = ("hinge", "lad", "news20", "splice", "2moons")
FIGURES = ("fig1", "fig2", "fig3")
OUT = click.option(
    "--out",
    default="results",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Directory for the results.",
)
DATA = click.option(
    "--data", type=click.Path(exists=True, file_okay=False), help="Directory of the LIBSVM files."
)


@main.command(short_help="Run the paper's experiments and draw its figures.")
@click.argument(
    "targets", nargs=-1, type=click.Choice((*PROBLEMS, *FIGURES)), metavar="[TARGET]..."
)
@click.option(
    "--scale",
    type=click.Choice(("quick", "full")),
    default="quick",
    show_default=True,
    help="Two minutes, or the paper's sizes.",
)
@OUT
@DATA
@click.option("--resume", is_flag=True, help="Continue from the checkpoints in --out.")
@click.option(
    "--etas", type=click.IntRange(min=2), help="Step sizes of the grid, instead of the scale's."
)
@click.option("--starts", type=click.IntRange(min=1), help="Starts, instead of the scale's.")
@click.option(
    "--memory", default="2GB", show_default=True, help="For the trajectories that run at once."
)
@click.option(
    "--jobs",
    "n_jobs",
    type=click.IntRange(min=1),
    help="Chunks of trajectories that run in parallel.  [default: every core]",
)
@clean
def reproduce(targets: tuple[str, ...], out: str, **options: Any) -> None:
    """Run the paper's experiments and draw its figures: all of them, or those of some problems or figures.

    A TARGET is a problem (hinge, lad, news20, splice, 2moons) or a figure (fig1, fig2, fig3). Figures
    come as PDF and PNG, with the numbers behind them as CSV. After Ctrl-C, --resume continues.
    """
    from ..paper import reproduce as run
    from ..paper.table import to_text

    try:
        made = run(targets, out=out, say=say, **options)
    except KeyboardInterrupt:
        words = [word for word in sys.argv[1:] if word != "--resume"]
        again = shlex.join(["adagrad-diff", *words, "--resume"])
        interrupted(f"Interrupted. What is finished is kept in {out}. To continue:\n  {again}")
    _print(to_text(made.table), made.files)


@main.command(short_help="Check the paper's inequalities and rates on recorded runs.")
@click.argument("problems", nargs=-1, type=click.Choice(PROBLEMS), metavar="[PROBLEM]...")
@click.option(
    "--eta",
    "etas",
    multiple=True,
    type=float,
    help="A step size; may be repeated.  [default: five over six decades]",
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    help="Of every run.  [default: 2000, and 20000 for the rates]",
)
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of data and starts."
)
@DATA
@OUT
@clean
def verify(problems: tuple[str, ...], etas: tuple[float, ...], out: str, **options: Any) -> None:
    """Check the paper's inequalities and rates on recorded runs, and compare the main bound with the truth.

    A PROBLEM is hinge, lad, news20, splice or 2moons; all of them if none is named.

    One row per inequality: the smallest slack over all step sizes and blocks, relative to the
    magnitude of its terms, and where it is. The exit code is 1 if an inequality is violated that the
    paper states correctly.
    """
    from ..theory import verify as run
    from ..theory.report import to_text

    found = run(problems, etas, say=say, output=out, **options)
    _print(to_text(found), found.files)
    if not found.holds:
        raise click.ClickException("An inequality is violated: see the rows marked VIOLATED.")


def _print(text: str, files: Any) -> None:
    click.echo("\n".join([text, "", "Files:", *(f"  {path}" for path in files)]))


@main.group(short_help="Data sets: which there are, and how to get them.")
def datasets() -> None:
    """The LIBSVM data sets: which there are, where they are, and how to get them."""


@datasets.command("list", short_help="All data sets, and where they are.")
@DATA
@clean
def list_(data: str | None) -> None:
    """All data sets with their sizes, and where they are on this machine."""
    from .. import datasets as sets

    for name in sets.names():
        rows, columns = sets.shape(name)
        click.echo(f"{name:<12} {rows:>6} x {columns:<6} {sets.where(name, data) or 'not here'}")


@datasets.command(short_help="Download data sets, and print where they are.")
@click.argument("names", nargs=-1, required=True, metavar="NAME... | all")
@click.option(
    "--out", type=click.Path(file_okay=False), help="Directory for the files.  [default: the cache]"
)
@clean
def fetch(names: tuple[str, ...], out: str | None) -> None:
    """Download data sets from the LIBSVM page, and print where they are.

    Those of the package are written as LIBSVM's text, without a network.
    """
    from .. import datasets as sets

    known = sets.names()
    for name in known if names == ("all",) else [choose(name, known, "data set") for name in names]:
        click.echo(sets.fetch(name, out))


@datasets.command(short_help="Print where a data set is.")
@click.argument("name")
@DATA
@clean
def where(name: str, data: str | None) -> None:
    """Print where a data set is; exit code 1 if it is not on this machine."""
    from .. import datasets as sets

    path = sets.where(choose(name, sets.names(), "data set"), data)
    if path is None:
        raise click.ClickException(
            f"{name} is not on this machine. adagrad-diff datasets fetch {name} downloads it."
        )
    click.echo(path)


@main.command(short_help="Versions and machine, for a bug report.")
@clean
def info() -> None:
    """Versions, and what this machine has, for a bug report."""
    from ..datasets import cache

    click.echo(_about.report())
    click.echo(f"  data cache     {cache()}")
