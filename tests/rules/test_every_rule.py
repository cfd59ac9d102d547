"""Every rule runs with several trajectories, in a sweep and with a penalty, resumes exactly and reports errors."""

from itertools import islice

import numpy as np
import pytest

from adagrad_diff import (
    FISTA,
    KATE,
    L1,
    AdaGradDiff,
    AdaGradNorm,
    Adam,
    AdamDiff,
    AdaPG,
    Box,
    Constant,
    DelayedAdaGrad,
    DoG,
    FreeAdaGradDiff,
    Hinge,
    Logistic,
    Prodigy,
    RMSDiff,
    RMSProp,
    Simplex,
    Squared,
    Status,
    iterate,
    load_state,
    minimize,
    sweep,
)
from adagrad_diff.rules import has_eta
from looping import looped
from rule_zoo import KINDS, made, usual
from user_losses import Barrier, Bowl, data

A, REAL, LABELS, CLASSES = data()
PROBLEMS = {
    "least squares, L1": lambda: (Squared(A, REAL), L1(0.05)),
    "logistic, box": lambda: (Logistic(A, LABELS, intercept=True, l2=0.01), Box(-0.3, 0.3)),
    "hinge": lambda: (Hinge(A, LABELS), None),
    "function": lambda: (Bowl(), L1(0.1)),
}


NAMES = list(PROBLEMS)
each_on_two_problems = pytest.mark.parametrize(
    ("kind", "problem"),
    [(kind, NAMES[(i + j) % 4]) for i, kind in enumerate(KINDS) for j in (0, 2)],
)


def start(loss):
    return np.zeros(3) if loss.__class__ is Bowl else np.zeros(loss.shape)


def last(loss, penalty, rule, x0, **options):
    return minimize(loss, x0, penalty, rule, on_failure="ignore", **options)


@each_on_two_problems
def test_a_resumed_run_is_bitwise_identical(kind, problem, tmp_path):
    loss, penalty = PROBLEMS[problem]()
    whole = last(loss, penalty, made(kind), start(loss), max_iter=60)
    for stop in (1, 37):
        first = last(loss, penalty, made(kind), start(loss), max_iter=stop)
        first.state.save(tmp_path / "state.npz")
        rest = last(
            loss,
            penalty,
            made(kind),
            None,
            max_iter=60 - stop,
            state=load_state(tmp_path / "state.npz"),
        )
        for name in ("x", "x_avg", "x_best", "jac", "nit"):
            assert np.array_equal(rest[name], whole[name]), name
        for name, array in whole.state.memory.items():
            assert np.array_equal(rest.state.memory[name], array, equal_nan=True), name


@each_on_two_problems
def test_trajectories_do_not_depend_on_each_other(kind, problem):
    loss, penalty = PROBLEMS[problem]()
    starts = 0.5 * np.random.default_rng(0).standard_normal((*start(loss).shape, 3))
    etas = usual(kind) * np.array([0.5, 1.0, 2.0]) if has_eta(kind) else None
    together = last(loss, penalty, made(kind, etas), starts, max_iter=40)
    for k in range(3):
        alone = last(
            loss,
            penalty,
            made(kind, None if etas is None else etas[k]),
            starts[..., k],
            max_iter=40,
        )
        for name in ("x", "x_avg"):
            np.testing.assert_allclose(together[name][..., k], alone[name], rtol=1e-8, atol=1e-11)
        assert together.nit[k] == alone.nit
        if problem == "function":  # its gradients are bitwise the same
            single = last(
                loss,
                penalty,
                made(kind, None if etas is None else etas[k : k + 1]),
                starts[:, [k]],
                max_iter=40,
            )
            assert np.array_equal(together.x[:, k], single.x[:, 0])


