"""The options that make a problem, for every command that takes a file. What they mean is in problem.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .group import click


def problem_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument and the options that `problem_of` takes."""
    directory = click.Path(exists=True, file_okay=False)
    options = (
        click.argument("data"),
        click.option(
            "--target", help="The column to predict. svmlight files and data sets have their own."
        ),
        click.option(
            "--loss",
            help="logistic, hinge, squared_hinge, multinomial; squared, lad, huber:1.5, quantile:0.9, poisson.  "
            "[default: logistic for two classes, multinomial for several, squared for numbers]",
        ),
        click.option("--positive", metavar="CLASS", help="The class that is told from all others."),
        click.option(
            "--penalty",
            default="l1",
            show_default=True,
            help="l1, l2, elasticnet:0.5, group (the categories of a column together), nonnegative or none.",
        ),
        click.option(
            "--alpha",
            type=float,
            help="Strength of the penalty.  [default: a hundredth of what makes all coefficients zero; for l2, 1 / samples]",
        ),
        click.option(
            "--intercept/--no-intercept",
            default=True,
            help="Whether there is one, unpenalised.  [default: yes]",
        ),
        click.option(
            "--drop",
            multiple=True,
            metavar="COLUMN",
            help="A column to leave out; may be repeated.",
        ),
        click.option(
            "--missing",
            multiple=True,
            metavar="WORD",
            help="A word that means a missing value; may be repeated.",
        ),
        click.option(
            "--impute",
            is_flag=True,
            help="Fill in missing values: the median, or a category of their own.",
        ),
        click.option(
            "--standardize",
            is_flag=True,
            help="Columns of numbers get mean 0 and standard deviation 1.",
        ),
        click.option(
            "--header/--no-header",
            default=True,
            help="Whether a CSV file names its columns in the first line.",
        ),
        click.option("--data", "directory", type=directory, help="Directory of the LIBSVM files."),
    )
    for option in reversed(options):
        command = option(command)
    return command
