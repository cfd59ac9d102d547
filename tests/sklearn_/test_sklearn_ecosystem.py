"""The estimators among other things: data frames, pickles, pipelines, searches, and classes of the user's own."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from adagrad_diff import sklearn as door
from sklearn_data import NAMES, data, make

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", ["LADRegressor", "LogisticRegression", "KernelSVC"])
def test_names_of_columns(library, name):
    frames = pytest.importorskip(library)
    X, y = data(name)
    names = [f"column {k}" for k in range(X.shape[1])]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    model = make(name).fit(frame, y)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_allclose(model.predict(frame), make(name).fit(X, y).predict(X), rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])


@pytest.mark.parametrize("name", NAMES)
def test_pickles_and_clones(name):
    X, y = data(name)
    model = make(name).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert clone(model).get_params() == model.get_params()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_model_selection():
    X, y = data("Lasso")
    search = GridSearchCV(
        make_pipeline(StandardScaler(), door.Lasso()), {"lasso__alpha": [0.01, 10.0]}, cv=3
    ).fit(X, y)
    assert search.best_params_ == {"lasso__alpha": 0.01}
    X, y = data("SparseSVC", classes=3)
    assert cross_val_score(door.SparseSVC(alpha=0.02, tol=1e-3), X, y, cv=3).mean() > 0.7


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_metadata_routing():
    X, y = data("LADRegressor")
    weight = np.r_[np.ones(40), np.zeros(40)]
    y = np.where(weight > 0, y, 1000.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            door.LADRegressor(alpha=0.01)
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=True)
        )
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        search = GridSearchCV(pipeline, {"ladregressor__alpha": [0.01, 0.1]}, cv=2).fit(
            X, y, sample_weight=weight + 1e-9
        )
        assert search.best_estimator_[-1].intercept_ < 100
        with pytest.raises(TypeError, match=r"unexpected|not requested|sample_weight"):
            make_pipeline(StandardScaler(), door.Lasso()).fit(X, y, nothing=weight)


class Renamed(door.Lasso):
    """A subclass with a signature of its own."""

    def __init__(self, strength=0.5, *, scale=1.0):
        super().__init__(alpha=strength, tol=1e-3)
        self.strength = strength
        self.scale = scale

    def fit(self, X, y, sample_weight=None):
        return super().fit(self.scale * X, y, sample_weight)


class Longer(door.KernelSVC):
    """A subclass with one more parameter that has the parent keep its own."""

    def __init__(self, C=2.0, *, extra="none", kernel="rbf"):
        super().__init__(C, kernel=kernel)
        self.extra = extra


def test_subclasses():
    X, y = data("Lasso")
    model = Renamed(0.1, scale=2.0)
    assert model.get_params() == {"strength": 0.1, "scale": 2.0}
    assert clone(model).set_params(scale=3.0).get_params() == {"strength": 0.1, "scale": 3.0}
    assert (model.alpha, model.tol, model.max_iter) == (0.1, 1e-3, 10000)
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(again.coef_, door.Lasso(0.1, tol=1e-3).fit(2.0 * X, y).coef_)

    X, y = data("KernelSVC")
    search = GridSearchCV(Longer(), {"C": [0.1, 1.0], "extra": ["some"]}, cv=2).fit(X, y)
    assert search.best_estimator_.extra == "some"
    assert set(Longer().get_params()) == {"C", "extra", "kernel"}
    assert (Longer().C, Longer().gamma) == (2.0, "scale")


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_nothing_else_are_kept(name):
    """scikit-learn's clone needs the same objects."""
    kind = getattr(door, name)
    given = {key: object() for key in kind().get_params()}
    model = kind(**given)
    assert vars(model) == given
