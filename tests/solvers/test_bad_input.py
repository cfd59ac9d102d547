"""Bad input is answered by a sentence that names the argument; a run that goes wrong by a status, never by a silent NaN."""

import re

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Box,
    ConvergenceError,
    ConvergenceWarning,
    Logistic,
    Poisson,
    Quadratic,
    Squared,
    Status,
    iterate,
    minimize,
)
from looping import looped
from pairwise import pairwise
from user_losses import Barrier, Bowl, data

A, REAL, LABELS, CLASSES = data()
ZEROS = np.zeros(3)
RUN = {"loss": Bowl(), "x0": ZEROS, "eta": 0.3}
NUMBER = "must be a number >= 0. Got"
COUNT = "must be an integer >= 0. Got"

ARGUMENTS = [
    ({"eta": "small"}, ValueError, "'eta' parameter of AdaGradDiff must be a positive number"),
    ({"eta": "auto", "x0": np.zeros((3, 2))}, ValueError, "eta='auto' runs from one start"),
    ({"rule": AdaGrad(0.3)}, ValueError, "give either 'rule' or 'eta', not both"),
    (
        {"rule": AdaGrad(0.3), "eta": None, "eps": 0.1},
        ValueError,
        "give either 'rule' or 'eps', not both",
    ),
    (
        {"rule": AdaGrad(0.3), "eta": None, "blocks": "all"},
        ValueError,
        "give either 'rule' or 'blocks', not both",
    ),
    (
        {"rule": AdaGrad, "eta": None},
        TypeError,
        r"'rule' is the class AdaGrad. Did you mean AdaGrad\(...\)\?",
    ),
    (
        {"rule": AdaGradDiff, "eta": 0.1},
        TypeError,
        r"'rule' is the class AdaGradDiff. Did you mean AdaGradDiff\(...\)\?",
    ),
    (
        {"rule": dict, "eta": None},
        TypeError,
        r"'rule' must be a rule such as AdaGradDiff\(eta=0.1\). Got <class 'dict'>",
    ),
    ({"rule": 0.1, "eta": None}, TypeError, "'rule' must be a rule .* Got 0.1"),
    *[
        ({"eta": eta}, ValueError, "'eta' parameter of AdaGradDiff must be")
        for eta in (0, -0.1, np.nan, np.inf, "a", [], [[0.1]])
    ],
    *[
        ({"eps": eps}, ValueError, "'eps' parameter of AdaGradDiff must be a positive")
        for eps in (0, -1e-8, np.nan, np.inf, "a")
    ],
    *[
        ({"max_iter": n}, ValueError, f"'max_iter' parameter of minimize {COUNT}")
        for n in (-1, 10.0, "10", True, np.nan)
    ],
    *[
        ({"history": n}, ValueError, f"'history' parameter of minimize {COUNT}")
        for n in (-1, 1.5, "all", None, True)
    ],
    *[
        ({"tol": tol}, ValueError, f"'tol' parameter of minimize {NUMBER}")
        for tol in (-1e-3, np.nan, np.inf, "a", True)
    ],
    *[
        ({"max_time": t}, ValueError, "'max_time' parameter of minimize must be a positive")
        for t in (0, -1.0, np.nan, "a")
    ],
    *[
        ({"finish": f}, ValueError, "'finish' parameter of minimize must be True or False")
        for f in ("yes", 1, None)
    ],
    *[
        (
            {"on_failure": w},
            ValueError,
            "'on_failure' parameter of minimize must be one of 'warn', 'raise'",
        )
        for w in ("stop", None)
    ],
    ({"callback": 3}, TypeError, "'callback' parameter of minimize must be callable. Got 3"),
    ({"learning_rate": 3}, TypeError, "learning_rate"),
    (
        {"loss": 3},
        TypeError,
        r"'loss' must be a loss, or a function x -> \(value, gradient\). Got 3",
    ),
    (
        {"loss": Logistic},
        TypeError,
        r"'loss' is the class Logistic. Did you mean Logistic\(...\)\?",
    ),
    (
        {"penalty": 0.1},
        TypeError,
        r"'penalty' must be None or have methods value\(x\) and prox\(z, step\). Got 0.1",
    ),
    ({"penalty": L1}, TypeError, "'penalty' must be None or have methods"),
    ({"penalty": L1([0.1, 0.2])}, ValueError, "2 strengths, but there are 3 penalized coordinates"),
    (
        {"penalty": Box([0.0] * 4, 1.0)},
        ValueError,
        "4 bounds, but there are 3 penalized coordinates",
    ),
    ({"x0": None}, ValueError, "'x0' is needed: the loss is a function"),
    ({"x0": 1.0}, ValueError, r"'x0' must have at least one dimension. Got shape \(\)"),
    ({"x0": []}, ValueError, "'x0' is empty"),
    ({"x0": np.zeros((3, 0))}, ValueError, "'x0' is empty"),
    ({"x0": [0.0, np.nan, 0.0]}, ValueError, "x0 contains nan at index 1"),
    ({"x0": [[0.0, 0.0], [0.0, -np.inf]]}, ValueError, r"x0 contains -inf at index \(1, 1\)"),
    ({"x0": L1(0.1)}, TypeError, r"'x0' is a penalty. Did you mean penalty=L1\(lam=0.1\)\?"),
    (
        {"x0": AdaGradDiff(0.1)},
        TypeError,
        r"'x0' is a rule. Did you mean rule=AdaGradDiff\(eta=0.1\)\?",
    ),
    ({"x0": ["a", "b"]}, ValueError, "x0 must be real numbers"),
    (
        {"loss": LAD(A.astype(np.float32), REAL), "x0": [1e300] * 6},
        ValueError,
        r"x0\[0\] is 1e\+300, too large for float32, the precision of the loss",
    ),
    ({"x0": [1.0, 1j, 0.0]}, ValueError, "x0 must be real numbers"),
    ({"x0": [[1.0], [1.0, 2.0]]}, ValueError, "x0"),
    (
        {"loss": LAD(A, REAL), "x0": np.zeros(5)},
        ValueError,
        r"'x0' must have shape \(6,\), or that and .* Got shape \(5,\)",
    ),
    ({"loss": LAD(A, REAL), "x0": np.zeros((2, 6))}, ValueError, r"'x0' must have shape \(6,\)"),
    ({"loss": LAD(A, REAL), "x0": np.zeros((6, 2, 2))}, ValueError, r"'x0' must have shape \(6,\)"),
    (
        {"loss": LAD(A, REAL, intercept=True), "x0": np.zeros(6)},
        ValueError,
        r"'x0' must have shape \(7,\)",
    ),
    (
        {"loss": LAD(A, REAL), "x0": np.zeros((6, 3)), "eta": [0.1, 0.2]},
        ValueError,
        "'eta' has 2 values, one per trajectory",
    ),
]


