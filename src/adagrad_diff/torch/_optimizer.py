"""The base class of the optimizers: options, state, and which implementation steps a tensor."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer, _use_grad_for_differentiable

from ..penalties.group_root import block_sum, group_norms
from . import _checkpoints
from ._options import check_compiler, check_options, warn_misspelled
from ._step import (
    COMPILED_ENTRIES,
    Group,
    Numbers,
    Row,
    Tensors,
    batches,
    step_compiled,
    step_list,
    step_sparse,
    step_tensor,
)

HALF = (torch.float16, torch.bfloat16)
PLAIN_TYPES = (Tensor, torch.nn.Parameter)  # others, such as DTensor, have their own operations
AT_BOUND = 1 - 1e-3  # share of max_move from which on a move counts as bounded


class DifferenceOptimizer(Optimizer, ABC):
    """An optimizer whose weights come from differences of successive gradients.

    A subclass states its rule twice: for one tensor, by `accumulate` and `metric`, and for lists of
    tensors, by `listed`.
    """

    # Names of the tensors in the state. "total" has one entry per block, the others are like x.
    buffers: ClassVar[tuple[str, ...]] = ("total", "prev")
    takes_sparse: ClassVar[bool] = False

    def __init__(self, params: Any, defaults: dict[str, Any]):
        check_options(defaults, type(self).__name__)
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Group) -> None:
        if isinstance(param_group, dict):  # otherwise PyTorch raises the error
            warn_misspelled(param_group, self.defaults, type(self).__name__)
            check_options({**self.defaults, **param_group}, type(self).__name__)
        super().add_param_group(param_group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
            for entry in (self.state[p] for p in group["params"] if p in self.state):
                entry["step"] = torch.as_tensor(entry["step"], dtype=torch.float32)

    # ------------------------------------------------------------ the rule

    @staticmethod
    @abstractmethod
    def numbers(n: Any, group: Group) -> Numbers:
        """Return the learning rate of the n-th step, and what else depends on n."""

    @staticmethod
    @abstractmethod
    def accumulate(g: Tensor, buffers: list[Tensor], group: Group) -> None:
        """Update the buffers, except for the previous gradient."""

    @staticmethod
    @abstractmethod
    def metric(
        g: Tensor, buffers: list[Tensor], numbers: Numbers, group: Group
    ) -> tuple[Tensor, Tensor]:
        """Return the direction of the step, and the weights that divide it."""

    @staticmethod
    @abstractmethod
    def listed(
        gs: Tensors, buffers: list[Tensors], numbers: list[Numbers], group: Group
    ) -> tuple[Tensors, Tensors, list[Any]]:
        """Do both for lists: return directions, weights, and numbers that multiply the directions.

        The memory of the previous gradients may be used.
        """

    # ------------------------------------------------------------ one step

    @_use_grad_for_differentiable
    def step(self, closure: Any = None) -> Any:
        """Make one step. `closure`, if given, evaluates the model again and returns the loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if any(group["skip_nonfinite"] and _nonfinite(group) for group in self.param_groups):
            return loss
        work = []
        for group in self.param_groups:
            columns: list[list[Tensor]] = [[] for _ in range(3 + len(self.buffers))]
            self._init_group(group, *columns)
            work.append((group, columns))
        for group, (params, grads, steps, *buffers) in work:
            self._step_group(group, params, grads, steps, *buffers)
        return loss

    def _init_group(self, group: Group, *columns: list[Tensor]) -> None:
        """Append the parameters with a gradient, the gradients, step counts and buffers.

        `torch.compile(optimizer.step)` knows this method by its name, and does not trace it.
        """
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            self._check_gradient(p, g, group)
            state = self.state[p]
            if "prev" not in state:
                state.update(self._new_state(p, g, group))
            if state["prev"].is_sparse and not _stays_sparse(g, group):
                state["prev"] = state["prev"].to_dense()
            before = state["prev"].shape[: p.ndim]
            if not p.shape == g.shape == before:
                raise RuntimeError(
                    "A parameter, its gradient and the previous gradient in its state have shapes "
                    f"{tuple(p.shape)}, {tuple(g.shape)} and {tuple(before)}: the parameter was "
                    "replaced. Compute the gradient again, and delete the old state with "
                    "`del optimizer.state[p]`."
                )
            row = p, g, state["step"], *[state[name] for name in self.buffers]
            for column, t in zip(columns, row, strict=True):
                column.append(t)

    def _check_gradient(self, p: Tensor, g: Tensor, group: Group) -> None:
        """Raise if the step cannot be made with these options."""
        owner = type(self).__name__
        if group["fused"] and p.is_cpu:
            check_compiler(owner)
        if not g.is_sparse:
            return
        if not self.takes_sparse:
            raise RuntimeError(f"{owner} does not support sparse gradients")
        if group["penalty"] is not None:
            raise RuntimeError(
                f"{owner} takes sparse gradients only without a penalty: a proximal step changes "
                "every entry."
            )
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")

    def _new_state(self, p: Tensor, g: Tensor, group: Group) -> dict[str, Any]:
        """Return buffers that are zero: g^0 = 0, whenever a parameter joins."""
        x = _real(p.detach())
        dtype = group["accumulator_dtype"] or (torch.float32 if x.dtype in HALF else x.dtype)
        state = {name: torch.zeros_like(x, dtype=dtype) for name in self.buffers}
        initial = group.get("initial_accumulator_value", 0.0)
        state["total"] = torch.full_like(block_sum(x, group["blocks"]), initial, dtype=dtype)
        if _stays_sparse(g, group):
            state["prev"] = torch.zeros_like(g, dtype=dtype)
        device = p.device if group["capturable"] else "cpu"
        return {**state, "step": torch.zeros((), dtype=torch.float32, device=device)}

    def _numbers(self, steps: list[Tensor], totals: list[Tensor], group: Group) -> list[Numbers]:
        """Count this step, and return its numbers for each tensor."""
        torch._foreach_add_(steps, 1.0)
        if group["capturable"]:
            pairs = zip(steps, totals, strict=True)
            return [self.numbers(step.to(total), group) for step, total in pairs]
        counts = torch.stack(steps).tolist()
        rows = {n: self.numbers(n, group) for n in set(counts)}  # mostly one for all
        return [rows[n] for n in counts]

    def _step_group(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        steps: list[Tensor],
        *buffers: list[Tensor],
    ) -> None:
        """Step every tensor by the implementation that suits it."""
        if not params:
            return
        kind, penalty = type(self), group["penalty"]
        compiled: list[Row] = []
        listed: list[Row] = []
        entrywise = group["blocks"] == "element" and not group["differentiable"]
        fused = group["fused"] and (penalty is None or penalty.separable)
        fused = fused and not torch.compiler.is_compiling()
        numbers = self._numbers(steps, buffers[0], group)
        for p, g, *own in zip(params, grads, *buffers, numbers, strict=True):
            plain = entrywise and type(p) in PLAIN_TYPES
            if _stays_sparse(g, group):
                self.state[p]["prev"] = step_sparse(kind, (p, g, *own), group)
                continue
            row = (_real(p), _real(g.to_dense() if g.is_sparse else g), *own)
            if plain and fused and p.numel() >= COMPILED_ENTRIES:
                compiled.append(row)
            elif plain and group["foreach"] is not False:
                listed.append(row)  # also on CPUs: `step_tensor` takes 2 to 12 times as long there
            else:
                step_tensor(kind, row, group)
        step_compiled(kind, compiled, group)
        for batch in batches(listed, group):
            step_list(kind, batch, group)
        if group["donate_grads"]:
            for p in params:
                p.grad = None

    # ------------------------------------------------------------ state

    def reset(self) -> None:
        """Forget all differences: the next gradient counts as the first."""
        self.state.clear()

    @torch.no_grad()
    def step_sizes(
        self, quantiles: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0)
    ) -> list[dict[str, Any]]:
        """Describe the step sizes lr / weight of the last step, for each parameter group.

        Entries that have had no gradient are left out. Of a distributed parameter, each process
        describes its own part.

        Parameters
        ----------
        quantiles : sequence of float
            Which quantiles to return, from 0 (the smallest step size) to 1 (the largest).

        Returns
        -------
        list of dict
            "quantiles", a list of floats (NaN if no entry has had a gradient), and "at_max_move",
            the share of entries that moved as far as `max_move` allows.

        Examples
        --------
        >>> import torch
        >>> from adagrad_diff.torch import AdaGradDiff
        >>> x = torch.zeros(3, requires_grad=True)
        >>> optimizer = AdaGradDiff([x], lr=0.5)
        >>> x.grad = torch.tensor([1.0, 2.0, 5.0])
        >>> optimizer.step()
        >>> [round(size, 3) for size in optimizer.step_sizes([0.0, 0.5, 1.0])[0]["quantiles"]]
        [0.1, 0.25, 0.5]
        """
        result = []
        for group in self.param_groups:
            bound = AT_BOUND * group.get("max_move", math.inf)
            rows = [np.empty((2, 0))]
            for state in (self.state.get(p) for p in group["params"]):
                if not state:
                    continue
                total, prev, *_ = buffers = [_local(state[name]) for name in self.buffers]
                numbers = self.numbers(state["step"].item(), group)
                direction, weight = self.metric(prev, buffers, numbers, group)
                moves = group_norms(torch, direction, group["blocks"]) / weight
                row = torch.stack([numbers[0] / weight, (moves >= bound).to(weight)])
                rows.append(row[:, total != 0].double().cpu().numpy())
            sizes, bounded = np.concatenate(rows, axis=1)
            found = np.quantile(sizes, quantiles) if sizes.size else np.full(len(quantiles), np.nan)
            share = float(bounded.mean()) if sizes.size else 0.0
            result.append({"quantiles": found.tolist(), "at_max_move": share})
        return result

    def state_dict(self) -> dict[str, Any]:
        """Return a state dict as every optimizer does, but with copies of the tensors.

        Penalties are plain data, so that `torch.load(..., weights_only=True)` reads the file.
        """
        return _checkpoints.saved(super().state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state dict. Buffers keep their precision, so that a resumed run is the same."""
        content: list[dict[str, Any]] = []

        def look(_: Any, loaded: dict[str, Any]) -> None:  # after the hooks of others
            _checkpoints.check(self, loaded)
            content.append(loaded)

        hook = self.register_load_state_dict_pre_hook(look)
        try:
            super().load_state_dict(state_dict)
        finally:
            hook.remove()
        _checkpoints.restore(self, content[-1])


def _nonfinite(group: Group) -> bool:
    """Return whether a gradient of the group contains NaN or infinity."""
    grads = [p.grad for p in group["params"] if p.grad is not None]
    values = [g.coalesce().values() if g.is_sparse else g for g in grads]
    return any(not torch.isfinite(g).all() for g in values)


def _stays_sparse(g: Tensor, group: Group) -> bool:
    """Return whether the entries of a sparse gradient are updated by themselves."""
    return g.is_sparse and group["blocks"] == "element" and not g.is_complex()


def _real(t: Tensor) -> Tensor:
    """Return a complex tensor as a real one, with a last axis for both parts."""
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def _local(t: Any) -> Any:
    """Return the part of a tensor that this process has, as a dense tensor."""
    return getattr(t, "to_local", lambda: t)().to_dense()
