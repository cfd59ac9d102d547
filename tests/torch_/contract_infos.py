"""Our optimizers in the words of torch's own tests: `OptimizerInfo` says which options there are, and what is refused.

torch's description of Adagrad is taken for AdaGradDiff, that of Adam for AdamDiff and AdamWDiff; what only ours have is added.
The utilities are imported when they are used: that takes seconds, and a run of other tests need not wait for them.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import torch

from adagrad_diff import torch as door

NAMES = ("AdaGradDiff", "AdamDiff", "AdamWDiff")
FORLOOP = {"foreach": False, "fused": False}  # the readable loop, which is the truth for all others
FLAGS = ("foreach", "fused", "differentiable")  # one step made in different ways: at most one of them is True

# A file of an older version may have none of these.
LATER = (
    *FLAGS,
    *("maximize", "capturable", "weight_decay", "lr_decay", "initial_accumulator_value"),
    *("decoupled_weight_decay", "prox_unseen", "skip_nonfinite", "max_move", "amsgrad"),
    *("reduce", "reduce_rate"),
)

# What torch refuses and ours take: a rate in a tensor suits every way, and betas are numbers, even if they come in tensors.
ACCEPTED = {
    "lr as Tensor doesn't work with foreach & not capturable",
    "betas must be either both floats or both Tensors",
    r"betas\[0\] as a Tensor is not supported for capturable=False and foreach=True",
}


def own_options(name: str) -> dict[str, dict[str, Any]]:
    """Options that torch's optimizers do not have, by what they are about."""
    options: dict[str, dict[str, Any]] = {
        "eps": {"eps": 0.1},
        "maximize alone": {"maximize": True},
        "tensor lr": {"lr": torch.tensor(0.001)},
        "penalty": {"penalty": door.L1(0.01)},
        "bounds": {"penalty": door.Box(-4.0, 4.0)},
        "penalty and weight decay": {"penalty": door.Box(-4.0, 4.0), "weight_decay": 0.1},
        "penalty of rows": {"penalty": door.GroupL2(0.01), "blocks": "row"},
        "penalty everywhere": {"penalty": door.ElasticNet(0.01, 0.1), "prox_unseen": True},
        "one block": {"blocks": "tensor"},
        "skip": {"skip_nonfinite": True},
        "capturable": {"capturable": True},
        "double buffers": {"accumulator_dtype": torch.float64},
        "donated gradients": {"donate_grads": True},
        "no reduction": {"reduce": None, "reduce_rate": 0.5},  # with one, a step needs a closure: see test_torch_storm
    }
    if name != "AdamWDiff":
        options["decoupled"] = {"weight_decay": 0.1, "decoupled_weight_decay": True}
    if name == "AdaGradDiff":
        options["every number"] = {
            "lr": 0.05,
            "lr_decay": 0.1,
            "weight_decay": 0.1,
            "initial_accumulator_value": 0.2,
            "eps": 1e-3,
        }
    else:
        options["betas"] = {"betas": (0.8, 0.95)}
        options["short moves"] = {"max_move": 0.5}
        options["every number"] = {"lr": 0.05, "betas": (0.5, 0.9), "weight_decay": 0.1, "eps": 1e-3, "max_move": 2.0}
    return options


def sparse(x: torch.Tensor) -> torch.Tensor:
    """x, with a sparse gradient."""
    x.grad = torch.ones_like(x).to_sparse()
    return x


