"""The nonnegative orthant: negative entries become zero, whatever the metric."""

from __future__ import annotations

import numpy as np

from .box import Box


class NonNegative(Box):
    r"""The indicator of the nonnegative orthant: prox(z) = max(z, 0).

    Examples
    --------
    >>> from adagrad_diff.penalties import NonNegative
    >>> NonNegative().prox([-1.0, 0.5], step=1.0).tolist()
    [0.0, 0.5]
    """

    properties = frozenset({"separable", "set", "cone"})

    def __init__(self) -> None:
        super().__init__(0.0, np.inf)

    def __repr__(self) -> str:
        return "NonNegative()"
