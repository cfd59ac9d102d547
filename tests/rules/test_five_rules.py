"""Rules that the package does not have are one small file each: they run batched, in a sweep, and continue bit for bit."""

from itertools import islice

import numpy as np
import pytest

from adagrad_diff import L1, AdaGradDiff, Box, Hinge, Logistic, Squared, check_rule, iterate, load_state, minimize, sweep
from five_rules import FISTA, RULES, Adam, Constant, DoG, DualAveraging
from user_losses import Bowl, data

A, REAL, LABELS, CLASSES = data()
ETAS = {Constant: 0.3, Adam: 0.05, DualAveraging: 0.3}
PROBLEMS = {
    "least squares, L1": lambda: (Squared(A, REAL), L1(0.05)),
    "logistic, box": lambda: (Logistic(A, LABELS, intercept=True, l2=0.01), Box(-0.3, 0.3)),
    "hinge": lambda: (Hinge(A, LABELS), None),
    "function": lambda: (Bowl(), L1(0.1)),
}


def made(kind, eta=None):
    return kind(ETAS[kind] if eta is None else eta) if kind in ETAS else kind()


def start(loss):
    return np.zeros(3) if loss.__class__ is Bowl else np.zeros(loss.shape)


def last(loss, penalty, rule, x0, **options):
    return minimize(loss, x0, penalty, rule, on_failure="ignore", **options)


@pytest.mark.parametrize("kind", RULES)
def test_nothing_is_wrong_with_them(kind):
    assert check_rule(made(kind)), check_rule(made(kind))


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("kind", RULES)
def test_continue_bit_for_bit(kind, problem, tmp_path):
    loss, penalty = PROBLEMS[problem]()
    whole = last(loss, penalty, made(kind), start(loss), max_iter=60)
    for stop in (1, 22, 37):
        first = last(loss, penalty, made(kind), start(loss), max_iter=stop)
        first.state.save(tmp_path / "state.npz")
        rest = last(loss, penalty, made(kind), None, max_iter=60 - stop, state=load_state(tmp_path / "state.npz"))
        for name in ("x", "x_avg", "x_best", "jac", "nit"):
            assert np.array_equal(rest[name], whole[name]), name
        for name, array in whole.state.memory.items():
            assert np.array_equal(rest.state.memory[name], array, equal_nan=True), name


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("kind", RULES)
def test_batched_is_what_each_is_alone(kind, problem):
    loss, penalty = PROBLEMS[problem]()
    starts = 0.5 * np.random.default_rng(0).standard_normal((*start(loss).shape, 3))
    eta = ETAS[kind] * np.array([0.5, 1.0, 2.0]) if kind in ETAS else [None] * 3
    together = last(loss, penalty, made(kind, eta if kind in ETAS else None), starts, max_iter=40)
    for k in range(3):
        alone = last(loss, penalty, made(kind, eta[k]), starts[..., k], max_iter=40)
        np.testing.assert_allclose(together.x[..., k], alone.x, rtol=1e-8, atol=1e-11)
        assert together.nit[k] == alone.nit


@pytest.mark.parametrize("kind", RULES)
def test_in_a_sweep(kind, tmp_path):
    etas = [0.05, 0.3]
    make = kind if kind in ETAS else lambda eta: kind()
    found = sweep(Squared(A, REAL), L1(0.05), {kind.__name__: make}, etas, np.zeros(6), 50, keep_x=True)
    for k, eta in enumerate(etas):
        alone = last(Squared(A, REAL), L1(0.05), made(kind, eta), np.zeros(6), max_iter=50)
        np.testing.assert_allclose(found.x.values[:, 0, k, 0], alone.x, rtol=1e-8, atol=1e-11)


def optimum(loss, penalty):
    return minimize(loss, penalty=penalty, tol=1e-10, max_iter=20_000).fun


@pytest.mark.parametrize("problem", ["least squares, L1", "logistic, box"])
@pytest.mark.parametrize("kind", RULES)
def test_they_find_the_optimum(kind, problem):
    loss, penalty = PROBLEMS[problem]()
    best = optimum(loss, penalty)
    slack = {Adam: 1e-3, DoG: 1e-3, DualAveraging: 2e-2}.get(kind, 1e-9)
    assert last(loss, penalty, made(kind), start(loss), max_iter=1500).fun_best <= best + slack * abs(best)


def test_a_constant_step_is_gradient_descent():
    x = np.zeros(3)
    for _ in range(30):
        x = x - 0.2 * Bowl()(x)[1]
    np.testing.assert_allclose(minimize(Bowl(), np.zeros(3), rule=Constant(0.2), max_iter=30).x, x, rtol=1e-13)


def test_adam_is_as_published():
    x, mean, square = np.zeros(3), 0.0, 0.0
    for n in range(1, 31):
        g = Bowl()(x)[1]
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        x = x - 0.05 * (mean / (1 - 0.9**n)) / (np.sqrt(square / (1 - 0.999**n)) + 1e-8)
    np.testing.assert_allclose(minimize(Bowl(), np.zeros(3), rule=Adam(0.05), max_iter=30).x, x, rtol=1e-10)


