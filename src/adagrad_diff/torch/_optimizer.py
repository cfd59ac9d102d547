"""What the optimizers share: options, groups, state, and a step that is made in the ways that suit it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer, _use_grad_for_differentiable

from . import _checkpoints
from ._options import check_options, check_params, warn_misspelled
from ._sparse import check_sparse
from ._storm import Storm
from ._tensors import HALF, block_full, full
from ._ways import ways


class DifferenceOptimizer(Optimizer, ABC):
    """An optimizer whose metric is made of differences of successive gradients.

    A subclass says what its buffers are, and the rule: for one tensor (`single`), for lists (`listed`), as a `kernel` over
    entries and, if it can, for the entries of a sparse gradient (`sparse`).
    """

    buffers: ClassVar[
        tuple[str, ...]
    ]  # names of the tensors in the state; "total" has one entry per block
    kernel: ClassVar[Any]  # of `_kernels`
    _step_supports_amp_scaling = True  # a GradScaler leaves unscaling, and skipping, to the step

    _reduced = False  # whether the last step was one with `reduce`

    def __init__(self, params: Any, defaults: dict[str, Any]):
        check_options(defaults, type(self).__name__)
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        owner = type(self).__name__
        if isinstance(param_group, dict):  # or PyTorch says what is wrong
            warn_misspelled(param_group, self.defaults, owner)
            check_options({**self.defaults, **param_group}, owner)
        super().add_param_group(param_group)
        try:
            check_params(self.param_groups[-1], owner)
        except RuntimeError:
            self.param_groups.pop()
            raise

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.pop("_plain", None)  # what the fused step has seen elsewhere
        self.__dict__.pop("_rehearsed", None)  # a state from elsewhere is real
        self._reduced = True  # perhaps
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
        _checkpoints.mend_steps(self.state)

    # ------------------------------------------------------------ one step

    @_use_grad_for_differentiable
    def step(self, closure: Any = None) -> Any:
        """Make one step; `closure`, if given, evaluates the model again and returns the loss. With `reduce` it is needed."""
        loss, storm = (
            None,
            Storm(self) if any(group["reduce"] for group in self.param_groups) else None,
        )
        if storm is not None:
            loss = storm.evaluate(closure)
        elif closure is not None:
            with torch.enable_grad():
                loss = closure()
        groups = [
            (group, [(p, g) for p in group["params"] if (g := p.grad) is not None])
            for group in self.param_groups
        ]
        if storm is not None:
            groups = storm.directions(groups)
        if self._skips(groups):
            return loss
        scale = getattr(self, "grad_scale", None)
        for group, pairs in groups:
            if group["penalty"] is not None or group["weight_decay"] or not self.takes_sparse:
                for _, g in pairs:  # before anything has changed
                    check_sparse(g, group, self)
        for group, left in groups:
            pairs = left
            factor = (-1.0 if group["maximize"] else 1.0) / (1.0 if scale is None else scale.item())
            for way in ways(group):
                pairs = way.step(self, pairs, group, factor)
        if storm is not None:
            storm.remember(groups)
        elif self._reduced:
            Storm(self).remember([])  # weights from before this step are of no use any more
        self._reduced = storm is not None
        return loss

    def _skips(self, groups: list[tuple[dict[str, Any], Any]]) -> bool:
        """Whether the whole step is left out: a scaler has found a gradient that is not finite, or we are asked to look."""
        found = getattr(self, "found_inf", None)  # set by a GradScaler
        if found is not None and found.item():
            return True
        looked = [
            g.coalesce().values() if g.is_sparse else g
            for group, pairs in groups
            if group["skip_nonfinite"]
            for _, g in pairs
        ]
        return any(not torch.isfinite(g).all() for g in looked)

    def ready(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter, which begins with zeros: g^0 = 0, whenever it joins."""
        state: dict[str, Any] = self.state[p]
        if "prev" not in state:
            x = (torch.view_as_real(p) if p.is_complex() else p).detach()
            dtype = group["accumulator_dtype"] or (torch.float32 if p.dtype in HALF else x.dtype)
            total = block_full(
                x, group["blocks"], group.get("initial_accumulator_value", 0.0), dtype
            )
            others = {name: full(x, 0.0, dtype) for name in self.buffers if name != "total"}
            state.update({"total": total, **others})  # at once: another thread may ask, too
        return state

    # ------------------------------------------------------------ checkpoints

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_plain"}

    def reset(self) -> None:
        """Forget all differences: the next gradient counts as the first."""
        self.state.clear()

    def state_dict(self) -> dict[str, Any]:
        """As for every optimizer, but tensors are copies and penalties plain data (so that `weights_only=True` loads it)."""
        return _checkpoints.saved(super().state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As for every optimizer, but buffers keep their dtype: a resumed run is the same run."""
        with _checkpoints.loading(self) as content:
            super().load_state_dict(state_dict)
        _checkpoints.restore(self, content[-1])

    # ------------------------------------------------------------ what a subclass adds

    @abstractmethod
    def numbers(self, states: list[dict[str, Any]], group: dict[str, Any]) -> list[tuple[Any, ...]]:
        """For each of these tensors, whose next step this is: the learning rate, and what else differs among tensors."""

    @abstractmethod
    def single(
        self, x: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], *numbers: Any
    ) -> None:
        """The step of one tensor, as the formula says it."""

    @staticmethod
    @abstractmethod
    def listed(*lists: list[Tensor], numbers: list[tuple[Any, ...]], group: dict[str, Any]) -> None:
        """The same for lists of parameters, gradients and buffers, of one device and dtype, without intermediates."""

    @abstractmethod
    def scalars(self, group: dict[str, Any]) -> tuple[float, ...]:
        """What the kernel wants to know beside that."""

    takes_sparse: ClassVar[bool] = False

    def sparse(
        self,
        p: Tensor,
        where: tuple[Tensor, ...],
        g: Tensor,
        state: dict[str, Any],
        group: dict[str, Any],
        *numbers: Any,
    ) -> None:
        """The same for the entries `where`, all others being as if their gradients stayed zero; if `takes_sparse`."""
        raise NotImplementedError
