"""Runs with minibatches: step by step what plain formulas give, in the compiled walk and outside of it."""

from itertools import islice

import numpy as np
import pytest
from scipy import sparse

import naive
import naive_rules
from adagrad_diff import (
    ACFGM,
    FISTA,
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    AdaPG,
    Box,
    ElasticNet,
    GroupL2,
    Logistic,
    Minibatch,
    Multinomial,
    NonNegative,
    Poisson,
    Ridge,
    Scaled,
    Separable,
    Squared,
    Status,
    UniAdaGrad,
    UniXGrad,
    iterate,
    minimize,
    named,
)
from looping import looped
from loss_zoo import SCALAR, make, targets
from naive_minibatch import Batches, Estimates, ends
from pairwise import pairwise
from resuming import assert_same_run
from rule_zoo import BLOCKED, PUBLISHED
from user_losses import data

A, REAL, LABELS, CLASSES = data(samples=40, features=7)
START = np.random.default_rng(1).standard_normal((7, 3))
RARE = A * (np.random.default_rng(2).random(A.shape) < [0.9, 0.5, 0.3, 0.1, 0.05, 0.03, 0.03])
RARE[3, 3:] = 1.0  # no column is empty, but some are asked for once in many batches
LAYOUTS = {"dense": np.asarray, "CSR": sparse.csr_array, "CSC": sparse.csc_array}
REDUCE = ["svrg", None]
ROUNDS, SIZE = 6, 2
PENALTIES = {
    "none": (None, naive.Zero()),
    "L1": (L1(0.05), naive.L1(0.05)),
    "weighted L1": (L1(0.02 * (np.arange(7) % 4)), naive.L1(0.02 * (np.arange(7) % 4))),
    "Ridge": (Ridge(0.1), naive.Ridge(0.1)),
    "ElasticNet": (ElasticNet(0.03, 0.2), naive.ElasticNet(0.03, 0.2)),
    "Box": (Box(-0.2, 0.3), naive.Box(-0.2, 0.3)),
    "NonNegative": (NonNegative(), naive.NonNegative()),
    "Scaled": (Scaled(L1(0.1), 0.5), naive.L1(0.05)),
    "Separable": (
        Separable([(slice(0, 2), L1(0.05)), ([3], Box(-0.1, 0.1))]),
        naive.Penalty(
            lambda x: 0.05 * np.abs(x[:2]).sum() + (0.0 if abs(x[3]) <= 0.1 else np.inf),
            lambda z, s: np.concatenate(
                [naive.L1(0.05).prox(z[:2], s[:2]), z[2:3], np.clip(z[3:4], -0.1, 0.1), z[4:]]
            ),
        ),
    ),
}


def plain_group(lam, groups):
    def prox(z, s):
        x = z.copy()
        for group in np.unique(groups):
            where = groups == group
            x[where] *= max(0.0, 1 - lam * s[where][0] / max(np.linalg.norm(z[where]), 1e-300))
        return x

    return naive.Penalty(
        lambda x: lam * sum(np.linalg.norm(x[groups == group]) for group in np.unique(groups)), prox
    )


def plain_run(batches, loss, x0, penalty, rule="AdaGradDiff", eta=0.3, rounds=ROUNDS, **options):
    """x at the ends of rounds, objectives there, and mean steps and norms of subgradients, from the formulas."""
    steps = ends(loss.length, rounds)
    estimates = Estimates(batches, loss.batch, loss.length, loss.reduce)
    found = naive.run(
        estimates, x0, penalty, rule, eta, steps[-1], intercept=loss.intercept, **options
    )
    assert steps[-1] > 3 * rounds
    return (
        found.x[steps],
        found.F[steps[1:]],
        np.stack([found.mean_step, found.subgradient_norm])[:, steps[1:] - 1],
    )