@looped(("change", "error", "words"), ARGUMENTS)
def test_arguments_of_minimize(change, error, words):
    with pytest.raises(error, match=words):
        minimize(**{**RUN, **change})


@looped(
    ("arguments", "error", "words"),
    [
        ((Bowl(), ZEROS), TypeError, "'rule' must be a rule .* Got None"),
        ((Bowl(), ZEROS, None, 0.1), TypeError, "'rule' must be a rule .* Got 0.1"),
        ((Bowl(), [np.nan], None, AdaGradDiff(0.1)), ValueError, "x0 contains nan at index 0"),
        ((3, ZEROS, None, AdaGradDiff(0.1)), TypeError, "'loss' must be a loss"),
        ((Bowl(), ZEROS, 3, AdaGradDiff(0.1)), TypeError, "'penalty' must be None or"),
    ],
)
def test_iterate_complains_before_it_is_drawn_from(arguments, error, words):
    with pytest.raises(error, match=words):
        iterate(*arguments)


ANSWERS = [
    (lambda x: 1.0, TypeError, r"must return a pair \(value, gradient\). Got float"),
    (lambda x: None, TypeError, r"must return a pair \(value, gradient\). Got NoneType"),
    (lambda x: (1.0, x, x), TypeError, "must return a pair"),
    (lambda x: (1.0, x[:2]), ValueError, r"gradient of the shape of x, \(3,\). Got \(2,\)"),
    (lambda x: (1.0, 2.0), ValueError, r"gradient of the shape of x, \(3,\). Got \(\)"),
    (lambda x: (1.0, None), (TypeError, ValueError), "The gradient that the loss returns must"),
    (lambda x: (1.0, x[:, None]), ValueError, r"gradient of the shape of x, \(3,\). Got \(3, 1\)"),
    (
        lambda x: (1.0, x * 1j),
        (TypeError, ValueError),
        "The gradient that the loss returns must be .*real",
    ),
    (
        lambda x: (1.0, ["a", "b", "c"]),
        (TypeError, ValueError),
        "The gradient that the loss returns must",
    ),
    (lambda x: (np.ones(2), x), ValueError, "The loss must return one value"),
    (
        lambda x: (x**2 / 2, x),
        ValueError,
        "The loss must return one value",
    ),  # the sum was forgotten
    (lambda x: ("a", x), (TypeError, ValueError), "The value that the loss returns must"),
    (lambda x: (1j, x), (TypeError, ValueError), "The value that the loss returns must"),
    (lambda x: (None, x), (TypeError, ValueError), "The value that the loss returns must"),
]


