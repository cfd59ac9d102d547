"""What the tests of the torch optimizers have in common."""

from adagrad_diff import torch as door
from adagrad_diff.torch import AdaGradDiff, AdamDiff, AdamWDiff
from prox_twin import penalties

OPTIMIZERS = (AdaGradDiff, AdamDiff)
ALL = (*OPTIMIZERS, AdamWDiff)
MODES = {
    "single": {"foreach": False, "fused": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "default": {},
}
PENALTIES = penalties(door)


def states_of(optimizer):
    """Every tensor of the state, in the order of the parameters."""
    return [dict(optimizer.state[p]) for group in optimizer.param_groups for p in group["params"]]
