"""How runs end: the table of docs/guide/auto.md is what the code does, and every failure is told on every path."""

import re
from pathlib import Path

import numpy as np
import pytest

from adagrad_diff import (
    L1,
    LAD,
    ConvergenceError,
    ConvergenceWarning,
    Interrupted,
    LinearModel,
    Poisson,
    Simplex,
    Squared,
    Status,
    minimize,
)
from pairwise import pairwise

RNG = np.random.default_rng(0)
A = RNG.standard_normal((40, 5))
B = A @ RNG.standard_normal(5) + 0.3 * RNG.standard_t(3, 40)

# ------------------------------------------------------------ the table


def quadratic(x):
    return 0.5 * np.sum(x * x, axis=0) - np.sum(x, axis=0), x - 1.0


def stop_now(now):
    raise StopIteration


ENDS = {  # options that lead to each end
    Status.CONVERGED: {"tol": 1e-3},
    Status.MAX_ITER: {"max_iter": 3},
    Status.MAX_TIME: {"max_time": 1e-9},
    Status.CALLBACK: {"callback": stop_now, "max_iter": 100},
    Status.NOT_FINITE: {"loss": lambda x: (np.nan, x)},
    Status.DIVERGED: {"loss": lambda x: (-np.sum(x), -np.ones(3))},
}


def rows():
    text = (
        (Path(__file__).parents[2] / "docs" / "guide" / "auto.md")
        .read_text()
        .partition("## How a run ends")[2]
        .partition("## Continue")[0]
    )
    cells = [
        re.split(r"\s*\|\s*", line.strip("| \n"))
        for line in text.splitlines()
        if line.startswith("| ") and "---" not in line
    ]
    return {cell[0]: cell for cell in cells[1:]}


def test_the_table_has_every_status():
    assert list(rows()) == [status.name for status in Status]


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize(
    ("status", "asked"),
    [
        (status, asked)
        for status in ENDS
        for asked in (False, True)
        if asked or status != Status.CONVERGED
    ],
    ids=lambda value: value.name if isinstance(value, Status) else f"tol {value}",
)
def test_the_table_is_true(status, auto, asked):
    options = {"loss": quadratic, "x0": np.zeros(3), **ENDS[status]}
    if not auto:
        options["eta"] = 1e8 if status == Status.DIVERGED else 0.5
    if asked:
        options.setdefault("tol", 1e-13)
    cells = rows()[status.name]
    success, warns = (
        cells[2 + asked] == "yes",
        cells[4] == "yes" or (cells[4] == "with tol" and asked),
    )
    quiet = minimize(**options, on_failure="ignore")
    assert (quiet.status, quiet.success) == (status, success)
    if warns:
        with pytest.warns(ConvergenceWarning) as record:
            warned = minimize(**options)
        assert record[0].filename == __file__  # the caller's line
        assert str(record[0].message) == warned.message
        with pytest.raises(ConvergenceError) as caught:
            minimize(**options, on_failure="raise")
        assert caught.value.result.status == status
    else:
        minimize(**options)  # warnings are errors here


def test_stalled_is_no_success():
    # With columns that depend on each other, and no penalty to choose between them, a race can prove nothing.
    mixed = A @ np.random.default_rng(1).standard_normal((5, 3))
    options = {
        "loss": LAD(np.hstack([A, mixed]), B),
        "tol": 1e-3,
        "max_iter": 20000,
        "finish": False,
    }
    with pytest.warns(ConvergenceWarning, match="no certificate shows"):
        result = minimize(**options)
    assert (result.status, result.success) == (Status.STALLED, False)
    assert rows()["STALLED"][2:5] == ["no", "no", "yes"]
    with pytest.warns(ConvergenceWarning):
        more = minimize(**options, state=result.state)  # whoever goes on gets more
    assert more.nit > result.nit


# ------------------------------------------------------------ optima of zero, starts outside


@pytest.mark.parametrize("options", [{}, {"eta": 0.3}], ids=["auto", "eta"])
def test_an_optimum_of_zero_is_reached(options):
    bowl = minimize(lambda x: (x @ x, 2 * x), [3.0, -4.0], tol=1e-6, max_iter=5000, **options)
    assert bowl.success
    at_rounding = minimize(
        lambda x: (x @ x - 2 * x.sum() + 2, 2 * (x - 1)), [1.0, 1.0 + 2e-16], tol=1e-4, **options
    )
    assert at_rounding.success


