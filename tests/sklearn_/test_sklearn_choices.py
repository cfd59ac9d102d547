"""Every loss and every penalty of the library, by name or as an object."""

import re
from functools import partial
from itertools import cycle, islice

import numpy as np
import pytest

pytest.importorskip("sklearn")

import adagrad_diff.penalties as P
from adagrad_diff import (
    LAD,
    Hinge,
    Huber,
    LinearModel,
    Logistic,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
)
from adagrad_diff import sklearn as door
from complete import assert_complete

pytestmark = pytest.mark.peer

ONES, GROUPS = np.ones(6), [0, 0, 1, 1, 2, 2]
PENALTIES = [
    None,
    P.Affine(ONES[None], [1.0]),
    P.Box(-0.5, 0.5),
    P.BoxHyperplane(0.0, 1.0, ONES, 1.0),
    P.ElasticNet(1.0, 0.5),
    P.FusedLasso(1.0, 1.0),
    P.GroupL2(1.0, GROUPS),
    P.HalfSpace(ONES, 1.0),
    P.HuberPenalty(1.0, 0.1),
    P.Hyperplane(ONES, 1.0),
    P.L1(1.0),
    P.L1(np.arange(1.0, 7.0)),
    P.L1Ball(1.0),
    P.L2(1.0),
    P.L2Ball(1.0),
    P.LInf(1.0),
    P.LInfBall(1.0),
    P.Monotone(),
    P.NonNegative(),
    P.Nuclear(1.0, (2, 3)),
    P.NumericalProx(P.L1(1.0)),
    P.Precomposed(P.L1(1.0), 2.0),
    P.Ridge(1.0),
    P.SLOPE(np.arange(6.0, 0.0, -1.0)),
    P.Scaled(P.L1(1.0), 2.0),
    P.Separable([(slice(0, 2), P.L1(1.0))]),
    P.Simplex(),
    P.SparseGroupL2(0.5, 0.5, GROUPS),
    P.TotalVariation1D(1.0),
    P.Translated(P.L1(1.0), 1.0),
    P.Unpenalised(P.L1(1.0), 0),
    P.Zero(),
]
REGRESSION = {
    "absolute": LAD,
    "huber": Huber,
    "poisson": Poisson,
    "quantile": Quantile,
    "squared": Squared,
}
CLASSIFICATION = {
    "hinge": Hinge,
    "logistic": Logistic,
    "multinomial": Multinomial,
    "squared_hinge": SquaredHinge,
}
BY_NAME = ["l1", "l2", "elasticnet", "group", "none"]


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    return X, X[:, 0] - 2 * X[:, 1] + 0.5 * rng.standard_normal(80)


