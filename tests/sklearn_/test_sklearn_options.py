"""What users of scikit-learn expect of an estimator beside the answer."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")

from adagrad_diff import sklearn as door
from sklearn_data import NAMES, REGRESSORS, data, make

pytestmark = pytest.mark.peer


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "classes"),
    [(name, k) for name in NAMES for k in (2, 3) if k == 2 or name not in REGRESSORS],
)
def test_attributes(name, classes):
    X, y = data(name, classes=classes)
    model = make(name).fit(X, y)
    assert model.stop_reason_ in ("certified", "subgradient", "stalled")
    assert np.all(np.asarray(model.n_iter_) >= 1)
    assert np.all(np.asarray(model.dual_gap_) >= -1e-9)
    assert np.all(np.isfinite(model.objective_))
    assert model.score(X, y) > (0.2 if "Poisson" in name else 0.5)
    if name in REGRESSORS:
        assert model.coef_.shape == (6,)
        assert isinstance(model.intercept_, float)
    else:
        rows = 1 if classes == 2 else 3
        assert model.intercept_.shape == (rows,)
        assert model.decision_function(X).shape == ((80,) if classes == 2 else (80, 3))
        assert (model.coef_ if name != "KernelSVC" else model.dual_coef_).shape[0] == rows
        if classes == 3 and name != "LogisticRegression":
            assert model.dual_gap_.shape == model.n_iter_.shape == (3,)


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_kept(name):
    X, y = data(name)
    model, wide = make(name, tol=1e-3).fit(X.astype(np.float32), y), make(name, tol=1e-3).fit(X, y)
    found = model.dual_coef_ if name == "KernelSVC" else model.coef_
    assert found.dtype == np.float32
    assert model.score(X, y) == pytest.approx(wide.score(X, y), abs=0.03)
    if name in REGRESSORS:
        assert model.predict(X.astype(np.float32)).dtype == np.float32


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", NAMES)
def test_sparse_data(name):
    X, y = data(name)
    X[np.abs(X) < 0.5] = 0
    dense = make(name).fit(X, y)
    for kind in (
        sparse.csr_array,
        sparse.csc_array,
        *[sparse.coo_array, sparse.csr_matrix] * (name == "Lasso"),
    ):
        model = make(name).fit(kind(X), y)
        np.testing.assert_allclose(model.objective_, dense.objective_, rtol=3e-4)
        assert np.shape(model.predict(kind(X))) == (80,)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["Lasso", "LADRegressor", "LogisticRegression"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
def test_sparse_is_never_made_dense(name, kind):
    rng = np.random.default_rng(0)
    X = kind(sparse.random_array((10_000, 1000), density=1e-3, rng=rng, format="csr"))
    score = 3 * (X[:, :5] @ np.ones(5)) + 0.1 * rng.standard_normal(10_000)
    y = score if name in REGRESSORS else (score > 0.1).astype(int)
    fit = make(name, alpha=1e-3, max_iter=20).fit
    fit(X, y)  # Everything is compiled.
    tracemalloc.start()
    fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * 10_000 * 1000


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_samples_does_not_matter(name):
    """To the last bit, if data are small; nor does it matter whether a sample is repeated or has a weight."""
    X, y = data(name)
    order = np.random.default_rng(3).permutation(len(y))
    first, second = (
        make(name, max_iter=20).fit(X, y),
        make(name, max_iter=20).fit(X[order], y[order]),
    )
    third = make(name, max_iter=20).fit(np.r_[X, X[:9]], np.r_[y, y[:9]])
    fourth = make(name, max_iter=20).fit(
        X[order], y[order], sample_weight=np.where(order < 9, 2, 1)
    )
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert first.objective_ == second.objective_
    assert third.objective_ == fourth.objective_
    method = "predict" if name in REGRESSORS else "decision_function"
    np.testing.assert_allclose(getattr(third, method)(X), getattr(fourth, method)(X), atol=1e-9)


@pytest.mark.parametrize(
    "kind", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array, sparse.csc_array]
)
def test_large_data_are_not_copied(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8000, 500))
    y, X = X[:, 0] + rng.standard_normal(8000), kind(X)
    door.Lasso(alpha=0.1, eta=0.5, max_iter=50, tol=0.1).fit(X, y)  # what is compiled, is compiled
    tracemalloc.start()
    door.Lasso(alpha=0.1, eta=0.5, max_iter=50, tol=0.1).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * 8000 * 500


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_strength_by_C():
    """C counts samples by their weight, alpha does not."""
    X, y = data("LinearSVC")
    weight = np.full(len(y), 2.0)
    for name in ("LinearSVC", "SparseSVC", "LogisticRegression", "KernelSVC"):
        kind = getattr(door, name)
        by_C = kind(C=0.5, max_iter=60).fit(X, y, sample_weight=weight)
        by_alpha = kind(alpha=1 / (0.5 * 2 * len(y)), max_iter=60).fit(X, y)
        np.testing.assert_allclose(by_C.objective_, by_alpha.objective_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in REGRESSORS])
def test_class_weights(name):
    X, y = data(name)
    keep = np.flatnonzero((y == 0) | (np.arange(len(y)) % 4 == 0))
    X, y = X[keep], y[keep]
    counts = np.bincount(y)
    balanced = make(name, max_iter=60, class_weight="balanced").fit(X, y)
    by_hand = make(
        name, max_iter=60, class_weight={k: len(y) / (2 * counts[k]) for k in (0, 1)}
    ).fit(X, y)
    weighted = make(name, max_iter=60).fit(X, y, sample_weight=1 / counts[y])
    np.testing.assert_allclose(balanced.objective_, by_hand.objective_, rtol=1e-9)
    np.testing.assert_allclose(balanced.objective_, weighted.objective_, rtol=1e-9)
    assert make(name, max_iter=60).fit(X, y).predict(X).mean() <= balanced.predict(X).mean()


def test_verbose(capsys):
    X, y = data("LADRegressor")
    door.LADRegressor(alpha=0.1).fit(X, y)
    assert capsys.readouterr().out == ""
    door.LADRegressor(alpha=0.1, verbose=1).fit(X, y)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("LADRegressor: objective")
    assert line.endswith("certified")


def test_a_given_step_size():
    X, y = data("Lasso")
    by_hand, auto = (door.Lasso(alpha=0.05, eta=eta).fit(X, y) for eta in (0.5, "auto"))
    np.testing.assert_allclose(by_hand.objective_, auto.objective_, rtol=3e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_best_iterate_is_kept():
    X, y = data("LADRegressor")
    found = [
        door.LADRegressor(alpha=0.05, eta=3.0, max_iter=n).fit(X, y).objective_
        for n in range(1, 30)
    ]
    assert np.all(np.diff(found) <= 0)


def test_kernels():
    X, y = data("KernelSVC")
    by_name = door.KernelSVC(kernel="poly", degree=2, coef0=1.0, gamma=0.5).fit(X, y)
    by_function = door.KernelSVC(kernel=lambda A, B: (0.5 * A @ B.T + 1) ** 2).fit(X, y)
    np.testing.assert_allclose(
        by_function.decision_function(X), by_name.decision_function(X), atol=1e-6
    )
    assert by_name.support_vectors_.shape == (len(by_name.support_), 6)
    bound = np.abs(by_name.dual_coef_) <= 1 + 1e-9  # as in scikit-learn: |dual_coef_| <= C
    assert bound.all()
    laplacian = door.KernelSVC(kernel="laplacian", gamma="auto").fit(X, y)
    assert laplacian.score(X, y) > 0.9
