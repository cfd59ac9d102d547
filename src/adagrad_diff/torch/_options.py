"""The options of the optimizers: which there are, and what they may be."""

from __future__ import annotations

import math
import os
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor

from .. import _check
from .._messages import warn
from ..penalties.group_root import BLOCKS
from .penalties import Penalty

# Similarity (ratio of difflib) of a misspelled option. One wrong letter in 'penalty' gives 0.86; 'layer_decay' gives 0.84.
SIMILARITY = 0.85
FLAGS = (
    "maximize",
    "capturable",
    "differentiable",
    "donate_grads",
    "decoupled_weight_decay",
    "prox_unseen",
    "skip_nonfinite",
)


def warn_misspelled(group: dict[str, Any], options: dict[str, Any], owner: str) -> None:
    """Warn about keys of a parameter group that are probably misspelled options. Other keys are kept, as PyTorch does."""
    for name in group:
        if name in options or any(f"_{option}_" in f"_{name}_" for option in options):
            continue  # 'no_weight_decay' is a different word, not a misspelled one
        similar = get_close_matches(str(name).lower(), options, n=1, cutoff=SIMILARITY)
        if similar:
            warn(
                f"A parameter group has the key {name!r}, which is not an option of {owner}. Did you mean {similar[0]!r}?",
                UserWarning,
                through=os.path.dirname(torch.__file__),
            )


def refuse_amsgrad(value: Any, owner: str) -> None:
    if value:
        raise ValueError(
            f"{owner} has no 'amsgrad': the largest square so far would keep steps small for ever after one large difference. "
            "Leave it out."
        )


def check_options(options: dict[str, Any], owner: str) -> None:
    """The values; those that PyTorch's optimizers have too, in PyTorch's own words."""
    _check_rate(options["lr"], owner)
    _in_range("epsilon", options["eps"], 0.0 < _number(options["eps"], "eps", owner) < math.inf)
    for name in ("lr_decay", "weight_decay", "initial_accumulator_value"):
        if name in options:
            _in_range(name, options[name], 0.0 <= _number(options[name], name, owner) < math.inf)
    betas = options.get("betas", (0.0, 0.0))
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ValueError(
            f"The 'betas' parameter of {owner} must be two numbers. Got {betas!r} instead."
        )
    for k, beta in enumerate(betas):
        if not 0.0 <= _number(beta, "betas", owner) < 1.0:
            raise ValueError(f"Invalid beta parameter at index {k}: {beta}")
    if not _number(options.get("max_move", 1.0), "max_move", owner) > 0.0:
        raise ValueError(
            f"The 'max_move' parameter of {owner} must be a positive number. Got {options['max_move']!r} instead."
        )
    _check.one_of(options["blocks"], BLOCKS, "blocks", owner)
    if not isinstance(options["penalty"], Penalty | None):
        raise TypeError(
            f"The 'penalty' parameter of {owner} must be a penalty of adagrad_diff.torch. Got {options['penalty']!r}."
        )
    dtype = options["accumulator_dtype"]
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ValueError(
            f"The 'accumulator_dtype' parameter of {owner} must be a floating-point dtype. Got {dtype!r} instead."
        )
    for name in FLAGS:
        _check.flag(options[name], name, owner)
    _check.one_of(options["reduce"], (None, "storm"), "reduce", owner)
    share = options["reduce_rate"]
    if not 0.0 < _number(share, "reduce_rate", owner) <= 1.0:
        raise ValueError(
            f"The 'reduce_rate' parameter of {owner} must be a number above 0 and at most 1. Got {share!r} instead."
        )
    if options["reduce"] and options["differentiable"]:
        raise RuntimeError(
            f"{owner} cannot be differentiable with reduce='storm': a step writes the previous weights back."
        )
    if options["fused"] and options["differentiable"]:
        raise RuntimeError("`fused` does not support `differentiable`")
    if options["fused"] and options["foreach"]:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_params(group: dict[str, Any], owner: str) -> None:
    """A parameter that only has a shape cannot make a fused step."""
    if group["fused"] and any(p.is_meta for p in group["params"]):
        raise RuntimeError(
            f"{owner} cannot step parameters on the meta device with fused=True: they have no memory. "
            "Give them memory first (`module.to_empty(device=...)`), or leave fused out."
        )


def rate(group: dict[str, Any]) -> Any:
    """The learning rate as a number, or as a tensor without axes."""
    lr = group["lr"]
    return lr.reshape(()) if isinstance(lr, Tensor) else lr


def _check_rate(lr: Any, owner: str) -> None:
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not _number(lr, "lr", owner, "a number, or a tensor with one element") >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def _number(value: Any, name: str, owner: str, what: str = "a number") -> float:
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        return float(value.detach() if isinstance(value, Tensor) else value)
    except (TypeError, ValueError):
        raise TypeError(
            f"The {name!r} parameter of {owner} must be {what}. Got {value!r} instead."
        ) from None


def _in_range(name: str, value: Any, good: bool) -> None:
    if not good:
        raise ValueError(f"Invalid {name} value: {value}")
