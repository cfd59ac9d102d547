"""A sweep is many single runs, however its columns are cut, and whatever happens to some of them."""

import json
import re
import sys
import threading
import time
import tracemalloc
from dataclasses import dataclass
from io import StringIO

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Box,
    GroupL2,
    Hinge,
    KernelSVMDual,
    Logistic,
    Multinomial,
    Nuclear,
    Poisson,
    Quadratic,
    Rule,
    Squared,
    Status,
    Zero,
    minimize,
    sweep,
)
from adagrad_diff import _chunks as chunks
from adagrad_diff import _sweep as module
from adagrad_diff._chunks import Trajectories
from user_losses import Barrier, Bowl, data

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl

A, REAL, LABELS, CLASSES = data()
HALF = A * (A > 0)
K = np.exp(-np.abs(np.subtract.outer(REAL, REAL)))
DUAL = KernelSVMDual(K, LABELS, lam=0.1)
ETAS = [0.3, 0.02, 0.1]
VARIABLES = {
    "objective": ("rule", "eta", "seed", "iteration"),
    "mean_step": ("rule", "eta", "seed", "iteration"),
    "objective_best": ("rule", "eta", "seed"),
    "nit": ("rule", "eta", "seed"),
    "status": ("rule", "eta", "seed"),
    "x": ("coordinate", "rule", "eta", "seed"),
    "objective_start": ("seed",),
    "start": ("coordinate", "seed"),
}


def operator(array):
    return LinearOperator(
        array.shape,
        matvec=lambda v: array @ v,
        rmatvec=lambda v: array.T @ v,
        matmat=lambda v: array @ v,
        rmatmat=lambda v: array.T @ v,
        dtype=array.dtype,
    )


def one_block(eta):
    return AdaGradDiff(eta, blocks="all")


def scaled(eta):
    return AdaGrad(eta, scale=np.linspace(0.5, 2.0, 6))


def schedule(eta):
    return AdaGradDiff(lambda n: eta / np.sqrt(n))


@dataclass(frozen=True, eq=False)
class Mine(Rule):
    power: float = 1.5

    def update(self, metric, g, g_prev):
        metric.total += np.abs(g) ** self.power


def only_numbers(eta):
    """As somebody would write it who thinks of one eta at a time."""
    return AdaGradDiff(float(eta), eps=1e-3 * float(eta)) if eta < 0.2 else AdaGrad(float(eta))


def starts(loss, count=2, seed=3):
    shape = getattr(loss, "shape", (6,))
    return np.random.default_rng(seed).standard_normal((*shape, count))


def assert_single_runs(result, loss, penalty, rules, x0s, rtol=1e-12):
    """Every trajectory of the sweep is what `minimize` finds alone."""
    n_iter = int(result.iteration[-1])
    for name, make in rules.items():
        for eta in result.eta.values:
            for seed in range(x0s.shape[-1]):
                where = {"rule": name, "eta": eta, "seed": seed}
                one = result.sel(where)
                x0 = np.ascontiguousarray(x0s[..., seed])
                alone = minimize(loss, x0, penalty, make(float(eta)), max_iter=n_iter, on_failure="ignore")
                assert int(one.status) == alone.status, where
                assert int(one.nit) == alone.nit, where
                rows = np.full((2, n_iter), np.nan)
                rows[:, : len(alone.history.objective)] = alone.history.objective, alone.history.mean_step
                rows = rows[:, result.iteration.values - 1]
                size = np.abs(alone.history.objective).max(initial=0.0)
                np.testing.assert_allclose(one.objective, rows[0], rtol=rtol, atol=rtol * size, err_msg=f"{where}")
                np.testing.assert_allclose(one.mean_step, rows[1], rtol=rtol, err_msg=f"{where}")
                np.testing.assert_allclose(one.objective_best, alone.fun_best, rtol=rtol, atol=rtol * size)
                first = minimize(loss, x0, penalty, make(float(eta)), max_iter=0, on_failure="ignore").fun
                np.testing.assert_allclose(one.objective_start, first, rtol=rtol)
                if "x" in one:
                    np.testing.assert_allclose(one.x, alone.x, rtol=rtol, atol=rtol * np.abs(alone.x).max())
                    assert one.x.dtype == alone.x.dtype


