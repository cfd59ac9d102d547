"""Variance reduction for minibatches: a step that sees the direction of STORM (Cutkosky and Orabona, 2019) for the gradient.

    d^n = g_B(x^n) + (1 - a) (d^{n-1} - g_B(x^{n-1})),   d^1 = g_B(x^1),   both gradients on the batch B of step n

Independent gradients differ by their noise. The noise of g_B(x^n) and of g_B(x^{n-1}) is nearly the same one, so d^n - d^{n-1}
is a difference of gradients again. The rule keeps d^{n-1} as its previous gradient (`prev`): all that is new in the state is
x^{n-1}. Coupled weight decay is part of `prev`, and so of the old gradient here: it has no noise, and cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ._sparse import check_sparse
from ._tensors import Pairs, check_before

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer

Groups = list[tuple[dict[str, Any], Pairs]]


class Storm:
    """One step: evaluate the closure at x^{n-1} and at x^n, make directions of the gradients, remember x^n."""

    def __init__(self, optimizer: DifferenceOptimizer):
        self.optimizer = optimizer
        self.here: dict[Tensor, Tensor] = {}  # x^n, in memory of its own
        self.rest: dict[Tensor, Tensor] = {}  # d^{n-1} - g_B(x^{n-1}), in the rule's sign
        # Memory of the last step for these two: on a CPU, new memory takes longer than all that is written to it.
        self.spare: tuple[dict[Tensor, Tensor], ...] = optimizer.__dict__.setdefault(
            "_spare", ({}, {})
        )

    def evaluate(self, closure: Callable[[], Any] | None) -> Any:
        """The loss at x^n, whose gradients are left in the parameters. Whatever happens, so are the weights x^n."""
        optimizer = self.optimizer
        if closure is None:
            return self._rehearse()
        if optimizer.__dict__.pop("_rehearsed", False):
            self.remember([])
        pairs = [(p, group) for group in optimizer.param_groups for p in group["params"]]
        before = {
            p: state["x_prev"]
            for p, _ in pairs
            if "x_prev" in (state := optimizer.state.get(p, {}))
        }
        if before:  # one without it has not moved in the last step
            for p, x in before.items():
                check_before(p, x)
            self.here = {p: kept(p.detach(), self.spare[0].get(p)) for p in before}
            try:
                with same_draws(
                    before
                ):  # x^{n-1} first: in the end, gradients, draws and running statistics are those of x^n
                    put(before)
                    self._run(closure)
                    self.rest = {
                        p: self._rest(p, before[p], group)
                        for p, group in pairs
                        if group["reduce"] and p in before
                    }
            finally:
                put(self.here)
        return self._run(closure)

    def directions(self, groups: Groups) -> Groups:
        """The directions in place of the gradients; the first of a parameter is its gradient."""
        for group, pairs in groups:
            for p, g in pairs:
                if group["reduce"]:
                    check_sparse(g, group, self.optimizer)
                if p not in self.here:
                    self.here[p] = p.detach().clone()
        return [
            (group, [(p, self._direction(p, g, group)) for p, g in pairs])
            for group, pairs in groups
        ]

    def remember(self, groups: Groups) -> None:
        """x^n of those that made the step. The others have not moved, and begin anew when they have a gradient again."""
        moved = {p for _, pairs in groups for p, _ in pairs}
        for p in (p for group in self.optimizer.param_groups for p in group["params"]):
            x = self.optimizer.state[p].pop("x_prev", None) if p in self.optimizer.state else None
            if x is not None:
                self.spare[0][p] = x
            if p in moved:
                self.optimizer.state[p]["x_prev"] = self.here[p]

    # ------------------------------------------------------------ the parts

    def _run(self, closure: Callable[[], Any]) -> Any:
        """Evaluate, from no gradients on: a closure need not set them to zero itself."""
        self.optimizer.zero_grad()
        with torch.enable_grad():
            loss = closure()
        if all(p.grad is None for group in self.optimizer.param_groups for p in group["params"]):
            raise RuntimeError(
                "The closure has left no gradients. With reduce='storm' it computes the loss of the batch, calls its "
                "backward() and returns it; gradients from before the step do not count."
            )
        return loss

    def _rest(self, p: Tensor, before: Tensor, group: dict[str, Any]) -> Tensor:
        """What of d^{n-1} the batch does not explain."""
        prev: Tensor = self.optimizer.state[p]["prev"]
        decay = group["weight_decay"]
        if decay and not group["decoupled_weight_decay"]:
            prev = prev - decay * real(before).to(prev.dtype)
        if (
            p.grad is None
        ):  # no gradient, although there is one at x^n: the loss did not depend on p
            return prev.clone()
        check_sparse(p.grad, group, self.optimizer)
        memory = self.spare[1].get(p)
        rest = torch.add(
            prev,
            real(p.grad),
            alpha=1.0 if group["maximize"] else -1.0,
            out=memory if fits(memory, prev) else None,
        )
        if not group["donate_grads"]:  # or the state will have it
            self.spare[1][p] = rest
        return rest

    def _direction(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> Tensor:
        rest = self.rest.pop(p, None)
        if rest is None:
            return g
        share = (1.0 - group["reduce_rate"]) * (-1.0 if group["maximize"] else 1.0)
        torch.add(real(g), rest, alpha=share, out=rest)
        return torch.view_as_complex(rest) if p.is_complex() else rest

    def _rehearse(self) -> None:
        """A step without a closure, which only `torch.distributed.checkpoint` may make: with zeros, to see the buffers."""
        optimizer = self.optimizer
        grads = [
            p.grad
            for group in optimizer.param_groups
            for p in group["params"]
            if p.grad is not None
        ]
        if optimizer.state or not grads or any(g.any() for g in grads):
            raise RuntimeError(
                f"{type(optimizer).__name__} with reduce='storm' needs a closure, step(closure): it evaluates the loss of the "
                "batch at the previous weights, too. (A GradScaler cannot pass it on; autocast to bfloat16 needs no scaler.)"
            )
        optimizer.__dict__["_rehearsed"] = (
            True  # zeros were no gradients: what is remembered of them is not used
        )


def put(weights: dict[Tensor, Tensor]) -> None:
    """Write weights into the memory of their parameters, where closures, hooks and shards look for them."""
    for p, x in weights.items():
        p.detach().copy_(x)
    torch.clear_autocast_cache()  # of an autocast around the step: it has the other weights in half precision


def kept(x: Tensor, memory: Tensor | None) -> Tensor:
    """A copy, in this memory if it is of the right kind."""
    return x.clone() if memory is None or not fits(memory, x) else memory.copy_(x)


def fits(memory: Tensor | None, x: Tensor) -> bool:
    return (
        memory is not None
        and all(getattr(memory, name) == getattr(x, name) for name in ("shape", "dtype", "device"))
        and memory.stride() == x.stride()
    )


@contextmanager
def same_draws(params: Iterable[Tensor]) -> Iterator[None]:
    """Draw random numbers that will be drawn again: dropout is the same at both weights."""
    devices = {p.device for p in params}
    with ExitStack() as stack:
        for kind in {"cpu", *(device.type for device in devices)}:
            chosen = [device for device in devices if device.type == kind != "cpu"]
            stack.enter_context(torch.random.fork_rng(chosen, device_type=kind))
        yield


def real(t: Tensor) -> Tensor:
    """A complex entry is two real ones."""
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t
