"""AdaGrad-Diff as runs without a given step size use it, until they have moved to `solvers`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..rules import AdaGradDiff
from .memory import Memory, View


@dataclass(frozen=True, eq=False, repr=False)
class RaceRule(AdaGradDiff):
    """The metric of Algorithm 1 in arrays that are written to: `add_gradient` adds g^n, `make_step` makes the step."""

    def view(self, x: np.ndarray, batched: bool = False, intercept: bool = False) -> View:
        """Return what this rule sees of a run with iterates like x."""
        shape, count = (x.shape[:-1], x.shape[-1]) if batched else (x.shape, None)
        rule = self.prepared(shape, x.dtype, count, intercept)
        eta = np.ones(count or 1, x.dtype)
        eta[:] = self.eta
        return View(rule.metric(x.size)[0], rule.scales().astype(x.dtype), eta)

    def remember(
        self, x: np.ndarray, batched: bool, labels: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Return the memory before the first gradient."""
        size = x[..., 0].size if batched else x.size
        blocks = size if labels is None else int(labels.max()) + 1
        return {"total": np.zeros((blocks, *(x.shape[-1:] if batched else ())))}

    def add_gradient(self, memory: Memory, now: View) -> None:
        """total_i += ||g_i^n - g_i^{n-1}||^2"""
        if now.labels is None:
            kernels.add_squared_differences(
                memory.total.reshape(-1), now.g.reshape(-1), now.g_prev.reshape(-1)
            )
        else:
            shape = (now.labels.size, -1)
            total = memory.total.reshape(len(memory.total), -1)
            kernels.add_block_squared_differences(
                total, now.labels, now.g.reshape(shape), now.g_prev.reshape(shape)
            )

    def make_step(self, memory: Memory, now: View) -> None:
        """step = eta * scale / (eps + sqrt(total));  point = x - step * g"""
        if now.labels is None:
            kernels.forward(
                memory.total, self.eps, now.eta, now.scale, now.x, now.g, now.step, now.point
            )
        else:
            arrays = (memory.total, now.x, now.g, now.step, now.point)
            total, x, g, step, point = (array.reshape(-1, now.eta.size) for array in arrays)
            kernels.block_forward(
                total, now.labels, self.eps, now.eta, now.scale, x, g, step, point
            )
