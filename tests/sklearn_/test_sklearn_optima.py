"""The estimators find the optima that scikit-learn, HiGHS and cvxpy find, and certify how good they are."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn.linear_model as peers
from sklearn.datasets import make_classification, make_regression

import sklearn_twin as twin
from adagrad_diff import sklearn as door

pytestmark = pytest.mark.peer
CLOSE = 1e-4
UNPROVEN = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # close, but not always proven to be


@pytest.fixture(scope="module")
def regression():
    X, y = make_regression(200, 20, n_informative=5, noise=5.0, random_state=0)
    return X, y / y.std() + 3.0


@pytest.fixture(scope="module")
def classification():
    X, y = make_classification(200, 15, n_informative=5, flip_y=0.1, class_sep=0.5, random_state=0)
    return X, np.where(y == 1, 1, -1)


@pytest.fixture(scope="module")
def classes():
    return make_classification(200, 10, n_informative=5, n_classes=3, flip_y=0.1, random_state=1)


def compare(ours, theirs, loss, penalty, X, y, coefficients=None):
    """Objectives agree to 1e-4 relative, what ours says about itself is true, and coefficients agree if they are unique."""
    mine, yours = (twin.objective(model, loss, penalty, X, y) for model in (ours, theirs))
    assert mine <= yours + CLOSE * abs(yours)
    assert ours.objective_ == pytest.approx(mine, rel=1e-8)
    assert mine - ours.dual_gap_ <= yours + 1e-9 * abs(yours)  # a lower bound on the optimum
    if coefficients:
        np.testing.assert_allclose(
            ours.coef_, theirs.coef_, atol=coefficients * np.abs(theirs.coef_).max()
        )
    return ours


@UNPROVEN
@pytest.mark.parametrize("tau", [0.2, 0.9])
def test_quantile(regression, tau):
    X, y = regression
    theirs = peers.QuantileRegressor(quantile=tau, alpha=0.02).fit(X, y)
    ours = door.QuantileRegressor(quantile=tau, alpha=0.02).fit(X, y)
    compare(ours, theirs, twin.pinball(tau), twin.l1(0.02), X, y)


@pytest.mark.parametrize(
    ("penalty", "options"),
    [("l2", {}), ("l1", {"l1_ratio": 1.0}), ("elasticnet", {"l1_ratio": 0.3})],
)
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_logistic(classification, penalty, options, C):
    X, y = classification
    ratio = {"l2": 0.0, "l1": 1.0}.get(penalty, options.get("l1_ratio"))
    kind = {"solver": "saga", "l1_ratio": ratio} if ratio else {}
    theirs = peers.LogisticRegression(C=C, tol=1e-10, max_iter=100_000, **kind).fit(X, y)
    ours = door.LogisticRegression(penalty, C=C, tol=1e-6, **options).fit(X, y)
    compare(
        ours, theirs, twin.logistic, twin.elastic(1 / (C * len(y)), ratio), X, y, coefficients=0.05
    )
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.02)


def test_multinomial(classes):
    X, y = classes
    theirs = peers.LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(X, y)
    compare(
        door.LogisticRegression(C=0.5).fit(X, y),
        theirs,
        twin.multinomial,
        twin.ridge(2 / len(y)),
        X,
        y,
    )
    ours = door.LogisticRegression(C=0.5, tol=1e-8).fit(X, y)
    compare(ours, theirs, twin.multinomial, twin.ridge(2 / len(y)), X, y, coefficients=0.01)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.02)
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("make", "loss", "penalty"),
    [
        (lambda: door.LinearSVC(C=0.1), twin.hinge, twin.ridge(0.05)),
        (lambda: door.LinearSVC("squared_hinge", C=0.1), twin.squared_hinge, twin.ridge(0.05)),
        (lambda: door.HuberRegressor(epsilon=0.3, alpha=0.1), twin.huber(0.3), twin.ridge(0.1)),
        (
            lambda: door.LogisticRegression("group", alpha=0.02, groups=np.arange(15) // 3),
            twin.logistic,
            None,
        ),
        (lambda: door.GroupLasso(np.arange(15) // 3, alpha=0.1), twin.squared, None),
    ],
    ids=["hinge", "squared_hinge", "huber", "logistic_group", "group_lasso"],
)
def test_by_cvxpy(classification, make, loss, penalty):
    """scikit-learn has no counterpart, or one that penalises the intercept or fits a scale too."""
    cp = pytest.importorskip("cvxpy")
    X, y = classification
    w, c = cp.Variable(X.shape[1]), cp.Variable()
    z, model = X @ w + c, make()
    terms = {
        twin.hinge: cp.pos(1 - cp.multiply(y, z)),
        twin.squared_hinge: cp.square(cp.pos(1 - cp.multiply(y, z))),
        twin.logistic: cp.logistic(-cp.multiply(y, z)),
        twin.squared: 0.5 * cp.square(z - y),
    }.get(loss, 0.5 * cp.huber(z - y, 0.3))
    group = 0.02 if loss is twin.logistic else 0.1
    if penalty is None:
        penalised = group * cp.sum(cp.norm(cp.reshape(w, (5, 3), order="C"), 2, axis=1))
        penalty = lambda w: group * np.linalg.norm(np.reshape(w, (5, 3)), axis=1).sum()
    else:
        penalised = (
            0.5 * (0.1 if isinstance(model, door.HuberRegressor) else 0.05) * cp.sum_squares(w)
        )
    optimum = cp.Problem(cp.Minimize(cp.sum(terms) / len(y) + penalised)).solve(solver=cp.CLARABEL)
    model.fit(X, y)
    found = twin.objective(model, loss, penalty, X, y)
    assert found == pytest.approx(optimum, rel=CLOSE)
    assert found - model.dual_gap_ <= optimum * (1 + 1e-6)


def test_kernel_machine_without_a_bias(classification):
    """With a linear kernel it is the linear machine."""
    X, y = classification
    linear = door.LinearSVC(C=0.1, fit_intercept=False, tol=1e-5).fit(X, y)
    kernel = door.KernelSVC(C=0.1, kernel="linear", fit_intercept=False).fit(X, y)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=2 * CLOSE)
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=0.02)
    gram = door.KernelSVC(C=0.1, kernel="precomputed", fit_intercept=False).fit(X @ X.T, y)
    np.testing.assert_allclose(
        gram.decision_function(X @ X.T), kernel.decision_function(X), atol=0.02
    )
