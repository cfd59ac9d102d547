"""`adagrad_diff.polish`, and what `minimize` says about its finish: never worse, honest about why not, and nowhere else."""

from itertools import islice
from time import process_time

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from adagrad_diff import (
    L1,
    LAD,
    AdaGradDiff,
    BoxHyperplane,
    GroupL2,
    Hinge,
    Logistic,
    NonNegative,
    PolishReport,
    Quantile,
    Ridge,
    Separable,
    Simplex,
    Squared,
    iterate,
    minimize,
    polish,
)
from adagrad_diff.losses import LinearModel
from looping import looped

RNG = np.random.default_rng(0)
A = RNG.standard_normal((80, 6))
B = A[:, 0] - 2 * A[:, 3] + 0.5 * RNG.standard_t(3, 80)
LABELS = np.where(B > 0, 1.0, -1.0)
GROUPS = [0, 0, 1, 1, 2, 2]


def objective(loss, penalty, x):
    return loss.value_and_grad(x)[0] + penalty.value(x[:-1] if loss.intercept else x)


@looped("loss", [Logistic(A, LABELS), Logistic(A, LABELS, intercept=True), Squared(A, B)])
def test_a_start_so_good_that_rounding_decides_about_its_objective(loss):
    """The objective of the answer may be larger in its last place: its gradient is smaller, and that is what proves it."""
    penalty, rng = L1(0.02), np.random.default_rng(1)
    best = polish(loss, penalty, np.zeros(loss.shape)).x
    for size in np.repeat([1e-10, 1e-9, 1e-8], 5):
        start = best * (1 + size * rng.standard_normal(len(best)))
        assert polish(loss, penalty, start, tol=1e-12).success


# ------------------------------------------------------------ the public function


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"tol": -1.0}, ValueError, "'tol' parameter of polish must be"),
        ({"tol": "1e-3"}, ValueError, "'tol' parameter of polish must be"),
        ({"tol": np.nan}, ValueError, "'tol' parameter of polish must be"),
        ({"max_time": 0.0}, ValueError, "'max_time' parameter of polish must be"),
        ({"max_time": "soon"}, ValueError, "'max_time' parameter of polish must be"),
        ({"x": np.zeros(5)}, ValueError, r"x must have shape \(6,\). Got shape \(5,\) instead"),
        ({"x": np.zeros((6, 1))}, ValueError, r"x must have shape \(6,\)"),
        ({"x": np.full(6, np.nan)}, ValueError, "x"),
        ({"x": ["a"] * 6}, (TypeError, ValueError), "x"),
        ({"x": 1j * np.zeros(6)}, (TypeError, ValueError), "x"),
        ({"loss": 3.0}, TypeError, "loss"),
        ({"penalty": "l1"}, TypeError, "penalty"),
    ],
)
def test_bad_arguments(change, error, words):
    with pytest.raises(error, match=words):
        polish(**{"loss": LAD(A, B), "penalty": L1(0.05), "x": np.zeros(6), **change})


CASES = {
    "LAD": (LAD(A, B, intercept=True), L1(0.05)),
    "quantile": (Quantile(A, B, tau=0.2), Ridge(0.1)),
    "hinge": (Hinge(A, LABELS, intercept=True), L1(0.02)),
    "logistic": (Logistic(A, LABELS), L1(0.02)),
    "groups": (Squared(A, B), GroupL2(0.1, GROUPS)),
}


@pytest.mark.parametrize("case", CASES)
def test_an_exact_answer_from_anywhere(case):
    loss, penalty = CASES[case]
    size = 6 + loss.intercept
    given = 10.0 * RNG.standard_normal(size)
    before = given.copy()
    result = polish(loss, penalty, given)
    np.testing.assert_array_equal(given, before)
    assert result.success
    assert result.finish.done
    assert 0 <= result.gap <= 1e-10 * result.fun
    assert result.gap == result.fun - result.bound
    assert result.fun == pytest.approx(objective(loss, penalty, result.x), rel=1e-12)
    assert result.message.startswith("The tolerance is reached after ")
    assert result.dual_point.shape == (80,)
    again = polish(loss, penalty, result.x)
    assert again.success
    assert again.fun == pytest.approx(result.fun, rel=1e-11)


@pytest.mark.parametrize("case", CASES)
@looped("tol, max_time", [(0.0, None), (1e-10, 1e-9), (0.0, 1e-9)])
def test_never_worse(case, tol, max_time):
    loss, penalty = CASES[case]
    best = polish(loss, penalty, np.zeros(6 + loss.intercept)).x
    rng = np.random.default_rng(1)
    for x in (
        best,
        best + 1e-9 * rng.standard_normal(best.size),
        best + 1e-3,
        3.0 * rng.standard_normal(best.size),
    ):
        result = polish(loss, penalty, x, tol=tol, max_time=max_time)
        assert objective(loss, penalty, result.x) <= objective(loss, penalty, x) * (1 + 1e-13)
        assert result.success == (result.gap <= tol * result.fun)
        assert result.finish.done == result.success
        if not result.success:
            assert result.message == f"Not finished: {result.finish.reason}."
            assert result.finish.reason
            assert result.finish.failed == result.finish.seconds > 0


