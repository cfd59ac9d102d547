"""The problem that a file and some options make: mean loss + alpha x penalty, with an intercept."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .. import _check
from .._check import InputError
from ..duality import critical_lam
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
from .group import Problems, choose, listed, say
from .tables import Preparation, Table, read_table

CRITICAL_SHARE = 0.01  # default alpha, relative to the smallest that makes all coefficients zero
MAX_CLASSES = 20  # different values of a target that may be classes in a short table
DEFAULT_SHARE = 0.5  # of the L1 norm in elasticnet
PARAMETERS = {"quantile": "tau", "huber": "delta"}  # of losses, as in quantile:0.9
FREE = ("nonnegative", "none")  # penalties without a strength
STANDARDIZED = (
    "The penalty sees columns of numbers with standard deviation 1. Coefficients are in the units "
    "of the file."
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


class Problem(NamedTuple):
    """What `fit` solves and `compare` compares rules on."""

    table: Table
    loss: LinearModel
    penalty: Penalty
    facts: dict[str, Any]  # what was decided, for people and for files

    @property
    def title(self) -> str:
        """Return what is minimized."""
        return "{data}: {loss} loss, {penalty} penalty, alpha {alpha:.3g}".format(**self.facts)


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
    """Return the problem, or raise one error about everything that is wrong. Print the notes."""
    problems.check(_check.nonnegative, alpha or 0.0, "alpha", "the penalty")
    problems.check(loss_of, loss or "squared", np.eye(1), np.ones(1))
    problems.check(penalty_of, penalty, 1.0, np.zeros(1, int))
    penalty = "none" if alpha == 0.0 and penalty != "nonnegative" else penalty
    how = Preparation(**preparation, penalized=penalty != "none", notes=[])
    table = problems.check(read_table, data, target, directory, how)
    problems.raise_all()
    loss, b, classes, meaning = _targets(table, loss, positive)
    model = loss_of(loss, table.A, b, intercept=how.intercept)
    how.notes.append(meaning)
    if how.standardize:
        how.notes.append(STANDARDIZED)
    if penalty in FREE:
        alpha = 0.0
    elif alpha is None and penalty == "l2":
        alpha = 1.0 / len(b)
    elif alpha is None:
        critical = critical_lam(model, L1(1.0))
        alpha = CRITICAL_SHARE * (critical if 0 < critical < np.inf else 1.0)
    dense = isinstance(table.A, np.ndarray)
    if dense and not how.penalized and np.linalg.matrix_rank(table.A) < len(table.labels):
        how.notes.append("The columns depend on each other: their coefficients are not unique.")
    names = [label["column"] for label in table.labels]
    groups = np.repeat(
        np.unique(names, return_inverse=True)[1], np.prod(model.shape[1:], dtype=int)
    )
    facts = {
        "data": table.name,
        "samples": len(b),
        "features": len(names),
        "target": table.target,
        "classes": classes,
        "loss": loss,
        "penalty": penalty,
        "alpha": alpha,
        "intercept": how.intercept,
        "notes": how.notes,
    }
    say("\n".join(how.notes))
    return Problem(table, model, penalty_of(penalty, alpha, groups), facts)


def loss_of(text: str, A: Any, b: Any, **options: Any) -> LinearModel:
    """Return a loss such as logistic, hinge or quantile:0.9."""
    name, number = _parsed(text, PARAMETERS)
    if number is not None:
        options[PARAMETERS[name]] = number
    return LOSSES[choose(name, LOSSES, "loss")](A, b, **options)


def penalty_of(text: str, alpha: float, groups: np.ndarray) -> Penalty:
    """Return a penalty such as l1, or elasticnet:0.9, where 0.9 is the share of the L1 norm."""
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
    name, _, number = text.partition(":")
    name = name.replace("-", "_")
    if number and name not in numbered:
        raise InputError(f"{text!r} has a number, but only {listed(numbered)} take one.")
    return name, float(number) if number else None


def _targets(
    table: Table, loss: str | None, positive: str | None
) -> tuple[str, np.ndarray, list[str], str]:
    """Return the name of the loss, its targets, the classes, and a sentence about them."""
    y, called = table.y, f"The target {table.target!r} of {table.name!r}"
    codes, values = pd.factorize(y, sort=True)
    words = values.dtype == object
    names = [str(value) if words else f"{value:.15g}" for value in values]
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