def test_dog_is_as_published():
    first = x = np.array([1.0, 0.0, 2.0])
    total, far = 0.0, 1e-6 * (1 + np.sqrt(5.0))
    for _ in range(30):
        g = Bowl()(x)[1]
        total, far = total + g @ g, max(far, np.linalg.norm(x - first))
        x = x - far / np.sqrt(total) * g
    np.testing.assert_allclose(minimize(Bowl(), first, rule=DoG(), max_iter=30).x, x, rtol=1e-5)


def test_dual_averaging_is_as_published():
    """x^{n+1} minimises <sum of g, x> + n lam |x| + (x - x^1)' W_n (x - x^1) / (2 eta)."""
    lam, x, total, gradients = 0.1, np.zeros(3), 0.0, 0.0
    for n in range(1, 31):
        g = Bowl()(x)[1]
        total, gradients = total + g**2, gradients + g
        z, step = -0.3 * gradients / np.sqrt(total), 0.3 / np.sqrt(total)
        x = np.sign(z) * np.maximum(np.abs(z) - n * lam * step, 0.0)
    found = minimize(Bowl(), np.zeros(3), L1(lam), DualAveraging(0.3), max_iter=30).x
    np.testing.assert_allclose(found, x, rtol=1e-5, atol=1e-7)


def naive_fista(loss, lam, x, iterations):
    """Beck and Teboulle with a step that is halved, and a restart when the momentum leads uphill."""
    y, t, step = x.copy(), 1.0, 1.0
    for _ in range(iterations):
        f, g = loss.value_and_grad(y)
        while True:
            z = y - step * g
            new = np.sign(z) * np.maximum(np.abs(z) - step * lam, 0.0)
            d = new - y
            if loss.value_and_grad(new)[0] <= f + g @ d + d @ d / (2 * step) + 1e-12 * abs(f):
                break
            step /= 2
        if (y - new) @ (new - x) > 0:
            y, t = new.copy(), 1.0
        else:
            after = (1 + np.sqrt(1 + 4 * t * t)) / 2
            y, t = new + (t - 1) / after * (new - x), after
        x = new
    return x


def test_fista_is_as_published():
    loss = Squared(10 * A, 10 * REAL)  # so that the first steps are too long
    result = minimize(loss, np.zeros(6), L1(0.5), FISTA(), max_iter=80)
    rejected = round(-np.log2(result.state.memory["step"]))
    assert rejected > 3
    np.testing.assert_allclose(result.x, naive_fista(loss, 0.5, np.zeros(6), 40 - rejected), rtol=1e-8)


def test_a_rejected_trial_proves_nothing():
    """x stands still, and no subgradient is known: that is not taken for convergence."""
    loss = Squared(10 * A, 10 * REAL)
    result = minimize(loss, np.zeros(6), L1(0.5), FISTA(), max_iter=9, tol=1e-3, on_failure="ignore")
    assert not result.success
    assert np.isnan(result.history.subgradient_norm[::2]).all()
    converged = minimize(loss, np.zeros(6), L1(0.5), FISTA(), max_iter=2000, tol=1e-8)
    assert converged.success
    assert converged.subgradient_norm <= 1e-8 * np.linalg.norm(loss.value_and_grad(np.zeros(6))[1])
    best = minimize(loss, np.zeros(6), L1(0.5), AdaGradDiff(1.0), max_iter=20_000, tol=1e-10).fun
    assert converged.fun <= best * (1 + 1e-9)


def test_the_subgradient_is_one_of_the_objective():
    """Whatever the move: for the prox's step, (point - x) / step + g is a subgradient of F at x."""
    for kind in (Adam, DualAveraging, DoG, Constant):
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
            g = loss.value_and_grad(x)[1]
            smallest = np.where(x != 0, g + lam * np.sign(x), np.sign(g) * np.maximum(np.abs(g) - lam, 0.0))
            assert norm >= np.linalg.norm(smallest) * (1 - 1e-9)


def test_a_state_of_another_rule_is_refused():
    state = minimize(Bowl(), np.zeros(3), rule=Adam(0.1), max_iter=3).state
    with pytest.raises(ValueError, match="belongs to another problem: rule"):
        minimize(Bowl(), rule=DoG(), max_iter=3, state=state)


@pytest.mark.parametrize("trajectories", [(), (3,)])
def test_a_rejected_trial_is_no_dual_point(trajectories):
    """Certificates are made of what the loss left behind at x, not at a point that was tried and rejected."""
    loss = Logistic(10 * A, LABELS, l2=0.1)
    for state in islice(iterate(loss, np.zeros((6, *trajectories)), L1(0.05), FISTA()), 12):
        fresh, g = loss.oracle(state.x), np.empty_like(state.x)
        fresh(state.x, out=g)
        assert np.array_equal(state.oracle_at_x().r, fresh.r)
        assert np.array_equal(state.g, g)
    result = last(loss, L1(0.05), FISTA(), np.zeros((6, *trajectories)), max_iter=2000, stop="gap", tol=1e-8)
    assert np.all(result.certified)