@pytest.mark.parametrize(("penalty", "intercept"), [(None, True), (L1(1e-12), False)], ids=str)
def test_a_fit_without_an_error_ends(penalty, intercept):
    result = minimize(
        LAD(A, A @ np.ones(5) + intercept, intercept=intercept),
        penalty=penalty,
        tol=1e-4,
        max_iter=20000,
    )
    assert result.success
    assert result.status == Status.CONVERGED
    np.testing.assert_allclose(result.x, 1.0, atol=1e-5)
    again = minimize(
        LAD(A, A @ np.ones(5) + intercept, intercept=intercept),
        result.x,
        penalty,
        tol=1e-4,
        max_iter=20000,
    )
    assert again.success  # also from a start where the objective is nothing already


@pytest.mark.parametrize(
    ("options", "mean"), [({}, 0.0), ({}, 1e5), ({"eta": 100.0, "stop": "gap"}, 1e5)]
)
def test_a_bad_start_does_not_loosen_the_tolerance(mean, options):
    loss, penalty, start = (
        Squared(A, B + mean, intercept=True),
        L1(0.01),
        np.full(6, 1e4) if mean == 0 else None,
    )
    best = minimize(
        loss, np.r_[np.zeros(5), mean + B.mean()], penalty, tol=1e-4, max_iter=20000
    ).fun
    result = minimize(loss, start, penalty, tol=1e-3, max_iter=3000, on_failure="ignore", **options)
    assert result.fun <= best * 1.002 or not result.success


@pytest.mark.parametrize("options", [{}, {"eta": 0.1}], ids=["auto", "eta"])
def test_a_start_outside_the_set_is_not_certified(options):
    result = minimize(
        Squared(A, B), penalty=Simplex(), stop="gap", tol=1e-3, max_iter=5000, **options
    )
    assert result.success
    assert result.nit > 0
    assert np.isfinite(result.fun)
    assert 0 <= result.gap <= 1e-3 * result.fun
    none = minimize(
        Squared(A, B),
        penalty=Simplex(),
        stop="gap",
        tol=1e-3,
        max_iter=0,
        on_failure="ignore",
        **options,
    )
    assert not none.success


# ------------------------------------------------------------ every failure on every path


class Trouble:
    """A bowl that is as it should be at the start, and in trouble everywhere else; works column by column."""

    def __init__(self, kind):
        self.kind, self.kept = kind, None

    def __call__(self, x):
        f, g = quadratic(x)
        if not x.any():
            return f, g
        if self.kind == "error":
            raise ZeroDivisionError("in the loss")
        if self.kind == "interrupt":
            raise KeyboardInterrupt
        if self.kind == "unbounded":
            return -1e40 * np.sum(np.abs(x), axis=0), -np.ones_like(x)
        bad = {"nan value": np.nan, "inf": np.inf}.get(self.kind)
        return (f if bad is None else f + bad), (g * np.nan if self.kind == "nan gradient" else g)


class Broken:
    """A penalty whose prox fails."""

    accepts = "diagonal"

    def __init__(self, error):
        self.error = error

    def value(self, x):
        return 0.0

    def prox(self, z, step):
        raise self.error


def a_callback(error):
    def callback(now):
        raise error

    return callback


