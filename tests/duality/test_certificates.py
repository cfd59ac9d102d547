"""The duality gap: never below the truth, and closing as the run converges."""

import math
import re

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from adagrad_diff import (
    L1,
    LAD,
    AdaGradDiff,
    Box,
    ElasticNet,
    FusedLasso,
    GroupL2,
    Hinge,
    Huber,
    L1Ball,
    L2Ball,
    Logistic,
    Multinomial,
    NonNegative,
    Poisson,
    Quantile,
    Ridge,
    Simplex,
    Squared,
    duality_gap,
    minimize,
)
from adagrad_diff.experiments.paper import problems
from adagrad_diff.losses import LinearModel
from adagrad_diff.penalties import (
    L2,
    SLOPE,
    HuberPenalty,
    LInf,
    Nuclear,
    SparseGroupL2,
    TotalVariation1D,
    Zero,
)
from exact_pairs import by_highs
from loss_zoo import TERMS, named, problem
from pairwise import pairwise

# A lower bound on F_star is below F everywhere.

EVERY = {
    "L1": L1(0.1),
    "weighted L1": L1([0.1, 0.2, 0.3, 0.4]),
    "Ridge": Ridge(0.3),
    "ElasticNet": ElasticNet(0.1, 0.3),
    "GroupL2": GroupL2(0.2, [0, 0, 1, 1]),
    "SparseGroupL2": SparseGroupL2(0.1, 0.1, [0, 0, 1, 1]),
    "L2": L2(0.2),
    "LInf": LInf(0.2),
    "SLOPE": SLOPE([0.4, 0.3, 0.2, 0.1]),
    "FusedLasso": FusedLasso(0.1, 0.2),
    "HuberPenalty": HuberPenalty(0.5, 0.3),
    "Box": Box(-0.5, 0.75),
    "L1Ball": L1Ball(1.0),
    "L2Ball": L2Ball(1.0),
    "Simplex": Simplex(),
    "Nuclear": Nuclear(0.2, (2, 2)),
    "NonNegative": NonNegative(),
    "Zero": Zero(),
    "TotalVariation1D": TotalVariation1D(0.2),
}
SIZES = [
    "L1",
    "Ridge",
    "ElasticNet",
    "L2",
    "LInf",
    "Box",
    "L1Ball",
    "L2Ball",
    "Simplex",
    "NonNegative",
    "Zero",
]


def value(loss, penalty, x):
    part = x[:-1] if loss.intercept else x
    return loss.value_and_grad(x)[0] + penalty.value(part.reshape(-1))


@pairwise(
    kind=[Squared, LAD, Logistic, Hinge, Poisson, Multinomial],
    part=range(7),
    options=TERMS,
    scale=[0.0, 0.3, 3.0],
)
def test_the_bound_is_below_every_value(kind, part, options, scale):
    loss, rng = problem(kind, seed=part, **options)
    for name in (SIZES if kind is Multinomial else list(EVERY))[part::7]:
        penalty = EVERY[name]
        certificate = duality_gap(loss, penalty, scale * rng.standard_normal(loss.shape))
        assert certificate.gap >= -1e-9
        for size in (0.1, 0.5, 1.0):
            y = size * rng.standard_normal(loss.shape)
            coefficients = y[:-1] if loss.intercept else y
            coefficients.reshape(-1)[...] = penalty.prox(
                coefficients.reshape(-1).copy(), 1.0
            )  # inside, if it is a set
            assert certificate.bound <= value(loss, penalty, y) * (1 + 1e-9) + 1e-9


CLOSING = [name for name in EVERY if name not in ("NonNegative", "Zero", "TotalVariation1D")]


@pytest.mark.parametrize(
    ("kind", "name"),
    [((Squared, LAD, Logistic, Hinge)[k % 4], name) for k, name in enumerate(CLOSING)],
)
def test_every_penalty_closes(kind, name):
    loss, _ = problem(kind, samples=40)
    penalty, kinked = EVERY[name], kind in (LAD, Hinge)
    rule = AdaGradDiff(
        0.3 if kinked else 1.0, blocks="all" if penalty.accepts == "scalar" else None
    )
    result = minimize(
        loss,
        None,
        penalty,
        rule,
        max_iter=8000,
        history=0,
        stop="gap",
        tol=1e-2 if kinked else 1e-6,
    )
    assert result.success, result.message


def test_the_dual_point_proves_the_bound():
    """By hand, from the numbers in the result alone."""
    loss, _ = problem(Logistic, samples=30)
    result = minimize(loss, penalty=L1(0.05), eta=1.0, stop="gap", tol=1e-6, max_iter=5000)
    p = -loss.b * result.dual_point
    entropy = np.mean(p * np.log(p) + (1 - p) * np.log(1 - p))
    assert np.abs(loss.A.array.T @ result.dual_point / 30).max() <= 0.05 * (1 + 1e-12)
    assert result.bound == pytest.approx(-entropy, rel=1e-12)
    assert result.gap == pytest.approx(result.fun + entropy, abs=1e-12)