def assert_same(one, other, rtol=0.0):
    assert list(one.variables) == list(other.variables)
    for name in one.variables:
        left, right = one[name], other[name]
        assert (left.dims, left.dtype, left.shape) == (right.dims, right.dtype, right.shape)
        if left.dtype.kind == "U" or rtol == 0.0:
            assert left.values.tobytes() == right.values.tobytes(), name
        else:
            size = np.nanmax(np.abs(right.values), initial=0.0) if name in ("x", "objective", "objective_best") else 0.0
            np.testing.assert_allclose(left, right, rtol=rtol, atol=rtol * size, err_msg=name)
    assert one.attrs == other.attrs


RULES = {"Diff": AdaGradDiff, "AdaGrad": AdaGrad, "one block": one_block, "scale": scaled, "schedule": schedule}
PLAIN = {"Diff": AdaGradDiff, "AdaGrad": AdaGrad, "schedule": schedule}
PROBLEMS = {
    "LAD, L1": lambda: (LAD(A, REAL), L1(0.02), RULES),
    "Hinge, Fortran, L1 per coordinate": lambda: (Hinge(np.asfortranarray(A), LABELS), L1(np.linspace(0.0, 0.1, 6)), RULES),
    "Hinge, box, intercept": lambda: (Hinge(A, LABELS, intercept=True), Box(-0.2, 0.3), PLAIN),
    "Squared, operator, ridge inside": lambda: (Squared(operator(A), REAL, l2=0.3), None, RULES),
    "Logistic, CSR": lambda: (Logistic(sparse.csr_array(HALF), LABELS), L1(0.02), RULES),
    "Logistic, CSC, zero": lambda: (Logistic(sparse.csc_array(HALF), LABELS), Zero(), RULES),
    "Logistic, groups": lambda: (Logistic(A, LABELS), GroupL2(0.05, [0, 0, 1, 1, 2, 2]), {"one block": one_block}),
    "Poisson": lambda: (Poisson(A, np.round(np.abs(REAL))), L1(0.02), RULES),
    "Multinomial": lambda: (Multinomial(A, CLASSES, intercept=True), L1(0.01), PLAIN),
    "Multinomial, rows": lambda: (Multinomial(A, CLASSES), None, {"rows": lambda eta: AdaGradDiff(eta, blocks="row")}),
    "Quadratic": lambda: (Quadratic(A.T @ A / 40, A.T @ REAL / 40), L1(0.02), RULES),
    "kernel": lambda: (DUAL, DUAL.box(), PLAIN),
    "a function": lambda: (Bowl(np.linspace(0.5, 3.0, 6)), L1(0.1), RULES),
    "rules of a number": lambda: (LAD(A, REAL), L1(0.02), {"mixed": only_numbers, "fixed": lambda eta: AdaGrad(0.2)}),
    "rules of a user": lambda: (LAD(A, REAL), None, {"Mine": Mine, "by eta": lambda eta: Mine(2 * eta, power=1 + eta)}),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_columns_are_single_runs(case):
    loss, penalty, rules = PROBLEMS[case]()
    x0s = starts(loss)
    result = sweep(loss, penalty, rules, ETAS, x0s, 25)
    assert result.rule.values.tolist() == list(rules)
    assert_single_runs(result, loss, penalty, rules, x0s)


@pytest.mark.parametrize("matrix", [np.asarray, np.asfortranarray, sparse.csr_array])
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
    assert_single_runs(result, Bowl(np.linspace(0.5, 3.0, 6)), None, {"AdaGrad": AdaGrad}, x0s, rtol=1e-4)


def test_many_samples_and_several_row_blocks():
    """More work than one thread, or one block of rows, does in a single run."""
    B, real, labels, _ = data(samples=3000, features=200, seed=4)
    for loss in (Logistic(B, labels), Logistic(sparse.csr_array(B * (B > 1)), labels), Squared(np.asfortranarray(B), real)):
        x0s = starts(loss)
        result = sweep(loss, L1(0.01), [AdaGradDiff], [0.01, 0.1], x0s, 10, n_jobs=2)
        assert_single_runs(result, loss, L1(0.01), {"AdaGradDiff": AdaGradDiff}, x0s)


def widths(plan):
    return {chunk.high - chunk.low for chunk in plan}


@pytest.mark.parametrize(
    "case", ["LAD, L1", "Logistic, CSR", "Multinomial", "kernel", "a function", "rules of a number", "rules of a user"]
)
def test_chunks_are_the_whole(case):
    def problem():
        loss, penalty, rules = PROBLEMS[case]()
        return loss, penalty, rules, ETAS, starts(loss, 5), 20

    rules = problem()[2]
    whole = sweep(*problem(), record=3, n_jobs=1)
    trajectories = Trajectories(*problem(), 3, True)
    seen = set()
    for width, jobs in ((1, 1), (1, 3), (2, 2), (4, 1), (7, 2), (100, 3)):
        budget = 1.001 * trajectories.column * width * jobs
        plan = trajectories.plan(budget, jobs)
        assert max(widths(plan)) <= width
        seen |= widths(plan)
        for name in rules:  # every column once
            covered = [c for chunk in plan if chunk.rule == name for c in range(chunk.low, chunk.high)]
            assert covered == list(range(len(ETAS) * 5))
        assert_same(sweep(*problem(), record=3, memory=budget, n_jobs=jobs), whole, rtol=1e-12)
    assert len(seen) >= 4


def test_the_number_of_threads_changes_nothing(monkeypatch):
    arguments = LAD(A, REAL), L1(0.02), RULES, ETAS, starts(LAD(A, REAL), 5), 30
    plan = Trajectories(*arguments, 1, True).plan(1e5, 4)
    assert len(plan) > 12
    monkeypatch.setattr(Trajectories, "plan", lambda self, budget, jobs: plan)
    results = [sweep(*arguments, n_jobs=jobs) for jobs in (1, 2, 3, 7)]
    for result in results[1:]:
        assert_same(result, results[0])


def test_one_thread_each():
    """While chunks run side by side, each has one core; afterwards all is as before."""
    from threadpoolctl import threadpool_info

    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    seen = []

    def loss(x):
        seen.append((threading.current_thread().name, threads()))
        return Bowl()(x)

    before = threads()
    sweep(loss, None, [AdaGrad, AdaGradDiff], ETAS, np.zeros((3, 2)), 5, n_jobs=2)
    inside = [count for name, count in seen if name.startswith("adagrad_diff.sweep")]
    assert len(inside) >= 10
    assert all(count == 1 for counts in inside for count in counts)
    assert threads() == before


def test_cores_get_work():
    """As many chunks as occupy all cores, but none that is narrow without need."""
    loss = LAD(A, REAL)
    x0s = starts(loss, 10)
    for rules, jobs, pieces in (([AdaGrad], 4, 4), ([AdaGrad, AdaGradDiff], 4, 2), ([AdaGrad, AdaGradDiff], 1, 1)):
        plan = Trajectories(loss, None, rules, np.geomspace(0.1, 1, 20), x0s, 5, 1, True).plan(2e9, jobs)
        assert len(plan) == pieces * len(rules)
        assert max(widths(plan)) - min(widths(plan)) <= 1
    few = Trajectories(loss, None, [AdaGrad], [0.1, 0.2], x0s, 5, 1, True).plan(2e9, 16)
    assert widths(few) == {chunks.LEAST}
    long = Trajectories(Logistic(np.ones((50_000, 1)), np.ones(50_000)), None, [AdaGrad], ETAS, np.ones((1, 64)), 5, 1, True)
    assert widths(long.plan(2e9, 1)) == {chunks.WIDE}  # their predictions fill the cache
    assert max(widths(long.plan(20 * long.column, 1))) <= 20


@pytest.mark.parametrize(
    ("n_iter", "record", "expected"),
    [
        (10, 1, list(range(1, 11))),
        (10, 4, [4, 8, 10]),
        (10, 5, [5, 10]),
        (10, 10, [10]),
        (10, 11, [10]),
        (7, 1000, [7]),
        (1, 1, [1]),
        (13, 6, [6, 12, 13]),
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
    assert_single_runs(result, loss, L1(0.02), {"AdaGradDiff": AdaGradDiff, "AdaGrad": AdaGrad}, x0s)


def test_the_best_is_not_the_last_recorded():
    loss, x0s = LAD(A, REAL), np.linalg.lstsq(A, REAL)[0][:, None]
    result = sweep(loss, None, AdaGrad, [10.0], x0s, 5, record=5)
    assert float(result.objective_best[0, 0, 0]) == float(result.objective_start[0]) < float(result.objective.min())


def test_what_is_returned():
    loss = LAD(A, REAL)
    x0s = starts(loss, 4)
    result = sweep(loss, L1(0.02), [AdaGradDiff, AdaGrad], ETAS, x0s, 9, record=2)
    assert {name: variable.dims for name, variable in result.data_vars.items()} == VARIABLES
    assert dict(result.sizes) == {"rule": 2, "eta": 3, "seed": 4, "iteration": 5, "coordinate": 6}
    assert result.eta.values.tolist() == ETAS  # in the order they were given
    assert result.rule.values.tolist() == ["AdaGradDiff", "AdaGrad"]
    assert result.seed.values.tolist() == [0, 1, 2, 3]
    assert np.array_equal(result.start, x0s)
    assert result.nit.dtype.kind == result.status.dtype.kind == "i"
    meanings = dict(zip(result.status.attrs["flag_values"], result.status.attrs["flag_meanings"].split(), strict=True))
    assert meanings == {int(status): status.name for status in Status}
    without = sweep(loss, L1(0.02), [AdaGradDiff, AdaGrad], ETAS, x0s, 9, record=2, keep_x=False)
    assert "x" not in without
    assert np.array_equal(without.objective, result.objective)
    assert "coordinate_1" in sweep(Multinomial(A, CLASSES), None, AdaGrad, 0.1, np.zeros((6, 3, 2)), 2).x.dims


def test_the_attributes_say_what_was_computed():
    import adagrad_diff

    arguments = Logistic(A, LABELS, l2=0.25), Box(-np.inf, 1.0), {"mine": one_block, "sched": schedule}
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
    assert problem["rules"]["mine"] == {"class": "AdaGradDiff", "eta": ETAS, "eps": 1e-8, "blocks": "all", "scale": None}
    assert problem["etas"] == ETAS
    assert (problem["n_iter"], problem["record"], problem["keep_x"]) == (7, 3, True)
    again = sweep(*arguments, result.eta, result.start, problem["n_iter"], record=problem["record"])
    assert_same(again, result)


def test_a_loss_that_counts_its_calls_is_described_as_it_was():
    first = sweep(Bowl(), None, AdaGrad, ETAS, np.zeros((3, 2)), 9).attrs["problem"]
    assert json.loads(first)["loss"]["function"]["calls"] == 0
    assert first == sweep(Bowl(), None, AdaGrad, ETAS, np.zeros((3, 2)), 9, memory=1e4).attrs["problem"]


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
    assert_same(sweep(loss, None, AdaGrad, 0.1, x0[:, 0], 5), sweep(loss, None, [AdaGrad], [0.1], x0, 5))
    assert sweep(loss, None, AdaGrad, 0.1, x0[:, 0], 5).objective.shape == (1, 1, 1, 5)


@pytest.mark.parametrize("loss", [LAD(A, REAL), Bowl(np.linspace(0.5, 3.0, 6))])
@pytest.mark.parametrize("order", ["C", "F"])
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


FAILING = {
    "Poisson": (Poisson(A, np.round(np.abs(REAL))), L1(0.01), [0.05, 1e4, 0.2], starts(LAD(A, REAL)), Status.NOT_FINITE),
    "Poisson, CSR": (Poisson(sparse.csr_array(HALF), np.abs(REAL)), None, [1e5, 0.2], starts(LAD(A, REAL)), Status.NOT_FINITE),
    "out of the domain": (Barrier(), None, [0.05, 50.0, 0.2], np.array([[2.0, 3.0, 1.0], [3.0, 2.0, 1.5]]), Status.NOT_FINITE),
    "unbounded": (lambda x: (-np.sum(x**2, axis=0), -2 * x), None, [0.1, 1e20], np.ones((3, 2)), Status.DIVERGED),
}


@pytest.mark.parametrize("case", FAILING)
@pytest.mark.parametrize("record", [1, 7, 100])
def test_some_diverge_and_the_others_go_on(case, record):
    loss, penalty, etas, x0s, status = FAILING[case]
    rules = {"AdaGradDiff": AdaGradDiff, "AdaGrad": AdaGrad, "schedule": schedule}
    result = sweep(loss, penalty, rules, etas, x0s, 40, record=record)
    assert (result.status == status).any()
    assert (result.status == Status.MAX_ITER).any()
    assert set(np.unique(result.status)) == {status, Status.MAX_ITER}
    assert_single_runs(result, loss, penalty, rules, x0s)
    ended = result.nit < 40
    assert np.isnan(result.objective.where(ended, drop=True).isel(iteration=-1)).all()
    assert ((result.status == status) == ended).all()
    good = [eta for eta in etas if eta < 1]  # the others are not disturbed
    assert_same(
        result.sel(eta=good).drop_attrs(), sweep(loss, penalty, rules, good, x0s, 40, record=record).drop_attrs(), 1e-12
    )


@pytest.mark.parametrize("save", [0.0, 1e-4])
@pytest.mark.parametrize("record", [1, 7])
def test_pauses_change_nothing(monkeypatch, save, record):
    """Each iteration may be the last before the trajectories are kept, also the one in which some of them fail."""
    loss, penalty, etas, x0s, _ = FAILING["Poisson"]
    expected = sweep(loss, penalty, [AdaGradDiff, AdaGrad], etas, x0s, 40, record=record)
    monkeypatch.setattr(module, "SAVE", save)
    assert_same(sweep(loss, penalty, [AdaGradDiff, AdaGrad], etas, x0s, 40, record=record), expected)


def test_those_that_failed_are_no_longer_computed():
    seen = []

    def loss(x):
        seen.append(x.shape[1])
        value, gradient = Bowl()(x)
        return np.where(np.abs(x).max(axis=0) > 1e3, np.nan, value), gradient

    result = sweep(loss, None, AdaGrad, [0.1, 1e6, 0.2, 1e7], np.zeros((3, 2)), 10, n_jobs=1)
    assert result.nit.values.ravel().tolist() == [10, 10, 0, 0, 10, 10, 0, 0]
    assert seen.count(8) == 2  # at the start and in the first iteration
    assert seen.count(4) >= 9
    assert np.isnan(result.objective.sel(eta=1e6)).all()
    assert np.array_equal(result.x.sel(eta=1e6).values.ravel(), np.zeros(6))  # where they were last good


def test_starts_that_are_no_good():
    loss = Poisson(A, np.round(np.abs(REAL)))
    x0s = np.column_stack([np.zeros(6), np.full(6, 1e5)])
    result = sweep(loss, None, [AdaGradDiff, AdaGrad], [0.1, 0.2], x0s, 6)
    assert (result.status.sel(seed=1) == Status.NOT_FINITE).all()
    assert (result.nit.sel(seed=1) == 0).all()
    assert np.isnan(result.objective.sel(seed=1)).all()
    assert not np.isfinite(result.objective_start[1])
    assert (result.status.sel(seed=0) == Status.MAX_ITER).all()
    everything = sweep(loss, None, AdaGrad, [0.1, 0.2], x0s[:, 1:], 6)
    assert (everything.status == Status.NOT_FINITE).all()


class Wrong(Exception):
    pass


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("where", [0.3, 0.02])  # the first or the last chunk
def test_an_error_in_the_loss(jobs, where, tmp_path):
    """It arrives once, as it was raised, at once, and nothing goes on in the background."""
    lock, calls = threading.Lock(), []

    def loss(x, at=None):
        with lock:
            calls.append(x.shape[1])
            if at is not None and x.shape[1] == 2 and len(calls) > at and np.abs(x).max() > where:
                raise Wrong("in iteration five")
        time.sleep(1e-3)
        return Bowl()(x)

    arguments = None, schedule, [0.3, 0.2, 0.02], np.zeros((3, 2)), 10_000
    begin = time.perf_counter()
    with pytest.raises(Wrong, match=r"^in iteration five$") as caught:
        sweep(lambda x: loss(x, 5), *arguments, n_jobs=jobs, checkpoint=tmp_path)
    assert time.perf_counter() - begin < 8.0  # 10,000 iterations take more
    assert caught.value.__context__ is None
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("adagrad_diff.sweep")]
    count = len(calls)
    time.sleep(0.02)
    assert len(calls) == count


def test_errors_of_the_metric_and_the_penalty():
    loss = LAD(A, REAL)
    with pytest.raises(ValueError, match="blocks='all'"):
        sweep(loss, Nuclear(0.1, (2, 3)), [one_block, AdaGrad], ETAS, starts(loss), 5)
    with pytest.raises(ValueError, match="3 strengths"):
        sweep(loss, L1([1.0, 2.0, 3.0]), AdaGrad, ETAS, starts(loss), 5)
    with pytest.raises(ValueError, match="eta"):
        sweep(loss, None, lambda eta: AdaGrad(lambda n: eta * (3 - n)), ETAS, starts(loss), 5)


SIZES = {
    "2GB": 2e9,
    "2 gb": 2e9,
    " 512MiB ": 512 * 2**20,
    "1.5KiB": 1536,
    "1e3 kB": 1e6,
    "3TB": 3e12,
    "2TiB": 2**41,
    "1GiB": 2**30,
    "100": 100,
    "100B": 100,
    2e9: 2e9,
    2**30: 2**30,
    np.float32(1e6): 1e6,
}


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size):
    assert module._bytes(size) == SIZES[size]


@pytest.mark.parametrize(
    "size", ["", "GB", "2XB", "2BG", "two GB", "-2GB", "0", 0, -1, None, True, float("nan"), "inf", b"2GB", "2G"]
)
def test_sizes_that_are_none(size):
    with pytest.raises(ValueError, match=r"The 'memory' parameter of sweep must be a size such as '2GB' or 2e9\. Got "):
        sweep(LAD(A, REAL), None, AdaGrad, 0.1, np.zeros(6), 1, memory=size)


def test_too_little_memory():
    for n_iter in (10, 57, 123, 344, 1777):  # what is said is enough, however it is rounded
        arguments = LAD(A, REAL), None, AdaGrad, [0.1], starts(LAD(A, REAL), 3), n_iter
        with pytest.raises(ValueError, match=r"'memory' parameter of sweep is too small.* MB\. Give at least that") as caught:
            sweep(*arguments, memory="1KB", n_jobs=3)
        needed = re.search(r"[\d.]+ MB", str(caught.value)).group()
        assert_same(sweep(*arguments, memory=needed, n_jobs=3), sweep(*arguments), 1e-12)  # one after another, if need be


MEASURED = {
    "C": lambda B: Logistic(B, np.ones(len(B))),
    "Fortran": lambda B: Logistic(np.asfortranarray(B), np.ones(len(B))),
    "float32": lambda B: Logistic(B.astype(np.float32), np.ones(len(B))),
    "CSR": lambda B: Logistic(sparse.csr_array(B * (B > 2)), np.ones(len(B))),
    "CSC": lambda B: Logistic(sparse.csc_array(B * (B > 2)), np.ones(len(B))),
    "operator": lambda B: Squared(operator(B), np.ones(len(B))),
    "Multinomial": lambda B: Multinomial(B, np.arange(len(B)) % 3),
    "Quadratic": lambda B: Quadratic(np.eye(B.shape[1]), np.ones(B.shape[1])),
}


@pytest.mark.parametrize(
    ("kind", "samples", "features"), [*((k, 3000, 50) for k in MEASURED), ("C", 50, 2000), ("CSR", 50, 2000)]
)
def test_memory_stays_in_the_budget(kind, samples, features, monkeypatch, tmp_path):
    monkeypatch.setattr(chunks, "CACHE", 1 << 40)  # only the budget limits a chunk
    loss = MEASURED[kind](np.random.default_rng(5).standard_normal((samples, features)))
    x0s = np.zeros((*loss.shape, 8))
    arguments = loss, L1(0.01), [AdaGradDiff, AdaGrad], np.geomspace(0.1, 1.0, 9), x0s, 9
    column = Trajectories(*arguments, 1, False).column
    for trajectories, jobs, checkpoint in ((10, 1, False), (40, 2, False), (72, 1, True)):
        budget = trajectories * column
        monkeypatch.setattr(module, "SAVE", 0.005 if checkpoint else 30.0)

        def run(place, *, budget=budget, jobs=jobs, checkpoint=checkpoint):
            return sweep(*arguments, keep_x=False, memory=budget, n_jobs=jobs, checkpoint=place if checkpoint else None)

        run(tmp_path / "first")  # so that everything is imported, compiled and cached, here and in other libraries
        tracemalloc.start()
        try:
            result = run(tmp_path / "second")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < budget + 2 * result.nbytes + 600_000, (peak, budget)  # the results, and a little


def test_progress(capfd):
    arguments = LAD(A, REAL), None, AdaGrad, ETAS, starts(LAD(A, REAL)), 10
    for silent in (None, False):
        sweep(*arguments, progress=silent)
        assert capfd.readouterr() == ("", "")
    sweep(*arguments, progress=True, label="my label")
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("\rmy label:   0%")
    assert re.search(r"my label: 100%\|.*\| 60.0/60.0 \[\d\d:\d\d<00:00", err)


def test_progress_on_a_terminal(monkeypatch):
    class Terminal(StringIO):
        def isatty(self):
            return True

    def slow(x):
        time.sleep(2e-3)
        return Bowl()(x)

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "LOOK", 0.02)
    sweep(slow, None, [AdaGrad, AdaGradDiff], ETAS, np.zeros((3, 2)), 150, n_jobs=2)
    text = terminal.getvalue()
    between = [int(number) for number in re.findall(r"sweep: +(\d+)%", text) if 0 < int(number) < 100]
    assert len(between) >= 2
    assert between == sorted(between)
    assert re.search(r"\[\d\d:\d\d<\d\d:\d\d, ", text)  # the time that is left
    assert "1.80k/1.80k" in text


