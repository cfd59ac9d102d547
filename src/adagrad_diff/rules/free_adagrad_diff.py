"""AdaGrad-Diff without a step size: the distance from the start replaces it."""

from typing import Any

import numpy as np

from .base import frozen, squared_norm
from .dog import DoG


@frozen
class FreeAdaGradDiff(DoG):
    r"""Dual averaging in the metric of differences, with gradients weighted by distance.

    .. math:: w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n \|g_i^k - g_i^{k-1}\|^2}, \qquad \bar r_n =
              \frac{1}{\sqrt d} \max\Big(\rho (1 + \|x^1\|), \max_{k \le n} \|x^k - x^1\|\Big),
              \qquad x^{n+1} = \text{argmin}_x\ \Big\langle \sum_{k=1}^n \bar r_k g^k, x \Big\rangle
              + \sum_{k=1}^n \bar r_k \varphi(x) + \tfrac12 \langle x - x^1, W_n (x - x^1) \rangle

    d is the number of blocks. The distance is that of DoG, divided by the root of d as in
    AdaGrad++, and the step is that of DADA. There is no theory for it, with a prox or without.
    `result.x_avg` is the same average as that of `DoG`; for smooth f the last iterate is about as
    good.

    On the paper's problems, on which it was chosen, the objective at the average is within 3% of
    that of AdaGradDiff with the best of nine step sizes. In gaps, docs/rules.md shows it far behind
    rules whose step size is tuned. `first` hardly matters.

    Parameters
    ----------
    eps, blocks
        As for `AdaGradDiff`.
    first : float
        rho, as for `DoG`.
    gamma : float
        The power of the average's weights, as for `DoG`.

    Examples
    --------
    >>> from adagrad_diff import FreeAdaGradDiff, minimize
    >>> f = lambda x: (abs(x).sum(), (x > 0) * 2.0 - 1.0)
    >>> result = minimize(f, [3.0, -4.0], rule=FreeAdaGradDiff(), max_iter=2000)
    >>> bool(abs(result.x_avg).sum() < 0.05)
    True

    References
    ----------
    `AdaGradDiff` and `DoG`. Moshtaghifar, Rodomanov, Vankov, Stich: DADA:
    dual averaging with distance adaptation, 2025. Tao, Yuan, Gu: Towards simple and provable
    parameter-free adaptive gradient methods, 2024 (AdaGrad++).
    """

    blocks: Any = None

    def init(self, x, g):
        zeros, number = np.zeros_like(g), np.zeros(g.shape[1:])
        far = self.first * (1.0 + np.sqrt(squared_norm(x)))
        return {
            "previous": zeros,
            "total": self.block_sums(zeros),
            "far": far,
            "weight": number,
            "sum": zeros,
            "origin": x,
        }

    def update(self, memory, n, x, g):
        total = memory["total"] + self.block_sums((g - memory["previous"]) ** 2)
        far = np.maximum(memory["far"], np.sqrt(squared_norm(x - memory["origin"])))
        share = far / np.sqrt(len(total))  # the weight of g^n: len(total) is the number of blocks
        gradients, weight = memory["sum"] + share * g, memory["weight"] + share
        inverse = 1.0 / (self.eps + self.spread(np.sqrt(total)))
        new = {
            "previous": g,
            "total": total,
            "far": far,
            "weight": weight,
            "sum": gradients,
        }
        return memory | new, memory["origin"] - inverse * gradients, weight * inverse
