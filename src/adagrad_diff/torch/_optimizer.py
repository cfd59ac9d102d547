"""What both optimizers share: options, state, checkpoints, and the choice of the way to make a step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import chain
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer, _use_grad_for_differentiable

from ..common import check
from ..common.blocks import BLOCKS
from . import _fused
from ._buffers import block_zeros, zeros
from .penalties import Penalty, from_config

HALF = (torch.float16, torch.bfloat16)


class DifferenceOptimizer(Optimizer, ABC):
    """An optimizer whose metric is made of differences of successive gradients.

    A subclass says what its buffers are, how one tensor (`single`) and a list (`foreach`) make a step, and which `kernel`
    does it for a table of CPU tensors.
    """

    buffers: ClassVar[tuple[str, ...]]  # names of the tensors in the state; "total" has one entry per block
    kernel: ClassVar[Any]  # the update of `_fused`
    sparse_seen = False  # whether there ever was a sparse gradient

    def __init__(self, params: Any, defaults: dict[str, Any]):
        _check_options(defaults, type(self).__name__)
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
        self.sparse_seen = any("support" in entry for entry in self.state.values())
        self.__dict__.pop("_entries", None)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        _check_options({**self.defaults, **param_group}, type(self).__name__)
        super().add_param_group(param_group)

    # ------------------------------------------------------------ one step

    @_use_grad_for_differentiable
    def step(self, closure: Any = None) -> Any:
        """Make one step; `closure`, if given, evaluates the model again and returns the loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        found_inf = getattr(self, "found_inf", None)  # set by a GradScaler that leaves unscaling to us
        if found_inf is None or not found_inf.item():
            scale = getattr(self, "grad_scale", None)
            for group in self.param_groups:
                self._step_group(group, 1.0 if scale is None else 1.0 / scale.item())
        return loss

    def _step_group(self, group: dict[str, Any], factor: float) -> None:
        factor = -factor if group["maximize"] else factor
        listed: list[Tensor] = []
        for p in self._fused(group, factor) if self._may_fuse(group) else group["params"]:
            if p.grad is None:
                continue
            state = self._ready(p, group)
            if p.grad.is_sparse:
                if group["penalty"] is not None:
                    raise RuntimeError(
                        f"{type(self).__name__} takes sparse gradients only without a penalty: "
                        "a proximal step changes every entry."
                    )
                self._sparse(p, state, group, factor)
            elif self._may_list(p, group):
                listed.append(p)
            else:
                self._one(p, state, group, factor)
        for same in _alike(listed):
            grads: list[Any] = [p.grad for p in same]
            if factor != 1.0:
                grads = list(torch._foreach_mul(grads, factor))
            states = [self.state[p] for p in same]
            self.foreach(same, grads, states, group)
            for p, g, state in zip(same, grads, states, strict=True):
                self._remember(p, g, state, group)

    @staticmethod
    def _may_list(p: Tensor, group: dict[str, Any]) -> bool:
        """Whether the tensor goes into a list: if that is wanted, or by default on an accelerator."""
        wanted = group["foreach"] or (group["foreach"] is None and not p.is_cpu)
        dtype = group["accumulator_dtype"] or p.dtype
        plain = type(p) in _fused.TENSOR_TYPES and not p.is_complex() and p.dtype not in HALF and dtype == p.dtype
        return bool(wanted and plain and group["blocks"] == "element" and not group["differentiable"])

    def _may_fuse(self, group: dict[str, Any]) -> bool:
        """Whether the options allow the fused kernel."""
        return (
            group["fused"] is not False
            and not (group["foreach"] or group["differentiable"] or group["capturable"] or group["donate_grads"])
            and group["blocks"] == "element"
            and (group["penalty"] is None or group["penalty"].limits() is not None)
            and not isinstance(group["lr"], Tensor)
            and not torch.compiler.is_compiling()
        )

    def _fused(self, group: dict[str, Any], factor: float) -> list[Tensor]:
        """A step of all tensors that the kernel takes; the others are returned. Per tensor, every microsecond counts."""
        params, rest = group["params"], []
        entries = self.__dict__.setdefault("_entries", {}).setdefault(id(group), [])
        entries += [None] * (len(params) - len(entries))
        work: dict[Any, tuple[list[Any], ...]] = {}
        current: Any = None  # the dtype that xs, gs, ... are of
        state_of: Any = self.state.get
        state: Any
        for k, p in enumerate(params):
            g = p.grad
            if g is None:
                continue
            entry = entries[k]
            if entry is not None:
                state, total, prev, dtype, size, addresses, mean = entry
            if (
                entry is None
                or state is not state_of(p)  # somebody has cleared, loaded, replaced the state
                or state.get("prev") is not prev  # or put another buffer there
                or state.get("total") is not total
                or state.get("mean") is not mean
                or p.dtype is not dtype  # or the parameter has become another one
                or p.numel() != size
                or not p.is_contiguous()
            ):
                entry = entries[k] = _fused.entry(p, self._ready(p, group), self.buffers)
                if entry is not None:
                    state, total, prev, dtype, size, addresses, mean = entry
            if (
                entry is None
                or type(g) is not Tensor
                or g.dtype is not dtype
                or not g.is_cpu
                or g.is_sparse
                or not g.is_contiguous()
            ):
                rest.append(p)
                continue
            if dtype is not current:
                current, (xs, gs, buffers, sizes, states) = dtype, work.setdefault(dtype, ([], [], [], [], []))
            xs.append(p.data_ptr())
            gs.append(g.data_ptr())
            buffers.append(addresses)
            sizes.append(size)
            states.append(state)
        for dtype, (xs, gs, buffers, sizes, states) in work.items():
            corrections = self.corrections(states, group)
            limits = None if group["penalty"] is None else group["penalty"].limits()
            scalars = (factor, *self.scalars(group))
            _fused.step(self.kernel, (xs, gs, buffers), sizes, corrections, scalars, limits, _fused.FUSED_DTYPES[dtype])
            if self.sparse_seen:
                for state in states:
                    state.pop("support", None)
        return rest

    def _ready(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter, which begins with zeros: g^0 = 0, whenever it joins."""
        state: dict[str, Any] = self.state[p]
        if "prev" not in state:
            x = torch.view_as_real(p) if p.is_complex() else p
            dtype = group["accumulator_dtype"] or (torch.float32 if p.dtype in HALF else x.dtype)
            x = x.detach()
            state.update({name: zeros(x, dtype) for name in self.buffers if name != "total"})
            state["total"] = block_zeros(x, group["blocks"], dtype)
            self.begin(state, p, group)
        return state

    def begin(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        """Add what the state holds beside tensors of the parameter's size."""

    def _one(self, p: Tensor, state: dict[str, Any], group: dict[str, Any], factor: float) -> None:
        """A step of one tensor, in the precision of its state."""
        g: Any = p.grad
        x = p
        if p.is_complex():
            x, g = torch.view_as_real(p), torch.view_as_real(g.resolve_conj())
        dtype = state["prev"].dtype
        g = g.to(dtype)
        g = g if factor == 1.0 else g * factor
        if x.dtype == dtype:
            self.single(x, g, state, group)
        else:
            wide = x.to(dtype)
            self.single(wide, g, state, group)
            x.copy_(wide)
        self._remember(p, g, state, group)

    def _remember(self, p: Tensor, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """prev = g: a copy, or the gradient's own memory if we may have it."""
        state.pop("support", None)  # where the previous gradient was not zero, if it was sparse
        if group["donate_grads"] and g is p.grad:
            state["prev"], p.grad = g.detach(), None  # type: ignore[union-attr]
        else:
            state["prev"].copy_(g)

    def _sparse(self, p: Tensor, state: dict[str, Any], group: dict[str, Any], factor: float) -> None:
        """A step for a sparse gradient: only where it, or the previous one, is not zero does anything change."""
        self.sparse_seen = True
        g = p.grad.coalesce()  # type: ignore[union-attr]
        if group["blocks"] != "element" or p.is_complex() or ("support" not in state and state["prev"].any()):
            p.grad = g.to_dense()  # the previous gradient is dense: so is the difference
            self._one(p, state, group, factor)
            p.grad = g
            if group["blocks"] == "element" and not p.is_complex():
                state["support"] = g.indices().clone()  # from now on it is sparse
            return
        support, values, prev = g.indices(), g.values().to(state["prev"].dtype) * factor, state["prev"]
        if "support" in state:  # entries that the previous gradient had and this one has not
            sizes = torch.tensor(p.shape[: len(support)], device=support.device)
            strides = sizes.flip(0).cumprod(0).roll(1)
            strides[0] = 1
            before, now = ((indices * strides.flip(0)[:, None]).sum(0) for indices in (state["support"], support))
            gone = tuple(state["support"][:, ~torch.isin(before, now)])
            state["total"][gone] += prev[gone].square()
            prev[gone] = 0
        self.sparse(p, tuple(support), values, state, group)
        prev[tuple(support)] = values
        state["support"] = support.clone()

    # ------------------------------------------------------------ checkpoints

    def reset(self) -> None:
        """Forget all differences: the next gradient counts as the first."""
        self.state.clear()
        self.__dict__.pop("_entries", None)

    def state_dict(self) -> dict[str, Any]:
        """As for every optimizer, but tensors are copies and penalties plain data (so that `weights_only=True` loads it)."""
        content = super().state_dict()
        content["state"] = {
            key: {name: value.clone() if isinstance(value, Tensor) else value for name, value in state.items()}
            for key, state in content["state"].items()
        }
        for group in content["param_groups"]:
            if isinstance(group["penalty"], Penalty):
                group["penalty"] = group["penalty"].config()
            if isinstance(group["lr"], Tensor):
                group["lr"] = group["lr"].clone()
        return content

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As for every optimizer, but buffers keep their dtype: a resumed run is the same run."""
        seen: list[dict[str, Any]] = []  # what is loaded, after everybody else's hooks
        hook = self.register_load_state_dict_pre_hook(lambda _, content: seen.append(content))
        try:
            super().load_state_dict(state_dict)
        finally:
            hook.remove()
        state_dict = seen[-1]
        saved = chain.from_iterable(group["params"] for group in state_dict["param_groups"])
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        for key, p in zip(saved, params, strict=True):
            for name, value in state_dict["state"].get(key, {}).items():
                if isinstance(value, Tensor):
                    device = self.state[p][name].device  # a step count may stay on the CPU
                    self.state[p][name] = value.detach().to(device=device, copy=True)
        for group in self.param_groups:
            group["penalty"] = from_config(group["penalty"])

    # ------------------------------------------------------------ what a subclass adds

    @abstractmethod
    def single(self, x: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The step of one tensor, as the formula says it."""

    @abstractmethod
    def foreach(self, xs: list[Tensor], gs: list[Tensor], states: list[dict[str, Any]], group: dict[str, Any]) -> None:
        """The same for many tensors of one device and dtype, without intermediates."""

    @abstractmethod
    def scalars(self, group: dict[str, Any]) -> tuple[float, ...]:
        """What the kernel wants to know beside the factor of the gradients."""

    def corrections(self, states: list[dict[str, Any]], group: dict[str, Any]) -> list[tuple[Any, Any]] | None:
        """Two numbers for each tensor, or nothing."""
        return None

    def sparse(self, p: Tensor, where: tuple[Tensor, ...], g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The same for the entries `where`, all others being as if their gradients stayed zero."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")


def _alike(params: list[Tensor]) -> Iterable[list[Tensor]]:
    """The parameters by device and dtype."""
    kinds: dict[Any, list[Tensor]] = {}
    for p in params:
        kinds.setdefault((p.device, p.dtype), []).append(p)
    return kinds.values()


def _check_options(options: dict[str, Any], owner: str) -> None:
    lr = options["lr"]
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")
    if not 0.0 < options["eps"] < math.inf:
        raise ValueError(f"Invalid epsilon value: {options['eps']}")
    for k, beta in enumerate(options.get("betas", ())):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {k}: {beta}")
    check.one_of(options["blocks"], BLOCKS, "blocks", owner)
    if not isinstance(options["penalty"], Penalty | None):
        raise TypeError(
            f"The 'penalty' parameter of {owner} must be a penalty of adagrad_diff.torch. Got {options['penalty']!r}."
        )
    dtype = options["accumulator_dtype"]
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ValueError(f"The 'accumulator_dtype' parameter of {owner} must be a floating-point dtype. Got {dtype!r} instead.")
    if options["fused"] and options["differentiable"]:
        raise RuntimeError("`fused` does not support `differentiable`")
    if options["fused"] and options["foreach"]:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
