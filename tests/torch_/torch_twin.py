"""Definitions that the tests of the torch optimizers share."""

import numpy as np
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
MODES = {"single": {"foreach": False}, "lists": {}}  # of implementations
BOTH = [False, True]
PENALTIES = penalties(package)


def states_of(optimizer):
    """Return the state of every parameter, in the order of the parameters."""
    return [dict(optimizer.state[p]) for group in optimizer.param_groups for p in group["params"]]


def parameter(values=(1.0, -2.0, 3.0), dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def random(rng, shape, **options):
    return torch.tensor(rng.standard_normal(shape), **options)


def run(params, optimizer, steps, first=0):
    """Make the steps first, first + 1, ... with gradients that depend on the parameters."""
    for n in range(first, first + steps):
        for k, p in enumerate(params):
            noise = random(np.random.default_rng(100 * n + k), p.shape).to(p.dtype)
            p.grad = (p.detach() - 0.3) + 0.1 * noise
        optimizer.step()


def same(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=0)
