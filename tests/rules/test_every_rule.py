"""Every rule runs with trajectories, in a sweep and with penalties, resumes and reports errors."""

from functools import partial
from itertools import islice

import numpy as np
import pytest

from adagrad_diff import (
    ACFGM,
    FISTA,
    KATE,
    L1,
    AdaGradNorm,
    AdamDiff,
    AdaPEG,
    AdaPG,
    Box,
    Constant,
    DelayedAdaGrad,
    DoG,
    Hinge,
    Logistic,
    RMSProp,
    Simplex,
    Squared,
    Status,
    UniXGrad,
    iterate,
    load_state,
    minimize,
    sweep,
)
from adagrad_diff.rules import has_eta
from looping import looped
from rule_zoo import KINDS, made, usual
from user_losses import Barrier, Bowl, data

A, REAL, LABELS, _ = data()
PROBLEMS = {  # loss, penalty and the shape of x
    "least squares, L1": (Squared(A, REAL), L1(0.05), 6),
    "logistic, box": (Logistic(A, LABELS, intercept=True, l2=0.01), Box(-0.3, 0.3), 7),
    "hinge": (Hinge(A, LABELS), None, 6),
    "function": (Bowl(), L1(0.1), 3),
}
NAMES = list(PROBLEMS)
each_on_one_problem = pytest.mark.parametrize(
    ("kind", "problem"),
    [(kind, NAMES[i % 4]) for i, kind in enumerate(KINDS)],
)
run = partial(minimize, on_failure="ignore")


@each_on_one_problem
def test_a_resumed_run_is_bitwise_identical(kind, problem, tmp_path):
    loss, penalty, size = PROBLEMS[problem]
    whole = run(loss, np.zeros(size), penalty, made(kind), max_iter=60)
    for stop in (1, 37):
        first = run(loss, np.zeros(size), penalty, made(kind), max_iter=stop)
        first.state.save(tmp_path / "state.npz")
        state = load_state(tmp_path / "state.npz")
        rest = run(loss, None, penalty, made(kind), max_iter=60 - stop, state=state)
        for name in ("x", "x_avg", "x_best", "jac", "nit"):
            assert np.array_equal(rest[name], whole[name]), name


@each_on_one_problem
def test_trajectories_do_not_depend_on_each_other(kind, problem):
    loss, penalty, size = PROBLEMS[problem]
    starts = 0.5 * np.random.default_rng(0).standard_normal((size, 3))
    etas = usual(kind) * np.array([0.5, 1.0, 2.0]) if has_eta(kind) else [None] * 3
    together = run(loss, starts, penalty, made(kind, etas), max_iter=40)
    for k in range(3):
        alone = run(loss, starts[:, k], penalty, made(kind, etas[k]), max_iter=40)
        for name in ("x", "x_avg"):
            np.testing.assert_allclose(together[name][..., k], alone[name], rtol=1e-8, atol=1e-11)
        assert together.nit[k] == alone.nit


def test_in_a_sweep():
    etas, (loss, penalty, size) = [0.05, 0.3], PROBLEMS["least squares, L1"]
    x0 = np.zeros(size)
    found = sweep(loss, penalty, KINDS, etas, x0, 50, keep_x=True, progress=False)
    for row, kind in enumerate(KINDS):
        for k, eta in enumerate(etas):
            alone = run(loss, x0, penalty, made(kind, eta), max_iter=50)
            np.testing.assert_allclose(found.x.values[:, row, k, 0], alone.x, rtol=1e-8, atol=1e-11)
            average = found.objective_average.values[row, k, 0]
            expected = np.nan
            if made(kind).average_power > 0:
                x = alone.x_avg
                expected = loss.value_and_grad(x)[0] + penalty.value(x)
            np.testing.assert_allclose(average, expected, rtol=1e-9)


SLACK = {  # relative to the optimum, after 1500 iterations
    "Adam": 1e-3,
    "AdamDiff": 1e-3,
    "DoG": 1e-3,
    "DualAveraging": 2e-2,
    "DAdaptation": 2e-2,
    "Prodigy": 1e-2,
    "AdaDelta": 1e-2,
    "RMSProp": 1e-2,
    "RMSDiff": 1e-2,
    "FreeAdaGradDiff": 1e-3,
    "ACFGM": 1e-4,
    "AGD": 1e-3,
    "AdaPEG": 1e-4,
    "UniAdaGrad": 1e-3,
    "UniXGrad": 1e-4,
    "KATE": 1e-3,
    "DelayedAdaGrad": 1e-4,
    "AdaGradNorm": 1e-4,
}


@looped("problem", NAMES[:2])
def test_they_find_the_optimum(problem):
    loss, penalty, size = PROBLEMS[problem]
    best = minimize(loss, penalty=penalty, tol=1e-10, max_iter=20_000).fun
    for kind in KINDS:
        found = run(loss, np.zeros(size), penalty, made(kind), max_iter=1500).fun_best
        assert found <= best + SLACK.get(kind.__name__, 1e-9) * abs(best), kind


@looped("trajectories", [(), (3,)])
def test_a_rejected_trial_is_no_dual_point(trajectories):
    """Certificates use the residuals at x, not those at a point that was rejected."""
    loss, x0 = Logistic(10 * A, LABELS, l2=0.1), np.zeros((6, *trajectories))
    for state in islice(iterate(loss, x0, L1(0.05), FISTA()), 12):
        assert np.array_equal(state.g, loss.value_and_grad(state.x)[1])
    result = run(loss, x0, L1(0.05), FISTA(), max_iter=2000, stop="gap", tol=1e-8)
    assert np.all(result.certified)


