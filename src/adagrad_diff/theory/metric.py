"""The identity that defines the weights."""

from __future__ import annotations

import numpy as np

from ..rules import AdaGrad, AdaGradDiff
from ._inequality import Inequality
from ._run import Run


def weights(run: Run) -> Inequality:
    r"""The identity of w: the weights that the steps were made with are those of the formula.

    .. math:: \max_i |w_i^n / \hat w_i^n - 1| \le 0, \qquad
              \hat w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n \|g_i^k - g_i^{k-1}\|^2}

    up to rounding, for AdaGrad with g^k in place of the difference. A metric that lags one gradient behind, or sums without
    the square, satisfies Lemma 1 all the same. This is where it is found out.

    Parameters
    ----------
    run : Run
        Of AdaGrad-Diff or AdaGrad.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, LAD
    >>> from adagrad_diff.theory import record, weights
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> weights(run).holds()
    True
    """
    if isinstance(run.rule, AdaGradDiff):
        root = run.v
    elif isinstance(run.rule, AdaGrad):
        root = np.sqrt(np.cumsum(run.by_block(run.g**2), axis=0))
    else:
        raise ValueError(
            f"The paper has no weights for {type(run.rule).__name__}: AdaGradDiff and AdaGrad only."
        )
    promised = run.rule.eps + root
    error = np.max(np.abs(run.w - promised) / promised, axis=1)
    one = np.ones(run.N + 1)
    # The rule adds up one number after the other, iteration after iteration: a single sum of block size x N numbers.
    additions = int(np.bincount(run.labels).max()) * (run.N + 1)
    rounding = run.rounding + 2 * float(np.finfo(run.x.dtype).eps) * additions
    return Inequality("identity of w", np.arange(1, run.N + 2), error, 0 * one, one, rounding)
