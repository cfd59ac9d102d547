"""Trajectories of the package equal those of the naive statement of the algorithm, iterate by iterate."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import adagrad_diff
import naive
from adagrad_diff import AdaGrad, AdaGradDiff, iterate, minimize
from adagrad_diff.common import threads as module
from adagrad_diff.data import block
from looping import looped

ITERATIONS = 90
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-4}  # of ||x - x_naive|| / max(1, ||x_naive||), at every iterate
SAMPLES, FEATURES, CLASSES = 40, 7, 3

BINARY, REAL, COUNT = ("Logistic", "Hinge", "SquaredHinge"), ("LAD", "Quantile", "Squared", "Huber"), ("Poisson",)
LINEAR = (*BINARY, *REAL, *COUNT, "Multinomial")
LOSSES = (*LINEAR, "Quadratic", "KernelSVMDual")
PARAMETERS = {"Quantile": {"tau": 0.3}, "Huber": {"delta": 0.7}, "KernelSVMDual": {"lam": 0.1}}

PENALTIES = {  # name and arguments for d penalised coordinates
    "Zero": lambda d: ("Zero",),
    "L1": lambda d: ("L1", 0.05),
    "L1 per coordinate": lambda d: ("L1", np.linspace(0.0, 0.2, d)),
    "Ridge": lambda d: ("Ridge", 0.3),
    "Ridge per coordinate": lambda d: ("Ridge", np.linspace(0.0, 1.0, d)),
    "ElasticNet": lambda d: ("ElasticNet", 0.05, 0.3),
    "ElasticNet per coordinate": lambda d: ("ElasticNet", np.linspace(0.0, 0.2, d), np.linspace(1.0, 0.0, d)),
    "Box": lambda d: ("Box", -0.1, 0.15),
    "Box per coordinate": lambda d: ("Box", np.linspace(-0.3, 0.0, d), np.linspace(0.1, 0.2, d)),
    "NonNegative": lambda d: ("NonNegative",),
}
MATRICES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=0)[::2],
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "operator": aslinearoperator,
}
ALL_OPTIONS = {"intercept": True, "l2": 0.1, "sample_weight": np.linspace(0.0, 1.0, SAMPLES)}
RULES = {"AdaGradDiff": AdaGradDiff, "AdaGrad": AdaGrad}


class Problem:
    """One loss and one penalty, built twice from the same data: by the package and naively."""

    def __init__(self, loss, penalty="Zero", kind="C", dtype=np.float64, samples=SAMPLES, features=FEATURES, **options):
        self.rng = rng = np.random.default_rng(LOSSES.index(loss))
        A = rng.standard_normal((samples, features)) * (rng.random((samples, features)) < 0.8)
        if loss == "Quadratic":
            data, target = A.T @ A / samples, rng.standard_normal(features)
        elif loss == "KernelSVMDual":
            data = np.exp(-np.sum((A[:20, None] - A[None, :20]) ** 2, axis=2))
            target = rng.choice([-1.0, 1.0], len(data))
        else:
            truth = rng.standard_normal(features) / np.sqrt(features)
            noise = rng.standard_normal(samples)
            signal = A @ truth + 0.3 * noise
            data, target = A, signal
            if loss in BINARY:
                target = np.sign(signal)
            elif loss in COUNT:
                target = rng.poisson(np.exp(signal)).astype(float)
            elif loss == "Multinomial":
                target = np.digitize(signal, np.quantile(signal, [0.3, 0.7]))
        data = data.astype(dtype)
        target = target.astype(dtype) if target.dtype.kind == "f" else target
        self.intercept = options.get("intercept", False)
        options = PARAMETERS.get(loss, {}) | options
        self.loss = getattr(adagrad_diff, loss)(MATRICES[kind](data), target, **options)
        exact = target.astype(np.float64) if target.dtype.kind == "f" else target
        self.naive_loss = getattr(naive, loss)(data.astype(np.float64), exact, **options)
        self.dtype, self.shape = dtype, self.loss.shape
        coordinates = int(np.prod(self.shape)) - (int(np.prod(self.shape[1:])) if self.intercept else 0)
        name, *arguments = PENALTIES[penalty](coordinates)
        self.penalty = getattr(adagrad_diff, name)(*arguments)
        self.naive_penalty = getattr(naive, name)(*arguments)
        self.x0 = self.start()

    def start(self, *batch):
        return (0.5 * self.rng.standard_normal((*self.shape, *batch))).astype(self.dtype)

    def naively(self, rule="AdaGradDiff", eta=0.3, iterations=ITERATIONS, **options):
        return naive.run(
            self.naive_loss, self.x0, self.naive_penalty, rule, eta, iterations, intercept=self.intercept, **options
        )


def assert_close(x, expected, tolerance=1e-12):
    """||x - expected|| <= tolerance * max(1, ||expected||) for every entry along the first axis."""
    x, expected = (np.asarray(a, np.float64).reshape(len(a), -1) for a in (x, expected))
    assert x.shape == expected.shape
    error = np.linalg.norm(x - expected, axis=1) / np.maximum(1, np.linalg.norm(expected, axis=1))
    assert np.all(error <= tolerance), f"error {np.max(error):.1e} at entry {np.argmax(error)}, {tolerance:.0e} allowed"


def assert_same_trajectory(problem, rule="AdaGradDiff", eta=0.3, iterations=ITERATIONS, **options):
    """x, g, F and the steps of all iterations, as `iterate` yields them, equal the naive ones."""
    states = iterate(problem.loss, problem.x0, problem.penalty, RULES[rule](eta, **options))
    rows = [(s.n, s.x.copy(), s.g.copy(), s.fun, s.step.copy()) for s in islice(states, iterations)]
    n, x, g, F, steps = zip(*rows, strict=True)
    expected, tolerance = problem.naively(rule, eta, iterations, **options), TOLERANCE[problem.dtype]
    assert n == tuple(range(1, iterations + 1))
    assert x[0].dtype == problem.dtype
    assert_close(x, expected.x[1:], tolerance)
    assert_close(g, expected.g[1:], tolerance)
    assert_close(F, expected.F[1:], tolerance)
    assert_close(steps, expected.steps, tolerance)


# ---------------------------------------------------------------- the naive statement itself


@pytest.mark.parametrize("loss", LOSSES)
@looped("options", ["none", "all"])
def test_naive_gradients_are_derivatives(loss, options):
    problem = Problem(loss, **(ALL_OPTIONS if options == "all" and loss in LINEAR else {}))
    f, g = problem.naive_loss(problem.x0)
    assert np.ndim(f) == 0
    h = 1e-6
    for i in np.ndindex(problem.shape):
        e = np.zeros(problem.shape)
        e[i] = h
        slope = (problem.naive_loss(problem.x0 + e)[0] - problem.naive_loss(problem.x0 - e)[0]) / (2 * h)
        assert slope == pytest.approx(g[i], abs=1e-7)


@pytest.mark.parametrize("name", PENALTIES)
def test_naive_prox_is_the_minimiser(name):
    """p = prox(z, s) if and only if Phi(y) >= Phi(p) + sum (y - p)^2 / (2 s) for all y, Phi being what it minimises."""
    name, *arguments = PENALTIES[name](4)
    penalty, rng = getattr(naive, name)(*arguments), np.random.default_rng(0)
    for z, s in zip(rng.standard_normal((20, 4)), rng.exponential(size=(20, 4)), strict=True):
        p = penalty.prox(z, s)

        def objective(x, z=z, s=s):
            return penalty.value(x) + np.sum((x - z) ** 2 / (2 * s))

        assert np.isfinite(objective(p))
        for size in (1.0, 1e-1, 1e-2, 1e-3):
            for y in p + size * rng.standard_normal((20, 4)) * (rng.random((20, 4)) < 0.5):
                assert objective(y) >= objective(p) + np.sum((y - p) ** 2 / (2 * s)) - 1e-12


# ---------------------------------------------------------------- losses, penalties and rules


@looped("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_with_every_penalty(loss, penalty):
    assert_same_trajectory(Problem(loss, penalty))


@looped("penalty", ["Zero", "ElasticNet", "Box"])
@pytest.mark.parametrize("loss", LOSSES)
def test_adagrad(loss, penalty):
    assert_same_trajectory(Problem(loss, penalty), "AdaGrad")


@pytest.mark.parametrize("rule", RULES)
def test_svm_dual_in_its_own_box(rule):
    problem = Problem("KernelSVMDual")
    bound = problem.loss.b / len(problem.loss.b)
    problem.penalty, problem.naive_penalty = problem.loss.box(), naive.Box(np.minimum(bound, 0), np.maximum(bound, 0))
    assert_same_trajectory(problem, rule, eta=0.02)


# ---------------------------------------------------------------- matrices, options and precision


@looped("kind", [k for k in MATRICES if k != "C"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_kind_of_matrix(loss, kind):
    assert_same_trajectory(Problem(loss, "L1", kind))


@looped("kind", MATRICES)
@pytest.mark.parametrize("loss", LINEAR)
def test_weights_ridge_and_intercept(loss, kind):
    assert_same_trajectory(Problem(loss, "L1 per coordinate", kind, **ALL_OPTIONS))


@pytest.mark.parametrize("option", ALL_OPTIONS)
@pytest.mark.parametrize("loss", ["Hinge", "Squared", "Multinomial"])
def test_each_option_alone(loss, option):
    assert_same_trajectory(Problem(loss, "ElasticNet", **{option: ALL_OPTIONS[option]}), "AdaGrad")


@looped("penalty", ["Zero", "ElasticNet", "Box per coordinate"])
@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision(loss, penalty):
    assert_same_trajectory(Problem(loss, penalty, dtype=np.float32))


@looped("kind", ["F", "CSR", "CSC"])
@pytest.mark.parametrize("loss", ["Logistic", "LAD", "Multinomial", "Quadratic"])
def test_single_precision_of_every_kind_of_matrix(loss, kind):
    options = ALL_OPTIONS if loss in LINEAR else {}
    assert_same_trajectory(Problem(loss, "L1", kind, np.float32, **options), "AdaGrad")


# ---------------------------------------------------------------- blocks, scale and eta


@pytest.mark.parametrize("rule", RULES)
@looped("blocks", ["element", "all", [5, 5, 0, 2, 0, 5, 2]])
@pytest.mark.parametrize("loss", ["Logistic", "LAD", "Poisson", "Quadratic"])
def test_blocks(loss, blocks, rule):
    assert_same_trajectory(Problem(loss, "L1"), rule, blocks=blocks)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("blocks", ["all", "row", np.arange(FEATURES * CLASSES) % 4], ids=["all", "row", "labels"])
def test_blocks_of_a_matrix(blocks, intercept, rule):
    assert_same_trajectory(Problem("Multinomial", "L1", intercept=intercept), rule, blocks=blocks)


@pytest.mark.parametrize("labels", [[1, 0, 1, 0, 2, 2, 2], [1, 0, 1, 0, 2, 2, 2, 1]], ids=["alone", "labelled"])
@pytest.mark.parametrize("loss", ["Hinge", "Huber"])
def test_blocks_and_the_intercept(loss, labels):
    """Labels and scales that leave out the intercept make it a block of its own, with scale one."""
    scale = np.linspace(0.5, 2.0, len(labels))
    assert_same_trajectory(Problem(loss, "Ridge", **ALL_OPTIONS), blocks=labels, scale=scale)


@pytest.mark.parametrize("rule", RULES)
@looped("blocks", [None, "all", [0, 1, 0, 1, 1, 2, 2]])
@pytest.mark.parametrize("loss", ["SquaredHinge", "Quantile", "Quadratic"])
def test_scale(loss, blocks, rule):
    assert_same_trajectory(Problem(loss, "ElasticNet"), rule, blocks=blocks, scale=np.geomspace(0.2, 3.0, FEATURES))


@pytest.mark.parametrize("intercept", [False, True])
def test_scale_of_a_matrix(intercept):
    scale = np.geomspace(0.2, 3.0, FEATURES * CLASSES)
    assert_same_trajectory(Problem("Multinomial", "L1", intercept=intercept), blocks="row", scale=scale)


@looped("rule", RULES)
@pytest.mark.parametrize("loss", ["Logistic", "LAD", "Multinomial", "KernelSVMDual"])
def test_eta_as_a_function_of_n(loss, rule):
    assert_same_trajectory(Problem(loss, "L1"), rule, eta=lambda n: 0.8 / np.sqrt(n))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("eps", [1e-3, 1.0])
def test_eps_is_added_outside_the_root(eps, rule):
    assert_same_trajectory(Problem("Squared", "L1"), rule, eps=eps)


# ---------------------------------------------------------------- several trajectories


ETAS = np.array([0.05, 0.2, 0.6])


def assert_same_as_single_runs(problem, rule, eta=ETAS, **options):
    """The batched iterates, at every iteration, are those of one run for each column of x0.

    Only x_best is compared with the batch's own iterates: once F is flat to the last digit, which of them has the smallest
    F is a matter of rounding, and they differ by its square root.
    """
    x0 = problem.start(len(ETAS))
    batched = [s.copy() for s in islice(iterate(problem.loss, x0, problem.penalty, RULES[rule](eta, **options)), ITERATIONS)]
    for k in range(len(ETAS)):
        single_rule = RULES[rule](eta if callable(eta) else eta[k], **options)
        single = [s.copy() for s in islice(iterate(problem.loss, x0[..., k], problem.penalty, single_rule), ITERATIONS)]
        for name in ("x", "g", "step", "fun", "subgradient_norm", "mean_step", "x_avg", "fun_best", "n"):
            together, alone = ([np.atleast_1d(getattr(s, name)) for s in states] for states in (batched, single))
            assert_close([array[..., k] for array in together], alone)
        best = np.argmin([s.fun[k] for s in batched])
        np.testing.assert_array_equal(batched[-1].x_best[..., k], batched[best].x[..., k])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", LOSSES)
def test_trajectories_side_by_side(loss, rule):
    assert_same_as_single_runs(Problem(loss, "ElasticNet per coordinate"), rule)


@looped("kind", ["C", "F", "CSR", "CSC"])
@pytest.mark.parametrize("loss", ["Hinge", "Poisson", "Multinomial"])
def test_trajectories_side_by_side_with_every_option(loss, kind):
    scale = np.geomspace(0.5, 2.0, FEATURES * (CLASSES if loss == "Multinomial" else 1))
    blocks = "row" if loss == "Multinomial" else [0, 0, 1, 2, 1, 2, 2]
    problem = Problem(loss, "Box per coordinate", kind, **ALL_OPTIONS)
    assert_same_as_single_runs(problem, "AdaGradDiff", blocks=blocks, scale=scale)


@pytest.mark.parametrize("loss", ["Huber", "Multinomial"])
def test_trajectories_with_one_function_eta(loss):
    assert_same_as_single_runs(Problem(loss), "AdaGrad", eta=lambda n: 0.5 / np.sqrt(n), blocks="all")


def test_one_start_for_all_trajectories():
    problem = Problem("Logistic", "L1")
    result = minimize(problem.loss, problem.x0, problem.penalty, eta=ETAS, max_iter=ITERATIONS)
    assert result.x.shape == (FEATURES, len(ETAS))
    assert_close(result.x.T, [problem.naively(eta=eta).x[-1] for eta in ETAS])


def test_a_trajectory_that_ends_leaves_the_others_alone():
    problem = Problem("Logistic", "Ridge")
    x0, tol, options = problem.start(len(ETAS)), 1e-3, {"max_iter": ITERATIONS, "on_failure": "ignore"}
    result = minimize(problem.loss, x0, problem.penalty, eta=ETAS, tol=tol, **options)
    singles = [minimize(problem.loss, x0[:, k], problem.penalty, eta=ETAS[k], tol=tol, **options) for k in range(len(ETAS))]
    assert len(set(result.nit)) == len(ETAS)  # they end at different times
    for name in ("nit", "status", "success"):
        assert [getattr(single, name) for single in singles] == getattr(result, name).tolist()
    for name in ("x", "jac", "x_avg", "x_best"):
        assert_close(getattr(result, name).T, [getattr(single, name) for single in singles])
    for name in ("fun", "fun_best", "subgradient_norm"):
        assert_close(getattr(result, name), [getattr(single, name) for single in singles])


# ---------------------------------------------------------------- threads


@pytest.mark.parametrize(("options", "batch"), [("none", ()), ("all", (2,)), ("all", ())], ids=str)
@pytest.mark.parametrize(("kind", "loss"), [(k, f) for k in ("C", "F", "CSR") for f in ("Logistic", "Hinge", "Multinomial")])
def test_threads_change_nothing(monkeypatch, loss, kind, options, batch):
    """Rows shared among four threads, and read in several blocks by each, give the result of one thread and one block."""
    samples, used, shares = 2100, [], module.over_rows

    def over_rows(worker, rows, threads):
        used.append(threads)
        return shares(worker, rows, threads)

    monkeypatch.setattr(module, "over_rows", over_rows)
    weights = {"sample_weight": np.linspace(0, 1, samples)} if options == "all" else {}
    problem = Problem(loss, "L1", kind, samples=samples, **(ALL_OPTIONS | weights if weights else {}))
    arguments = (problem.loss, problem.start(*batch), problem.penalty, AdaGradDiff(0.3))
    alone = [s.copy() for s in islice(iterate(*arguments), 50)]
    assert used == []
    monkeypatch.setattr(module, "WORK_PER_THREAD", 1)
    monkeypatch.setattr(module, "cores", lambda: 4)
    monkeypatch.setattr(module, "_blas", list)
    monkeypatch.setattr(block, "CACHE_BYTES", 1)  # the smallest blocks: 256 rows
    shared = [s.copy() for s in islice(iterate(*arguments), 50)]
    if kind == "CSR" or (kind == "C" and loss != "Multinomial" and not batch):  # the others leave threads to BLAS
        assert set(used) == {4}
    for name in ("x", "g", "fun"):
        assert_close([getattr(s, name) for s in shared], [getattr(s, name) for s in alone])


# ---------------------------------------------------------------- what a run reports


@looped("rule", RULES)
@pytest.mark.parametrize("loss", ["Logistic", "Hinge", "LAD", "Multinomial", "Quadratic"])
def test_result(loss, rule):
    options = ALL_OPTIONS if loss in LINEAR else {}
    problem = Problem(loss, "L1", **options)
    eta, blocks = lambda n: 1.5 / n**0.25, "all" if loss == "LAD" else None
    iterates = []
    result = minimize(
        problem.loss,
        problem.x0,
        problem.penalty,
        RULES[rule](eta, blocks=blocks),
        max_iter=ITERATIONS,
        callback=lambda now: iterates.append(now.x),
    )
    expected = problem.naively(rule, eta, blocks=blocks)
    assert_close([result.x, result.jac], [expected.x[-1], expected.g[-1]])
    assert_close([result.x_avg], [expected.x_avg])
    np.testing.assert_array_equal(result.x_best, iterates[np.argmin(result.history.objective)])
    assert_close([result.fun, result.fun_best], [expected.F[-1], expected.F.min()])
    assert result.subgradient_norm == pytest.approx(expected.subgradient_norm[-1], rel=1e-12, abs=1e-12)
    assert (result.nit, result.nfev) == (ITERATIONS, ITERATIONS + 1)
    assert result.history.iteration.tolist() == list(range(1, ITERATIONS + 1))
    assert_close(result.history.objective, expected.F[1:])
    assert_close(result.history.mean_step, expected.mean_step)
    assert_close(result.history.subgradient_norm, expected.subgradient_norm)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", ["Hinge", "LAD", "Quantile"])
def test_best_and_average_are_not_the_last_iterate(loss, rule):
    """With a step this long a nonsmooth loss goes up and down: x_best, x_avg and x are three different points."""
    problem = Problem(loss, "L1")
    result = minimize(problem.loss, problem.x0, problem.penalty, RULES[rule](2.0), max_iter=ITERATIONS)
    expected = problem.naively(rule, eta=2.0)
    assert 0 < np.argmin(expected.F) < ITERATIONS
    assert_close([result.x, result.x_avg, result.x_best], [expected.x[-1], expected.x_avg, expected.x_best])


@pytest.mark.parametrize("power", [70, -80])
@pytest.mark.parametrize("batch", [(), (2,)], ids=["single", "batched"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_scaling_the_objective_changes_nothing(dtype, batch, power):
    """c f with c eps in place of f and eps has the same iterates and stops with them; for c = 2^k, to the last bit."""
    Q, b, c = np.array([[2, 1], [1, 3]], dtype), np.array([1, -1], dtype), dtype(2.0**power)
    options = {"x0": np.zeros((2, *batch), dtype), "tol": 1e-3, "max_iter": 100}
    plain = minimize(adagrad_diff.Quadratic(Q, b), rule=AdaGradDiff(0.5, eps=1e-8), **options)
    scaled = minimize(adagrad_diff.Quadratic(c * Q, c * b), rule=AdaGradDiff(0.5, eps=1e-8 * float(c)), **options)
    np.testing.assert_array_equal(scaled.nit, plain.nit)
    np.testing.assert_array_equal(scaled.x, plain.x)
    np.testing.assert_array_equal(scaled.history.subgradient_norm / float(c), plain.history.subgradient_norm)


# ---------------------------------------------------------------- random problems


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(
    samples=st.integers(1, 8),
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    eta=st.floats(-3, 1).map(lambda power: 10**power),
    loss=st.sampled_from(["Squared", "Huber"]),
    rule=st.sampled_from(list(RULES)),
    penalty=st.sampled_from(["Zero", "ElasticNet", "Box"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_random_problems(samples, labels, eta, loss, rule, penalty, seed):
    rng, d = np.random.default_rng(seed), len(labels)
    A, b, x0 = rng.standard_normal((samples, d)), rng.standard_normal(samples), rng.standard_normal(d)
    name, *arguments = PENALTIES[penalty](d)
    expected = naive.run(getattr(naive, loss)(A, b), x0, getattr(naive, name)(*arguments), rule, eta, 20, blocks=labels)
    states = iterate(
        getattr(adagrad_diff, loss)(A, b), x0, getattr(adagrad_diff, name)(*arguments), RULES[rule](eta, blocks=labels)
    )
    # A long step multiplies the rounding errors of the gradient, in one statement as in the other.
    assert_close([s.x.copy() for s in islice(states, 20)], expected.x[1:], 1e-12 * max(1.0, expected.steps.max()))
