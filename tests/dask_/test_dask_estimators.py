"""Estimators on Dask collections: the models of the arrays in memory, and predictions that wait until they are asked for."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier

import adagrad_diff.dask as on_dask
from adagrad_diff import sklearn as in_memory
from adagrad_diff.dask import LADRegressor, LinearClassifier, LogisticRegression, QuantileRegressor

pytestmark = pytest.mark.peer
NAMES = [name for name in on_dask.__all__ if name in in_memory.__all__]
RNG = np.random.default_rng(0)
A = RNG.standard_normal((120, 4))
REAL = A @ [1.0, 0.0, -2.0, 0.0] + 1.0 + 0.3 * RNG.standard_normal(120)
WEIGHT = 1.0 + np.arange(120) % 3
CHUNKS = (50, 7, 63)
OPTIONS = {"GroupLasso": {"groups": [0, 0, 1, 1]}, "QuantileRegressor": {"quantile": [0.1, 0.9]}}


def targets(name):
    if "SVC" in name or "Classif" in name or "Logistic" in name:
        return np.array(["no", "yes", "perhaps"])[np.digitize(REAL, [0.0, 2.0])]
    return np.round(np.abs(REAL)) if "Poisson" in name else REAL


def collection():
    return da.from_array(A, chunks=(CHUNKS, (1, 3)))


def test_all_but_those_that_need_all_samples_at_once():
    assert set(in_memory.__all__) - set(NAMES) == {"KernelSVC", "PathCV"}


@pytest.mark.parametrize("name", NAMES)
def test_models_are_those_of_the_array(name):
    y, options = targets(name), {"tol": 1e-9, "alpha": 0.01, **OPTIONS.get(name, {})}
    wanted = getattr(in_memory, name)(**options).fit(A, y, WEIGHT)
    model = getattr(on_dask, name)(**options)
    assert (
        model.fit(collection(), da.from_array(y, chunks=31), da.from_array(WEIGHT, chunks=60))
        is model
    )
    np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-7)
    assert type(model.coef_) is np.ndarray
    assert model.n_features_in_ == 4
    assert model.converged_
    found = model.predict(collection())
    assert isinstance(found, da.Array)
    assert found.chunks[0] == CHUNKS
    assert (found.shape, found.dtype) == (wanted.predict(A).shape, wanted.predict(A).dtype)
    if is_classifier(model):  # classes may be tied: samples are at their kinks
        scores = model.decision_function(collection())
        assert scores.chunks == (CHUNKS, (3,))
        one, other = scores.compute(), wanted.decision_function(A)
        if "Logistic" in name:  # multinomial: a constant added to all classes changes nothing
            one, other = (values - values.mean(axis=1, keepdims=True) for values in (one, other))
        np.testing.assert_allclose(one, other, atol=1e-6)
    else:
        np.testing.assert_allclose(found.compute(), wanted.predict(A), rtol=1e-6, atol=1e-6)
    for weight in (None, WEIGHT):
        score = model.score(collection(), da.from_array(y, chunks=31), weight)
        assert type(score) is float
        assert (
            score
            == model.score(A, y, weight)
            == pytest.approx(wanted.score(A, y, weight), abs=0.05)
        )  # arrays, too
    assert np.array_equal(model.predict(A), found.compute())


def test_probabilities():
    y = targets("LogisticRegression")
    wanted = in_memory.LogisticRegression().fit(A, y)
    for model in (LogisticRegression(), LinearClassifier(loss="multinomial")):
        model.fit(collection(), da.from_array(y))
        p = model.predict_proba(collection())
        assert p.chunks == (CHUNKS, (3,))
        np.testing.assert_allclose(p.compute().sum(axis=1), 1.0)
        np.testing.assert_allclose(
            np.exp(model.predict_log_proba(collection()).compute()), p.compute()
        )
        assert np.array_equal(
            model.predict(collection()).compute(), model.classes_[p.compute().argmax(axis=1)]
        )
    np.testing.assert_allclose(
        LogisticRegression().fit(collection(), y).predict_proba(A),
        wanted.predict_proba(A),
        atol=1e-3,
    )
    assert not hasattr(LinearClassifier(loss="hinge").fit(collection(), y), "predict_proba")


def test_frames():
    frame = dd.from_pandas(pd.DataFrame(A, columns=list("abcd")).assign(y=REAL), npartitions=3)
    X = frame[list("abcd")]
    model = LADRegressor(alpha=0.01).fit(X, frame.y)
    assert model.feature_names_in_.tolist() == list("abcd")
    found = model.predict(X)
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(
        found.compute(), in_memory.LADRegressor(alpha=0.01).fit(A, REAL).predict(A), atol=1e-3
    )
    assert model.score(X, frame.y) > 0.9
    again = clone(model).fit(
        X[X.a > 0], frame.y[frame.a > 0]
    )  # nobody knows how many rows that are
    assert again.predict(X[X.a > 0]).compute().shape == (int((A[:, 0] > 0).sum()),)
    again.fit(collection(), REAL)
    assert not hasattr(again, "feature_names_in_")
    with pytest.raises(
        ValueError, match="feature names should match those that were passed during fit"
    ):
        model.predict(X.rename(columns={"a": "z"}))


def test_partitions_without_rows():
    """What is chosen may leave nothing of a partition."""
    frame = dd.from_pandas(pd.DataFrame(A, columns=list("abcd")).assign(y=REAL), npartitions=4)
    late = frame.map_partitions(lambda part: part[part.index >= 50])
    X, y = late[list("abcd")], targets("LogisticRegression")[50:]
    model = LogisticRegression().fit(X, y)
    for method in ("predict", "predict_proba", "decision_function"):
        assert np.array_equal(
            getattr(model, method)(X).compute(), getattr(model, method)(X.compute())
        )
    assert model.score(X, y) == model.score(X.compute(), y)
    some = da.from_array(A, chunks=(CHUNKS, 4))
    some = some[da.arange(120, chunks=(CHUNKS,)) >= 50]
    regressor = LADRegressor(alpha=0.01).fit(some, REAL[50:])
    assert np.array_equal(regressor.predict(some).compute(), regressor.predict(A[50:]))


def test_arrays_on_disk(tmp_path):
    np.save(tmp_path / "A.npy", A)
    mapped = np.load(tmp_path / "A.npy", mmap_mode="r")
    stored = pytest.importorskip("zarr").open(
        str(tmp_path / "A.zarr"), mode="w", shape=A.shape, chunks=(50, 4), dtype="f8"
    )
    stored[:] = A
    wanted = in_memory.LADRegressor(alpha=0.01, tol=1e-9).fit(A, REAL)
    for X in (mapped, stored):
        model = LADRegressor(alpha=0.01, tol=1e-9).fit(X, REAL)
        np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-7)
        np.testing.assert_allclose(np.asarray(model.predict(X)), wanted.predict(A), atol=1e-7)
        assert model.score(X, REAL) == pytest.approx(wanted.score(A, REAL), abs=1e-6)


def test_sentences():
    with pytest.raises(ValueError, match=r"^Block 1 of X contains nan"):
        LADRegressor().fit(
            da.where(
                da.arange(120, chunks=40)[:, None] == 55, np.nan, da.from_array(A, chunks=(40, 4))
            ),
            REAL,
        )
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[120, 119\]"):
        LADRegressor().fit(collection(), da.from_array(REAL[1:]))
    for y, weight in (
        (da.ma.masked_greater(da.from_array(REAL), 2.0), None),
        (REAL, da.ma.masked_equal(da.ones(120), 1.0)),
    ):
        with pytest.raises(ValueError, match=r"^(y|sample_weight) has masked entries"):
            LADRegressor().fit(collection(), y, weight)
    model = QuantileRegressor(alpha=0.01).fit(collection(), REAL)
    with pytest.raises(
        ValueError, match="X has 3 features, but QuantileRegressor is expecting 4 features"
    ):
        model.predict(collection()[:, 1:])
    with pytest.raises(
        ValueError, match=r"^X must be a Dask array \(samples, features\). Got shape \(120,\)"
    ):
        model.predict(collection()[:, 0])