# ------------------------------------------------------------ the paper's problems


@pytest.mark.parametrize(("name", "eta"), [("lad", 0.042), ("hinge", 0.063)])
def test_nonsmooth_problems_of_the_paper(name, eta):
    paper = problems.PROBLEMS[name]()
    x, _ = by_highs(paper.loss, float(paper.penalty.l1[0]))
    best, gaps = value(paper.loss, paper.penalty, x), []
    for max_iter in (500, 2500):
        result = minimize(
            paper.loss,
            paper.x0s[:, 0],
            paper.penalty,
            eta=eta,
            max_iter=max_iter,
            history=0,
            stop="gap",
        )
        true = result.fun - best
        assert true - 1e-9 <= result.gap <= 100 * true
        gaps.append(result.gap / best)
    assert gaps[0] > gaps[1]
    assert gaps[1] <= 2e-2


@pytest.mark.peer
def test_support_vector_machine():
    """The certificate of the dual problem is the objective of the primal one."""
    paper = problems.two_moons(samples=60)
    result = minimize(
        paper.loss,
        paper.x0s[:, 0],
        paper.penalty,
        eta=0.01,
        max_iter=20000,
        history=0,
        stop="gap",
        tol=1e-6,
    )
    assert result.success
    K, b, lam = paper.loss.Q.array, paper.loss.b, paper.loss.lam
    h = K @ result.x / lam
    primal = np.mean(np.maximum(0.0, 1.0 - b * h)) + 0.5 * lam * (result.x @ K @ result.x) / lam**2
    assert result.gap == pytest.approx(result.fun + primal, abs=1e-11)


# ------------------------------------------------------------ where nothing, or little, is known


@pytest.mark.parametrize("penalty", [Zero(), NonNegative(), TotalVariation1D(0.2)], ids=str)
def test_where_scaling_does_not_reach_the_dual_set(penalty):
    loss, _rng = problem(LAD)
    loss.b[:] = loss.A.array @ [1.0, -1.0, 1.0, -1.0]
    x = np.ones(4)
    assert np.unique(np.sign(loss.value_and_grad(x)[1])).size == 2  # no multiple of it is in a cone
    certificate = duality_gap(loss, penalty, x, refine=False)
    assert certificate.gap == pytest.approx(
        certificate.fun, rel=1e-9
    )  # all that is known: the loss is not negative
    assert "All that is proven" in certificate.message
    assert penalty.name in certificate.message
    assert "scaling" in certificate.message
    if penalty.name == "NonNegative":  # the mean over iterations may well be in the cone
        return
    twice = LAD(
        np.hstack([loss.A.array, loss.A.array]), loss.b
    )  # dependent columns: nothing else helps
    result = minimize(
        twice, penalty=penalty, eta=0.1, max_iter=50, stop="gap", tol=1e-4, on_failure="ignore"
    )
    assert result.gap == pytest.approx(result.fun, rel=1e-9)
    assert not result.success
    assert "All that is proven" in result.message


def test_a_function_has_no_certificate():
    result = minimize(lambda x: (0.5 * x @ x, x), [1.0], eta=0.5, stop="gap", tol=1e-6)
    assert result.success
    assert result.gap == math.inf
    assert result.dual_point is None
    assert "subgradient" in result.message
    assert "no certificate" in result.message


class LogCosh(LinearModel):
    """A user's loss, with or without a conjugate."""

    smoothness = 1.0

    @staticmethod
    def scalar(z, b, theta):
        t = abs(z - b)
        return t + math.log1p(math.exp(-2.0 * t)) - math.log(2.0), math.tanh(z - b)


class Certified(LogCosh):
    @staticmethod
    def slopes(b, theta):
        return -1.0, 1.0

    @staticmethod
    def conjugate(u, b, theta):
        from scipy.special import xlogy

        return 0.5 * (xlogy(1 + u, 1 + u) + xlogy(1 - u, 1 - u)) + b * u


def test_a_loss_of_ones_own():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((40, 4)), rng.standard_normal(40)
    for options in ({}, {"intercept": True}):
        result = minimize(
            Certified(A, b, **options),
            penalty=L1(0.02),
            eta=1.0,
            stop="gap",
            tol=1e-7,
            max_iter=5000,
        )
        assert result.success
        assert 0 <= result.gap <= 1e-7 * result.fun
    certificate = duality_gap(LogCosh(A, b), L1(0.02), np.zeros(4))
    assert certificate.gap == math.inf
    assert "conjugate of LogCosh is not known" in certificate.message