def test_the_subgradient_is_one_of_the_objective():
    """Whatever the move: for the prox's step, (point - x) / step + g is a subgradient of F at x."""
    loss, lam = Squared(A, REAL), 0.05
    for kind in KINDS:
        found = []
        record = lambda now, found=found: found.append((now.x, now.subgradient_norm))
        minimize(loss, np.zeros(6), L1(lam), made(kind), max_iter=25, callback=record)
        for x, norm in found:
            g = loss.value_and_grad(x)[1]
            at_zero = np.sign(g) * np.maximum(np.abs(g) - lam, 0.0)
            smallest = np.where(x != 0, g + lam * np.sign(x), at_zero)
            # NaN where x stands still: nothing is proven there.
            assert np.isnan(norm) or norm >= np.linalg.norm(smallest) * (1 - 1e-9) - 1e-13


@looped("kind", KINDS)
def test_gradients_of_zero(kind):
    """At a minimizer nothing moves; a coordinate without a gradient only shrinks."""
    bowl = lambda x: (0.5 * np.sum((x - [1.0, 2.0]) ** 2), x - [1.0, 2.0])
    assert run(bowl, [1.0, 2.0], None, made(kind), max_iter=20).x.tolist() == [1.0, 2.0]
    result = run(bowl, [1.0, 2.0], L1(1e-9), made(kind), max_iter=20)
    assert result.status == Status.MAX_ITER
    assert np.isfinite(result.x).all()

    unseen = lambda x: (0.5 * (x[0] - 1.0) ** 2, np.array([x[0] - 1.0, 0.0]))
    assert run(unseen, [0.0, 5.0], None, made(kind), max_iter=50).x[1] == 5.0
    x = run(unseen, [0.0, 5.0], L1(0.01), made(kind), max_iter=50).x
    assert np.isfinite(x).all()
    assert 0.0 <= x[1] < 5.0


@looped("kind", KINDS)
def test_single_precision(kind):
    loss, x0 = Squared(A.astype(np.float32), REAL), np.zeros((6, 3), np.float32)
    single = run(loss, x0, L1(np.float32(0.05)), made(kind), max_iter=30)
    assert single.x.dtype == single.x_avg.dtype == np.float32
    double = run(Squared(A, REAL), x0.astype(float), L1(0.05), made(kind), max_iter=30)
    np.testing.assert_allclose(single.x, double.x, rtol=0.02, atol=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_are_no_numbers(kind):
    """The run ends with a status, at the last good x. Other trajectories continue."""
    for at, wrong in ((1, np.nan), (2, np.inf), (2, 1e200), (7, np.nan), (7, 1e200)):
        loss = Bowl(at=at, once=False, fault=lambda f, g, wrong=wrong: (f, np.full(3, wrong)))
        result = run(loss, np.ones(3), L1(0.1), made(kind), max_iter=20)
        assert np.isfinite(result.x).all()
        assert result.status == Status.NOT_FINITE, (at, wrong, result.message)

    fault = lambda f, g: (np.where(np.arange(3) == 1, np.nan, f) if len(f) == 3 else f, g)
    loss = Bowl(at=6, once=False, fault=fault)
    result = run(loss, np.ones((3, 3)), None, made(kind), max_iter=20)
    assert result.nit[0] == result.nit[2] == 20
    assert np.isfinite(result.x).all()


def test_fista_comes_back_from_where_there_is_no_loss():
    """Momentum, or a step that is too long, may leave the domain of f."""
    result = minimize(Barrier(), np.array([0.3, 5.0, 2.0]), None, FISTA(), max_iter=300)
    np.testing.assert_allclose(result.x, 1.0, rtol=1e-6)


FRACTION, POSITIVE = r"a number in \[0, 1\)", "a positive number"
WRONG = [
    (RMSProp, {"beta": 1.0}, FRACTION),
    (AdamDiff, {"eta": 0.1, "beta2": "a"}, FRACTION),
    (DelayedAdaGrad, {"eta": 0.1, "power": 0.4}, "a number from 0.5 to 1"),
    (KATE, {"delta": -1.0}, "a number >= 0"),
    (DoG, {"gamma": np.nan}, POSITIVE),
    (Constant, {"eta": 0.0}, POSITIVE),
]


@looped(("kind", "parameters", "wanted"), WRONG)
def test_wrong_parameters(kind, parameters, wanted):
    *_, (name, value) = parameters.items()
    words = f"'{name}' parameter of {kind.__name__} must be {wanted}. Got {value!r}"
    with pytest.raises(ValueError, match=words):
        kind(**parameters)


def test_a_class_is_no_rule():
    with pytest.raises(TypeError, match=r"'rule' is the class DoG. Did you mean DoG\(...\)\?"):
        minimize(Bowl(), np.zeros(3), rule=DoG)


def test_rules_with_one_step_take_every_penalty():
    """Also those that have a prox in a scalar metric only, and sets: from outside, too."""
    for kind in (Constant, AdaGradNorm, DoG, AdaPG, AdaPEG, FISTA, ACFGM, UniXGrad):
        x = run(Squared(A, REAL), np.ones(6), Simplex(), made(kind), max_iter=300).x
        assert abs(x.sum() - 1.0) < 1e-9, kind
        assert x.min() >= 0.0