def test_no_time():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 200))
    y = X[:, 0] + rng.standard_normal(3000)
    begin = process_time()
    result = polish(LAD(X, y), L1(1e-4), rng.standard_normal(200), max_time=0.05)
    assert process_time() - begin < 3.0
    assert not result.success
    assert "no time" in result.finish.reason


class OwnLoss(LinearModel):
    """A smooth loss without a second derivative."""

    smoothness = 1.0

    @staticmethod
    def scalar(z, b, theta):
        return 0.5 * (z - b) ** 2, z - b

    @staticmethod
    def conjugate(u, b, theta):
        return u * u / 2 + b * u


WHY = {
    "function": (lambda x: (x @ x, 2 * x), L1(0.1), "conjugate"),
    "operator": (LAD(aslinearoperator(A), B), L1(0.1), "rows of a linear operator"),
    "groups and kinks": (
        LAD(A, B),
        GroupL2(0.1, GROUPS),
        "no separable quadratic form",
    ),
    "simplex": (Squared(A, B), Simplex(), "does not support"),
    "own loss": (OwnLoss(A, B), L1(0.1), "second derivative"),
    "hyperplane": (Squared(A, B), BoxHyperplane(0.0, 1.0, np.ones(6), 1.0), "hyperplane"),
    "groups and bounds": (
        Squared(A, B),
        Separable([([0, 1], GroupL2(1.0, [0, 0])), ([2], NonNegative())]),
        "bounds",
    ),
}


@pytest.mark.parametrize("case", WHY)
def test_why_not(case):
    loss, penalty, words = WHY[case]
    x = np.full(6, 1 / 6)
    result = polish(loss, penalty, x)
    assert not result.success
    assert words in result.message
    assert (result.finish.tries, result.finish.rounds, result.gap, result.bound) == (
        0,
        0,
        np.inf,
        -np.inf,
    )
    np.testing.assert_array_equal(result.x, x)
    run = minimize(loss, x, penalty, tol=1e-3, max_iter=20, on_failure="ignore")
    assert words in run.finish.reason
    assert not run.finish.done


# ------------------------------------------------------------ in minimize


@pytest.mark.parametrize("case", CASES)
def test_small_problems_need_no_iteration(case):
    loss, penalty = CASES[case]
    result = minimize(loss, penalty=penalty, tol=1e-10)
    assert (result.nit, result.status, result.success, result.certified) == (0, 0, True, True)
    report = result.finish
    assert isinstance(report, PolishReport)
    assert (report.done, report.tries, report.reason, report.failed) == (True, 1, "", 0.0)
    assert report.rounds >= 1
    assert 1 <= report.samples <= 80
    assert 1 <= report.coefficients <= 7
    assert 0 < report.seconds < 10
    assert f"{report.samples} samples and {report.coefficients} coefficients" in result.message
    assert result.gap <= 1e-10 * result.fun
    assert result.fun == pytest.approx(objective(loss, penalty, result.x), rel=1e-12)
    np.testing.assert_allclose(result.jac, loss.value_and_grad(result.x)[1], rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_it_can_be_turned_off(case):
    loss, penalty = CASES[case]
    result = minimize(
        loss, penalty=penalty, tol=1e-2, max_iter=5000, finish=False, on_failure="ignore"
    )
    assert result.nit > 0
    assert result.finish == PolishReport(reason="it was turned off")
    assert minimize(loss, penalty=penalty, max_iter=5).finish == PolishReport(
        reason="no tolerance was asked for"
    )


GIVEN = [
    {"eta": 0.3},
    {"eta": 0.3, "stop": "gap"},
    {"eta": 0.3, "stop": "subgradient"},
    {"eta": [0.1, 0.3], "stop": "gap"},
    {"rule": AdaGradDiff(0.3), "stop": "gap"},
    {"finish": False},
    {"stop": "subgradient"},
]


@pytest.mark.parametrize("options", GIVEN, ids=str)
def test_a_given_step_size_is_the_algorithm_of_the_paper(options):
    result = minimize(
        LAD(A, B), penalty=L1(0.05), tol=1e-3, max_iter=50, on_failure="ignore", **options
    )
    assert np.all(np.asarray(result.nit) > 0)
    assert "finish" not in result or result.finish.tries == 0
    if "eta" in options and np.ndim(options["eta"]) == 0:
        states = iterate(LAD(A, B), np.zeros(6), L1(0.05), AdaGradDiff(0.3))
        *_, last = islice(states, int(result.nit))
        np.testing.assert_array_equal(result.x, last.x)
