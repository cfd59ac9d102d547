"""AdaGrad-Diff as a PyTorch optimizer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..common.blocks import block_sum
from . import _fused
from ._compile import compiled
from ._optimizer import DifferenceOptimizer
from .penalties import Penalty

CACHED_PIECE = 1 << 16  # entries that fit into the cache with all their companions


class AdaGradDiff(DifferenceOptimizer):
    r"""Divide by the accumulated size of gradient differences, then take a proximal step in that metric.

    .. math:: w^n = \varepsilon + \sqrt{\sum_{k \le n} |g^k - g^{k-1}|^2}, \quad g^0 = 0, \qquad
              x^{n+1} = \text{prox}^{w^n / \text{lr}}_\varphi (x^n - \text{lr}\, g^n / w^n)

    A drop-in replacement of `torch.optim.Adagrad`. Its advantage, a wider range of good learning rates, belongs to full batches
    and low noise: differences of independent noise are larger than the noise by sqrt(2), and steps end up that much smaller.

    Parameters
    ----------
    params
        Tensors, named tensors or parameter groups; every option below may differ by group.
    lr : float or Tensor
        Learning rate, the paper's eta.
    eps : float
        Added to every weight, outside the root; positive.
    penalty : Penalty, optional
        A penalty of `adagrad_diff.torch`, by its exact proximal step: L1 (exact zeros), Ridge, ElasticNet, Box, NonNegative,
        GroupL2.
    blocks : {"element", "row", "tensor"}
        What shares one weight: nothing, what the first dimension counts, or the whole tensor. Complex entries are two
        real coordinates.
    maximize : bool
        Maximise instead.
    foreach, fused : bool, optional
        Force or forbid the implementations for lists of tensors and for CPU tensors in one pass. By default the fused one
        where it applies.
    capturable, differentiable : bool
        Keep the step free of waiting for the device; let autograd see through it.
    accumulator_dtype : torch.dtype, optional
        Of the buffers; by default that of the parameter, and float32 for half precision.
    donate_grads : bool
        Keep the gradient's own memory as the previous gradient instead of a copy. `step` then sets `p.grad` to None.

    Examples
    --------
    >>> import torch
    >>> from adagrad_diff.torch import AdaGradDiff
    >>> x = torch.tensor([3.0, -4.0], requires_grad=True)
    >>> optimizer = AdaGradDiff([x], lr=1.0)
    >>> for _ in range(200):
    ...     optimizer.zero_grad()
    ...     x.square().sum().backward()
    ...     optimizer.step()
    >>> bool(x.abs().max() < 1e-3)
    True
    """

    buffers = ("total", "prev")
    kernel = staticmethod(_fused._adagrad_diff)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        *,
        eps: float = 1e-8,
        penalty: Penalty | None = None,
        blocks: str = "element",
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        accumulator_dtype: torch.dtype | None = None,
        donate_grads: bool = False,
    ):
        options = {name: value for name, value in locals().items() if name not in ("self", "params", "__class__")}
        super().__init__(params, options)

    def single(self, x: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["total"].add_(block_sum((g - state["prev"]).square(), group["blocks"]))
        w = state["total"].sqrt() + group["eps"]
        x.sub_(group["lr"] * g / w)
        if group["penalty"] is not None:
            group["penalty"].prox_(x, group["lr"] / w)

    def foreach(self, xs: list[Tensor], gs: list[Tensor], states: list[dict[str, Any]], group: dict[str, Any]) -> None:
        total, prev = ([state[name] for state in states] for name in ("total", "prev"))
        penalty = group["penalty"]
        if xs[0].is_cpu and (penalty is None or penalty.limits() is not None) and not torch.compiler.is_compiling():
            # Piece by piece, so that all operations but the first find the piece in the cache.
            for tensors in zip(xs, gs, total, prev, strict=True):
                contiguous = all(t.is_contiguous() for t in tensors)
                pieces = [t.view(-1).split(CACHED_PIECE) for t in tensors] if contiguous else [[t] for t in tensors]
                for x, g, s, p in zip(*pieces, strict=True):
                    self._update([x], [g], [s], [p], group)
        else:
            update = compiled(AdaGradDiff._update) if group["fused"] else self._update
            update(xs, gs, total, prev, group)

    @staticmethod
    def _update(xs: list[Tensor], gs: list[Tensor], total: list[Tensor], prev: list[Tensor], group: dict[str, Any]) -> None:
        """The step without intermediates: the memory of prev serves as w until it takes the gradient."""
        torch._foreach_sub_(prev, gs)
        torch._foreach_addcmul_(total, prev, prev)
        w, lr = prev, group["lr"]
        torch._foreach_copy_(w, total)
        torch._foreach_sqrt_(w)
        torch._foreach_add_(w, group["eps"])
        if isinstance(lr, Tensor):
            torch._foreach_div_(w, lr)
            lr = 1.0
        torch._foreach_addcdiv_(xs, gs, w, value=-lr)
        if group["penalty"] is not None:
            for x, weight in zip(xs, w, strict=True):
                group["penalty"].prox_(x, lr / weight)

    def scalars(self, group: dict[str, Any]) -> tuple[float, ...]:
        return group["lr"], group["eps"]

    def sparse(self, p: Tensor, where: tuple[Tensor, ...], g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        total = state["total"][where] + (g - state["prev"][where]).square()
        state["total"][where] = total
        p[where] = (p[where].to(g.dtype) - group["lr"] * g / (total.sqrt() + group["eps"])).to(p.dtype)
