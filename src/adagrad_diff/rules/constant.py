"""A constant step: proximal gradient descent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ..common import check
from .base import Rule
from .memory import Memory, View


@dataclass(frozen=True, eq=False)
class Constant(Rule):
    r"""Proximal (sub)gradient descent with one step for all coordinates. It remembers nothing.

    .. math:: x^{n+1} = \text{prox}_{\eta\varphi}(x^n - \eta g^n)

    The prox is proved, for a smooth f with eta <= 1/L (`Constant.smooth`; the objective then never grows), and for the average
    of N iterates with a Lipschitz f (`Constant.nonsmooth`).

    Parameters
    ----------
    eta : float, array or callable
        The step: a number, one per trajectory, or a function n -> eta_n, as for `AdaGradDiff`.

    Examples
    --------
    >>> from adagrad_diff import Constant, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=Constant.smooth(1.0), max_iter=2)
    >>> print(result.x)
    [0. 0.]
    >>> print(Constant.nonsmooth(distance=3.0, bound=1.0, iterations=900).eta)
    0.1

    References
    ----------
    Beck, Teboulle: A fast iterative shrinkage-thresholding algorithm for linear inverse problems, 2009 (ISTA). Nesterov:
    Introductory lectures on convex optimization, 2004, section 3.2.3.
    """

    memory: ClassVar[dict[str, str]] = {}
    along_gradient: ClassVar[bool] = True

    eps: float = field(default=0.0, init=False)
    blocks: Any = field(default="all", init=False)
    scale: Any = field(default=None, init=False)

    @classmethod
    def smooth(cls, L: float) -> Constant:
        """The step 1 / L, for a gradient with Lipschitz constant L."""
        return cls(1.0 / check.positive(L, "L", cls.__name__))

    @classmethod
    def nonsmooth(cls, distance: float, bound: float, iterations: int) -> Constant:
        """The step D / (G sqrt(N)), for a solution within D, subgradients of at most G, and N iterations."""
        distance, bound = check.positive(distance, "distance", cls.__name__), check.positive(bound, "bound", cls.__name__)
        return cls(distance / (bound * math.sqrt(check.count(iterations, "iterations", cls.__name__, least=1))))

    @property
    def least_weight(self) -> tuple[str, float]:
        """There is one weight, and it is 1."""
        return "1", 1.0

    def learn(self, memory: Memory, now: View) -> None:
        """There is nothing to learn."""

    def move(self, memory: Memory, now: View) -> None:
        """step = eta_n;  point = x - step * g"""
        kernels.scalar_forward(now.eta.astype(np.float64), *now.columns(now.x, now.g, now.step, now.point))
