"""`scipy.optimize.minimize(method=adagrad_diff.scipy_method)`: SciPy's conventions on top of ours."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult
from scipy.optimize import minimize as scipy_minimize

from adagrad_diff import (
    L1,
    Box,
    ConvergenceError,
    ConvergenceWarning,
    Interrupted,
    Status,
    minimize,
    scipy_method,
)

TARGET = np.array([3.0, -2.0, 0.5])
ZEROS = np.zeros(3)
ETA = {"eta": 0.5}


def both(x, target=TARGET, factor=1.0):
    return factor * 0.5 * np.sum((x - target) ** 2), factor * (x - target)


def value(x, *args):
    return both(x, *args)[0]


def slope(x, *args):
    return both(x, *args)[1]


def run(fun=both, x0=ZEROS, jac=True, options=ETA, **arguments):
    return scipy_minimize(fun, x0, jac=jac, method=scipy_method, options=options, **arguments)


def test_is_our_minimize():
    result, ours = (
        run(options={"eta": 0.5, "maxiter": 80}),
        minimize(both, ZEROS, eta=0.5, max_iter=80),
    )
    assert isinstance(result, OptimizeResult)
    assert set(result) == {*ours, "njev"}
    for name in ("x", "fun", "jac", "nit", "nfev", "x_avg", "status", "message"):
        assert np.array_equal(result[name], ours[name]), name
    np.testing.assert_allclose(result.x, TARGET, atol=1e-3)


@pytest.mark.parametrize("options", [{"eta": 0.5}, {}, {"eta": "auto"}], ids=str)
def test_calls_are_counted(options):
    values, slopes = [], []
    options = {**options, "maxiter": 20}
    result = run(lambda x: values.append(1) or both(x), options=options)
    assert len(values) == result.nfev == result.njev
    if options.get("eta") == 0.5:
        assert result.nfev == 21
    values.clear()
    result = run(
        lambda x: values.append(1) or value(x),
        jac=lambda x: slopes.append(1) or slope(x),
        options=options,
    )
    assert (len(values), len(slopes)) == (result.nfev, result.njev)


def test_calls_are_those_of_this_run():
    first = run(options={"eta": 0.5, "maxiter": 5})
    second = run(options={"eta": 0.5, "maxiter": 5, "state": first.state})
    assert second.nit == 10
    assert second.nfev < first.nfev + 5


@pytest.mark.parametrize("options", [{"maxiter": 5}, {"maxiter": 0}, {"max_time": 1e-9}], ids=str)
def test_a_budget_that_is_used_up_is_no_success(options):
    """SciPy's convention. Ours is that a run which did what it was told succeeded."""
    result = run(options={"eta": 0.5, **options})
    assert result.success is False
    assert result.status in (Status.MAX_ITER, Status.MAX_TIME)
    assert "budget" in result.message
    assert minimize(both, ZEROS, eta=0.5, max_iter=5).success is True


def test_x0_is_left_alone_and_may_be_a_list_of_integers():
    x0 = np.ones(3)
    assert np.array_equal(run(x0=x0).x, run(x0=[1, 1, 1]).x)
    assert x0.tolist() == [1.0] * 3


def test_gradient_as_a_function():
    assert np.array_equal(run(value, jac=slope).x, run().x)


@pytest.mark.parametrize("args", [(TARGET + 1.0,), (TARGET + 1.0, 2.0)])
def test_args(args):
    expected = minimize(lambda x: both(x, *args), ZEROS, eta=0.5).x
    assert np.array_equal(
        run(args=args if len(args) > 1 else args[0]).x, expected
    )  # one argument need not be a tuple
    assert np.array_equal(run(args=args).x, expected)
    assert np.array_equal(run(value, jac=slope, args=args).x, expected)


@pytest.mark.parametrize(
    "bounds",
    [
        [(0, 1), (-1.0, None), (None, None)],
        ((0, 1), (-1.0, np.inf), (-np.inf, None)),
        np.array([(0, 1), (-1.0, np.inf), (-np.inf, np.inf)]),
        Bounds([0, -1.0, -np.inf], [1, np.inf, np.inf]),
        zip([0, -1.0, None], [1, None, None], strict=True),
    ],
    ids=["list", "tuple", "array", "Bounds", "zip"],
)
def test_bounds(bounds):
    result = run(bounds=bounds)
    expected = minimize(both, ZEROS, Box([0, -1.0, -np.inf], [1, np.inf, np.inf]), eta=0.5)
    assert np.array_equal(result.x, expected.x)
    np.testing.assert_allclose(result.x, [1.0, -1.0, 0.5], atol=1e-6)


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ([(0, 1)], 1),
        ([(0, 1)] * 4, 4),
        ([], 0),
        (Bounds([0, 0], [1, 1]), 2),
        (Bounds([0, 0, 0, 0], [1, 1, 1, 1]), 4),
        (Bounds([0, 0], 1), 2),
        ([(0, 1, 2)] * 3, None),
        ([0, 1, 2], None),
        (["ab"] * 3, None),
        (7, None),
    ],
    ids=str,
)
def test_bounds_of_another_length_are_refused(bounds, found):
    words = "" if found is None else rf"Got {found} instead"
    with pytest.raises(ValueError, match=rf"'bounds' must hold 3 pairs \(lower, upper\).*{words}"):
        run(bounds=bounds)


