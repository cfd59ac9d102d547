"""Data for the tests of descriptions, and a description as the text that is compared."""

import json

import numpy as np

from adagrad_diff.solvers.fingerprint import describe
from user_losses import data

A, REAL, LABELS, CLASSES = data(samples=12, features=4)


def text(value):
    """The description as strict JSON has it."""
    return json.dumps(describe(value), allow_nan=False)


def other(array, by=0.125):
    """The same but for the last entry."""
    array = np.array(array)
    array.flat[-1] += by
    return array


CHANGED = other(A)
