"""The five problems of the paper, small: the same losses, penalties and kinds of data."""

from functools import cache

import numpy as np
from scipy import sparse

from adagrad_diff.datasets import Dataset
from adagrad_diff.experiments.paper import PROBLEMS
from adagrad_diff.experiments.theory.verification import solve

RNG = np.random.default_rng(3)
CODES = RNG.integers(1, 5, (80, 12)).astype(float)
SIGNS = np.where(
    (CODES - 2.5) @ RNG.standard_normal(12) + 3 * RNG.standard_normal(80) > 0, 1.0, -1.0
)
COUNTS = RNG.poisson(0.3, (60, 40)).astype(float)
CLASSES = np.arange(60) % 20 + 1.0
SIZES = {
    "hinge": {"samples": 60, "features": 12, "nonzeros": 4},
    "lad": {"samples": 60, "features": 12, "nonzeros": 4},
    "news20": {},
    "splice": {},
    "2moons": {"samples": 40},
}
SMOOTH = ("news20", "splice", "2moons")


def load(name, directory=None, *, stand_in=False, download=True):
    """A few rows in place of the data files."""
    A, b = {"splice.t": (CODES, SIGNS), "news20": (sparse.csr_array(COUNTS), CLASSES)}[name]
    return Dataset(A, b, name, "directory", "ab12")


@cache
def problem(name):
    """A small problem and a minimiser of it."""
    from adagrad_diff import datasets

    kept, datasets.load = datasets.load, load
    try:
        made = PROBLEMS[name](**SIZES[name], starts=2)
    finally:
        datasets.load = kept
    return made, solve(made)
