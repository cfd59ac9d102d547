"""Labels of classes: what the losses take, and how to get there from what users have."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import _check

MANY_CLASSES = 1000  # classes that nobody minds, whatever the number of samples
LARGEST_CLASS = 2**31 - 1


def signs(b: Any, owner: str, samples: int, what: str) -> np.ndarray:
    """Labels -1 and +1, or a sentence with the way to get them."""
    text = _text(b)
    labels = _check.vector(b, "b", samples, what=what) if text is None else text
    wrong = np.ones(labels.shape, bool) if text is not None else np.abs(labels) != 1
    _check.first_where(
        wrong,
        labels,
        lambda j, v: (
            f"{owner} needs labels -1 and +1 in b, but b[{j}] is {v!r}. {_remedy(labels)} "
            "(The classifiers of adagrad_diff.sklearn take any labels.)"
        ),
    )
    return labels


def _remedy(labels: np.ndarray) -> str:
    found = np.unique(labels).tolist()
    if len(found) > 2:
        return f"There are {len(found)} classes: choose one of them, b = np.where(y == {found[0]!r}, 1, -1), or use Multinomial."
    if len(found) == 1:
        return "There is only one class."
    return (
        "Take b = 2.0 * y - 1."
        if found == [0.0, 1.0]
        else f"Take b = np.where(y == {found[1]!r}, 1, -1)."
    )


def classes(b: Any, owner: str, samples: int) -> np.ndarray:
    """Labels 0, 1, ... as integers, or a sentence with the way to get them."""
    text = _text(b)
    labels = _check.vector(b, "b", samples) if text is None else text
    wrong = np.ones(labels.shape, bool)
    if text is None:
        wrong = (labels < 0) | (labels != np.floor(labels)) | (labels > LARGEST_CLASS)
    _check.first_where(
        wrong,
        labels,
        lambda j, v: f"{owner} needs classes 0, 1, ... in b, but b[{j}] is {v!r}. {NUMBER_THEM}.",
    )
    return labels.astype(np.int64)


NUMBER_THEM = "Number them first, names, b = np.unique(y, return_inverse=True)"


def class_count(b: np.ndarray, given: Any, owner: str) -> int:
    """How many classes there are: `given`, or one more than the largest in b."""
    least = max(int(b.max()) + 1, 2)
    if given is None:
        if least > max(MANY_CLASSES, 10 * len(b)):
            raise ValueError(
                f"The largest class in b is {least - 1}, but there are only {len(b)} samples. {NUMBER_THEM}, "
                "or give 'classes' if so many are meant."
            )
        return least
    if not hasattr(given, "__index__"):
        raise ValueError(
            f"The 'classes' parameter of {owner} must be an integer. Got {_check.shown(given)} instead."
        )
    for ok, bound in (
        (given >= least, f"at least {least}"),
        (given <= LARGEST_CLASS, f"at most {LARGEST_CLASS}"),
    ):
        if not ok:
            raise ValueError(
                f"The 'classes' parameter of {owner} must be {bound}. Got {_check.shown(given)} instead."
            )
    return operator.index(given)


def _text(b: Any) -> np.ndarray | None:
    """The labels if they are words, else None."""
    try:
        labels = np.asarray(b)
    except ValueError:
        return None
    words = (
        labels.ndim == 1
        and labels.size
        and (labels.dtype.kind in "US" or _check.first_text(labels) is not None)
    )
    return labels.astype(str) if words else None
