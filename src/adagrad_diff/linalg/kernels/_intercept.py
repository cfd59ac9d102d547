"""The intercept, the last row of x: what it adds to predictions, and its part of the gradient.

With a `center` (empty if there is none) predictions are z = (A - center) w + c. A itself stays as it is: c - center w is added
to A w, and center times the intercept's gradient is subtracted from A' r. Sums are made in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import compiled


def _intercept_offset(x: Any, center: Any, out: Any) -> None:
    out[...] = x[-1] - center @ x[:-1] if center.size else x[-1]


@compiled(small=_intercept_offset)
def intercept_offset(x: Any, center: Any, out: Any) -> None:
    """out = x[-1] - center @ x[:-1]"""
    features, total = x.shape[0] - 1, np.empty(x.shape[1])
    for k in range(x.shape[1]):
        total[k] = x[features, k]
    for i in range(center.size):
        for k in range(x.shape[1]):
            total[k] -= np.float64(center[i]) * x[i, k]
    for k in range(x.shape[1]):
        out[k] = total[k]


def _intercept_gradient(r: Any, center: Any, g: Any) -> None:
    g[-1] = r.sum(axis=0, dtype=np.float64)
    if center.size:
        g[:-1] -= center[:, None] * g[-1]


@compiled(small=_intercept_gradient)
def intercept_gradient(r: Any, center: Any, g: Any) -> None:
    """g[-1] = np.sum(r, axis=0);  g[:-1] -= np.outer(center, g[-1])"""
    features, total = g.shape[0] - 1, np.zeros(g.shape[1])
    for j in range(r.shape[0]):
        for k in range(r.shape[1]):
            total[k] += r[j, k]
    for k in range(g.shape[1]):
        g[features, k] = total[k]
    for i in range(center.size):
        for k in range(g.shape[1]):
            g[i, k] -= center[i] * g[features, k]