def test_a_penalty_in_the_options():
    result = run(options={"eta": 0.5, "penalty": L1(1.0)})
    assert np.array_equal(result.x, minimize(both, ZEROS, L1(1.0), eta=0.5).x)
    with pytest.raises(ValueError, match=r"'bounds' and a 'penalty' .*one of them.*Box"):
        run(bounds=[(0, 1)] * 3, options={"eta": 0.5, "penalty": L1(1.0)})


def test_functions_that_change_x_do_no_harm():
    def careless(x):
        answer = value(x)
        x[:] = np.nan
        return answer

    assert np.array_equal(run(careless, jac=slope).x, run().x)


def test_tol():
    result = run(tol=1e-4)
    assert (result.status, result.success) == (Status.CONVERGED, True)
    assert result.nit == minimize(both, ZEROS, eta=0.5, tol=1e-4).nit
    with pytest.warns(ConvergenceWarning, match="tolerance"):
        assert not run(tol=1e-12, options={"eta": 0.5, "maxiter": 3}).success


def test_options():
    options = {"eta": 0.5, "eps": 0.1, "blocks": "all", "maxiter": 7, "history": 2, "disp": False}
    result = run(options=options)
    assert np.array_equal(
        result.x, minimize(both, ZEROS, eta=0.5, eps=0.1, blocks="all", max_iter=7).x
    )
    assert result.history.iteration.tolist() == [2, 4, 6]
    assert options["maxiter"] == 7  # the caller's dictionary is not modified
    assert run(options={"eta": 0.5, "max_iter": 5}).nit == 5


def test_callback_with_intermediate_result():
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result)
        if intermediate_result.nit == 4:
            raise StopIteration

    result = run(callback=callback)
    assert (result.nit, result.status, result.success) == (4, Status.CALLBACK, False)
    assert [s.nit for s in seen] == [1, 2, 3, 4]
    assert np.array_equal(seen[-1].x, result.x)


def test_callback_with_x():
    """SciPy's older convention, for any callback whose argument is not called intermediate_result."""
    seen = []

    def callback(xk):
        seen.append(xk)

    result = run(callback=callback, options={"eta": 0.5, "maxiter": 5})
    assert [type(x) for x in seen] == [np.ndarray] * 5
    assert np.array_equal(seen[-1], result.x)
    assert not np.array_equal(seen[0], seen[-1])
    assert (
        run(callback=max, options={"eta": 0.5, "maxiter": 5}).nit == 5
    )  # built in, without a signature


@pytest.mark.parametrize(
    "constraints",
    [{"type": "eq", "fun": np.sum}, [{"type": "ineq", "fun": np.sum}], LinearConstraint(np.eye(3))],
)
def test_constraints_are_refused(constraints):
    with pytest.raises(ValueError, match="bounds but no other constraints"):
        run(constraints=constraints)


@pytest.mark.parametrize("jac", [None, False, "2-point"])
def test_a_gradient_is_needed(jac):
    with pytest.raises(ValueError, match="jac=True"):
        run(value, jac=jac)


@pytest.mark.parametrize("name", ["gtol", "learning_rate", "Eta"])
def test_unknown_options(name):
    with pytest.raises(TypeError, match=name):
        run(options={"eta": 0.5, name: 1.0})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"options": {"eta": -1.0}}, "'eta' parameter .* positive number"),
        ({"options": {"eta": 0.5, "maxiter": -1}}, "'max_iter' parameter .* integer >= 0"),
        ({"bounds": [(0, 1), (1, 0), (0, 1)]}, "empty: .* coordinate 1"),
        ({"x0": [0.0, np.nan, 0.0]}, "x0 contains nan at index 1"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(ValueError, match=words):
        run(**arguments)


@pytest.mark.parametrize("options", [{"eta": 0.5}, {}], ids=str)
def test_interrupts_and_failures_come_through_with_the_result(options):
    calls = []

    def pressed(x):
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return both(x)

    with pytest.raises(Interrupted) as caught:
        run(pressed, options=options)
    assert caught.value.result.nfev == caught.value.result.njev >= 29
    assert not caught.value.result.success
    with pytest.raises(ConvergenceError) as failed:
        run(options={**options, "on_failure": "raise", "maxiter": 3, "tol": 1e-12})
    assert failed.value.result.nfev == failed.value.result.njev
