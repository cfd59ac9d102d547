"""Input that is easily misunderstood: what a message points at, what is silently left out, what is left of an earlier fit."""

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")

from sklearn.base import clone

from adagrad_diff import sklearn as door
from sklearn_data import REGRESSORS, data, make

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("samples", [80, 5000])
def test_the_place_of_a_wrong_target(samples):
    """Samples are sorted before a fit, but the message is about those that were given."""
    X, y = data("PoissonRegressor", samples)
    y[7] = -1
    with pytest.raises(ValueError, match=r"b\[7\] is -1.0. Poisson needs targets >= 0"):
        door.PoissonRegressor().fit(X, y)
    weight = np.ones(samples)
    weight[11] = -2.0
    for name, labels in (("Lasso", y), ("LinearSVC", y > 1), ("KernelSVC", y > 1))[
        : 3 if samples == 80 else 2
    ]:
        with pytest.raises(ValueError, match=r"Negative values in data passed to `sample_weight`"):
            getattr(door, name)().fit(X, labels, sample_weight=weight)


def test_nothing_is_left_of_an_earlier_kernel():
    X, y = data("KernelSVC")
    model = door.KernelSVC().fit(X, y)
    assert model.support_vectors_.shape == (len(model.support_), 6)
    assert not hasattr(model.set_params(kernel="precomputed").fit(X @ X.T, y), "support_vectors_")


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_target_that_is_none(name):
    X, y = data(name)
    y = y.astype(object)
    y[3] = None
    with pytest.raises(ValueError, match="Input y contains NaN"):
        make(name).fit(X, y)


@pytest.mark.parametrize("name", ["Lasso", "LogisticRegression"])
def test_plain_arrays_are_as_good_as_those_that_scikit_learn_has_to_look_at(name):
    """They take a shorter way."""
    X, y = data(name)
    model = make(name, max_iter=20, tol=0.1)
    plain = clone(model).fit(X, y).coef_
    np.testing.assert_array_equal(clone(model).fit(X.tolist(), y.tolist()).coef_, plain)
    np.testing.assert_array_equal(
        clone(model).fit(np.asfortranarray(X), np.repeat(y, 2)[::2]).coef_, plain
    )
    np.testing.assert_array_equal(clone(model).fit(X.astype(">f8"), y).coef_, plain)
    frames = pytest.importorskip("pandas")
    model.fit(frames.DataFrame(X[:, :4], columns=list("abcd")), y)
    assert model.n_features_in_ == 4
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    assert model.n_features_in_ == 6
    for place, value in [((3, 1), np.nan), ((0, 0), np.inf), ((5, 5), -np.inf)]:
        wrong = X.copy()
        wrong[place] = value
        with pytest.raises(ValueError, match="Input X contains"):
            model.fit(wrong, y)


def test_ties_do_not_depend_on_the_order_of_the_samples():
    """Where first entries, or whole rows, are equal, the rest of the rows and the targets decide."""
    X, y = data("Lasso")
    X[40:60] = X[:20]
    X[60:, 0] = X[20:40, 0]
    order = np.random.default_rng(0).permutation(len(y))
    for kind in (np.asarray, sparse.csr_array):
        for samples in (80, 60, 30):  # rows that are equal, first entries too, and neither
            rows = order[order < samples]
            first, second = (
                door.Lasso(0.1).fit(kind(X[chosen]), y[chosen]) for chosen in (np.sort(rows), rows)
            )
            np.testing.assert_array_equal(first.coef_, second.coef_)
            assert first.objective_ == second.objective_
            errors = y[:samples] - first.predict(kind(X[:samples]))
            assert first.objective_ == pytest.approx(
                0.5 * np.mean(errors**2) + 0.1 * np.abs(first.coef_).sum()
            )
    X[30:40, 0] = X[:10, 0]  # equal first entries alone
    first, second = (
        door.Lasso(0.1).fit(X[chosen], y[chosen]) for chosen in (np.arange(40), order[order < 40])
    )
    np.testing.assert_array_equal(first.coef_, second.coef_)
