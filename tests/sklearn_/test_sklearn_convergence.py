"""How a fit ends: `converged_` says whether that is proven, `stop_reason_` why, and a warning what to do if it is not."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.exceptions import ConvergenceWarning

from adagrad_diff import LinearModel
from adagrad_diff import sklearn as door
from sklearn_data import NAMES, data, make

pytestmark = pytest.mark.peer
WORDS = [
    "certified",
    "subgradient",
    "stalled",
    "max_iter",
    "failed",
]  # from the best end to the worst


class Slow(LinearModel):
    """Squares whose conjugate nobody has written down."""

    smoothness = 1.0

    @staticmethod
    def scalar(z, b, theta):
        return 0.5 * (z - b) * (z - b), z - b


class Kinked(LinearModel):
    """Absolute deviations, and nothing but their values and slopes."""

    @staticmethod
    def scalar(z, b, theta):
        return abs(z - b), 1.0 * (z > b) - 1.0 * (z < b)


def ending(word):
    """A fit that ends so."""
    X, y = data("LADRegressor")
    model = {
        "certified": door.Lasso(alpha=0.05),
        "subgradient": door.LinearRegressor(Slow, "none", eta=0.5),  # nothing better to stop on
        "stalled": door.LinearRegressor(Kinked, "none"),  # no dual points are known
        "max_iter": door.LADRegressor(alpha=0.01, tol=1e-12, max_iter=10, eta=0.1),
        "failed": door.PoissonRegressor(eta=1e6),
    }[word]
    return model, X, np.random.default_rng(0).poisson(np.exp(y)) if word == "failed" else y


@pytest.mark.parametrize("word", WORDS)
def test_the_word_the_truth_value_and_the_warning(word):
    model, X, y = ending(word)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert model.stop_reason_ == word
    assert type(model.converged_) is bool
    assert model.converged_ == (word in ("certified", "subgradient"))
    assert [w.category for w in caught] == [ConvergenceWarning] * (not model.converged_)
    assert np.isfinite(model.objective_)
    if model.converged_:
        assert (model.dual_gap_ <= model.tol * model.objective_) == (word == "certified")
        return
    assert caught[0].filename == __file__  # the caller's line
    sentence = str(caught[0].message)
    assert sentence.startswith(type(model).__name__)
    assert {
        "stalled": "stalled after",
        "max_iter": "did not reach tol=1e-12 in max_iter=10",
        "failed": "its run failed",
    }[word] in sentence
    assert (
        "nothing is certified" if model.dual_gap_ >= model.objective_ else "relative gap"
    ) in sentence
    assert "StandardScaler" in sentence  # what to do
    assert ("a larger alpha" if model.alpha else "a penalty (alpha > 0)") in sentence


@pytest.mark.parametrize("name", [name for name in NAMES if name != "KernelSVC"])
def test_a_path_counts_what_did_not_converge(name):
    X, y = data(name)
    options = {"max_iter": 30, "tol": 1e-12, "eta": 1e-3}
    with pytest.warns(
        ConvergenceWarning, match=rf"{name}.path did not reach tol=1e-12 at 1 of 1 strengths"
    ) as caught:
        make(name, **options).path(X, y, [1e-3])
    assert [w.filename for w in caught] == [__file__]
    assert "1 at max_iter" in str(caught[0].message)


def test_a_path_counts_what_stalled():
    X, y = data("LADRegressor")
    with pytest.warns(ConvergenceWarning, match=r"at 1 of 2 strengths \(1 stalled\): ") as caught:
        door.LinearRegressor(Kinked, "l1").path(X, y, [10.0, 0.0])
    assert len(caught) == 1


def test_the_worst_of_several_problems():
    """One class against the rest: the second problem has no slope to follow, the others need more iterations."""
    X, y = np.array([[0.0], [1.0], [2.0]]), [0, 1, 2]
    with pytest.warns(
        ConvergenceWarning, match=r"LinearSVC did not reach .* in 2 of its 3 problems"
    ) as caught:
        model = door.LinearSVC(C=10, max_iter=20, eta=1e-2).fit(X, y)
    assert len(caught) == 1
    assert model.stop_reason_ == "max_iter"
    assert model.converged_ is False
    assert model.dual_gap_[1] <= 1e-4 * model.objective_[1]
    assert (model.dual_gap_[[0, 2]] > 1e-4 * model.objective_[[0, 2]]).all()
    X, y = data("LinearSVC", classes=3)
    assert door.LinearSVC(C=0.1).fit(X, y).converged_ is True


def test_verbose_says_the_word(capsys):
    X, y = data("Lasso")
    door.Lasso(alpha=0.05, verbose=1).fit(X, y)
    assert capsys.readouterr().out.splitlines()[-1].endswith("certified")