STATUS = {
    "nan value": "NOT_FINITE",
    "nan gradient": "NOT_FINITE",
    "inf": "NOT_FINITE",
    "unbounded": "DIVERGED",
}
PATHS = {
    "eta": {"x0": np.zeros(3), "eta": 0.5},
    "auto": {"x0": np.zeros(3)},
    "batched": {"x0": np.zeros((3, 2)), "eta": [0.1, 0.5]},
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", STATUS)
def test_numbers_that_fail(kind, path):
    options = {
        name: np.copy(value) if name == "x0" else value for name, value in PATHS[path].items()
    }
    with pytest.warns(
        ConvergenceWarning, match="NaN or infinite" if kind != "unbounded" else "diverged"
    ) as record:
        result = minimize(Trouble(kind), **options)
    assert len(record) == 1
    assert record[0].filename == __file__
    wanted = Status[STATUS[kind]]
    assert np.all(np.asarray(result.status) == wanted)
    assert not np.any(result.success)
    assert not options["x0"].any()
    if wanted == Status.NOT_FINITE:
        assert np.all(np.asarray(result.nit) == 0)
        assert not result.x.any()  # the last good one
        assert np.all(np.asarray(result.fun) == 0.0)


FAULTS = {
    "error in the loss": (lambda: {"loss": Trouble("error")}, ZeroDivisionError),
    "error in the prox": (
        lambda: {"penalty": Broken(ZeroDivisionError("in the prox"))},
        ZeroDivisionError,
    ),
    "error in the callback": (
        lambda: {"callback": a_callback(ZeroDivisionError("in the callback"))},
        ZeroDivisionError,
    ),
    "interrupt in the loss": (lambda: {"loss": Trouble("interrupt")}, Interrupted),
    "interrupt in the prox": (lambda: {"penalty": Broken(KeyboardInterrupt())}, Interrupted),
    "interrupt in the callback": (
        lambda: {"callback": a_callback(KeyboardInterrupt())},
        Interrupted,
    ),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_leave(fault, path):
    make, error = FAULTS[fault]
    options = {"loss": quadratic, **PATHS[path], **make()}
    with pytest.raises(error) as caught:
        minimize(**options)
    assert not options["x0"].any()
    if error is Interrupted:
        result = caught.value.result
        assert np.all(np.asarray(result.status) == Status.INTERRUPTED)
        assert result.state is not None


def turns_after(calls, value):
    """A bowl whose value is as it should be for so many calls."""
    left = iter(range(calls))

    def loss(x):
        return (quadratic(x)[0] if next(left, None) is not None else value), x - 1.0

    return loss


@pytest.mark.parametrize(("value", "tol"), [(np.nan, None), (np.inf, 1.0), (-np.inf, None)])
def test_the_last_call_of_a_race_counts(value, tol):
    calls = minimize(turns_after(1000, value), np.zeros(3), tol=tol, max_iter=2).nfev
    result = minimize(
        turns_after(calls - 1, value), np.zeros(3), tol=tol, max_iter=2, on_failure="ignore"
    )
    assert (result.status, result.success) == (Status.NOT_FINITE, False)


def test_an_overflow_in_a_certificate_is_no_error():
    loss = Poisson(np.eye(2), [1.0, 0.0])
    minimize(loss, [-1e160, 0.0], L1(0.1), tol=1e-3, max_iter=40, on_failure="ignore")
    rng = np.random.default_rng(0)
    loss = LAD(1e150 * rng.standard_normal((4, 4)), rng.standard_normal(4), intercept=True)
    result = minimize(loss, rng.standard_normal(5), L1(0.1), stop="gap", max_iter=600)
    assert not result.certified


@pairwise(
    case=[(3.0, 1e-17), (3.0, [1e-18, 1e-17]), (1e20, 1.0), (1e20, None)], penalty=[None, L1(0.1)]
)
def test_standing_still_proves_nothing(case, penalty):
    size, eta = case
    # Steps of less than a unit in the last place of x are lost: x does not move, and is not stationary.
    result = minimize(
        quadratic,
        np.array([size, -size]),
        penalty,
        eta=eta,
        tol=1e-6,
        max_iter=50,
        on_failure="ignore",
    )
    assert np.all(
        np.asarray(result.subgradient_norm) >= 0.5 * np.linalg.norm(result.jac, axis=0) - 1
    )
    assert not np.any(result.success)


def test_several_eta_need_one_value_each():
    with pytest.raises(ValueError, match=r"one value per trajectory .* Got one number"):
        minimize(lambda x: (np.sum(x * x), 2 * x), [1.0, 2.0], eta=[0.1, 1.0])


# ------------------------------------------------------------ sweeps


# ------------------------------------------------------------ estimators


class NotDefined(LinearModel):
    """As the squared loss where the prediction is zero, NaN elsewhere."""

    differentiable = True

    @staticmethod
    def scalar(z, b, theta):
        if theta > 0:
            return -((z - b) ** 8), -8.0 * (z - b) ** 7
        return (0.5 * b * b if z == 0.0 else np.nan), z - b


class Runaway(NotDefined):
    """Falls faster and faster: the other branch, so that one function is compiled for both."""

    theta = 1.0


@pytest.mark.peer
@pytest.mark.parametrize("kind", [NotDefined, Runaway])
def test_numbers_that_fail_in_an_estimator(kind):
    from sklearn.exceptions import ConvergenceWarning as Warned

    from adagrad_diff.sklearn import LinearRegressor

    X, y = A.copy(), B.copy()
    with pytest.warns(Warned, match="failed") as record:
        model = LinearRegressor(loss=kind, penalty="none", fit_intercept=False).fit(X, y)
    assert (model.converged_, model.stop_reason_) == (False, "failed")
    assert record[0].filename == __file__
    assert np.isfinite(model.coef_).all()
    assert np.array_equal(X, A)
    assert np.array_equal(y, B)