@looped(("loss", "error", "words"), ANSWERS)
def test_functions_that_are_no_losses(loss, error, words):
    with pytest.raises(error, match=words):
        minimize(loss, np.ones(3), eta=0.1, max_iter=2)


def test_a_value_in_an_array_of_one_is_a_number():
    result = minimize(lambda x: (x**2 / 2, x), [3.0], eta=0.5, max_iter=5)
    assert (np.shape(result.fun), type(result.status)) == ((), int)


def test_careless_functions_do_no_harm():
    memory, seen = np.empty(3), []

    def f(x):
        value, memory[:] = Bowl()(x)
        seen.append(x)
        x[:] = np.nan
        return value, memory

    result, expected = (
        minimize(f, ZEROS, eta=0.3, max_iter=30),
        minimize(Bowl(), ZEROS, eta=0.3, max_iter=30),
    )
    for name in ("x", "x_avg", "x_best", "fun", "jac", "subgradient_norm"):
        assert np.array_equal(result[name], expected[name]), name
    assert ZEROS.tolist() == [0.0] * 3
    assert not any(
        np.shares_memory(seen[-1], array) for array in (result.x, result.jac, *seen[:-1])
    )


def test_objects_with_value_and_grad_and_integer_gradients():
    class Mine:
        def value_and_grad(self, x):
            return int(np.sum(np.abs(x))), np.sign(x).astype(int)

    expected = minimize(
        lambda x: (float(int(np.sum(np.abs(x)))), np.sign(x)), [3.0, -1.0], eta=0.3, max_iter=9
    )
    assert np.array_equal(minimize(Mine(), [3, -1], eta=0.3, max_iter=9).x, expected.x)


FAULTS = {
    "NaN value": lambda f, g: (np.nan, g),
    "infinite value": lambda f, g: (np.inf, g),
    "minus infinity": lambda f, g: (-np.inf, g),
    "NaN gradient": lambda f, g: (f, np.where(np.arange(3) == 1, np.nan, g)),
    "infinite gradient": lambda f, g: (f, np.where(np.arange(3) == 1, np.inf, g)),
    "opposite infinities in the gradient": lambda f, g: (f, np.array([np.inf, 0.0, -np.inf])),
    "NaN gradient, finite values ever after": lambda f, g: (1.0, g * np.nan),
}


