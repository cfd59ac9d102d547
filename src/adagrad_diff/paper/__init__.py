"""The paper's experiments: five problems (Section 4), the protocol that compares the methods on them (Appendix B), and
`reproduce`, which draws the figures.

>>> from adagrad_diff.paper import hinge
>>> hinge(samples=50, features=10, nonzeros=3).x0s.shape
(10, 10)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .problems import PROBLEMS, Problem, hinge, lad, news20, splice, two_moons
from .protocol import RULES, Study, study

if TYPE_CHECKING:
    from ._reproduce import Reproduction, reproduce

__all__ = [
    "PROBLEMS",
    "RULES",
    "Problem",
    "Reproduction",
    "Study",
    "hinge",
    "lad",
    "news20",
    "reproduce",
    "splice",
    "study",
    "two_moons",
]


def __getattr__(name: str) -> Any:
    """What draws is imported when it is first used."""
    if name in ("Reproduction", "reproduce"):
        from . import _reproduce

        return getattr(_reproduce, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
