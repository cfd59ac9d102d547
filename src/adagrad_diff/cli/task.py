"""What a target asks for: two classes, several, or numbers; and as what losses want it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._check import InputError
from ..datasets.tables import Table
from .choices import LossChoice, loss_of

FEW_WHOLE_NUMBERS = 20  # different ones in a target that are taken for classes


@dataclass(frozen=True, eq=False)
class Task:
    """A loss and the target as it wants it."""

    loss: LossChoice
    b: np.ndarray  # -1 and +1, or 0, 1, ..., or numbers
    classes: list[str]  # the names of the classes in that order; empty for numbers
    sentence: str  # what was decided, and what to say if something else is meant


def task_of(table: Table, loss: str | None, positive: str | None) -> Task:
    """The loss that was asked for, or that suits the target; `positive` is the class that is +1 against all others."""
    y, called = table.y, f"The target {table.target!r} of {table.name!r}"
    values, codes = np.unique(y.astype(str) if y.dtype == object else y, return_inverse=True)
    names = [_shown(value) for value in values.tolist()]
    whole = y.dtype != object and bool((values == np.round(values)).all())
    choice = loss_of(loss) if loss is not None else None
    if len(names) == 1:
        raise InputError(
            f"{called} has the same value in every row, {names[0]!r}: there is nothing to learn."
        )
    if positive is not None:
        if positive not in names:
            raise InputError(
                f"{called} has no class {positive!r}, which --positive names. It has {_listed(names)}."
            )
        codes, names = (codes == names.index(positive)).astype(int), [f"not {positive}", positive]
        if len(values) == 2:
            names[0] = next(name for name in map(_shown, values.tolist()) if name != positive)
    two, few = len(names) == 2, whole and len(names) <= min(FEW_WHOLE_NUMBERS, len(y) // 2)
    if choice is None:
        choice = loss_of(
            "logistic" if two else "multinomial" if y.dtype == object or few else "squared"
        )
    if not choice.of_classes:
        return _numbers(choice, y, names, called, positive)
    if y.dtype != object and not whole and not two:
        raise InputError(
            f"{called} holds numbers such as {names[0]}, but the loss {choice.name} is for classes: use squared or lad."
        )
    if len(names) > max(FEW_WHOLE_NUMBERS, len(y) / 2):
        raise InputError(
            f"{called} has {len(names)} different values in {len(y)} rows: those are no classes."
        )
    if two:
        choice = loss_of("logistic") if choice.of_many else choice
        sentence = f"{called} has two classes: {names[1]!r} is +1, {names[0]!r} is -1."
        return Task(choice, np.where(codes == 1, 1.0, -1.0), names, sentence)
    if not choice.of_many:
        raise InputError(
            f"{called} has {len(names)} classes, {_listed(names)}, but the loss {choice.name} is for two: use multinomial, or "
            "name the class to tell from the others with --positive."
        )
    sentence = f"{called} has {len(names)} classes: {_listed(names)}."
    if whole and loss is None:
        sentence += " If these are numbers, say --loss squared or --loss lad."
    return Task(choice, codes.astype(np.float64), names, sentence)


def _numbers(
    choice: LossChoice, y: np.ndarray, names: list[str], called: str, positive: str | None
) -> Task:
    if y.dtype == object:
        raise InputError(
            f"{called} holds words, {_listed(names)}, but the loss {choice.name} is for numbers: use logistic or hinge."
        )
    if positive is not None:
        raise InputError(f"--positive names a class, but the loss {choice.name} is for numbers.")
    if choice.name == "poisson" and (y < 0).any():
        row = int(np.argmax(y < 0))
        raise InputError(
            f"{called} is {y[row]:g} in row {row + 1}, but the loss poisson is for counts, which are not negative."
        )
    return Task(choice, y, [], f"{called} holds numbers from {y.min():g} to {y.max():g}.")


def _shown(value: Any) -> str:
    """A class as people write it: 1 and not 1.0."""
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
