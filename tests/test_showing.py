"""What objects print: one line each, and a summary of a result that fits a screen."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import OptimizeResult

import adagrad_diff
from adagrad_diff import (
    L1,
    LAD,
    AdaGradDiff,
    Adam,
    DoG,
    Multinomial,
    Quadratic,
    Quantile,
    Scaled,
    minimize,
)

rng = np.random.default_rng(0)
A = rng.standard_normal((500, 100))
b = A[:, 0] - 2 * A[:, 1] + 0.1 * rng.standard_cauchy(500)


class Waves(adagrad_diff.linalg.Source):
    shape, cuts = (4, 2), (0, 4)

    def block(self, k):
        return np.ones((4, 2))


SHOWN = {
    "LAD(500 samples, 100 features, dense float64)": lambda: LAD(A, b),
    "LAD(500 samples, 100 features, dense float32, intercept, l2=0.1)": lambda: LAD(
        A.astype(np.float32), b, l2=0.1, intercept=True
    ),
    "Quantile(500 samples, 100 features, CSR float64, tau=0.9)": lambda: Quantile(
        sparse.csr_array(A), b, 0.9
    ),
    "Multinomial(500 samples, 100 features, dense float64, 3 classes)": lambda: Multinomial(
        A, np.arange(500) % 3
    ),
    "Waves(4 x 2, blocks, float64)": Waves,
    "Quadratic(3 unknowns)": lambda: Quadratic(np.eye(3), np.ones(3)),
    "L1(lam=array([1., 2.]))": lambda: L1([1.0, 2.0]),
    "L1(lam=array of shape (1000,))": lambda: L1(np.ones(1000)),
    "Scaled(penalty=L1(lam=0.1), factor=2.0)": lambda: Scaled(L1(0.1), 2.0),
    "AdaGradDiff(eta=array([0.1, 1. ]), blocks='all')": lambda: AdaGradDiff(
        [0.1, 1.0], blocks="all"
    ),
    "Adam(eta=0.01, beta1=0.5)": lambda: Adam(0.01, beta1=0.5),
    "DoG()": DoG,
}


def test_reprs():
    for text, make in SHOWN.items():
        assert repr(make()) == text


def test_every_rule_is_shown_as_it_is_made():
    from adagrad_diff import rules

    for name in set(rules.__all__) - {"Rule"}:
        kind = getattr(rules, name)
        made = kind(0.1) if "eta" in kind.__match_args__ else kind()
        again = eval(repr(made), vars(rules))
        assert vars(again) == vars(made)


RUNS = {
    "a given step size": {"penalty": L1(0.01), "eta": 0.1, "max_iter": 50},
    "none": {"penalty": L1(0.01), "tol": 1e-6},
    "several": {"x0": np.zeros((100, 3)), "eta": [0.1, 0.2, 0.3], "max_iter": 20},
    "a proof": {"penalty": L1(0.01), "eta": 0.05, "stop": "gap", "max_iter": 200},
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_result_is_a_summary(kind):
    result = minimize(LAD(A, b), **RUNS[kind])
    text = str(result)
    assert text == repr(result)
    lines = text.splitlines()
    assert len(lines) <= 14, text
    assert max(map(len, lines)) <= 100, text
    for name in ("message", "success", "fun", "nit", "x", "others"):
        assert any(line.strip().startswith(f"{name}  ") for line in lines), (name, text)
    assert ("gap  " in text) == ("gap" in result)
    told = text.replace("\n", " ")
    for name in result:  # nothing is hidden: what is not shown is named
        assert name in told or name in ("fun_best", "nfev", "status", "bound", "eta"), name


def test_a_result_is_scipys():
    result = minimize(LAD(A, b), penalty=L1(0.01), eta=0.1, max_iter=5)
    assert isinstance(result, OptimizeResult)
    assert result.x is result["x"]
    for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        np.testing.assert_array_equal(other.x, result.x)
        assert repr(other) == repr(result)
    assert repr(result.state) == "State(after 5 iterations of AdaGradDiff, 100 coordinates)"
    assert repr(result.history) == "History(5 entries, iterations 1 to 5)"


def test_nothing_proven_is_said():
    result = minimize(lambda x: (0.5 * x @ x, x), [1.0], eta=0.1, max_iter=3)
    assert "gap" not in result
    assert "1 number: " in repr(result)
    result["gap"] = np.inf
    assert "nothing is proven" in repr(result)


def test_warnings_are_the_callers():
    with pytest.warns(RuntimeWarning, match="budget of iterations") as caught:
        minimize(LAD(A, b), eta=0.1, max_iter=2, tol=1e-12, on_failure="warn")
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.peer
def test_warnings_of_estimators_are_the_callers():
    from sklearn.exceptions import ConvergenceWarning

    from adagrad_diff.sklearn import LogisticRegression, PathCV

    raw, y = A * np.geomspace(1e-8, 1e8, 100), b > 0
    with pytest.warns(ConvergenceWarning) as caught:
        LogisticRegression(max_iter=1, tol=1e-15).fit(raw, y)
    with pytest.warns(ConvergenceWarning) as more:
        PathCV(LogisticRegression(max_iter=1, tol=1e-16), n_alphas=3).fit(A[:60], y[:60])
    assert {warning.filename for warning in (*caught, *more)} == {__file__}