def check(loss, batches, x0, penalty, phi, eta=0.3, rule=AdaGradDiff, rtol=1e-9, **options):
    """A run against the plain one."""
    states = iterate(loss, x0, penalty, rule(eta, **options))
    x, F, (mean_step, norm) = plain_run(batches, loss, x0, phi, rule.__name__, eta, **options)
    for n, state in enumerate(islice(states, ROUNDS)):
        size = 1.0 + np.abs(x).max()
        np.testing.assert_allclose(state.x, x[n + 1], rtol=rtol, atol=rtol * size)
        np.testing.assert_allclose(state.fun, F[n], rtol=rtol, atol=rtol)
        np.testing.assert_allclose(state.mean_step, mean_step[n], rtol=100 * rtol)
        np.testing.assert_allclose(
            state.subgradient_norm, norm[n], rtol=1000 * rtol, atol=1000 * rtol
        )


# ------------------------------------------------------------ the compiled walk, and step by step


@pairwise(layout=LAYOUTS, reduce=REDUCE, name=PENALTIES)
def test_penalties(layout, reduce, name):
    penalty, phi = PENALTIES[name]
    loss = Minibatch(Logistic(LAYOUTS[layout](RARE), LABELS), SIZE, seed=3, reduce=reduce)
    check(loss, Batches("Logistic", RARE, LABELS), START[:, 0], penalty, phi)


@pytest.mark.parametrize(
    ("kind", "layout"), [(kind, ("dense", "CSR")[k % 2]) for k, kind in enumerate(SCALAR)]
)
def test_losses(kind, layout):
    codes = np.arange(40) * 7 % 5 - 2
    codes = codes if kind.__name__ != "Poisson" else codes + 2
    loss = Minibatch(make(kind, LAYOUTS[layout](RARE), codes), SIZE, seed=2)
    parameter = {"Quantile": {"tau": 0.25}, "Huber": {"delta": 0.5}}.get(kind.__name__, {})
    batches = Batches(kind.__name__, RARE, targets(kind, codes), **parameter)
    check(loss, batches, 0.1 * START[:, 0], L1(0.02), naive.L1(0.02), eta=0.1)


@pairwise(reduce=REDUCE, terms=[{}, {"intercept": True, "l2": 0.1}], blocks=[None, "row"])
def test_classes(reduce, terms, blocks):
    loss = Minibatch(Multinomial(sparse.csr_array(RARE), CLASSES, **terms), SIZE, reduce=reduce)
    x0 = np.zeros(loss.shape)
    check(
        loss,
        Batches("Multinomial", RARE, CLASSES, **terms),
        x0,
        L1(0.01),
        naive.L1(0.01),
        blocks=blocks,
    )


def decreasing(n):
    return 0.5 / np.sqrt(n)


GROUPS = np.array([0, 0, 1, 1, 2, 2, 2])


@looped(
    "rule, eta, options, penalty, phi",
    [
        (AdaGrad, 0.3, {}, L1(0.05), naive.L1(0.05)),
        (
            AdaGradDiff,
            decreasing,
            {},
            L1(0.05),
            naive.L1(0.05),
        ),  # a function of steps, not of rounds
        (AdaGradDiff, 0.3, {"blocks": "all"}, L1(0.05), naive.L1(0.05)),
        (AdaGradDiff, 0.3, {"blocks": GROUPS}, GroupL2(0.05, GROUPS), plain_group(0.05, GROUPS)),
    ],
)
def test_what_goes_step_by_step(rule, eta, options, penalty, phi):
    eta = named("decreasing", eta) if callable(eta) else eta
    loss = Minibatch(Logistic(sparse.csr_array(RARE), LABELS), SIZE)
    check(loss, Batches("Logistic", RARE, LABELS), START[:, 0], penalty, phi, eta, rule, **options)


def test_scales():
    """Of the coordinates: of the compiled walk, too."""
    scale = np.linspace(0.3, 3.0, 7)
    for layout in (np.asarray, sparse.csr_array):
        loss = Minibatch(Logistic(layout(RARE), LABELS, intercept=True), SIZE)
        batches = Batches("Logistic", RARE, LABELS, intercept=True)
        check(loss, batches, np.append(START[:, 0], 0.0), L1(0.05), naive.L1(0.05), scale=scale)


FULL = (FISTA, ACFGM, UniAdaGrad, UniXGrad)  # which get full gradients


