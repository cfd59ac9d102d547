"""The paper's statements, checked on recorded runs.

`record` keeps everything of a run. Each statement is a function of it that returns left side, right
side and slack per iteration, and raises a ValueError if the run does not meet its assumptions.
`verify` does all of it on the paper's problems.

>>> from adagrad_diff import AdaGradDiff, Squared
>>> from adagrad_diff.experiments.theory import lemma_1, record
>>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
>>> lemma_1(run, [0.6]).holds()
True
"""

from .comparison import Inequality
from .inequalities import (
    adagrad_inequality,
    chi,
    corollary,
    lemma_1,
    lemma_1_smooth,
    main_bound,
    quasi_fejer,
    squared_differences,
    subgradient_inequality,
    subgradients,
    weights,
)
from .rates import Rate, rate
from .run import Run, record
from .verification import Verification, verify

__all__ = [
    "Inequality",
    "Rate",
    "Run",
    "Verification",
    "adagrad_inequality",
    "chi",
    "corollary",
    "lemma_1",
    "lemma_1_smooth",
    "main_bound",
    "quasi_fejer",
    "rate",
    "record",
    "squared_differences",
    "subgradient_inequality",
    "subgradients",
    "verify",
    "weights",
]
