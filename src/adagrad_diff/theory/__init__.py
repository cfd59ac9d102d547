"""The paper's statements, checked on recorded runs.

`record` keeps everything of a run. Each statement is a function of it that returns left side, right side and slack per
iteration, and refuses runs its assumptions exclude. `verify` does all of it on the paper's problems.

>>> from adagrad_diff import AdaGradDiff, Squared
>>> from adagrad_diff.theory import lemma_1, record
>>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
>>> lemma_1(run, [0.6]).holds()
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._inequality import Inequality
from ._run import Run, record
from .basic import adagrad_inequality, corollary, lemma_1, lemma_1_smooth
from .bounds import main_bound, squared_differences
from .fejer import chi, quasi_fejer, subgradient_inequality, subgradients
from .metric import weights
from .rates import Rate, rate
from .report import Verification

if TYPE_CHECKING:
    from .verification import verify

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


def __getattr__(name: str) -> Any:
    """What needs the paper's problems is imported when it is first used."""
    if name == "verify":
        from .verification import verify

        return verify
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
