"""Adam with differences: what the paper names as future work."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..common.blocks import block_sum
from . import _fused
from ._optimizer import DifferenceOptimizer
from .penalties import Penalty


class AdamDiff(DifferenceOptimizer):
    r"""Adam whose second moment is that of gradient differences. An extension: the paper has no theory for it.

    .. math:: v = \beta_2 v + (1 - \beta_2) |g^n - g^{n-1}|^2, \quad m = \beta_1 m + (1 - \beta_1) g^n, \qquad
              x = \text{prox}(x - \text{lr}\, \hat m / (\sqrt{\hat v} + \varepsilon))

    with :math:`\hat m = m / (1 - \beta_1^n)` and :math:`\hat v = v / (1 - \beta_2^n)`, g^0 = 0.

    Parameters
    ----------
    betas : (float, float)
        Decay of the mean and of the squares.
    params, lr, eps, penalty, blocks, maximize, foreach, fused, capturable, differentiable, accumulator_dtype, donate_grads
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
    kernel = staticmethod(_fused._adam_diff)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        *,
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

    def begin(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        state["step"] = torch.zeros((), dtype=torch.float32, device=p.device if group["capturable"] else "cpu")

    @staticmethod
    def _corrections(state: dict[str, Any], group: dict[str, Any]) -> tuple[Any, Any]:
        """1 / (1 - beta^n) for both betas, n this step's number."""
        state["step"] += 1
        n = state["step"] if group["capturable"] else state["step"].item()
        beta1, beta2 = group["betas"]
        return 1 / (1 - beta1**n), 1 / (1 - beta2**n)

    def _sparse(self, p: Tensor, state: dict[str, Any], group: dict[str, Any], factor: float) -> None:
        raise RuntimeError("AdamDiff does not support sparse gradients")

    def single(self, x: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        (beta1, beta2), (c1, c2) = group["betas"], self._corrections(state, group)
        state["total"].mul_(beta2).add_((1 - beta2) * block_sum((g - state["prev"]).square(), group["blocks"]))
        state["mean"].mul_(beta1).add_((1 - beta1) * g)
        w = (state["total"] * c2).sqrt() + group["eps"]
        x.sub_(group["lr"] * (state["mean"] * c1) / w)
        if group["penalty"] is not None:
            group["penalty"].prox_(x, group["lr"] / w)

    def foreach(self, xs: list[Tensor], gs: list[Tensor], states: list[dict[str, Any]], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        total, prev, mean = ([state[name] for state in states] for name in ("total", "prev", "mean"))
        corrections = [self._corrections(state, group) for state in states]
        torch._foreach_sub_(prev, gs)
        torch._foreach_mul_(total, beta2)
        torch._foreach_addcmul_(total, prev, prev, value=1 - beta2)
        torch._foreach_mul_(mean, beta1)
        torch._foreach_add_(mean, gs, alpha=1 - beta1)
        w = prev  # its memory is free until it takes the gradient
        torch._foreach_copy_(w, total)
        torch._foreach_mul_(w, [c2 for _, c2 in corrections])
        torch._foreach_sqrt_(w)
        torch._foreach_add_(w, group["eps"])
        torch._foreach_div_(w, [c1 * group["lr"] for c1, _ in corrections])
        torch._foreach_addcdiv_(xs, mean, w, value=-1)
        if group["penalty"] is not None:
            for x, weight, (c1, _) in zip(xs, w, corrections, strict=True):
                group["penalty"].prox_(x, 1 / (c1 * weight))

    def scalars(self, group: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        return group["lr"], group["eps"], beta1, beta2, 1 - beta1, 1 - beta2

    def corrections(self, states: list[dict[str, Any]], group: dict[str, Any]) -> list[tuple[Any, Any]]:
        return [self._corrections(state, group) for state in states]