LOSS = LAD(A, REAL)
GOOD = {"loss": LOSS, "penalty": None, "rules": AdaGrad, "etas": ETAS, "x0s": starts(LOSS), "n_iter": 5}
BAD = [
    ({"etas": [0.1, 0.2, 0.1]}, ValueError, "'etas' must be one or more positive numbers, each of them once"),
    ({"etas": []}, ValueError, "'etas' must be one or more positive numbers"),
    ({"etas": [[0.1, 0.2]]}, ValueError, "'etas' must be one or more positive numbers"),
    ({"etas": [0.1, -0.2]}, ValueError, r"'etas' parameter of sweep must be a positive number\. Got .*-0\.2"),
    ({"etas": [0.0]}, ValueError, "'etas' parameter of sweep must be a positive number"),
    ({"etas": [np.nan]}, ValueError, "'etas' parameter of sweep must be a positive number"),
    ({"etas": [np.inf]}, ValueError, "'etas' parameter of sweep must be a positive number"),
    ({"etas": ["a"]}, ValueError, "'etas' parameter of sweep must be a positive number"),
    ({"etas": None}, ValueError, "'etas' parameter of sweep must be a positive number"),
    ({"x0s": np.zeros((5, 2))}, ValueError, r"'x0s' must have shape \(6, starts\)\. Got shape \(5, 2\) instead"),
    ({"x0s": np.zeros((2, 6))}, ValueError, r"'x0s' must have shape \(6, starts\)\. Got shape \(2, 6\) instead"),
    ({"x0s": np.zeros((6, 2, 2))}, ValueError, r"'x0s' must have shape \(6, starts\)"),
    ({"x0s": np.zeros((6, 0))}, ValueError, r"'x0s' must have .*Got shape \(6, 0\)"),
    ({"x0s": 1.0}, ValueError, "'x0s' must have shape"),
    ({"x0s": np.where(np.eye(6) > 0, np.nan, 1.0)}, ValueError, r"x0s contains nan at index \(0, 0\)"),
    ({"x0s": np.full((6, 2), np.inf)}, ValueError, "x0s contains inf"),
    ({"x0s": np.full((6, 2), 1j)}, ValueError, "x0s must be real numbers"),
    ({"x0s": None}, ValueError, "x0s must be an array of real numbers"),
    ({"loss": Bowl(), "x0s": np.zeros((3, 0))}, ValueError, "'x0s' must have"),
    ({"rules": []}, TypeError, "'rules' must be rule classes, such as AdaGradDiff, or functions eta -> rule"),
    ({"rules": {}}, TypeError, "'rules' must be rule classes"),
    ({"rules": None}, TypeError, "'rules' must be rule classes"),
    ({"rules": "AdaGrad"}, TypeError, "'rules' must be rule classes"),
    ({"rules": AdaGrad(0.1)}, TypeError, "'rules' must be rule classes"),
    ({"rules": [AdaGrad, 3]}, TypeError, "'rules' must be rule classes"),
    ({"rules": {"a": AdaGrad, "b": None}}, TypeError, "'rules' must be rule classes"),
    ({"rules": {1: AdaGrad, "1": AdaGradDiff}}, ValueError, "'rules' .* names"),
    ({"rules": lambda eta: eta}, TypeError, "'rules' must be rule classes or functions eta -> rule, but .* made 0.3"),
    ({"rules": {"late": lambda eta: AdaGrad(eta) if eta > 0.2 else None}}, TypeError, "but late made None"),
    ({"rules": lambda eta: AdaGrad}, TypeError, "but rule 0 made <class"),
    ({"record": 0}, ValueError, "'record' parameter of sweep must be an integer >= 1"),
    ({"record": 2.5}, ValueError, "'record' parameter of sweep"),
    ({"n_iter": 0}, ValueError, "'n_iter' parameter of sweep must be an integer >= 1"),
    ({"n_iter": 10.0}, ValueError, "'n_iter' parameter of sweep"),
    ({"n_iter": True}, ValueError, "'n_iter' parameter of sweep"),
    ({"n_jobs": 0}, ValueError, "'n_jobs' parameter of sweep must be an integer >= 1"),
    ({"n_jobs": -2}, ValueError, "'n_jobs' parameter of sweep"),
    ({"n_jobs": 1.5}, ValueError, "'n_jobs' parameter of sweep"),
    ({"loss": lambda x: (float(np.sum(x**2)), 2 * x)}, ValueError, "The loss must return one value per column of x"),
    ({"loss": lambda x: (float(np.sum(x**2)), 2 * x), "x0s": np.zeros(6)}, ValueError, "one value per column of x"),
    ({"loss": lambda x: np.sum(x**2, axis=0)}, TypeError, r"must return a pair \(value, gradient\)"),
    ({"loss": 3}, TypeError, "'loss' must be a loss"),
    ({"penalty": 3}, TypeError, "'penalty' must be None or have methods"),
]


@pytest.mark.parametrize(("change", "error", "sentence"), BAD)
def test_bad_input(change, error, sentence, tmp_path):
    """It is said before anything is computed or written."""
    with pytest.raises(error, match=sentence):
        sweep(**(GOOD | change), checkpoint=tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("jobs", [None, -1])
def test_every_core(jobs):
    assert_same(sweep(**GOOD, n_jobs=jobs), sweep(**GOOD), rtol=1e-12)
