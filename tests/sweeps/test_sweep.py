"""A sweep is many single runs: what it computes, records and returns."""

import json
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
    DoG,
    Logistic,
    Multinomial,
    Status,
    minimize,
    sweep,
)
from sweeping import (
    CLASSES,
    ETAS,
    HALF,
    LABELS,
    PROBLEMS,
    REAL,
    RULES,
    A,
    assert_same,
    assert_single_runs,
    one_block,
    schedule,
    starts,
)
from user_losses import Bowl

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl
VARIABLES = {
    "objective": ("rule", "eta", "seed", "iteration"),
    "mean_step": ("rule", "eta", "seed", "iteration"),
    "objective_best": ("rule", "eta", "seed"),
    "objective_average": ("rule", "eta", "seed"),
    "nit": ("rule", "eta", "seed"),
    "status": ("rule", "eta", "seed"),
    "x": ("coordinate", "rule", "eta", "seed"),
    "objective_start": ("seed",),
    "start": ("coordinate", "seed"),
}


def test_averages_are_those_of_single_runs():
    """Of every rule if they are asked for; else of those whose answer they are."""
    rules, x0s = {"Diff": AdaGradDiff, "DoG": DoG}, starts(LAD(A, REAL, intercept=True))
    loss, penalty = LAD(A, REAL, intercept=True), L1(0.02)
    asked, unasked = (
        sweep(loss, penalty, rules, [0.1, 1.0], x0s, 30, averages=averages)
        for averages in (True, False)
    )
    for name, make in (("Diff", AdaGradDiff), ("DoG", lambda eta: DoG())):
        for eta in (0.1, 1.0):
            for seed, x0 in enumerate(x0s.T):
                x = minimize(loss, x0, penalty, make(eta), max_iter=30).x_avg
                value = loss.value_and_grad(x)[0] + penalty.value(x[:-1])
                assert float(
                    asked.objective_average.sel(rule=name, eta=eta, seed=seed)
                ) == pytest.approx(value, rel=1e-12)
    assert np.isnan(unasked.objective_average.sel(rule="Diff")).all()
    np.testing.assert_array_equal(
        *(runs.objective_average.sel(rule="DoG") for runs in (asked, unasked))
    )


@pytest.mark.parametrize("case", PROBLEMS)
def test_columns_are_single_runs(case):
    loss, penalty, rules = PROBLEMS[case]()
    x0s = starts(loss)
    result = sweep(loss, penalty, rules, ETAS, x0s, 25)
    assert result.rule.values.tolist() == list(rules)
    assert_single_runs(result, loss, penalty, rules, x0s)


@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_array])
def test_single_precision(matrix):
    loss = Logistic(matrix(HALF.astype(np.float32)), LABELS)
    x0s = starts(loss)
    result = sweep(loss, L1(0.02), RULES, ETAS, x0s, 20)
    assert result.x.dtype == np.float32
    assert result.objective.dtype == np.float64
    assert_single_runs(result, loss, L1(0.02), RULES, x0s, rtol=1e-4)
    x0s = starts(None).astype(np.float32)  # of a function, x decides
    result = sweep(Bowl(np.linspace(0.5, 3.0, 6)), None, AdaGrad, ETAS, x0s, 5)
    assert result.x.dtype == np.float32
    assert_single_runs(
        result, Bowl(np.linspace(0.5, 3.0, 6)), None, {"AdaGrad": AdaGrad}, x0s, rtol=1e-4
    )


@pytest.mark.parametrize(
    ("n_iter", "record", "expected"),
    [
        (10, 4, [4, 8, 10]),
        (10, 5, [5, 10]),
        (10, 11, [10]),
        (1, 1, [1]),
    ],
)
def test_what_is_recorded(n_iter, record, expected):
    """Every k-th iteration and the last; the best is that of all iterations, and the final iterate that of the last."""
    loss = LAD(A, REAL)
    x0s = starts(loss)
    result = sweep(loss, L1(0.02), [AdaGradDiff, AdaGrad], [3.0, 0.1], x0s, n_iter, record=record)
    assert result.iteration.values.tolist() == expected
    assert (result.nit == n_iter).all()
    assert (result.status == Status.MAX_ITER).all()
    assert_single_runs(
        result, loss, L1(0.02), {"AdaGradDiff": AdaGradDiff, "AdaGrad": AdaGrad}, x0s
    )


def test_the_best_is_not_the_last_recorded():
    loss, x0s = LAD(A, REAL), np.linalg.lstsq(A, REAL)[0][:, None]
    result = sweep(loss, None, AdaGrad, [10.0], x0s, 5, record=5)
    assert (
        float(result.objective_best[0, 0, 0])
        == float(result.objective_start[0])
        < float(result.objective.min())
    )


