"""The problem that a file and some options make: mean loss + alpha x penalty, with an intercept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._check import InputError
from ..certificates import critical_lam
from ..losses import (
    LAD,
    Hinge,
    Huber,
    LinearModel,
    Logistic,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
)
from ..losses.linear import BinaryModel
from ..penalties import L1, ElasticNet, GroupL2, NonNegative, Penalty, Ridge, Zero
from .group import Problems, choose, click, listed
from .tables import Feature, Preparation, Table, read_table

CRITICAL_SHARE = 0.01  # default alpha, relative to the smallest that makes all coefficients zero
MAX_CLASSES = 20  # different values of a target that may be classes in a short table
DEFAULT_SHARE = 0.5  # of the L1 norm in elasticnet
PARAMETERS = {"quantile": "tau", "huber": "delta"}  # of losses, as in quantile:0.9
FREE = ("nonnegative", "none")  # penalties without a strength
STANDARDIZED = (
    "The penalty sees columns of numbers with standard deviation 1. Coefficients are in the units of "
    "the file."
)
LOSSES: dict[str, type[LinearModel]] = {
    "logistic": Logistic,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "multinomial": Multinomial,
    "squared": Squared,
    "lad": LAD,
    "absolute": LAD,
    "huber": Huber,
    "quantile": Quantile,
    "poisson": Poisson,
}


def problem_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument and the options that `problem_of` takes."""
    options = (
        click.argument("data"),
        click.option(
            "--target", help="The column to predict. LIBSVM files and data sets have their own."
        ),
        click.option(
            "--loss",
            help="logistic, hinge, squared_hinge, multinomial; squared, lad, huber:1.5, "
            "quantile:0.9, poisson.  [default: logistic for two classes, multinomial for several, "
            "squared for numbers]",
        ),
        click.option("--positive", metavar="CLASS", help="The class to tell from all others."),
        click.option(
            "--penalty",
            default="l1",
            show_default=True,
            help="l1, l2, elasticnet:0.5, group (the categories of a column together), "
            "nonnegative or none.",
        ),
        click.option(
            "--alpha",
            type=float,
            help="Strength of the penalty.  [default: a hundredth of what makes all coefficients "
            "zero; for l2, 1 / samples]",
        ),
        click.option(
            "--intercept/--no-intercept",
            default=True,
            help="Whether there is an intercept, which is not penalized.  [default: yes]",
        ),
        click.option(
            "--standardize/--no-standardize",
            default=True,
            help="Whether the penalty sees columns of numbers with mean 0 and standard deviation "
            "1. Coefficients are printed in the units of the file.  [default: yes]",
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
            "--thousands",
            metavar="CHARACTER",
            help="The separator of thousands in a CSV file, as in 1,234.",
        ),
        click.option(
            "--impute",
            is_flag=True,
            help="Fill in missing values: the median, or a category of their own.",
        ),
        click.option(
            "--drop-missing-target", is_flag=True, help="Leave out rows whose target is missing."
        ),
        click.option(
            "--header/--no-header",
            default=True,
            help="Whether a CSV file names its columns in the first line.",
        ),
        click.option(
            "--data",
            "directory",
            type=click.Path(exists=True, file_okay=False),
            help="Directory of the LIBSVM files.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


class Problem(NamedTuple):
    """What `fit` solves and `compare` compares rules on."""

    loss: LinearModel
    penalty: Penalty
    features: list[Feature]
    facts: dict[str, Any]  # for the files that the commands write
    about: list[list[str]]  # for people

    @property
    def message(self) -> str:
        """Return what users should know before anything is computed."""
        return "\n".join(text for label, text in self.about if label in ("Preparation", "Target"))


def problem_of(
    problems: Problems,
    data: str,
    target: str | None,
    loss: str | None,
    positive: str | None,
    penalty: str,
    alpha: float | None,
    directory: str | None,
    **preparation: Any,
) -> Problem:
    """Return the problem, or raise one error about everything that is wrong."""
    with problems.catch():
        _check.nonnegative(alpha or 0.0, "alpha", "the penalty")
    with problems.catch():
        loss_of(loss or "squared", np.eye(1), np.ones(1))
    with problems.catch():
        penalty_of(penalty, 1.0, np.zeros(1, int))
    if alpha == 0.0 and penalty not in FREE:
        penalty = "none"
    how = Preparation(**preparation, penalized=penalty != "none", notes=[])
    with problems.catch():
        table = read_table(data, target, directory, how)
    problems.refuse()
    loss, b, classes, meaning = _targets(table, loss, positive)
    columns = len(classes) if loss == "multinomial" else 1
    several = {"classes": columns} if columns > 1 else {}
    model = loss_of(loss, table.A, b, intercept=how.intercept, **several)
    origin = "as given"
    if penalty in FREE:
        alpha, origin = 0.0, "none"
    elif alpha is None and penalty == "l2":
        alpha, origin = 1.0 / len(b), "one over the number of samples"
    elif alpha is None:
        critical = critical_lam(model, L1(1.0))
        alpha = CRITICAL_SHARE * (critical if 0 < critical < np.inf else 1.0)
        origin = "a hundredth of what makes every coefficient zero with an L1 penalty"
    if how.standardize:
        how.notes.append(STANDARDIZED)
    groups = np.unique([feature.label["column"] for feature in table.features], return_inverse=True)
    facts = {
        "title": f"{table.name}: {loss} loss, {penalty} penalty, alpha {alpha:.3g}",
        "target": table.target,
        "classes": classes,
        "loss": loss,
        "penalty": penalty,
        "alpha": alpha,
    }
    about = {
        "Data": table.name,
        "Samples": len(b),
        "Features": f"{len(table.features)} of {len(groups[0])} columns",
        "Preparation": " ".join(how.notes) or "none",
        "Target": meaning,
        "Loss": f"{loss}, mean over samples{', with an intercept' * how.intercept}",
        "Penalty": penalty,
        "Strength": f"{alpha:.6g} ({origin})",
    }
    return Problem(
        model,
        penalty_of(penalty, alpha, np.repeat(groups[1], columns)),
        table.features,
        facts,
        [[label, str(text)] for label, text in about.items()],
    )


def loss_of(text: str, A: Any, b: Any, **options: Any) -> LinearModel:
    """Return a loss such as logistic, hinge or quantile:0.9."""
    name, number = _parsed(text, PARAMETERS)
    if number is not None:
        options[PARAMETERS[name]] = number
    return LOSSES[choose(name, LOSSES, "loss")](A, b, **options)


def penalty_of(text: str, alpha: float, groups: np.ndarray) -> Penalty:
    """Return a penalty such as l1, or elasticnet:0.9, where the number is the share of the L1 norm."""
    name, number = _parsed(text, ("elasticnet",))
    l1 = alpha * (DEFAULT_SHARE if number is None else number)
    known: dict[str, Penalty] = {
        "l1": L1(alpha),
        "l2": Ridge(alpha),
        "elasticnet": ElasticNet(l1, alpha - l1),
        "group": GroupL2(alpha, groups),
        "nonnegative": NonNegative(),
        "none": Zero(),
    }
    return known[choose(name, known, "penalty")]


def _parsed(text: str, numbered: Collection[str]) -> tuple[str, float | None]:
    """Return the name and the number of a text such as quantile:0.9."""
    name, _, number = text.replace("-", "_").partition(":")
    if number and name not in numbered:
        raise InputError(f"{text!r} has a number, but only {listed(numbered)} take one.")
    try:
        return name, float(number) if number else None
    except ValueError:
        raise InputError(f"{number!r} in {text!r} is not a number.") from None


def _targets(
    table: Table, loss: str | None, positive: str | None
) -> tuple[str, np.ndarray, list[str], str]:
    """Return the name of the loss, its targets, the classes, and a sentence about them."""
    y, called = table.y, f"The target {table.target!r} of {table.name!r}"
    words = y.dtype == object
    values, codes = np.unique(y.astype(str) if words else y, return_inverse=True)
    names = [v if words else np.format_float_positional(v, trim="-") for v in values.tolist()]
    if positive is not None:
        codes = (codes == names.index(choose(positive, names, "class"))).astype(int)
        names.remove(positive)
        names = [names[0] if len(names) == 1 else f"not {positive}", positive]
    count, two = len(names), len(names) == 2
    if count == 1:
        raise InputError(f"{called} is {names[0]} in every row: there is nothing to learn.")
    whole = words or bool((values == np.round(values)).all())
    if loss is None:
        few = words or (whole and count <= min(MAX_CLASSES, len(y) // 2))
        loss = "logistic" if two else "multinomial" if few else "squared"
    kind = LOSSES[_parsed(loss, PARAMETERS)[0]]
    if not issubclass(kind, BinaryModel | Multinomial):
        if words or positive is not None:
            raise InputError(
                f"{called} has classes, {listed(names)}, but the loss {loss} is for numbers: use "
                "logistic or hinge."
            )
        if loss == "poisson" and y.min() < 0:
            raise InputError(f"{called} has negative values, but the loss poisson is for counts.")
        return loss, y, [], f"{called} holds numbers from {y.min():g} to {y.max():g}."
    if not (two or whole) or count > max(MAX_CLASSES, len(y) / 2):
        raise InputError(
            f"{called} has {count} different values, {listed(names)}. These are no classes: for "
            "numbers, use --loss squared or --loss lad."
        )
    if two:
        sentence = f"{called} has two classes: {names[1]!r} is +1, {names[0]!r} is -1."
        return loss.replace("multinomial", "logistic"), 2.0 * codes - 1.0, names, sentence
    if issubclass(kind, BinaryModel):
        raise InputError(
            f"{called} has {count} classes, {listed(names)}, but the loss {loss} is for two: use "
            "multinomial, or name the class to tell from the others with --positive."
        )
    hint = "" if words else " For numbers, use --loss squared or --loss lad."
    return loss, codes.astype(float), names, f"{called} has {count} classes: {listed(names)}.{hint}"
