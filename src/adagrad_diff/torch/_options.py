"""Checks of the options of the optimizers, with the messages of PyTorch where it has them."""

from __future__ import annotations

import math
import os
from difflib import get_close_matches
from functools import cache
from typing import Any

import torch
from torch import Tensor

from .. import _check
from .._messages import warn
from ..penalties.group_root import BLOCKS
from .penalties import Penalty

# Similarity (ratio of difflib) of a misspelled option. One wrong letter in 'penalty' gives 0.86;
# 'layer_decay' gives 0.84.
SIMILARITY = 0.85
QUANTITIES = {
    "lr": "learning rate",
    "eps": "epsilon value",
    "lr_decay": "lr_decay value",
    "weight_decay": "weight_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
}
FLAGS = (
    "maximize",
    "capturable",
    "differentiable",
    "donate_grads",
    "decoupled_weight_decay",
    "prox_unseen",
    "skip_nonfinite",
)


def arguments(names: dict[str, Any]) -> dict[str, Any]:
    """Return the options among the local names of a constructor."""
    return {k: v for k, v in names.items() if k not in ("self", "params", "__class__")}


def warn_misspelled(group: dict[str, Any], options: dict[str, Any], owner: str) -> None:
    """Warn about keys that are probably misspelled options. Other keys are kept, as in PyTorch."""
    for name in group:
        if name in options or any(f"_{option}_" in f"_{name}_" for option in options):
            continue  # 'no_weight_decay' is a different word, not a misspelled one
        similar = get_close_matches(str(name).lower(), options, n=1, cutoff=SIMILARITY)
        if similar:
            warn(
                f"A parameter group has the key {name!r}, which is not an option of {owner}. "
                f"Did you mean {similar[0]!r}?",
                UserWarning,
                through=os.path.dirname(torch.__file__),
            )


def check_options(options: dict[str, Any], owner: str) -> None:
    """Raise if an option of a group cannot be used."""
    if isinstance(options["lr"], Tensor) and options["lr"].numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    for name, quantity in QUANTITIES.items():
        value = options.get(name, 0.0)
        if _number(value, name, owner) < 0.0:
            raise ValueError(f"Invalid {quantity}: {value}")
    betas = options.get("betas", (0.0, 0.0))
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ValueError(
            f"The 'betas' parameter of {owner} must be two numbers. Got {betas!r} instead."
        )
    for k, beta in enumerate(betas):
        if not 0.0 <= _number(beta, "betas", owner) < 1.0:
            raise ValueError(f"Invalid beta parameter at index {k}: {beta}")
    if options.get("max_move", math.inf) != math.inf:
        _check.positive(options["max_move"], "max_move", owner)
    if options.get("amsgrad"):
        raise ValueError(
            f"{owner} has no 'amsgrad': the largest square so far would keep steps small for ever "
            "after one large difference. Leave it out."
        )
    _check.one_of(options["blocks"], BLOCKS, "blocks", owner)
    if not isinstance(options["penalty"], Penalty | None):
        raise TypeError(
            f"The 'penalty' parameter of {owner} must be a penalty of adagrad_diff.torch. "
            f"Got {options['penalty']!r}."
        )
    dtype = options["accumulator_dtype"]
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ValueError(
            f"The 'accumulator_dtype' parameter of {owner} must be a floating-point dtype. "
            f"Got {dtype!r} instead."
        )
    for name in FLAGS:
        _check.flag(options[name], name, owner)
    if options["fused"] and options["differentiable"]:
        raise RuntimeError("`fused` does not support `differentiable`")
    if options["fused"] and options["foreach"]:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


@cache
def check_compiler(owner: str) -> None:
    """Raise if `torch.compile` finds no C++ compiler."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler as error:
        raise RuntimeError(
            f"fused=True compiles the step of {owner}, and finds no C++ compiler. Install one, "
            "such as g++, or leave fused out."
        ) from error


def rate(group: dict[str, Any]) -> Any:
    """Return the learning rate as a number, or as a tensor without axes."""
    lr = group["lr"]
    return lr.reshape(()) if isinstance(lr, Tensor) else lr


def positive(eps: float, total: Tensor) -> float:
    """Return eps, or the smallest normal number instead of 0."""
    return eps or torch.finfo(total.dtype).tiny


def _number(value: Any, name: str, owner: str) -> float:
    return _check.number(value.item() if isinstance(value, Tensor) else value, name, owner)