def test_an_operator_is_certified_by_averages():
    loss, _ = problem(LAD, samples=60)
    operator = LAD(aslinearoperator(loss.A.array), loss.b)
    result = minimize(operator, penalty=L1(0.1), eta=0.1, max_iter=5000, history=0, stop="gap")
    assert result.fun <= result.fun_best * 1.01
    assert 0 < result.gap < 0.02 * result.fun


# ------------------------------------------------------------ in a run


@pytest.mark.parametrize("kind", [Logistic, Quantile], ids=named)
def test_trajectories_share_the_bound(kind):
    loss, _ = problem(kind, samples=40)
    result = minimize(
        loss,
        penalty=L1(0.05),
        eta=np.array([1e-3, 0.1, 1.0]),
        max_iter=3000,
        history=0,
        stop="gap",
        tol=1e-3,
    )
    single = minimize(loss, penalty=L1(0.05), eta=0.1, max_iter=5000, history=0, stop="gap")
    np.testing.assert_allclose(result.gap, result.fun - result.bound)
    assert (result.gap >= result.fun - single.fun_best - 1e-9).all()
    assert result.success[1]
    assert result.nit[1] < 3000


@pytest.mark.parametrize("kind", [Logistic, LAD], ids=named)
def test_two_runs_look_at_the_same_iterations(kind):
    loss, _ = problem(kind, samples=40)
    runs = [
        minimize(loss, penalty=L1(0.05), eta=0.1, max_iter=5000, history=0, stop="gap", tol=1e-3)
        for _ in range(2)
    ]
    assert runs[0].nit == runs[1].nit
    assert runs[0].gap == runs[1].gap
    np.testing.assert_array_equal(runs[0].x, runs[1].x)


def test_the_trajectory_does_not_depend_on_the_certificate():
    loss, _ = problem(LAD, samples=40)
    with_gap = minimize(loss, penalty=L1(0.05), eta=0.1, max_iter=500, stop="gap")
    np.testing.assert_array_equal(
        with_gap.x, minimize(loss, penalty=L1(0.05), eta=0.1, max_iter=500).x
    )
    again = minimize(
        loss, penalty=L1(0.05), eta=0.1, max_iter=500, state=with_gap.state, stop="gap"
    )
    assert again.nit == 1000
    assert np.isfinite(again.gap)


def test_bad_input():
    loss, _ = problem(LAD)
    with pytest.raises(
        ValueError, match="'stop' parameter of minimize must be one of 'subgradient', 'gap'"
    ):
        minimize(loss, eta=1.0, stop="never")
    with pytest.raises(ValueError, match=r"x must have shape \(4,\)"):
        duality_gap(loss, None, np.zeros(3))
    with pytest.raises(ValueError, match="x contains nan at index 1"):
        duality_gap(loss, None, [0.0, np.nan, 0.0, 0.0])


EXTREME = [
    (1e300, 0.0, 0.0),
    (1e-290, 0.0, 0.0),
    (1.0, 1e-320, 0.0),
    (1.0, 1e-300, 1.0),
    (1.0, 0.0, 1e300),
]


@pairwise(
    kind=[Squared, LAD, Huber],
    case=EXTREME,
    penalty=[None, L1(0.1), SLOPE([0.2, 0.1])],
    eta=["auto", 1.0],
)
def test_numbers_whose_squares_overflow(kind, case, penalty, eta):
    """There is no warning and no error, and the bound is true or minus infinity."""
    size, l2, start = case
    A, b = np.array([[1.0, 0.5], [-0.5, 1.0], [0.3, -0.2]]), size * np.array([1.0, -1.0, 0.5])
    loss, x = kind(A, b, l2=l2), np.full(2, start)
    best = min(
        loss.value_and_grad(np.zeros(2))[0],
        minimize(kind(A, b), None, penalty, max_iter=200, on_failure="ignore").fun,
    )
    assert duality_gap(loss, penalty, x).bound <= best * (1 + 1e-9)
    minimize(loss, x, penalty, eta=eta, stop="gap", tol=1e-6, max_iter=60, on_failure="ignore")


def test_a_bound_that_says_nothing_is_a_sentence():
    loss = Squared([[1.0, 0.0], [0.0, 2.0]], [3.0, 1.0], l2=1e-8)
    message = duality_gap(loss, None, [5.0, 5.0]).message
    assert re.fullmatch(
        r"All that is proven about the objective .* is that the optimum is at least -[0-9.e+]+\d\.",
        message,
    )


def test_before_the_first_iteration():
    loss, _ = problem(Squared)
    result = minimize(loss, penalty=L1(0.1), eta=1.0, max_iter=0, stop="gap")
    assert result.gap == math.inf
    assert "no iteration" in result.message