def test_in_a_sweep():
    etas = [0.05, 0.3]
    found = sweep(
        Squared(A, REAL), L1(0.05), KINDS, etas, np.zeros(6), 50, keep_x=True, progress=False
    )
    for row, kind in enumerate(KINDS):
        for k, eta in enumerate(etas):
            alone = last(Squared(A, REAL), L1(0.05), made(kind, eta), np.zeros(6), max_iter=50)
            np.testing.assert_allclose(found.x.values[:, row, k, 0], alone.x, rtol=1e-8, atol=1e-11)
            average = found.objective_average.values[row, k, 0]
            if kind in (DoG, FreeAdaGradDiff):
                expected = Squared(A, REAL).value_and_grad(alone.x_avg)[0] + L1(0.05).value(
                    alone.x_avg
                )
                np.testing.assert_allclose(average, expected, rtol=1e-9)
            else:
                assert np.isnan(average)


SLACK = {  # relative to the optimum, after 1500 iterations
    "Adam": 1e-3,
    "AdamDiff": 1e-3,
    "DoG": 1e-3,
    "DualAveraging": 2e-2,
    "DAdaptation": 2e-2,
    "Prodigy": 1e-2,
    "AdaDelta": 1e-2,
}
SLACK |= {
    "RMSProp": 1e-2,
    "RMSDiff": 1e-2,
    "FreeAdaGradDiff": 1e-3,
    "KATE": 1e-3,
    "DelayedAdaGrad": 1e-4,
    "AdaGradNorm": 1e-4,
}


@looped("problem", ["least squares, L1", "logistic, box"])
def test_they_find_the_optimum(problem):
    loss, penalty = PROBLEMS[problem]()
    best = minimize(loss, penalty=penalty, tol=1e-10, max_iter=20_000).fun
    for kind in KINDS:
        found = last(loss, penalty, made(kind), start(loss), max_iter=1500).fun_best
        assert found <= best + SLACK.get(kind.__name__, 1e-9) * abs(best), kind


def test_a_rejected_trial_proves_nothing():
    """x stands still, and no subgradient is known: that is not taken for convergence."""
    loss = Squared(10 * A, 10 * REAL)
    result = minimize(
        loss, np.zeros(6), L1(0.5), FISTA(), max_iter=9, tol=1e-3, on_failure="ignore"
    )
    assert not result.success
    assert np.isnan(result.history.subgradient_norm).any()
    converged = minimize(loss, np.zeros(6), L1(0.5), FISTA(), max_iter=2000, tol=1e-8)
    assert converged.success
    assert converged.subgradient_norm <= 1e-8 * np.linalg.norm(loss.value_and_grad(np.zeros(6))[1])
    best = minimize(loss, np.zeros(6), L1(0.5), AdaGradDiff(1.0), max_iter=20_000, tol=1e-10).fun
    assert converged.fun <= best * (1 + 1e-9)


def test_the_subgradient_is_one_of_the_objective():
    """Whatever the move: for the prox's step, (point - x) / step + g is a subgradient of F at x."""
    for kind in KINDS:
        found = []
        loss, lam = Squared(A, REAL), 0.05
        minimize(
            loss,
            np.zeros(6),
            L1(lam),
            made(kind),
            max_iter=25,
            callback=lambda now, found=found: found.append((now.x, now.subgradient_norm)),
        )
        for x, norm in found:
            if np.isnan(norm):  # x stands still: nothing is proven
                continue
            g = loss.value_and_grad(x)[1]
            smallest = np.where(
                x != 0, g + lam * np.sign(x), np.sign(g) * np.maximum(np.abs(g) - lam, 0.0)
            )
            assert norm >= np.linalg.norm(smallest) * (1 - 1e-9) - 1e-13


def test_a_state_of_another_rule_is_refused():
    state = minimize(Bowl(), np.zeros(3), rule=Adam(0.1), max_iter=3).state
    with pytest.raises(ValueError, match="belongs to another problem: rule"):
        minimize(Bowl(), rule=DoG(), max_iter=3, state=state)