@pytest.mark.parametrize(
    ("kind", "reduce"),
    [
        (kind, REDUCE[k % 2])
        for k, kind in enumerate(kind for kind in PUBLISHED if kind not in FULL)
    ],
)
def test_rules_of_the_literature(kind, reduce):
    """As the formulas of their authors have it, if they are given these gradients."""
    loss = Minibatch(Squared(sparse.csr_array(RARE), REAL), SIZE, reduce=reduce)
    estimates = Estimates(
        Batches("Squared", RARE, REAL), loss.batch, loss.length, reduce, asked_twice=kind is AdaPG
    )
    rule, steps = kind(**PUBLISHED[kind]), ends(loss.length, ROUNDS)
    one = {"one": naive.same_block(rule.blocks, (7,), 0)} if kind in BLOCKED else {}
    plain = getattr(naive_rules, kind.__name__)
    expected = plain(
        estimates, START[:, 0], naive.L1(0.05).prox, steps[-1], **PUBLISHED[kind], **one
    )[steps]
    found = [state.x.copy() for state in islice(iterate(loss, START[:, 0], L1(0.05), rule), ROUNDS)]
    np.testing.assert_allclose(found, expected[1:], rtol=1e-7, atol=1e-9)


@looped(("kind", "reduce"), [(kind, REDUCE[k % 2]) for k, kind in enumerate(FULL)])
def test_rules_with_full_gradients(kind, reduce):
    whole = Squared(RARE, REAL)
    loss = Minibatch(whole, SIZE, reduce=reduce)
    found, expected = (
        minimize(one, START[:, 0], L1(0.05), kind(**PUBLISHED[kind]), max_iter=30)
        for one in (loss, whole)
    )
    np.testing.assert_array_equal(found.x, expected.x)
    np.testing.assert_array_equal(found.history.objective, expected.history.objective)
    np.testing.assert_array_equal(found.history.passes, np.arange(2, 32))


# ------------------------------------------------------------ trajectories, precision, one batch