def test_nothing_is_forgotten():
    have = {type(penalty).__name__ for penalty in PENALTIES if penalty is not None}
    wanted = {*P.__all__} - {"Penalty", "PSD"}  # PSD is of square matrices
    assert_complete(wanted, have, "PENALTIES in tests/sklearn_/test_sklearn_choices.py")
    X, y = data()
    for estimator, listed in (
        (door.LinearRegressor, REGRESSION),
        (door.LinearClassifier, CLASSIFICATION),
    ):
        with pytest.raises(ValueError, match="must be one of") as caught:
            estimator(loss="none of them").fit(X, y if estimator is door.LinearRegressor else y > 0)
        assert re.findall(
            r"'(\w+)'", str(caught.value).split("one of")[1].split(", a subclass")[0]
        ) == list(listed)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("penalty", "loss"), list(zip(PENALTIES, cycle(["squared", "absolute"]), strict=False))
)
def test_every_penalty(penalty, loss):
    """The objective is mean loss + alpha x penalty, and no better one is near."""
    X, y = data()
    model = door.LinearRegressor(loss, penalty, 0.05).fit(X, y)
    assert model.stop_reason_ in ("certified", "subgradient", "stalled")
    scaled = P.Zero() if penalty is None else P.Scaled(penalty, 0.05)

    def objective(w, c):
        t = X @ w + c - y
        return np.mean(np.abs(t) if loss == "absolute" else 0.5 * t**2) + scaled.value(w)

    assert objective(model.coef_, model.intercept_) == pytest.approx(model.objective_, rel=1e-9)
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 1e-1):
        w = scaled.prox(
            model.coef_ + size * rng.standard_normal(6), 1e-9
        )  # in the set, if it is one
        assert objective(w, model.intercept_ + size * rng.standard_normal()) >= model.objective_ * (
            1 - 2e-4
        )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("loss", "penalty"),
    list(
        zip(
            [*REGRESSION, partial(Huber, delta=0.5), partial(partial(Quantile), tau=0.7)],
            cycle(BY_NAME),
            strict=False,
        )
    ),
)
def test_regression(loss, penalty):
    X, y = data()
    poisson = loss == "poisson"
    y = np.random.default_rng(2).poisson(np.exp(0.3 * y)) if poisson else y
    model = door.LinearRegressor(loss, penalty, 0.02, groups=GROUPS, tol=1e-3).fit(X, y)
    assert model.stop_reason_ in ("certified", "subgradient", "stalled")
    assert model.score(X, y) > (0.3 if poisson else 0.8)
    assert (model.predict(X) > 0).all() or not poisson


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("loss", "penalty", "classes"),
    list(islice(zip(cycle(CLASSIFICATION), cycle(BY_NAME), cycle([2, 3, 3])), 10)),
)
def test_classification(loss, penalty, classes):
    X, y = data()
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    labels[::6] = (labels[::6] + 1) % classes  # so that they are not separable
    model = door.LinearClassifier(loss, penalty, 0.02, groups=GROUPS, tol=1e-2).fit(X, labels)
    assert model.stop_reason_ in ("certified", "subgradient", "stalled")
    assert model.score(X, labels) > 0.6
    assert hasattr(model, "predict_proba") == (loss in ("logistic", "multinomial"))


@pytest.mark.parametrize(("name", "kind"), [*REGRESSION.items(), *CLASSIFICATION.items()])
def test_a_name_is_its_class(name, kind):
    X, y = data()
    estimator, y = (
        (door.LinearRegressor, np.floor(y - y.min()))
        if name in REGRESSION
        else (door.LinearClassifier, y > 0)
    )
    by_name, by_class = (estimator(loss, "l1", 0.1, tol=1e-3).fit(X, y) for loss in (name, kind))
    np.testing.assert_array_equal(by_class.coef_, by_name.coef_)
    assert (
        hasattr(by_class, "predict_proba")
        == hasattr(by_name, "predict_proba")
        == (name in ("logistic", "multinomial"))
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_options_of_a_multinomial_loss(classes):
    """They hold for two classes too, where it is the logistic loss."""
    X, y = data()
    y = np.digitize(y, [0.0, 1.0][: classes - 1])
    weak, strong = (
        door.LinearClassifier(partial(Multinomial, l2=l2), "none").fit(X, y) for l2 in (0.1, 10.0)
    )
    assert np.abs(strong.coef_).max() < 0.1 < np.abs(weak.coef_).max()


class Asymmetric(LinearModel):
    """A loss of the user's own: squares that count double below."""

    smoothness = 2.0

    @staticmethod
    def scalar(z, b, theta):
        t = z - b
        factor = 2.0 if t < 0.0 else 1.0
        return 0.5 * factor * t * t, factor * t


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_loss_of_your_own():
    X, y = data()
    model = door.LinearRegressor(Asymmetric, "none", 0.0).fit(X, y)
    r = y - model.predict(X)
    assert np.mean(np.where(r > 0, 2, 1) * r) == pytest.approx(
        0.0, abs=1e-3
    )  # the slope of the intercept
    assert model.dual_gap_ == np.inf  # its conjugate is not known
    assert model.stop_reason_ in ("subgradient", "stalled")
    strong = door.LinearRegressor(Asymmetric, "l1", 100.0).fit(X, y)
    assert not strong.coef_.any()