@pairwise(
    fault=FAULTS,
    rule=[AdaGradDiff(0.3), AdaGrad(0.3, blocks="all")],
    budget=[(2, 30), (9, 30), (9, 8)],
)
def test_not_finite(fault, rule, budget):
    """The k-th call, which is the one at x^k, gives NaN or inf: the result is a finite iterate before that, or x^k."""
    call, max_iter = budget
    loss = {"at": call, "fault": FAULTS[fault], "once": "ever after" not in fault}
    with pytest.warns(ConvergenceWarning, match="NaN or infinite"):
        result = minimize(Bowl(**loss), ZEROS, rule=rule, max_iter=max_iter)
    assert (result.status, result.success) == (Status.NOT_FINITE, False)
    assert re.fullmatch(r"[A-Z].*eta.*\.", result.message)
    assert result.nit in ((call - 2, call - 1) if "gradient" in fault else (call - 2,))
    if "ever after" not in fault:  # then every number is that of a run which stopped in time
        expected = minimize(Bowl(), ZEROS, rule=rule, max_iter=result.nit)
        for name in ("x", "x_avg", "x_best", "fun", "fun_best"):
            assert np.array_equal(result[name], expected[name]), name
    assert np.isfinite(
        [*result.x, *result.x_avg, *result.x_best, result.fun, result.fun_best]
    ).all()
    with pytest.raises(ConvergenceError, match="NaN or infinite") as error:
        minimize(Bowl(**loss), ZEROS, rule=rule, max_iter=max_iter, on_failure="raise")
    assert np.array_equal(error.value.result.x, result.x)


@looped("fault", FAULTS)
def test_history_ends_with_the_last_good_iterate(fault):
    result = minimize(Bowl(at=9, fault=FAULTS[fault]), ZEROS, eta=0.3, on_failure="ignore")
    expected = minimize(Bowl(), ZEROS, eta=0.3, max_iter=result.nit)
    for name in ("iteration", "objective", "mean_step"):
        assert np.array_equal(getattr(result.history, name), getattr(expected.history, name)), name


@looped("fault", FAULTS)
def test_not_finite_at_the_start(fault):
    result = minimize(
        Bowl(at=1, fault=FAULTS[fault]), [1.0, 2.0, 3.0], eta=0.3, on_failure="ignore"
    )
    assert (result.status, result.success, result.nit) == (Status.NOT_FINITE, False, 0)
    assert result.x.tolist() == [1.0, 2.0, 3.0]
    assert (
        minimize(
            Bowl(at=1, fault=FAULTS[fault]), ZEROS, eta=0.3, max_iter=0, on_failure="ignore"
        ).success
        is False
    )


@pytest.mark.parametrize(
    ("make", "x0", "eta", "status"),
    [
        (lambda: Poisson(A, np.abs(REAL)), None, 1e4, "NOT_FINITE"),
        (lambda: Poisson(sparse.csr_array(A), np.abs(REAL)), None, 1e4, "NOT_FINITE"),
        (Barrier, [2.0, 3.0], 50.0, "NOT_FINITE"),
        (lambda: Quadratic(np.eye(3), np.ones(3)), None, 1e200, "NOT_FINITE"),
        (Bowl, ZEROS, 1e20, "DIVERGED"),
        (lambda: Squared(A, REAL), None, 1e20, "DIVERGED"),
        (lambda: lambda x: (-float(np.sum(x)), -np.ones(2)), [0.0, 0.0], 1e31, "DIVERGED"),
    ],
)
def test_eta_too_large(make, x0, eta, status):
    with pytest.warns(ConvergenceWarning, match="eta") as record:
        result = minimize(make(), x0, eta=eta)
    assert len(record) == 1
    assert (result.status, result.success) == (Status[status], False)
    assert np.isfinite(
        [*result.x, result.fun, result.fun_best, *result.x_avg, *result.x_best]
    ).all()
    assert result.fun_best <= result.fun


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_whose_squares_overflow_are_not_taken_for_success(dtype):
    factor = np.sqrt(np.finfo(dtype).max) ** 0.6
    result = minimize(
        Squared((A * factor).astype(dtype), REAL * factor),
        eta=0.5,
        max_iter=300,
        on_failure="ignore",
    )
    if result.success:
        np.testing.assert_allclose(result.x, np.linalg.lstsq(A, REAL)[0], rtol=1e-2, atol=1e-2)
    else:
        assert result.status == Status.NOT_FINITE
