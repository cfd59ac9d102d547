"""Every loss, with targets and parameters that make a small problem of any data."""

import numpy as np

from adagrad_diff import losses
from adagrad_diff.losses import (
    Huber,
    KernelSVMDual,
    LinearModel,
    Loss,
    Minibatch,
    Multinomial,
    Poisson,
    Quadratic,
    Quantile,
)
from adagrad_diff.losses.linear import BinaryModel

# Minibatch has the values of the loss that it is given: see tests/losses/test_minibatch.py.
EVERY = [
    kind
    for name in losses.__all__
    if (kind := getattr(losses, name)) not in (Loss, LinearModel, Minibatch)
]
LINEAR = [kind for kind in EVERY if issubclass(kind, LinearModel)]
SCALAR = [kind for kind in LINEAR if kind is not Multinomial]
# What a loss of the package needs beside this: its parameters, here, and targets that it accepts, below.
PARAMETER = {Quantile: {"tau": 0.25}, Huber: {"delta": 0.5}, Multinomial: {"classes": 3}}
TERMS = [
    {},
    {"l2": 0.3},
    {"sample_weight": True},
    {"intercept": True},
    {"l2": 0.3, "sample_weight": True, "intercept": True},
]


def named(kind):
    """What a test of this loss is called."""
    return kind.__name__


def targets(kind, codes):
    """Targets that `kind` accepts, made of small integers."""
    codes = np.asarray(codes)
    if issubclass(kind, BinaryModel | KernelSVMDual):
        return np.where(codes % 2, 1.0, -1.0)
    return codes % 3 if kind in (Poisson, Multinomial) else codes.astype(float)


def weights(samples):
    """Unequal weights, some of them zero."""
    return np.arange(samples) % 4


def make(kind, A, codes, **options):
    """A loss of any kind over the samples A (the quadratic ones over their kernel matrix A A')."""
    if kind is Quadratic:
        return Quadratic(A @ A.T, targets(kind, codes))
    if kind is KernelSVMDual:
        return KernelSVMDual(A @ A.T, targets(kind, codes), lam=0.5)
    if options.get("sample_weight") is True:
        options = {**options, "sample_weight": weights(len(codes))}
    return kind(A, targets(kind, codes), **PARAMETER.get(kind, {}), **options)


def problem(kind, samples=12, features=4, seed=0, **options):
    """A random problem, and the generator to draw points from."""
    rng = np.random.default_rng(seed)
    return make(
        kind, rng.standard_normal((samples, features)), rng.integers(-3, 4, samples), **options
    ), rng


def same(left, right, rtol=1e-12):
    """Assert that two pairs (value, gradient) agree."""
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * (1.0 + np.max(np.abs(b))))
