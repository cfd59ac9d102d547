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
from pairwise import pairwise

ITERATIONS = 30
TOLERANCE = {
    np.float64: 1e-12,
    np.float32: 1e-4,
}  # of ||x - x_naive|| / max(1, ||x_naive||), at every iterate
SAMPLES, FEATURES, CLASSES = 40, 7, 3

BINARY, REAL, COUNT = (
    ("Logistic", "Hinge", "SquaredHinge"),
    ("LAD", "Quantile", "Squared", "Huber"),
    ("Poisson",),
)
LINEAR = (*BINARY, *REAL, *COUNT, "Multinomial")
LOSSES = (*LINEAR, "Quadratic", "KernelSVMDual")
PARAMETERS = {"Quantile": {"tau": 0.3}, "Huber": {"delta": 0.7}, "KernelSVMDual": {"lam": 0.1}}

PENALTIES = {  # name and arguments for d penalised coordinates
    "Zero": lambda d: ("Zero",),
    "L1 per coordinate": lambda d: ("L1", np.linspace(0.0, 0.2, d)),
    "Ridge per coordinate": lambda d: ("Ridge", np.linspace(0.0, 1.0, d)),
    "ElasticNet": lambda d: ("ElasticNet", 0.05, 0.3),
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

    def __init__(
        self,
        loss,
        penalty="Zero",
        kind="C",
        dtype=np.float64,
        samples=SAMPLES,
        features=FEATURES,
        **options,
    ):
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
        coordinates = int(np.prod(self.shape)) - (
            int(np.prod(self.shape[1:])) if self.intercept else 0
        )
        name, *arguments = PENALTIES[penalty](coordinates)
        self.penalty = getattr(adagrad_diff, name)(*arguments)
        self.naive_penalty = getattr(naive, name)(*arguments)
        self.x0 = self.start()

    def start(self, *batch):
        return (0.5 * self.rng.standard_normal((*self.shape, *batch))).astype(self.dtype)

    def naively(self, rule="AdaGradDiff", eta=0.3, iterations=ITERATIONS, **options):
        return naive.run(
            self.naive_loss,
            self.x0,
            self.naive_penalty,
            rule,
            eta,
            iterations,
            intercept=self.intercept,
            **options,
        )


def assert_close(x, expected, tolerance=1e-12):
    """||x - expected|| <= tolerance * max(1, ||expected||) for every entry along the first axis."""
    x, expected = (np.asarray(a, np.float64).reshape(len(a), -1) for a in (x, expected))
    assert x.shape == expected.shape
    error = np.linalg.norm(x - expected, axis=1) / np.maximum(1, np.linalg.norm(expected, axis=1))
    assert np.all(error <= tolerance), (
        f"error {np.max(error):.1e} at entry {np.argmax(error)}, {tolerance:.0e} allowed"
    )


def assert_same_trajectory(problem, rule="AdaGradDiff", eta=0.3, iterations=ITERATIONS, **options):
    """x, g, F and the steps of all iterations, as `iterate` yields them, equal the naive ones."""
    states = iterate(problem.loss, problem.x0, problem.penalty, RULES[rule](eta, **options))
    rows = [(s.n, s.x.copy(), s.g.copy(), s.fun, s.step.copy()) for s in islice(states, iterations)]
    n, x, g, F, steps = zip(*rows, strict=True)
    expected, tolerance = (
        problem.naively(rule, eta, iterations, **options),
        TOLERANCE[problem.dtype],
    )
    assert n == tuple(range(1, iterations + 1))
    assert x[0].dtype == problem.dtype
    assert_close(x, expected.x[1:], tolerance)
    assert_close(g, expected.g[1:], tolerance)
    assert_close(F, expected.F[1:], tolerance)
    assert_close(steps, expected.steps, tolerance)


# ---------------------------------------------------------------- the naive statement itself


# ---------------------------------------------------------------- every option


def schedule(n):
    return 0.8 / np.sqrt(n)


@pairwise(
    loss=LOSSES,
    penalty=PENALTIES,
    kind=MATRICES,
    terms=[{}, ALL_OPTIONS],
    rule=RULES,
    blocks=[None, "all", "three"],
    scaled=[False, True],
    eta=[0.3, schedule],
    dtype=[np.float64, np.float32],
)
def test_trajectory(loss, penalty, kind, terms, rule, blocks, scaled, eta, dtype):
    """Labels and scales leave out the intercept, which is a block of its own with scale one."""
    problem = Problem(loss, penalty, kind, dtype, **(terms if loss in LINEAR else {}))
    size = (
        int(np.prod(problem.shape))
        - (problem.shape[-1] if problem.x0.ndim > 1 else 1) * problem.intercept
    )
    options = {"blocks": np.arange(size) % 3 if blocks == "three" else blocks}
    if scaled:
        options["scale"] = np.geomspace(0.3, 2.0, size)
    assert_same_trajectory(problem, rule, eta, **options)


def test_blocks_of_rows():
    problem = Problem("Multinomial", "ElasticNet", **ALL_OPTIONS)
    assert_same_trajectory(problem, blocks="row", scale=np.geomspace(0.2, 3.0, FEATURES * CLASSES))


def test_svm_dual_in_its_own_box():
    problem = Problem("KernelSVMDual")
    bound = problem.loss.b / len(problem.loss.b)
    problem.penalty, problem.naive_penalty = (
        problem.loss.box(),
        naive.Box(np.minimum(bound, 0), np.maximum(bound, 0)),
    )
    assert_same_trajectory(problem, eta=0.02)


@pytest.mark.parametrize("rule", RULES)
def test_eps_is_added_outside_the_root(rule):
    assert_same_trajectory(Problem("Squared", "ElasticNet"), rule, eps=1.0)


@pairwise(kind=["C", "F", "CSR"], loss=["Logistic", "Hinge", "Multinomial"], columns=[1, 2])
def test_data_for_several_threads_and_blocks_of_rows(kind, loss, columns):
    problem = Problem(loss, "ElasticNet", kind, samples=30_000, features=20, intercept=True)
    expected = problem.naively(iterations=3)
    x0 = np.repeat(problem.x0[..., None], columns, axis=-1) if columns > 1 else problem.x0
    found = minimize(problem.loss, x0, problem.penalty, eta=0.3, max_iter=3)
    for k in range(columns):
        x = found.x[..., k] if columns > 1 else found.x
        assert_close([x], [expected.x[-1]])


# ---------------------------------------------------------------- several trajectories, best and average


@pytest.mark.parametrize(("loss", "kind"), list(zip(LOSSES, [*MATRICES, *MATRICES], strict=False)))
def test_trajectories_side_by_side(loss, kind):
    problem, etas = Problem(loss, "ElasticNet", kind), [0.05, 0.2, 0.6]
    starts = problem.start(len(etas))
    states = iterate(problem.loss, starts, problem.penalty, AdaGradDiff(etas))
    x = [state.x.copy() for state in islice(states, ITERATIONS)]
    for k, eta in enumerate(etas):
        problem.x0 = starts[..., k]
        assert_close([point[..., k] for point in x], problem.naively(eta=eta).x[1:])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", ["Hinge", "LAD"])
def test_best_and_average_are_not_the_last_iterate(loss, rule):
    """With a step this long a nonsmooth loss goes up and down: x_best, x_avg and x are three different points."""
    problem = Problem(loss, "ElasticNet")
    result = minimize(
        problem.loss, problem.x0, problem.penalty, RULES[rule](4.0), max_iter=ITERATIONS
    )
    expected = problem.naively(rule, eta=4.0)
    assert 0 < np.argmin(expected.F) < ITERATIONS
    assert_close(
        [result.x, result.x_avg, result.x_best], [expected.x[-1], expected.x_avg, expected.x_best]
    )


# ---------------------------------------------------------------- random problems


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(
    samples=st.integers(1, 8),
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    eta=st.floats(-3, 1).map(lambda power: 10**power),
    loss=st.sampled_from(["Squared", "Huber"]),
    rule=st.sampled_from(list(RULES)),
    penalty=st.sampled_from(["Zero", "ElasticNet", "Box per coordinate"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_random_problems(samples, labels, eta, loss, rule, penalty, seed):
    rng, d = np.random.default_rng(seed), len(labels)
    A, b, x0 = (
        rng.standard_normal((samples, d)),
        rng.standard_normal(samples),
        rng.standard_normal(d),
    )
    name, *arguments = PENALTIES[penalty](d)
    expected = naive.run(
        getattr(naive, loss)(A, b),
        x0,
        getattr(naive, name)(*arguments),
        rule,
        eta,
        20,
        blocks=labels,
    )
    states = iterate(
        getattr(adagrad_diff, loss)(A, b),
        x0,
        getattr(adagrad_diff, name)(*arguments),
        RULES[rule](eta, blocks=labels),
    )
    # A long step multiplies the rounding errors of the gradient, in one statement as in the other.
    assert_close(
        [s.x.copy() for s in islice(states, 20)],
        expected.x[1:],
        1e-12 * max(1.0, expected.steps.max()),
    )