def own_errors(name: str) -> list[tuple[Any, dict[str, Any], type[Exception], str, bool]]:
    """What ours refuse beside: parameters, options, the error, words of its message, and whether only a step tells."""
    x = torch.zeros(2, 2, requires_grad=True)
    errors: list[tuple[Any, dict[str, Any], type[Exception], str, bool]] = [
        ([x], {"lr": -1.0}, ValueError, "Invalid learning rate: -1.0", False),
        ([x], {"eps": 0.0}, ValueError, "Invalid epsilon value: 0.0", False),
        ([x], {"weight_decay": -1.0}, ValueError, "Invalid weight_decay value: -1.0", False),
        ([x], {"blocks": "column"}, ValueError, "'blocks' parameter", False),
        ([x], {"penalty": 0.1}, TypeError, "'penalty' parameter", False),
        ([x], {"accumulator_dtype": torch.int32}, ValueError, "accumulator_dtype", False),
        ([x], {"reduce": "svrg"}, ValueError, "'reduce' parameter", False),
        ([x], {"reduce_rate": 0.0}, ValueError, "'reduce_rate' parameter", False),
        ([x], {"reduce": "storm", "differentiable": True}, RuntimeError, "cannot be differentiable", False),
        ([x], {"reduce": "storm"}, RuntimeError, "needs a closure", True),
        ([x], {"foreach": True, "fused": True}, RuntimeError, "`fused` and `foreach` cannot be `True` together", False),
        ([x], {"fused": True, "differentiable": True}, RuntimeError, "`fused` does not support `differentiable`", False),
        ([{"params": [x], "momentum": 0.9}], {}, ValueError, "momentum", False),
        ([{"params": [x], "weight_decays": 0.9}], {}, ValueError, "weight_decays", False),
    ]
    if name == "AdaGradDiff":
        errors += [
            ([x], {"initial_accumulator_value": -0.1}, ValueError, "initial_accumulator_value", False),
            ([sparse(x)], {"penalty": door.L1(0.1)}, RuntimeError, "sparse gradients", True),
        ]
    else:
        errors += [
            ([x], {"betas": (0.9, 1.0)}, ValueError, "Invalid beta parameter at index 1: 1.0", False),
            ([x], {"amsgrad": True}, ValueError, "amsgrad", False),
            ([x], {"max_move": 0.0}, ValueError, "max_move", False),
            ([sparse(x)], {}, RuntimeError, "does not support sparse gradients", True),
        ]
    return errors


@cache
def infos() -> dict[str, Any]:
    """An `OptimizerInfo` for each of our optimizers, by its name."""
    from torch.testing._internal import common_optimizers as common

    theirs = {info.optim_cls: info for info in common.optim_db}

    def info(name: str) -> Any:
        like = theirs[torch.optim.Adagrad if name == "AdaGradDiff" else torch.optim.Adam]

        def inputs(device: Any, dtype: Any = None) -> list[Any]:
            taken = [case for case in like.optim_inputs_func(device) if not case.kwargs.get("amsgrad")]
            own = [common.OptimizerInput(None, options, text) for text, options in own_options(name).items()]
            return taken + own

        def error_inputs(device: Any, dtype: Any) -> list[Any]:
            cases = like.optim_error_inputs_func(device, dtype)
            refused = [case for case in cases if case.optimizer_error_input.desc not in ACCEPTED]
            when = common.OptimizerErrorEnum
            return refused + [
                common.ErrorOptimizerInput(
                    common.OptimizerInput(params, options, words),
                    error_on=when.STEP_ERROR if late else when.CONSTRUCTION_ERROR,
                    error_type=error,
                    error_regex=words,
                )
                for params, options, error, words, late in own_errors(name)
            ]

        return common.OptimizerInfo(
            getattr(door, name),
            optim_inputs_func=inputs,
            optim_error_inputs_func=error_inputs,
            scheduler_inputs=theirs[torch.optim.SGD].scheduler_inputs,  # the longest list that torch has
            supported_impls=FLAGS,
            supports_fused_on=("cpu",),
            has_capturable_arg=True,
            supports_sparse=name == "AdaGradDiff",
            metadata_for_sparse=like.metadata_for_sparse,
            not_og_supported_flags=LATER,
        )

    return {name: info(name) for name in NAMES}


def every_input(info: Any, *skip: str) -> list[dict[str, Any]]:
    """Every set of options, in every way to make a step but those of `skip`."""
    from torch.testing._internal.common_optimizers import _get_optim_inputs_including_global_cliquey_kwargs as inputs

    cases = [case.kwargs for case in inputs("cpu", torch.float32, info, skip)]
    plain = [options for options in cases if not any(options.get(flag) for flag in FLAGS)]
    # torch leaves lists out on CPUs, where ours have them as well.
    return cases + [{**copy.deepcopy(options), "foreach": True} for options in plain]


def inputs_in(info: Any, **options: Any) -> list[dict[str, Any]]:
    """Every set of options with these in addition."""
    return [{**case.kwargs, **copy.deepcopy(options)} for case in info.optim_inputs_func("cpu")]


def case() -> Any:
    """What torch's `TensorTracker` wants to be told with whom to complain."""
    from torch.testing._internal.common_utils import TestCase

    return TestCase()
