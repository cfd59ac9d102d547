"""The critical strength: just above it the null is optimal, just below it is not, and cvxpy agrees."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    L2,
    LAD,
    SLOPE,
    Box,
    ElasticNet,
    FusedLasso,
    GroupL2,
    Hinge,
    Huber,
    LinearModel,
    LInf,
    Logistic,
    Multinomial,
    Nuclear,
    Poisson,
    Quadratic,
    Quantile,
    Ridge,
    SparseGroupL2,
    Squared,
    SquaredHinge,
    TotalVariation1D,
    at_fraction,
    critical_lam,
    minimize,
)

RNG = np.random.default_rng(0)
A = RNG.standard_normal((23, 6))
REAL = A @ RNG.standard_normal(6) + 1.0 + RNG.standard_normal(23)
LABELS = np.where(RNG.standard_normal(23) + A[:, 0] > 0.3, 1.0, -1.0)
GROUPS = [0, 1, 0, 2, 1, 2]

LOSSES = {
    "Squared": lambda **kw: Squared(A, REAL, **kw),
    "Huber": lambda **kw: Huber(A, REAL, 0.7, **kw),
    "Logistic": lambda **kw: Logistic(A, LABELS, **kw),
    "SquaredHinge": lambda **kw: SquaredHinge(A, LABELS, **kw),
    "Poisson": lambda **kw: Poisson(A, np.floor(np.abs(REAL)), **kw),
    "LAD": lambda **kw: LAD(A, REAL, **kw),
    "Quantile": lambda **kw: Quantile(A, REAL, 0.3, **kw),
    "Hinge": lambda **kw: Hinge(A, LABELS, **kw),
    "LAD on integers": lambda **kw: LAD(np.round(A), np.round(REAL), **kw),
    "Quantile on integers": lambda **kw: Quantile(np.round(A), np.round(REAL), 0.25, **kw),
}
PENALTIES = {
    "L1": L1,
    "weighted L1": lambda t: L1(t * np.arange(1.0, 7.0)),
    "LInf": LInf,
    "TotalVariation1D": TotalVariation1D,
    "GroupL2": lambda t: GroupL2(t, GROUPS),
    "L2": L2,
    "SparseGroupL2": lambda t: SparseGroupL2(0.5 * t, t, GROUPS),
    "SLOPE": lambda t: SLOPE(t * np.linspace(2.0, 1.0, 6)),
    "FusedLasso": lambda t: FusedLasso(t, 0.5 * t),
    "Nuclear": lambda t: Nuclear(t, (2, 3)),
}
POLYHEDRAL = ("L1", "weighted L1", "LInf", "TotalVariation1D")
# Several samples are at a kink where the penalty starts, and with a round dual ball that is no linear program.
OPEN = {
    ("LAD on integers", "intercept"),
    ("Quantile on integers",),
    ("Hinge", "intercept"),
    ("LAD on integers", "sample_weight"),
    ("LAD on integers",),
    ("Quantile on integers", "sample_weight"),
}
OPTIONS = {
    "plain": {},
    "intercept": {"intercept": True},
    "weights": {"sample_weight": np.arange(23) % 4},
}


def terms(x):
    """The penalties for cvxpy, by their names."""
    import cvxpy as cp

    x_groups = [[i for i in range(6) if GROUPS[i] == g] for g in range(3)]
    return {
        "L1": lambda p: p.l1[0] * cp.norm1(x),
        "weighted L1": lambda p: p.l1 @ cp.abs(x),
        "LInf": lambda p: p.lam * cp.norm_inf(x),
        "TotalVariation1D": lambda p: p.lam * cp.norm1(x[1:] - x[:-1]),
        "GroupL2": lambda p: p.lam * sum(cp.norm2(x[g]) for g in x_groups),
        "L2": lambda p: p.lam * cp.norm2(x),
        "SparseGroupL2": lambda p: (
            p.l1 * cp.norm1(x) + p.l2 * sum(cp.norm2(x[g]) for g in x_groups)
        ),
        "SLOPE": lambda p: (
            p.lams[-1] * cp.norm1(x)
            - sum(np.diff(p.lams)[k] * cp.sum_largest(cp.abs(x), k + 1) for k in range(5))
        ),
        "FusedLasso": lambda p: p.l1 * cp.norm1(x) + p.tv * cp.norm1(x[1:] - x[:-1]),
        "Nuclear": lambda p: p.lam * cp.normNuc(cp.reshape(x, (2, 3), order="C")),
    }


def optimum(loss, name, penalty=None):
    """The optimal objective by cvxpy; without a penalty, the best one where the named penalty is 0."""
    import cvxpy as cp

    x = cp.Variable(6)
    c = cp.Variable()
    z = loss.A.array @ x + (c if loss.intercept else 0.0)
    b, w = loss.b, loss.weight
    f = {
        "Squared": lambda: cp.square(z - b) / 2,
        "Huber": lambda: cp.huber(z - b, loss.theta) / 2,
        "Logistic": lambda: cp.logistic(-cp.multiply(b, z)),
        "SquaredHinge": lambda: cp.square(cp.pos(1 - cp.multiply(b, z))),
        "Poisson": lambda: cp.exp(z) - cp.multiply(b, z),
        "LAD": lambda: cp.abs(z - b),
        "Quantile": lambda: cp.maximum(loss.theta * (b - z), (loss.theta - 1) * (b - z)),
        "Hinge": lambda: cp.pos(1 - cp.multiply(b, z)),
    }[type(loss).__name__]()
    if penalty is None:
        phi, constraints = 0.0, [x[1:] == x[:-1]] if name == "TotalVariation1D" else [x == 0]
    else:
        phi, constraints = terms(x)[name](penalty), []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="cvxpy")
        return cp.Problem(cp.Minimize(w @ f + phi), constraints).solve(solver="CLARABEL")


CASES = [
    (kind, list(PENALTIES)[(3 * i + k) % len(PENALTIES)], option)
    for i, kind in enumerate(LOSSES)
    for k, option in enumerate(OPTIONS)
]


@pytest.mark.peer
@pytest.mark.parametrize(("kind", "name", "option"), CASES)
def test_where_the_null_stops_being_optimal(kind, name, option):
    options = OPTIONS[option]
    loss = LOSSES[kind](**options)
    if name not in POLYHEDRAL and (kind, *options) in OPEN:
        with pytest.raises(ValueError, match="not a linear program"):
            critical_lam(loss, PENALTIES[name](1.0))
        return
    lam = critical_lam(loss, PENALTIES[name](1.0))
    assert lam > 0
    null, above, below = (
        optimum(loss, name, *penalty)
        for penalty in ((), (PENALTIES[name](lam * (1 + 1e-6)),), (PENALTIES[name](lam * 0.8),))
    )
    assert abs(null - above) <= 1e-6 * max(1.0, abs(above))
    assert null - below > 1e-6 * max(1.0, abs(below))


@pytest.mark.parametrize("make", [L1, lambda t: GroupL2(t, GROUPS), LInf, TotalVariation1D])
def test_in_units_of_lam(make):
    loss = Squared(A, REAL)
    assert critical_lam(loss, make(3.0)) == pytest.approx(critical_lam(loss, make(1.0)), rel=1e-12)


def test_closed_forms():
    g = Squared(A, REAL).value_and_grad(np.zeros(6))[1]
    assert critical_lam(Squared(A, REAL), L1(1.0)) == pytest.approx(np.abs(g).max(), rel=1e-13)
    assert critical_lam(Squared(A, REAL, intercept=True), L1(1.0)) == pytest.approx(
        np.abs(A.T @ (REAL - REAL.mean())).max() / 23, rel=1e-10
    )
    assert critical_lam(Quadratic(np.eye(3), [1.0, -2.0, 0.5]), L1(1.0)) == 2.0
    classes = np.arange(23) % 3
    onehot = np.eye(3)[classes]
    frequency = onehot.mean(axis=0)
    expected = np.abs(A.T @ (frequency - onehot)).max() / 23
    assert critical_lam(Multinomial(A, classes, intercept=True), L1(1.0)) == pytest.approx(
        expected, rel=1e-6
    )


@pytest.mark.parametrize("fraction", [1.001, 0.5])
def test_at_fraction(fraction):
    loss = Logistic(A, LABELS, intercept=True)
    result = minimize(loss, penalty=at_fraction(loss, L1(0.3), fraction), eta=1.0, max_iter=2000)
    assert (np.abs(result.x[:-1]) < 1e-8).all() == (fraction > 1)


class Kinked(LinearModel):
    @staticmethod
    def scalar(z, b, theta):
        return max(z, 0.0), (1.0 if z > 0 else 0.0)


@pytest.mark.parametrize(
    ("loss", "penalty", "words"),
    [
        (Squared(A, REAL), Ridge(1.0), "Ridge has no critical strength"),
        (Squared(A, REAL), ElasticNet(1.0, 1.0), "ElasticNet has no critical strength"),
        (Squared(A, REAL), Box(0.0, 1.0), "Box has no critical strength"),
        (lambda x: (x @ x, 2 * x), L1(1.0), "'loss' must be a loss of adagrad_diff.losses"),
        (Kinked(A, REAL), L1(1.0), "Kinked does not say where it has kinks"),
        (Logistic(A, np.ones(23), intercept=True), L1(1.0), "is there just one class"),
        (LAD(A, np.zeros(23)), L2(1.0), "not a linear program"),
        (LAD(A, REAL, l2=0.1), TotalVariation1D(1.0), "not known in closed form"),
        (
            LAD(A, REAL),
            GroupL2(1.0, np.zeros(10_000, int)),
            "10000 group labels, but there are 6 penalized",
        ),
        (LAD(A, REAL, intercept=True), SLOPE(np.ones(7)), "7 strengths, but there are 6 penalized"),
        (Hinge(A, np.ones(23), intercept=True), L1(1.0), None),
    ],
)
def test_refusals(loss, penalty, words):
    if words is None:  # one class is no difficulty for the hinge
        assert critical_lam(loss, penalty) == 0.0
        return
    with pytest.raises(ValueError, match=words):
        critical_lam(loss, penalty)


@pytest.mark.parametrize("fraction", [0.0, -1.0, np.nan])
def test_bad_fraction(fraction):
    with pytest.raises(ValueError, match="'fraction'"):
        at_fraction(Squared(A, REAL), L1(1.0), fraction)


@pytest.mark.parametrize("kind", [LAD, Hinge, Logistic])
def test_memory(kind):
    """A few vectors: neither samples squared nor features squared."""
    rng = np.random.default_rng(0)
    tall, labels = rng.standard_normal((3000, 4)), rng.choice([-1.0, 1.0], 3000)
    places = rng.integers(0, 40, 8000), rng.integers(0, 8000, 8000)
    wide = sparse.csr_array((rng.random(8000), places), shape=(40, 8000))
    critical_lam(
        kind(tall[:9], labels[:9], intercept=True), L1(1.0)
    )  # what is imported and compiled does not count
    for data, b in ((tall, labels), (wide, labels[:40])):
        loss = kind(data, b, intercept=True)
        tracemalloc.start()
        assert critical_lam(loss, L1(1.0)) > 0
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1000 * 8 * max(data.shape)  # HiGHS has copies of its own


@pytest.mark.parametrize("tau", [0.25, 0.5, 0.9])
def test_total_variation_of_ties(tau):
    """The null is one number: the kinks are at b / (sums of rows), and many of them are equal."""
    loss = Quantile(np.abs(np.round(A)) + 1.0, np.round(REAL), tau)
    lam = critical_lam(loss, TotalVariation1D(1.0))
    z = loss.A.array.sum(axis=1)
    values = [loss.value_and_grad(np.full(6, c))[0] for c in np.round(REAL) / z]
    above = minimize(loss, penalty=TotalVariation1D(1.001 * lam), eta=0.1, max_iter=3000)
    assert min(values) == pytest.approx(above.fun_best, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "intercept"), [(Squared, True), (Huber, False), (Poisson, True), (LAD, False)]
)
def test_total_variation_with_gradients_that_sum_to_rounding(kind, intercept):
    """At the minimiser over constants they sum to zero, but for that: once the answer was infinite."""
    A = np.array([[1.0, 2.0], [0.0, 1.0], [2.0, -1.0]])
    for b in ([1.3, 2.7, 0.4], [1e4, 1e4 + 1, 1e4 + 3]):
        assert critical_lam(
            kind(A[:, :1], b, intercept=intercept), TotalVariation1D(1.0)
        ) == pytest.approx(0.0, abs=1e-12)
        assert np.isfinite(critical_lam(kind(A, b, intercept=intercept), TotalVariation1D(1.0)))


def test_total_variation_where_no_sample_with_a_weight_has_a_feature():
    loss = LAD([[1.0, 0.0], [0.0, 0.0]], [1.0, 2.0], sample_weight=[0, 1])
    with pytest.raises(ValueError, match="no minimiser"):
        critical_lam(loss, TotalVariation1D(1.0))
