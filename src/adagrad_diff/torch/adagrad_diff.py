"""AdaGrad-Diff as a PyTorch optimizer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..penalties.group_root import block_sum
from ._optimizer import DifferenceOptimizer
from ._options import arguments, positive, rate
from ._step import Group, Numbers, Tensors
from .penalties import Penalty


class AdaGradDiff(DifferenceOptimizer):
    r"""Divide by the accumulated size of gradient differences, then take a proximal step.

    .. math:: w^n = \varepsilon + \sqrt{\sum_{k \le n} |g^k - g^{k-1}|^2}, \quad g^0 = 0, \qquad
              x^{n+1} = \text{prox}^{w^n / \text{lr}}_\varphi (x^n - \text{lr}\, g^n / w^n)

    A drop-in replacement of `torch.optim.Adagrad`. Its advantage, a wider range of good learning
    rates, belongs to full batches and low noise: differences of independent noise are larger than
    the noise by sqrt(2), and steps end up that much smaller.

    Parameters
    ----------
    params
        Tensors, named tensors or parameter groups. Every option below may differ by group.
    lr : float or Tensor
        Learning rate, the paper's eta.
    lr_decay : float
        The n-th step of a parameter has the learning rate lr / (1 + (n - 1) lr_decay).
    weight_decay : float
        Add weight_decay * x to the gradient, as `torch.optim.Adagrad` does. Differences then see x
        move. Prefer the `Ridge` penalty, or `decoupled_weight_decay=True`, which shrinks x by
        1 - lr weight_decay before the step, as AdamW does.
    initial_accumulator_value : float
        Initial value of the sum of squares. If it is positive, every entry counts as seen.
    eps : float
        Added to every weight, outside the root. If it is 0, the smallest normal number is added, so
        that entries without a gradient do not move.
    foreach : bool, optional
        True, or None (the default): use operations on lists of tensors where they apply. Unlike
        those of PyTorch, they are faster than the plain loop on CPUs as well, because large tensors
        are updated in pieces that fit into the cache. False: update one tensor after the other.
    penalty : Penalty, optional
        A penalty of `adagrad_diff.torch`, applied by its exact proximal step: L1 (exact zeros),
        Ridge, ElasticNet, Box, NonNegative, GroupL2, or your own (see `Penalty`).
    blocks : {"element", "row", "tensor"}
        Which entries share one weight: none, those with the same first index, or the whole tensor.
        Complex entries are two real ones.
    prox_unseen : bool
        An entry without a gradient so far has the weight eps, and its proximal step of length
        lr / eps would wipe rows of an embedding that no batch has contained. So penalties and
        bounds skip entries until their first nonzero gradient. True applies the paper's formula
        without exceptions.
    skip_nonfinite : bool
        Check the gradients first, and skip the whole step if one is NaN or infinite. Otherwise a
        NaN gradient makes the weight NaN.
    maximize : bool
        Maximize instead.
    fused : bool, optional
        Compile the step of large tensors with `torch.compile`, for CPUs and accelerators. The first
        step then takes half a minute. It needs a C++ compiler (or, on accelerators, Triton).
    capturable, differentiable : bool
        Do not wait for the device within a step. Let autograd differentiate through the step.
    accumulator_dtype : torch.dtype, optional
        Precision of the buffers. The default is that of the parameter, and float32 for half
        precision.
    donate_grads : bool
        Keep the gradient's own memory as the previous gradient instead of a copy. `step` then sets
        `p.grad` to None.

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
    ):
        super().__init__(params, arguments(locals()))

    @staticmethod
    def numbers(n: Any, group: Group) -> Numbers:
        lr, decay = rate(group), group["lr_decay"]
        return (lr / (1 + (n - 1) * decay) if decay else lr,)

    @staticmethod
    def accumulate(g: Tensor, buffers: list[Tensor], group: Group) -> None:
        total, prev = buffers
        total.add_(block_sum((g - prev).square(), group["blocks"]))

    @staticmethod
    def metric(
        g: Tensor, buffers: list[Tensor], numbers: Numbers, group: Group
    ) -> tuple[Tensor, Tensor]:
        total = buffers[0]
        return g, total.sqrt() + positive(group["eps"], total)

    @staticmethod
    def listed(
        gs: Tensors, buffers: list[Tensors], numbers: list[Numbers], group: Group
    ) -> tuple[Tensors, Tensors, list[Any]]:
        totals, prevs = buffers
        torch._foreach_sub_(prevs, gs)
        torch._foreach_addcmul_(totals, prevs, prevs)
        weights = torch._foreach_sqrt(totals)
        torch._foreach_add_(weights, positive(group["eps"], totals[0]))
        return gs, weights, [lr for (lr,) in numbers]
