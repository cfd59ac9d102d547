"""Adam with gradient differences, which the paper names as future work."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..penalties.group_root import block_sum, group_norms
from ..rules.base import MAX_MOVE
from ._optimizer import DifferenceOptimizer
from ._options import arguments, positive, rate
from ._step import Group, Numbers, Tensors
from .penalties import Penalty


class AdamDiff(DifferenceOptimizer):
    r"""Adam whose second moment is that of gradient differences. The paper has no theory for it.

    .. math:: v = \beta_2 v + (1 - \beta_2) |g^n - g^{n-1}|^2, \quad
              m = \beta_1 m + (1 - \beta_1) g^n, \qquad
              w = \max(\sqrt{\hat v}, |\hat m| / \text{max\_move}) + \varepsilon, \quad
              x = \text{prox}(x - \text{lr}\, \hat m / w)

    with :math:`\hat m = m / (1 - \beta_1^n)` and :math:`\hat v = v / (1 - \beta_2^n)`, g^0 = 0.

    Parameters
    ----------
    betas : (float, float)
        Decay of the mean and of the squares.
    weight_decay : float
        Add weight_decay * x to the gradient, as `torch.optim.Adam` does. With
        `decoupled_weight_decay=True` shrink x by 1 - lr weight_decay instead, as `AdamWDiff` does.
    amsgrad : bool
        Not available: True is an error.
    max_move : float
        No entry moves by more than max_move * lr in one step. While a gradient stays the same, v
        decays, and without this bound (inf) steps would grow without end.
        docs/learning_rates.md explains the default.
    params, lr, eps, foreach, fused, penalty, blocks, prox_unseen, skip_nonfinite, maximize
        See `AdaGradDiff`.
    capturable, differentiable, accumulator_dtype, donate_grads
        See `AdaGradDiff`.

    Examples
    --------
    >>> import torch
    >>> from adagrad_diff.torch import AdamDiff
    >>> x = torch.tensor([3.0, -4.0], requires_grad=True)
    >>> optimizer = AdamDiff([x], lr=0.1)
    >>> for _ in range(300):
    ...     optimizer.zero_grad()
    ...     x.square().sum().backward()
    ...     optimizer.step()
    >>> bool(x.abs().max() < 0.1)
    True
    """

    buffers = ("total", "prev", "mean")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        max_move: float = MAX_MOVE,
        penalty: Penalty | None = None,
        blocks: str = "element",
        decoupled_weight_decay: bool = False,
        prox_unseen: bool = False,
        skip_nonfinite: bool = False,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        accumulator_dtype: torch.dtype | None = None,
        donate_grads: bool = False,
    ):
        super().__init__(params, arguments(locals()))

    @staticmethod
    def numbers(n: Any, group: Group) -> Numbers:
        beta1, beta2 = group["betas"]  # the averages are divided by 1 - beta^n
        return rate(group), 1 / (1 - beta1**n), 1 / (1 - beta2**n)

    @staticmethod
    def accumulate(g: Tensor, buffers: list[Tensor], group: Group) -> None:
        total, prev, mean = buffers
        beta1, beta2 = group["betas"]
        square = block_sum((g - prev).square(), group["blocks"])
        total.mul_(beta2).add_((1 - beta2) * square)
        mean.mul_(beta1).add_((1 - beta1) * g)

    @staticmethod
    def metric(
        g: Tensor, buffers: list[Tensor], numbers: Numbers, group: Group
    ) -> tuple[Tensor, Tensor]:
        total, _, mean = buffers
        _, correction1, correction2 = numbers
        direction = mean * correction1
        bound = group_norms(torch, direction, group["blocks"]) / group["max_move"]
        weight = torch.maximum((total * correction2).sqrt(), bound)
        return direction, weight + positive(group["eps"], total)

    @staticmethod
    def listed(
        gs: Tensors, buffers: list[Tensors], numbers: list[Numbers], group: Group
    ) -> tuple[Tensors, Tensors, list[Any]]:
        totals, prevs, means = buffers
        (beta1, beta2), max_move = group["betas"], group["max_move"]
        torch._foreach_sub_(prevs, gs)
        torch._foreach_mul_(totals, beta2)
        torch._foreach_addcmul_(totals, prevs, prevs, value=1 - beta2)
        torch._foreach_lerp_(means, gs, 1 - beta1)
        weights = torch._foreach_mul(means, [c1 / c2**0.5 / max_move for _, c1, c2 in numbers])
        torch._foreach_mul_(weights, weights)  # max(v, (m c1 / max_move)^2 / c2) c2
        torch._foreach_maximum_(weights, totals)
        torch._foreach_mul_(weights, [c2 for _, _, c2 in numbers])
        torch._foreach_sqrt_(weights)
        torch._foreach_add_(weights, positive(group["eps"], totals[0]))
        return means, weights, [lr * c1 for lr, c1, _ in numbers]


class AdamWDiff(AdamDiff):
    r"""`AdamDiff` with decoupled weight decay, a replacement of `torch.optim.AdamW`.

    Every step first shrinks x by 1 - lr weight_decay.

    Parameters
    ----------
    weight_decay : float
        How fast weights decay. The default is AdamW's.
    params, lr, betas, eps, amsgrad, **options
        See `AdamDiff`.

    Examples
    --------
    >>> import torch
    >>> from adagrad_diff.torch import AdamWDiff
    >>> model = torch.nn.Linear(3, 1)
    >>> optimizer = AdamWDiff(model.parameters(), lr=1e-3, weight_decay=0.1)
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ):
        if not options.pop("decoupled_weight_decay", True):
            raise ValueError(
                "The weight decay of AdamWDiff is decoupled. Use AdamDiff for weight decay through "
                "the gradient."
            )
        options["decoupled_weight_decay"] = True
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # also with a state of AdamDiff
