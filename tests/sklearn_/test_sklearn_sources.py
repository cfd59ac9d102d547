"""X as a source of the user's own: the estimators read it block by block."""

import numpy as np
import pytest

from adagrad_diff.sklearn import (
    KernelSVC,
    Lasso,
    LinearClassifier,
    LinearRegressor,
    LogisticRegression,
)
from own_sources import Replaced, SparseWaves, Waves, dense

REAL = np.sin(np.arange(60.0))
SIGNS = np.where(np.cos(1.0 + np.arange(60)) > 0, "yes", "no")
CLASSES = np.arange(60) % 3
MODELS = [
    (LinearRegressor(loss="absolute", penalty="l1"), REAL),
    (Lasso(alpha=0.01), REAL),
    (LinearRegressor(loss="poisson"), CLASSES),
    (LinearClassifier(loss="hinge"), SIGNS),
    (LinearClassifier(loss="multinomial"), CLASSES),
    (LogisticRegression(class_weight="balanced"), CLASSES),
]


@pytest.mark.parametrize("source", [Waves, SparseWaves])
@pytest.mark.parametrize(
    ("model", "y"), MODELS, ids=lambda value: str(value)[:40] if hasattr(value, "fit") else ""
)
def test_answers_are_those_of_the_array(model, y, source):
    X, weight = source(), 1.0 + np.arange(60) % 2
    array = dense(X)
    model.set_params(tol=1e-3)
    wanted = model.fit(array, y, sample_weight=weight).predict(array), model.objective_
    model.fit(X, y, sample_weight=weight)
    assert model.n_features_in_ == 5
    assert model.converged_
    assert model.objective_ == pytest.approx(wanted[1], rel=2e-3)
    assert model.score(X, y) == pytest.approx(model.score(array, y), abs=1e-12)
    here = model.predict(X)
    assert np.array_equal(here, model.predict(array)) or np.allclose(
        here, model.predict(array), rtol=1e-12
    )
    if hasattr(model, "decision_function"):
        np.testing.assert_allclose(
            model.decision_function(X), model.decision_function(array), atol=1e-12
        )
    else:
        np.testing.assert_allclose(here, wanted[0], atol=0.05)


def test_sentences():
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        Lasso().fit(Waves(), REAL[1:])
    with pytest.raises(ValueError, match=r"^Block 1 of Replaced \(rows 16 to 31\) contains nan"):
        Lasso().fit(Replaced(1, lambda rows: rows * np.nan), REAL)
    with pytest.raises(
        ValueError, match=r"^X holds numbers as large as 1.0e\+200, whose squares overflow"
    ):
        Lasso().fit(Replaced(0, lambda rows: rows * 1e200), REAL)
    with pytest.raises(ValueError, match=r"X has 4 features, but Lasso is expecting 5 features"):
        Lasso().fit(Waves(), REAL).predict(Waves(features=4))
    with pytest.raises(ValueError, match=r"^KernelSVC needs all samples in memory"):
        KernelSVC().fit(Waves(), SIGNS)
