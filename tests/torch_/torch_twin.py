"""Definitions that the tests of the torch optimizers share."""

import torch

from adagrad_diff import torch as package
from adagrad_diff.torch import AdaGradDiff, AdamDiff, AdamWDiff
from prox_twin import penalties

KINDS = (AdaGradDiff, AdamDiff, AdamWDiff)
PEERS = {
    AdaGradDiff: torch.optim.Adagrad,
    AdamDiff: torch.optim.Adam,
    AdamWDiff: torch.optim.AdamW,
}
MODES = {
    "single": {"foreach": False, "fused": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "default": {},
}
BOTH = [False, True]
PENALTIES = penalties(package)


def states_of(optimizer):
    """Return the state of every parameter, in the order of the parameters."""
    return [dict(optimizer.state[p]) for group in optimizer.param_groups for p in group["params"]]


def parameter(values=(1.0, -2.0, 3.0), dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def same(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=0)
