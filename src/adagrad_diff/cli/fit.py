"""`adagrad-diff fit`: the shortest way from a file to a model, with the proof of how good it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from .._messages import require
from .group import click, main, one_line, say, strict
from .options import problem_options


@main.command(short_help="Fit a linear model to your data, with a proof.")
@problem_options
@click.option(
    "--tol",
    type=click.FloatRange(min=0.0),
    default=1e-6,
    show_default=True,
    help="Relative gap to be proven.",
)
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    default=10000,
    show_default=True,
    help="The most iterations to make.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the model as JSON.")
@click.option("--out", type=click.Path(), help="A file for the model as JSON.")
@strict
def fit(tol: float, max_iter: int, as_json: bool, out: str | None, **options: Any) -> None:
    """Fit a linear model to DATA and print its coefficients and how close to the best it is proven to be.

    DATA is a CSV, Parquet, svmlight or NPZ file, or the name of a LIBSVM data set. Words become indicators. The exit code is 1
    if the model is not proven to be within --tol of the best, and 2 if there is none.
    """
    require("sklearn", "sklearn")  # before any work is done
    from .model import fitted, refuse_foreign, save, shortfall, to_json, to_text
    from .problem import problem_of

    if out is not None:
        refuse_foreign(Path(out))
    problem = problem_of(**options)
    for note in (*problem.table.notes, problem.task.sentence):
        say(one_line(note))
    model = fitted(problem, tol, max_iter)
    if out is not None:
        save(Path(out), model)
    click.echo(to_json(model) if as_json else to_text(model))
    if out is not None:
        say(f"The model is in {one_line(out)}.")
    if not model["converged"]:
        say(shortfall(model, tol))
        sys.exit(1)
