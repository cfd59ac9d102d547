"""The rules of the literature are as published: plain formulas and other implementations agree."""

import importlib
from itertools import islice

import numpy as np
import pytest

import naive
import naive_rules
from adagrad_diff import (
    FISTA,
    KATE,
    L1,
    AdaDelta,
    Adam,
    AdaPEG,
    AdaPG,
    Box,
    Constant,
    DAdaptation,
    DoG,
    Logistic,
    Prodigy,
    RMSProp,
    Squared,
    UniAdaGrad,
    iterate,
    minimize,
    rules,
)
from complete import assert_complete
from rule_zoo import BLOCKED, PUBLISHED
from user_losses import data

A, REAL, LABELS, _ = data()
START = np.array([1.0, 0.0, -0.5, 2.0, 0.3, -1.0])
LABELLED = [0, 0, 1, 2, 1, 0]
PROBLEMS = {
    "least squares": (Squared(A, REAL), naive.Squared(A, REAL), None, naive.Zero()),
    "least squares, L1": (Squared(A, REAL), naive.Squared(A, REAL), L1(0.3), naive.L1(0.3)),
    "logistic, box": (
        Logistic(A, LABELS),
        naive.Logistic(A, LABELS),
        Box(-0.4, 0.9),
        naive.Box(-0.4, 0.9),
    ),
}


def iterates(loss, penalty, rule, N, start=START):
    states = iterate(loss, start, penalty, rule)
    return np.array([start, *(state.x.copy() for state in islice(states, N))])


@pytest.mark.parametrize("kind", PUBLISHED)
def test_as_plain_formulas_have_it(kind):
    N = 40 if kind in BLOCKED else 60
    for (loss, plain, penalty, phi), blocks in zip(
        PROBLEMS.values(), (LABELLED, "all", None), strict=True
    ):
        # An average that includes the start must begin where F is finite.
        x0 = phi.prox(START, 1.0) if kind is UniAdaGrad and penalty is not None else START
        named = {"blocks": blocks} if kind in BLOCKED else {}
        one = {"one": naive.same_block(blocks, (6,), 0)} if kind in BLOCKED else {}
        expected = getattr(naive_rules, kind.__name__)(
            plain, x0, phi.prox, N, **PUBLISHED[kind], **one
        )
        found = iterates(loss, penalty, kind(**PUBLISHED[kind], **named), N, x0)
        if kind is FISTA:  # x stays the same while FISTA evaluates the loss at y
            found = found[np.append(True, np.any(np.diff(found, axis=0), axis=1))]
            expected = expected[np.append(True, np.any(np.diff(expected, axis=0), axis=1))]
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_past_extragradient_is_optimistic_dual_averaging():
    expected = naive_rules.past_extragradient(naive.Squared(A, REAL), START, 40, 0.5, 0.01)
    found = iterates(Squared(A, REAL), None, AdaPEG(0.5, 0.01), 40)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_every_rule_has_a_naive_reference():
    """AdaGrad and AdaGradDiff have theirs in test_rules.py."""
    known = {kind.__name__ for kind in PUBLISHED} | {"AdaGrad", "AdaGradDiff", "Rule"}
    assert_complete(rules.__all__, known, "PUBLISHED")


def test_the_average_of_dog():
    options = {"eps": 1e-8, "first": 1e-6, "one": np.ones((6, 6))}
    xs = naive_rules.DoG(naive.Squared(A, REAL), START, naive.L1(0.3).prox, 70, **options)
    for gamma in (8.0, 1.0):
        result = minimize(Squared(A, REAL), START, L1(0.3), DoG(gamma=gamma), max_iter=70)
        expected = naive_rules.polynomial_average(xs, gamma)
        np.testing.assert_allclose(result.x_avg, expected, rtol=1e-6, atol=1e-9)
        assert not np.allclose(result.x_avg, result.x)


