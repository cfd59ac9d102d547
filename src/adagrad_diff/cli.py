"""The command `adagrad-diff`: progress and messages go to stderr, results to stdout."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .common import about
from .common.extras import require

if TYPE_CHECKING:
    import click
else:
    click = require("click", "paper")

INTERRUPTED = 130  # the usual exit code after Ctrl-C


def clean(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a user can mend ends in one sentence and exit code 1, Ctrl-C in one and 130; neither in a traceback."""

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return command(*args, **options)
        except (ValueError, OSError, ImportError) as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            click.echo("\nInterrupted. The same command begins again.", err=True)
            sys.exit(INTERRUPTED)

    return wrapped


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(message=about.version_line(), package_name="adagrad-diff")
def main() -> None:
    """AdaGrad-Diff: the paper's experiments, and the data they need."""


TARGETS = ("hinge", "lad", "news20", "splice", "2moons", "fig1", "fig2", "fig3")


@main.command()
@click.argument("targets", nargs=-1, type=click.Choice(TARGETS), metavar="[hinge|lad|news20|splice|2moons|fig1|fig2|fig3]...")
@click.option(
    "--scale",
    type=click.Choice(("quick", "full")),
    default="quick",
    show_default=True,
    help="Two minutes, or the paper's sizes.",
)
@click.option(
    "--out", default="results", show_default=True, type=click.Path(file_okay=False), help="Directory for the results."
)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Directory of the LIBSVM files.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoints in --out.")
@click.option("--etas", type=click.IntRange(min=2), help="Step sizes of the grid, instead of the scale's.")
@click.option("--starts", type=click.IntRange(min=1), help="Starts, instead of the scale's.")
@click.option("--memory", default="2GB", show_default=True, help="What the trajectories that run at once may use.")
@click.option("--jobs", type=click.IntRange(min=1), help="Chunks of trajectories that run side by side.  [default: every core]")
@clean
def reproduce(targets: tuple[str, ...], scale: str, out: str, jobs: int | None, **options: Any) -> None:
    """Run the paper's experiments and draw its figures: all of them, or those of some problems, or some figures."""
    from .paper import reproduce as run
    from .paper.table import to_text

    def say(line: str) -> None:
        click.echo(line, err=True)

    try:
        made = run(targets, scale=scale, out=out, n_jobs=jobs, say=say, **options)
    except KeyboardInterrupt:
        again = shlex.join(["adagrad-diff", *(arg for arg in sys.argv[1:] if arg != "--resume"), "--resume"])
        say(f"\nInterrupted. What is finished is kept in {out}; to go on:\n  {again}")
        sys.exit(INTERRUPTED)
    click.echo(to_text(made.table))
    click.echo("\nFiles:")
    for path in made.files:
        click.echo(f"  {path}")


@main.command()
@click.argument("problems", nargs=-1, type=click.Choice(TARGETS[:5]), metavar="[hinge|lad|news20|splice|2moons]...")
@click.option(
    "--eta", "etas", multiple=True, type=float, help="A step size; may be repeated.  [default: five over six decades]"
)
@click.option("--iterations", type=click.IntRange(min=1), help="Of every run.  [default: 2000, and 20000 for the rates]")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of data and starts.")
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Directory of the LIBSVM files.")
@click.option(
    "--output", default="results", show_default=True, type=click.Path(file_okay=False), help="Directory for the figure."
)
@clean
def verify(problems: tuple[str, ...], etas: tuple[float, ...], **options: Any) -> None:
    """Check the paper's inequalities and rates on recorded runs, and draw the main bound against the truth.

    One row per inequality: the smallest slack over all step sizes and blocks, relative to the magnitude of what enters it,
    and where it is. The exit code is 1 if one is violated that the paper states rightly.
    """
    from .theory import verify as run
    from .theory.report import to_text

    found = run(problems, etas, say=lambda line: click.echo(line, err=True), **options)
    click.echo(to_text(found))
    click.echo("\nFiles:")
    for path in found.files:
        click.echo(f"  {path}")
    if not found.holds:
        raise click.ClickException("An inequality is violated: see the rows marked VIOLATED.")


@main.group()
def datasets() -> None:
    """The LIBSVM data sets: which there are, where they are, and how to get them."""


@datasets.command("list")
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="A directory to look in first.")
@clean
def list_(data: str | None) -> None:
    """All data sets with their sizes, and whether they are on this machine."""
    from . import datasets as sets

    for name in sets.names():
        rows, columns = sets.shape(name)
        click.echo(f"{name:<12} {rows:>6} x {columns:<6} {sets.where(name, data) or 'not here'}")


@datasets.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME... | all")
@clean
def fetch(names: tuple[str, ...]) -> None:
    """Fetch data sets from the LIBSVM page into the cache, and print where they are."""
    from . import datasets as sets

    for name in sets.names() if names == ("all",) else names:
        click.echo(sets.fetch(name))


@datasets.command("where")
@click.argument("name")
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="A directory to look in first.")
@clean
def where_(name: str, data: str | None) -> None:
    """Print where a data set is; exit code 1 if it is not on this machine."""
    from . import datasets as sets

    path = sets.where(name, data)
    if path is None:
        raise click.ClickException(f"{name} is not on this machine. adagrad-diff datasets fetch {name} gets it.")
    click.echo(path)


@main.command()
@clean
def info() -> None:
    """Versions, and what this machine has: to be pasted into a bug report."""
    from .datasets import cache

    click.echo(about.report())
    if find_spec("pooch"):
        click.echo(f"  data cache     {cache()}")