@looped("trajectories", [(), (3,)])
def test_a_rejected_trial_is_no_dual_point(trajectories):
    """Certificates are made of what the loss left behind at x, not at a point that was tried and rejected."""
    loss = Logistic(10 * A, LABELS, l2=0.1)
    for state in islice(iterate(loss, np.zeros((6, *trajectories)), L1(0.05), FISTA()), 12):
        assert np.array_equal(state.g, loss.value_and_grad(state.x)[1])
    result = last(
        loss, L1(0.05), FISTA(), np.zeros((6, *trajectories)), max_iter=2000, stop="gap", tol=1e-8
    )
    assert np.all(result.certified)


@looped("kind", KINDS)
def test_no_gradient_at_the_start(kind):
    """x^1 minimises f: without a penalty nothing moves, and with one that hardly pulls nothing breaks."""

    def loss(x):
        return 0.5 * np.sum((x - [1.0, 2.0]) ** 2), x - [1.0, 2.0]

    assert last(loss, None, made(kind), [1.0, 2.0], max_iter=20).x.tolist() == [1.0, 2.0]
    result = last(loss, L1(1e-9), made(kind), [1.0, 2.0], max_iter=20)
    assert result.status == Status.MAX_ITER
    assert np.isfinite(result.x).all()


@looped("kind", KINDS)
def test_a_coordinate_that_is_never_seen(kind):
    """Its gradient is always zero: it stays where it is, and a penalty makes it smaller."""

    def loss(x):
        return 0.5 * (x[0] - 1.0) ** 2, np.array([x[0] - 1.0, 0.0])

    assert last(loss, None, made(kind), [0.0, 5.0], max_iter=50).x[1] == 5.0
    result = last(loss, L1(0.01), made(kind), [0.0, 5.0], max_iter=50)
    assert np.isfinite(result.x).all()
    assert 0.0 <= result.x[1] < 5.0


