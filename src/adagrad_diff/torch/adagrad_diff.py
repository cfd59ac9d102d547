"""AdaGrad-Diff as a PyTorch optimizer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..penalties.group_root import block_sum
from . import _kernels
from ._optimizer import DifferenceOptimizer
from ._options import rate
from ._proximal import proximal_
from ._sharded import placed
from ._steps import count
from .penalties import Penalty


class AdaGradDiff(DifferenceOptimizer):
    r"""Divide by the accumulated size of gradient differences, then take a proximal step in that metric.

    .. math:: w^n = \varepsilon + \sqrt{\sum_{k \le n} |g^k - g^{k-1}|^2}, \quad g^0 = 0, \qquad
              x^{n+1} = \text{prox}^{w^n / \text{lr}}_\varphi (x^n - \text{lr}\, g^n / w^n)

    A drop-in replacement of `torch.optim.Adagrad`. Its advantage, a wider range of good learning rates, belongs to full batches
    and low noise: differences of independent noise are larger than the noise by sqrt(2), and steps end up that much smaller.
    With `reduce="storm"` the gradient is replaced by a direction with less noise, for the price of a second gradient:

    .. math:: d^n = g_B(x^n) + (1 - a) (d^{n-1} - g_B(x^{n-1})), \quad d^1 = g_B(x^1)

    Parameters
    ----------
    params
        Tensors, named tensors or parameter groups; every option below may differ by group.
    lr : float or Tensor
        Learning rate, the paper's eta.
    lr_decay : float
        The n-th step of a parameter has the learning rate lr / (1 + (n - 1) lr_decay).
    weight_decay : float
        Add weight_decay * x to the gradient, as `torch.optim.Adagrad` does. Differences then see x move: prefer the `Ridge`
        penalty, or `decoupled_weight_decay=True`, which shrinks x by 1 - lr weight_decay before the step, as AdamW does.
    initial_accumulator_value : float
        What the sum of squares begins with. If it is positive, every coordinate counts as seen.
    eps : float
        Added to every weight, outside the root; positive.
    foreach, fused : bool, optional
        Force or forbid the implementations for lists of tensors and for CPU tensors in one pass. By default the fused one
        where it applies.
    penalty : Penalty, optional
        A penalty of `adagrad_diff.torch`, by its exact proximal step: L1 (exact zeros), Ridge, ElasticNet, Box, NonNegative,
        GroupL2.
    blocks : {"element", "row", "tensor"}
        What shares one weight: nothing, what the first dimension counts, or the whole tensor. Complex entries are two
        real coordinates.
    prox_unseen : bool
        Where nothing has accumulated yet there was no gradient, and the weight is eps: the proximal step would be lr / eps long
        and wipe rows of an embedding that no batch has held so far. So the penalty (a bound, too) leaves a coordinate alone
        until its first gradient that is not zero. True gives the paper's formula to the letter.
    skip_nonfinite : bool
        Look at the gradients first, and leave out the whole step if one is NaN or infinite. Otherwise a NaN gradient makes the
        weight NaN.
    maximize : bool
        Maximise instead.
    capturable, differentiable : bool
        Keep the step free of waiting for the device; let autograd see through it.
    accumulator_dtype : torch.dtype, optional
        Of the buffers; by default that of the parameter, and float32 for half precision.
    donate_grads : bool
        Keep the gradient's own memory as the previous gradient instead of a copy. `step` then sets `p.grad` to None.
    reduce : {None, "storm"}
        With "storm", `step(closure)` evaluates the closure twice on the same batch B, at the previous and at the new weights,
        and the rule sees d instead of g. Two forward and backward passes per step, three more arrays of the size of the
        parameters (one is in the state: the previous weights). `p.grad` and the returned loss are those of the new weights. All
        weights that change must belong to this optimizer. docs/training.md has the rest: dropout, BatchNorm, when it pays.
    reduce_rate : float
        a, above 0 and at most 1: the share of the new gradient in the direction. 1 is no reduction.

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

    With minibatches and less noise, every step on a batch of its own:

    >>> data = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
    >>> optimizer = AdaGradDiff([x], lr=0.5, reduce="storm")
    >>> for batch in data.split(10):
    ...     def closure():
    ...         optimizer.zero_grad()
    ...         loss = (x - batch).square().sum(1).mean()
    ...         loss.backward()
    ...         return loss
    ...     loss = optimizer.step(closure)
    >>> bool((x - data.mean(0)).abs().max() < 0.2)
    True
    """

    buffers = ("total", "prev")
    kernel = staticmethod(_kernels.adagrad_diff)
    takes_sparse = True

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-8,
        foreach: bool | None = None,
        *,
        penalty: Penalty | None = None,
        blocks: str = "element",
        decoupled_weight_decay: bool = False,
        prox_unseen: bool = False,
        skip_nonfinite: bool = False,
        maximize: bool = False,
        fused: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        accumulator_dtype: torch.dtype | None = None,
        donate_grads: bool = False,
        reduce: str | None = None,
        reduce_rate: float = 0.1,
    ):
        options = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "params", "__class__")
        }
        super().__init__(params, options)

    def numbers(self, states: list[dict[str, Any]], group: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The learning rate, which may decay."""
        lr, decay = rate(group), group["lr_decay"]
        return (
            [(lr / (1 + (n - 1) * decay),) for n in count(states, group)]
            if decay
            else [(lr,)] * len(states)
        )

    def single(
        self, x: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], *numbers: Any
    ) -> None:
        (lr,) = numbers
        state["total"].add_(block_sum((g - state["prev"]).square(), group["blocks"]))
        w = state["total"].sqrt() + group["eps"]
        x.sub_(placed(lr * g / w, x))
        proximal_(x, lr / w, state["total"], g, group)

    @staticmethod
    def listed(*lists: list[Tensor], numbers: list[tuple[Any, ...]], group: dict[str, Any]) -> None:
        """The step without intermediates: the memory of prev serves as w / lr until it takes the gradient."""
        xs, gs, total, prev = lists
        torch._foreach_sub_(prev, gs)
        torch._foreach_addcmul_(total, prev, prev)
        w = prev
        torch._foreach_copy_(w, total)
        torch._foreach_sqrt_(w)
        torch._foreach_add_(w, group["eps"])
        if isinstance(group["lr"], Tensor):
            torch._foreach_div_(w, [lr for (lr,) in numbers])
            numbers = [(1.0,)] * len(xs)
        torch._foreach_addcdiv_(xs, gs, w, scalars=[-lr for (lr,) in numbers])
        if group["penalty"] is not None:
            for x, g, weight, s, (lr,) in zip(xs, gs, w, total, numbers, strict=True):
                proximal_(x, lr / weight, s, g, group)

    def scalars(self, group: dict[str, Any]) -> tuple[float, ...]:
        return (group["eps"],)

    def sparse(
        self,
        p: Tensor,
        where: tuple[Tensor, ...],
        g: Tensor,
        state: dict[str, Any],
        group: dict[str, Any],
        *numbers: Any,
    ) -> None:
        (lr,) = numbers
        total = state["total"][where] + (g - state["prev"][where]).square()
        state["total"][where] = total
        p[where] = (p[where].to(g.dtype) - lr * g / (total.sqrt() + group["eps"])).to(p.dtype)