@pairwise(layout=LAYOUTS, reduce=REDUCE, intercept=[False, True])
def test_trajectories_see_the_same_batches(layout, reduce, intercept):
    loss = Minibatch(
        Logistic(LAYOUTS[layout](RARE), LABELS, intercept=intercept), SIZE, reduce=reduce
    )
    x0, etas = np.zeros((loss.shape[0], 3)), [0.05, 0.3, 1.0]
    x0[:7] = START
    together = minimize(loss, x0, L1(0.05), AdaGradDiff(etas), max_iter=ROUNDS)
    for k, eta in enumerate(etas):
        x, F, _ = plain_run(
            Batches("Logistic", RARE, LABELS, intercept=intercept),
            loss,
            x0[:, k],
            naive.L1(0.05),
            eta=eta,
        )
        np.testing.assert_allclose(together.x[:, k], x[-1], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(together.history.objective[:, k], F, rtol=1e-9)
        alone = minimize(loss, x0[:, k], L1(0.05), eta=eta, max_iter=ROUNDS)
        np.testing.assert_allclose(together.x[:, k], alone.x, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(together.history.passes, alone.history.passes)


@looped("blocks", [None, "all"])
def test_a_trajectory_that_fails_leaves_the_others_alone(blocks):
    loss = Minibatch(Poisson(sparse.csr_array(RARE), np.round(np.abs(REAL))), SIZE)
    etas = [0.1, 1e6, 0.3]
    together = minimize(
        loss,
        START,
        L1(0.05),
        AdaGradDiff(etas, blocks=blocks),
        max_iter=ROUNDS,
        on_failure="ignore",
    )
    assert together.status[1] in (Status.NOT_FINITE, Status.DIVERGED)
    for k in (0, 2):
        alone = minimize(
            loss, START[:, k], L1(0.05), AdaGradDiff(etas[k], blocks=blocks), max_iter=ROUNDS
        )
        assert together.nit[k] == ROUNDS
        np.testing.assert_allclose(together.x[:, k], alone.x, rtol=1e-10, atol=1e-10)


@pairwise(layout=LAYOUTS, reduce=REDUCE, blocks=[None, "all"])
def test_single_precision(layout, reduce, blocks):
    loss = Minibatch(
        Logistic(LAYOUTS[layout](RARE.astype(np.float32)), LABELS), SIZE, reduce=reduce
    )
    found = minimize(
        loss,
        START[:, 0].astype(np.float32),
        L1(0.05),
        AdaGradDiff(0.3, blocks=blocks),
        max_iter=ROUNDS,
    )
    assert found.x.dtype == np.float32
    x, F, _ = plain_run(
        Batches("Logistic", RARE, LABELS), loss, START[:, 0], naive.L1(0.05), blocks=blocks
    )
    np.testing.assert_allclose(found.x, x[-1], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.history.objective, F, rtol=1e-4)


@pytest.mark.parametrize(("size", "reduce"), [(20, "svrg"), (39, None), (1000, None)])
def test_batches_of_half_the_samples_are_none(size, reduce):
    """Bit for bit: x, the history and the state."""
    whole = Logistic(sparse.csr_array(RARE), LABELS, intercept=True)
    loss, x0 = Minibatch(whole, size, reduce=reduce), np.append(START[:, 0], 0.0)
    found, expected = (minimize(one, x0, L1(0.02), eta=0.3, max_iter=50) for one in (loss, whole))
    assert_same_run(found, expected)


def test_a_small_batch_less_than_half():
    whole = Logistic(RARE, LABELS)
    loss = Minibatch(whole, 15)
    assert not np.array_equal(*(minimize(one, eta=0.3, max_iter=20).x for one in (loss, whole)))


# ------------------------------------------------------------ ends


@pairwise(layout=LAYOUTS, reduce=REDUCE, blocks=[None, "all"])
def test_a_run_that_diverges_leaves_the_last_good_point(layout, reduce, blocks):
    counts = np.round(np.abs(REAL))
    for sign in (1.0, -1.0):
        loss = Minibatch(Poisson(LAYOUTS[layout](RARE), counts), SIZE, reduce=reduce)
        result = minimize(
            loss,
            sign * START[:, 0],
            rule=AdaGradDiff(1e6, blocks=blocks),
            max_iter=50,
            on_failure="ignore",
        )
        assert not result.success
        assert result.status in (Status.NOT_FINITE, Status.DIVERGED)
        assert np.isfinite(result.x).all()
        assert np.isfinite(result.fun)
        assert result.fun == loss.value_and_grad(result.x)[0]


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_a_tolerance_is_about_all_samples(tol):
    loss = Minibatch(Logistic(RARE, LABELS, l2=0.1), SIZE)
    result = minimize(loss, START[:, 0], L1(0.02), eta=0.3, tol=tol, max_iter=5000)
    assert result.success
    g, x = loss.value_and_grad(result.x)[1], result.x
    u = np.where(x == 0, np.sign(g) * np.maximum(np.abs(g) - 0.02, 0), g + 0.02 * np.sign(x))
    assert np.linalg.norm(u) <= result.subgradient_norm * (1 + 1e-9)
    assert result.subgradient_norm <= tol * np.linalg.norm(loss.value_and_grad(START[:, 0])[1])


@pytest.mark.parametrize(("kind", "reduce"), [(Logistic, "svrg"), (LAD, None)])
def test_without_a_step_size(kind, reduce):
    """The race, its certificate and the finish: the gap is proved, and the answer is that of all samples."""
    whole = kind(sparse.csr_array(RARE), LABELS if kind is Logistic else REAL, intercept=True)
    loss = Minibatch(whole, SIZE, reduce=reduce)
    result, expected = (
        minimize(one, penalty=L1(0.02), stop="gap", tol=1e-8) for one in (loss, whole)
    )
    assert result.success
    assert result.certified
    assert result.gap <= 1e-8 * max(1.0, abs(result.fun))
    assert abs(result.fun - expected.fun) <= result.gap + expected.gap
    raced = minimize(loss, penalty=L1(0.02), max_iter=100)
    assert (np.diff(raced.history.passes) > 1.0 - 1e-9).all()
    assert (np.diff(raced.history.passes) > 1.01).any()
    assert raced.fun < expected.fun + 1e-2