@looped("kind", KINDS)
def test_single_precision(kind):
    x0 = np.zeros((6, 3), np.float32)
    single = last(
        Squared(A.astype(np.float32), REAL), L1(np.float32(0.05)), made(kind), x0, max_iter=30
    )
    assert single.x.dtype == single.x_avg.dtype == np.float32
    double = last(Squared(A, REAL), L1(0.05), made(kind), x0.astype(float), max_iter=30)
    np.testing.assert_allclose(single.x, double.x, rtol=0.02, atol=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_are_no_numbers(kind):
    """The run ends with a status, at the last good x, whenever the first of them comes; others go on."""
    for at, wrong in ((1, np.nan), (2, np.inf), (2, 1e200), (7, np.nan), (7, 1e200)):
        loss = Bowl(at=at, once=False, fault=lambda f, g, wrong=wrong: (f, np.full(3, wrong)))
        result = last(loss, L1(0.1), made(kind), np.ones(3), max_iter=20)
        assert np.isfinite(result.x).all()
        assert result.status == Status.NOT_FINITE, (at, wrong, result.message)

    calls = []

    def second_fails(x):
        calls.append(x)
        f, g = Bowl()(x)
        return np.where(
            (np.arange(x.shape[1]) == 1) & (x.shape[1] == 3) & (len(calls) > 5), np.nan, f
        ), g

    result = last(second_fails, None, made(kind), np.ones((3, 3)), max_iter=20)
    assert result.nit[0] == result.nit[2] == 20
    assert np.isfinite(result.x).all()


@looped("kind", KINDS)
def test_starts_that_are_too_far_away(kind):
    """Their squares are infinite: the run ends, and nothing warns."""
    for far in (1e160, 1e300):
        result = last(
            lambda x: (np.abs(x).sum(axis=0), np.sign(x)),
            L1(0.1),
            made(kind),
            np.full((3, 2), far),
            max_iter=20,
        )
        assert np.isin(result.status, [Status.NOT_FINITE, Status.MAX_ITER, Status.DIVERGED]).all()


def test_fista_comes_back_from_where_there_is_no_loss():
    """Momentum, or a step that is too long, may leave the domain of f."""
    result = minimize(Barrier(), np.array([0.3, 5.0, 2.0]), None, FISTA(), max_iter=300)
    np.testing.assert_allclose(result.x, 1.0, rtol=1e-6)


def test_bounded_moves():
    """While gradients stay the same, differences are forgotten: moves grow, but not beyond the bound."""
    slope = np.array([1.0, -2.0, 1e-3])
    rules = [AdamDiff(0.1, beta2=0.99), RMSDiff(0.1, beta=0.99)]
    rules += [
        AdamDiff(0.1, beta2=0.99, max_move=2.0),
        RMSDiff(0.1, beta=0.99, max_move=2.0, blocks="all"),
    ]
    for rule in rules:
        xs = [
            s.x.copy()
            for s in islice(iterate(lambda x: (slope @ x, slope), np.zeros(3), None, rule), 1000)
        ]
        moves = np.diff(xs, axis=0)
        size = np.linalg.norm(moves, axis=1) if rule.blocks == "all" else np.abs(moves).max(axis=1)
        assert size.max() <= rule.max_move * 0.1 * (1 + 1e-9)
        assert size.max() >= rule.max_move * 0.1 * 0.99


@looped(
    ("make", "words"),
    [
        (
            lambda: RMSProp(beta=1.0),
            r"'beta' parameter of RMSProp must be a number in \[0, 1\). Got 1.0",
        ),
        (
            lambda: Adam(beta1=-0.1),
            r"'beta1' parameter of Adam must be a number in \[0, 1\). Got -0.1",
        ),
        (
            lambda: AdamDiff(0.1, beta2="a"),
            r"'beta2' parameter of AdamDiff must be a number in \[0, 1\). Got 'a'",
        ),
        (
            lambda: AdamDiff(0.1, max_move=0),
            "'max_move' parameter of AdamDiff must be a positive number. Got 0",
        ),
        (
            lambda: DelayedAdaGrad(0.1, power=0.4),
            "'power' parameter of DelayedAdaGrad must be a number from 0.5 to 1. Got 0.4",
        ),
        (
            lambda: AdaGradNorm(0.1, b0=0.0),
            "'b0' parameter of AdaGradNorm must be a positive number. Got 0.0",
        ),
        (lambda: KATE(delta=-1.0), "'delta' parameter of KATE must be a number >= 0. Got -1.0"),
        (lambda: DoG(first=0.0), "'first' parameter of DoG must be a positive number. Got 0.0"),
        (
            lambda: FreeAdaGradDiff(gamma=np.nan),
            "'gamma' parameter of FreeAdaGradDiff must be a positive number. Got nan",
        ),
        (lambda: Prodigy(d0=-1.0), "'d0' parameter of Prodigy must be a positive number. Got -1.0"),
        (lambda: Constant(0.0), "'eta' parameter of Constant must be a positive number. Got 0.0"),
        (
            lambda: Constant.smooth(0.0),
            "'L' parameter of Constant must be a positive number. Got 0.0",
        ),
        (lambda: Constant.nonsmooth(1.0, 1.0, 0), "'iterations' parameter of Constant"),
        (
            lambda: minimize(Bowl(), np.zeros(3), rule=DoG),
            r"'rule' is the class DoG. Did you mean DoG\(...\)\?",
        ),
    ],
)
def test_wrong_parameters(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_rules_with_one_step_take_every_penalty():
    """Also those that have a prox in a scalar metric only, and sets: from outside, too."""
    for kind in (Constant, AdaGradNorm, DoG, AdaPG, FISTA):
        result = last(Squared(A, REAL), Simplex(), made(kind), np.ones(6), max_iter=300)
        assert abs(result.x.sum() - 1.0) < 1e-9, kind
        assert result.x.min() >= 0.0


def test_published_step_sizes():
    for kind in KINDS:
        if kind.published is not None:
            assert kind().eta == kind.published
    assert {kind.__name__: kind.published for kind in KINDS if kind.published} == {
        "AdaDelta": 1.0,
        "Adam": 1e-3,
        "KATE": 1e-3,
        "RMSProp": 0.01,
    }
