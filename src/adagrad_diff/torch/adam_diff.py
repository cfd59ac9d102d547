"""Adam with differences: what the paper names as future work."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..penalties.group_root import block_sum, group_norms
from ..rules.base import MAX_MOVE
from . import _kernels
from ._optimizer import DifferenceOptimizer
from ._options import rate, refuse_amsgrad
from ._proximal import proximal_
from ._sharded import placed
from ._steps import count
from .penalties import Penalty


class AdamDiff(DifferenceOptimizer):
    r"""Adam whose second moment is that of gradient differences. An extension: the paper has no theory for it.

    .. math:: v = \beta_2 v + (1 - \beta_2) |g^n - g^{n-1}|^2, \quad m = \beta_1 m + (1 - \beta_1) g^n, \qquad
              w = \max(\sqrt{\hat v}, |\hat m| / \text{max\_move}) + \varepsilon, \quad
              x = \text{prox}(x - \text{lr}\, \hat m / w)

    with :math:`\hat m = m / (1 - \beta_1^n)` and :math:`\hat v = v / (1 - \beta_2^n)`, g^0 = 0.

    Parameters
    ----------
    betas : (float, float)
        Decay of the mean and of the squares.
    weight_decay : float
        Add weight_decay * x to the gradient, as `torch.optim.Adam` does; with `decoupled_weight_decay=True` shrink x by
        1 - lr weight_decay instead, as `AdamWDiff` does.
    amsgrad : bool
        There is none: True is refused.
    max_move : float
        No coordinate moves by more than max_move * lr in one step. While a gradient stays the same v decays, and without this
        bound steps would grow without end (inf: they do). docs/learning_rates.md says why the default is what it is.
    reduce_rate : float
        As for `AdaGradDiff`, but with more of the new gradient by default: the mean of Adam is an average already.
    params, lr, eps, foreach, fused, penalty, blocks, prox_unseen, skip_nonfinite, maximize, capturable, differentiable
        As for `AdaGradDiff`.
    accumulator_dtype, donate_grads, reduce
        As for `AdaGradDiff`.

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
    kernel = staticmethod(_kernels.adam_diff)

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
        reduce: str | None = None,
        reduce_rate: float = 0.3,
    ):
        refuse_amsgrad(amsgrad, type(self).__name__)
        options = {
            k: value
            for k, value in locals().items()
            if k not in ("self", "params", "amsgrad", "__class__")
        }
        super().__init__(params, options)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if isinstance(param_group, dict) and "amsgrad" in param_group:
            refuse_amsgrad(param_group["amsgrad"], type(self).__name__)
            param_group = {name: value for name, value in param_group.items() if name != "amsgrad"}
        super().add_param_group(param_group)

    def numbers(self, states: list[dict[str, Any]], group: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The learning rate, and 1 / (1 - beta^n) for both betas."""
        lr, (beta1, beta2) = rate(group), group["betas"]
        if group["capturable"]:
            return [(lr, 1 / (1 - beta1**n), 1 / (1 - beta2**n)) for n in count(states, group)]
        steps = count(states, group)
        rows = {
            n: (lr, 1 / (1 - beta1**n), 1 / (1 - beta2**n)) for n in set(steps)
        }  # mostly one for all
        return [rows[n] for n in steps]

    def single(
        self, x: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], *numbers: Any
    ) -> None:
        (lr, c1, c2), (beta1, beta2), blocks = numbers, group["betas"], group["blocks"]
        state["total"].mul_(beta2).add_(
            (1 - beta2) * block_sum((g - state["prev"]).square(), blocks)
        )
        state["mean"].mul_(beta1).add_((1 - beta1) * g)
        mean = state["mean"] * c1
        size = mean.abs() if blocks == "element" else group_norms(torch, mean, blocks)
        w = torch.maximum((state["total"] * c2).sqrt(), size / group["max_move"]) + group["eps"]
        x.sub_(placed(lr * mean / w, x))
        proximal_(x, lr / w, state["total"], mean, group)

    @staticmethod
    def listed(*lists: list[Tensor], numbers: list[tuple[Any, ...]], group: dict[str, Any]) -> None:
        """The step without intermediates: the memory of prev serves as w / (lr c1) until it takes the gradient."""
        xs, gs, total, prev, mean = lists
        (beta1, beta2), least = group["betas"], 1 / group["max_move"]
        torch._foreach_sub_(prev, gs)
        torch._foreach_mul_(total, beta2)
        torch._foreach_addcmul_(total, prev, prev, value=1 - beta2)
        torch._foreach_mul_(mean, beta1)
        torch._foreach_add_(mean, gs, alpha=1 - beta1)
        w = prev
        torch._foreach_copy_(w, mean)
        torch._foreach_mul_(w, [least * c1 / c2**0.5 for _, c1, c2 in numbers])
        torch._foreach_mul_(w, w)
        torch._foreach_maximum_(w, total)  # max(v, (c1 m / max_move)^2 / c2)
        torch._foreach_mul_(w, [c2 for _, _, c2 in numbers])
        torch._foreach_sqrt_(w)
        torch._foreach_add_(w, group["eps"])
        torch._foreach_div_(w, [c1 * lr for lr, c1, _ in numbers])
        torch._foreach_addcdiv_(xs, mean, w, value=-1)
        if group["penalty"] is not None:
            for x, m, weight, v, (_, c1, _) in zip(xs, mean, w, total, numbers, strict=True):
                proximal_(x, 1 / (c1 * weight), v, m, group)

    def scalars(self, group: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        return group["eps"], beta1, beta2, 1 - beta1, 1 - beta2, 1 / group["max_move"]


class AdamWDiff(AdamDiff):
    r"""`AdamDiff` with decoupled weight decay: x shrinks by 1 - lr weight_decay before every step, as with `torch.optim.AdamW`.

    Parameters
    ----------
    weight_decay : float
        How fast weights decay; the default is AdamW's.
    params, lr, betas, eps, amsgrad, **options
        As for `AdamDiff`.

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
                "The weight decay of AdamWDiff is decoupled. Use AdamDiff for weight decay through the gradient."
            )
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, decoupled_weight_decay=True, **options
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # also with a state of AdamDiff
