"""The paper's experiments and inequalities: `reproduce` and `verify`."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from .group import clean, click, interrupted, main, say

TARGETS = ("hinge", "lad", "news20", "splice", "2moons", "fig1", "fig2", "fig3")


@main.command(short_help="Run the paper's experiments and draw its figures.")
@click.argument("targets", nargs=-1, type=click.Choice(TARGETS), metavar="[TARGET]...")
@click.option(
    "--scale",
    type=click.Choice(("quick", "full")),
    default="quick",
    show_default=True,
    help="Two minutes, or the paper's sizes.",
)
@click.option(
    "--out",
    default="results",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Directory for the results.",
)
@click.option(
    "--data", type=click.Path(exists=True, file_okay=False), help="Directory of the LIBSVM files."
)
@click.option("--resume", is_flag=True, help="Go on from the checkpoints in --out.")
@click.option(
    "--etas", type=click.IntRange(min=2), help="Step sizes of the grid, instead of the scale's."
)
@click.option("--starts", type=click.IntRange(min=1), help="Starts, instead of the scale's.")
@click.option(
    "--memory",
    default="2GB",
    show_default=True,
    help="What the trajectories that run at once may use.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Chunks of trajectories that run side by side.  [default: every core]",
)
@clean
def reproduce(
    targets: tuple[str, ...], scale: str, out: str, jobs: int | None, **options: Any
) -> None:
    """Run the paper's experiments and draw its figures: all of them, or those of some problems, or some figures.

    A TARGET is a problem (hinge, lad, news20, splice, 2moons) or a figure (fig1, fig2, fig3). Figures come as PDF and PNG, with
    the numbers behind them as CSV. Ctrl-C loses nothing: --resume goes on.
    """
    from ..experiments.paper import reproduce as run
    from ..experiments.paper.table import to_text

    try:
        made = run(targets, scale=scale, out=out, n_jobs=jobs, say=say, **options)
    except KeyboardInterrupt:
        again = shlex.join(
            ["adagrad-diff", *(arg for arg in sys.argv[1:] if arg != "--resume"), "--resume"]
        )
        interrupted(f"Interrupted. What is finished is kept in {out}; to go on:\n  {again}")
    click.echo(to_text(made.table))
    click.echo("Files:")
    for path in made.files:
        click.echo(f"  {path}")


@main.command(short_help="Check the paper's inequalities and rates on recorded runs.")
@click.argument("problems", nargs=-1, type=click.Choice(TARGETS[:5]), metavar="[PROBLEM]...")
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
@click.option(
    "--data", type=click.Path(exists=True, file_okay=False), help="Directory of the LIBSVM files."
)
@click.option(
    "--out",
    default="results",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Directory for the results.",
)
@click.option(
    "--output", "former", type=click.Path(file_okay=False), hidden=True
)  # what --out was called in 0.1
@clean
def verify(
    problems: tuple[str, ...], etas: tuple[float, ...], out: str, former: str | None, **options: Any
) -> None:
    """Check the paper's inequalities and rates on recorded runs.

    A PROBLEM is hinge, lad, news20, splice or 2moons; all of them if none is named.

    One row per inequality: the smallest slack over all step sizes and blocks, relative to the magnitude of what enters it,
    and where it is. The exit code is 1 if one is violated that the paper states rightly.
    """
    from ..experiments.theory import verify as run

    if former is not None:
        say("--output is called --out now, as in every command; --output goes away in 0.3.")
    found = run(problems, etas, say=say, output=former or out, **options)
    click.echo(found)
    click.echo("\nFiles:")
    for path in found.files:
        click.echo(f"  {path}")
    if not found.holds:
        raise click.ClickException("An inequality is violated: see the rows marked VIOLATED.")
