"""Penalties that know nothing of this package: objects with value(x) and prox(z, step)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .arrays import answer, point, quiet
from .base import Penalty

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TRIAL_SIZE = 6  # coordinates on which a prox is tried, if it takes vectors of any size
TRIAL_SCALES = 10.0 ** np.arange(-4.0, 7.0)  # of the points on which it is tried
TRIAL_ERROR = 1e-6  # how far from the proximal point, relatively, what it returns may be
METRIC_KINDS = ("diagonal", "block", "scalar")


class Foreign(Penalty):
    """Anything with value(x) and prox(z, step). It need only know vectors: trajectories are handed to it one by one.

    If it does not say by an attribute `accepts` which metrics its prox is exact in, that is tried out.
    """

    def __init__(self, penalty: Any):
        self.penalty = penalty
        declared = getattr(penalty, "accepts", None)
        self._accepts = (
            declared
            if declared is None
            else _check.one_of(declared, METRIC_KINDS, "accepts", self.name)
        )

    @property
    def accepts(self) -> str:  # type: ignore[override]
        """What it says, or what a trial has shown; "diagonal" until the size is known of vectors on which it can be tried."""
        if self._accepts is None:
            self._accepts = tried(self.penalty, TRIAL_SIZE)
        return self._accepts or "diagonal"

    @property
    def accuracy(self) -> float:  # type: ignore[override]
        """What it says, or that of a closed form."""
        return float(getattr(self.penalty, "accuracy", Penalty.accuracy))

    @property
    def name(self) -> str:
        return type(self.penalty).__name__

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        values = [
            float(answer(self.penalty.value(v), (), f"{self.name}.value")) for v in _columns(x)
        ]
        return np.array(values) if x.ndim == 2 else values[0]

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        columns = zip(_columns(z), _columns(step), strict=True)
        results = [
            answer(self.penalty.prox(*pair), z.shape[:1], f"{self.name}.prox") for pair in columns
        ]
        np.copyto(
            out, np.stack(results, axis=1) if z.ndim == 2 else results[0], casting="same_kind"
        )

    def check_size(self, size: int) -> None:
        if self._accepts is None:
            self._accepts = tried(self.penalty, TRIAL_SIZE) or tried(self.penalty, size)


def _columns(x: np.ndarray) -> Iterator[np.ndarray]:
    return (np.ascontiguousarray(v) for v in x.T) if x.ndim == 2 else iter((x,))


@quiet
def tried(penalty: Any, size: int) -> str | None:
    """ "diagonal" if the prox with different steps is what it should be, "scalar" if not, None if it does not work at all.

    x is the prox of z with the steps s iff it is the one of x - t (x - z) / s with the one step t, whatever t > 0 is.
    """
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for scale in TRIAL_SCALES:
            z, s = scale * rng.standard_normal(size), 10.0 ** rng.uniform(-1, 1, size)
            t = s.min()
            x = _prox(penalty, z, s)
            if x is None:
                return None if _prox(penalty, z, s[:1]) is None else "scalar"
            again = _prox(penalty, x - t * (x - z) / s, np.full(size, t))
            if again is None or (np.abs(again - x) > TRIAL_ERROR * np.abs([z, x]).max()).any():
                return "scalar"
    return "diagonal"


def _prox(penalty: Any, z: np.ndarray, step: np.ndarray) -> np.ndarray | None:
    """What a prox returns, or None if that is no vector of the right size."""
    try:
        return answer(penalty.prox(z.copy(), step.copy()), z.shape, "prox")
    except Exception:  # whatever a user's code may raise
        return None


def as_penalty(penalty: Any) -> Penalty:
    """A `Penalty`: None is the zero function, other objects need value(x) and prox(z, step)."""
    from .zero import Zero

    if penalty is None:
        return Zero()
    if isinstance(penalty, Penalty):
        return penalty
    if isinstance(penalty, type) or not (hasattr(penalty, "value") and hasattr(penalty, "prox")):
        given = f"{penalty!r} instead."
        if isinstance(penalty, type):
            given = f"the class {penalty.__name__}: did you mean {penalty.__name__}(...)?"
        raise TypeError(
            f"'penalty' must be None or have methods value(x) and prox(z, step). Got {given}"
        )
    return Foreign(penalty)