def test_what_is_returned():
    loss = LAD(A, REAL)
    x0s = starts(loss, 4)
    result = sweep(loss, L1(0.02), [AdaGradDiff, AdaGrad], ETAS, x0s, 9, record=2)
    assert {name: variable.dims for name, variable in result.data_vars.items()} == VARIABLES
    assert dict(result.sizes) == {"rule": 2, "eta": 2, "seed": 4, "iteration": 5, "coordinate": 6}
    assert result.eta.values.tolist() == ETAS  # in the order they were given
    assert result.rule.values.tolist() == ["AdaGradDiff", "AdaGrad"]
    assert result.seed.values.tolist() == [0, 1, 2, 3]
    assert np.array_equal(result.start, x0s)
    assert result.nit.dtype.kind == result.status.dtype.kind == "i"
    meanings = dict(
        zip(
            result.status.attrs["flag_values"],
            result.status.attrs["flag_meanings"].split(),
            strict=True,
        )
    )
    assert meanings == {int(status): status.name for status in Status}
    without = sweep(loss, L1(0.02), [AdaGradDiff, AdaGrad], ETAS, x0s, 9, record=2, keep_x=False)
    assert "x" not in without
    assert np.array_equal(without.objective, result.objective)
    assert (
        "coordinate_1"
        in sweep(Multinomial(A, CLASSES), None, AdaGrad, 0.1, np.zeros((6, 3, 2)), 2).x.dims
    )


def test_the_attributes_say_what_was_computed():
    import adagrad_diff

    arguments = (
        Logistic(A, LABELS, l2=0.25),
        Box(-np.inf, 1.0),
        {"mine": one_block, "sched": schedule},
    )
    result = sweep(*arguments, ETAS, starts(arguments[0]), 7, record=3)
    assert result.attrs["adagrad_diff"] == adagrad_diff.__version__
    assert result.attrs["numpy"] == np.__version__

    def strict(constant):
        raise AssertionError(f"{constant} is not JSON")

    problem = json.loads(result.attrs["problem"], parse_constant=strict)
    assert set(problem) == {"loss", "penalty", "rules", "etas", "x0s", "n_iter", "record", "keep_x"}
    assert problem["loss"]["class"] == "Logistic"
    assert problem["loss"]["l2"] == 0.25
    assert problem["penalty"] == {"class": "Box", "lower": "-inf", "upper": 1.0}
    assert problem["rules"]["mine"] == {
        "class": "AdaGradDiff",
        "eta": ETAS,
        "eps": 1e-8,
        "blocks": "all",
        "scale": None,
    }
    assert problem["etas"] == ETAS
    assert (problem["n_iter"], problem["record"], problem["keep_x"]) == (7, 3, True)
    again = sweep(*arguments, result.eta, result.start, problem["n_iter"], record=problem["record"])
    assert_same(again, result)


def test_a_loss_of_ones_own_is_described_without_a_name():
    """Without a checkpoint none is needed."""
    first = sweep(Bowl(), None, AdaGrad, ETAS, np.zeros((3, 2)), 9).attrs["problem"]
    assert json.loads(first)["loss"]["function"] == {"unnamed": "Bowl"}
    assert (
        first
        == sweep(Bowl(), None, AdaGrad, ETAS, np.zeros((3, 2)), 9, memory=1e4).attrs["problem"]
    )


def test_names_of_rules():
    def names(rules):
        return sweep(Bowl(), None, rules, [0.1], np.zeros((3, 1)), 2).rule.values.tolist()

    assert names(AdaGrad) == ["AdaGrad"]
    assert names([AdaGradDiff, AdaGrad]) == ["AdaGradDiff", "AdaGrad"]
    assert names((one_block, schedule)) == ["one_block", "schedule"]
    assert names([AdaGrad, AdaGrad]) == ["rule 0", "rule 1"]
    assert names([AdaGrad, lambda eta: AdaGradDiff(eta, eps=1e-6)]) == ["rule 0", "rule 1"]
    assert names({"b": AdaGrad, "a": AdaGradDiff}) == ["b", "a"]
    assert names(make for make in (AdaGrad, AdaGradDiff)) == ["AdaGrad", "AdaGradDiff"]


def test_one_start_and_one_eta():
    loss, x0 = LAD(A, REAL), starts(LAD(A, REAL), 1)
    assert_same(
        sweep(loss, None, AdaGrad, 0.1, x0[:, 0], 5), sweep(loss, None, [AdaGrad], [0.1], x0, 5)
    )
    assert sweep(loss, None, AdaGrad, 0.1, x0[:, 0], 5).objective.shape == (1, 1, 1, 5)


@pytest.mark.parametrize(
    ("loss", "order"), [(LAD(A, REAL), "F"), (Bowl(np.linspace(0.5, 3.0, 6)), "C")]
)
def test_what_was_passed_in_stays(loss, order):
    x0s, etas = np.array(starts(loss), order=order), np.array(ETAS)
    before = x0s.copy(), etas.copy()
    result = sweep(loss, Box(-0.5, 0.5), [AdaGradDiff, AdaGrad], etas, x0s, 8)
    result.start[:] = 7.0
    result.x[:] = 7.0
    result.objective_start[:] = 7.0
    assert np.array_equal(x0s, before[0])
    assert np.array_equal(etas, before[1])
    x0s = starts(loss)
    result = sweep(loss, None, AdaGrad, 0.1, x0s, 2)
    x0s[:] = 9.0
    assert not (result.start == 9.0).any()


def test_progress(capfd):
    arguments = LAD(A, REAL), None, AdaGrad, ETAS, starts(LAD(A, REAL)), 10
    for silent in (None, False):
        sweep(*arguments, progress=silent)
        assert capfd.readouterr() == ("", "")
    sweep(*arguments, progress=True, label="my label")
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("\rmy label:   0%")
    assert re.search(r"my label: 100%\|.*\| 40.0/40.0 \[\d\d:\d\d<00:00", err)