def test_a_constant_step_by_theory():
    L = np.linalg.eigvalsh(A.T @ A / len(A)).max()
    rule = Constant.smooth(L)
    assert rule.eta == 1 / L
    objective = minimize(Squared(A, REAL), START, L1(0.1), rule, max_iter=200).history.objective
    assert (np.diff(objective) <= 1e-12).all()
    assert Constant.nonsmooth(distance=2.0, bound=4.0, iterations=100).eta == 0.05


def torch_iterates(make, N, groups=None):
    """x^1, x^2, ... of an optimizer of PyTorch's kind on least squares."""
    torch = importlib.import_module("torch")
    data, targets = torch.from_numpy(A), torch.from_numpy(REAL)
    if groups is None:
        groups = [slice(0, 6)]
    parts = [torch.tensor(START[group], requires_grad=True) for group in groups]
    optimizer, found = make(parts), [START]
    for _ in range(N):
        optimizer.zero_grad()
        ((data @ torch.cat(parts) - targets) ** 2).mean().div(2).backward()
        optimizer.step()
        found.append(torch.cat(parts).detach().numpy().copy())
    return np.array(found)


def theirs(name, *attributes):
    """A class of a package, or the test is skipped."""
    thing = pytest.importorskip(name)
    for attribute in attributes:
        thing = getattr(thing, attribute)
    return thing


PEERS = {
    "RMSProp": (RMSProp(), ("torch", "optim", "RMSprop"), {}),
    "RMSProp, options": (
        RMSProp(0.003, 0.1, beta=0.9),
        ("torch", "optim", "RMSprop"),
        {"lr": 0.003, "alpha": 0.9, "eps": 0.1},
    ),
    "AdaDelta": (AdaDelta(), ("torch", "optim", "Adadelta"), {}),
    "Adam": (Adam(), ("torch", "optim", "Adam"), {}),
    "KATE": (
        KATE(0.1, eps=1e-30),
        ("pytorch_optimizer", "Kate"),
        {"lr": 0.1, "delta": 0.9, "eps": 1e-30},
    ),
    "DoG": (DoG(), ("dog", "DoG"), {}),
    "DAdaptation": (DAdaptation(), ("dadaptation", "DAdaptAdaGrad"), {}),
    "Prodigy": (Prodigy(), ("prodigyopt", "Prodigy"), {}),
}


@pytest.mark.peer
@pytest.mark.parametrize(
    "name",  # the import of pytorch_optimizer takes long
    [pytest.param(name, marks=pytest.mark.slow) if name == "KATE" else name for name in PEERS],
)
def test_as_others_have_it(name):
    rule, path, options = PEERS[name]
    kind = theirs(*path)
    expected = torch_iterates(lambda parts: kind(parts, **options), 100)
    found = iterates(Squared(A, REAL), None, rule, 100)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.peer
def test_dog_per_block_as_its_authors_have_it():
    kind = theirs("dog", "LDoG")
    expected = torch_iterates(kind, 100, [slice(0, 2), slice(2, 6)])
    found = iterates(Squared(A, REAL), None, DoG(blocks=[0, 0, 1, 1, 1, 1]), 100)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rule", [AdaPG(), FISTA()], ids=["AdaPG", "FISTA"])
def test_a_start_where_the_loss_is_all_but_linear(rule):
    """There gradients hardly change, so the curvature of a short step is too small."""
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((50, 4))
    columns[:, 0] = rng.choice([-1, 1], 50) * rng.uniform(1, 2, 50)
    loss, x0 = Logistic(columns, np.sign(columns[:, 0])), np.array([-30.0, 0.0, 0.0, 0.0])
    result = minimize(loss, x0, L1(0.01), rule=rule, max_iter=500, on_failure="ignore")
    best = minimize(loss, None, L1(0.01), tol=1e-9)
    assert result.history.objective.max() < 100 * result.history.objective[0]
    assert result.fun < best.fun + 1e-4
