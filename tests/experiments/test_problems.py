"""The five problems: their data, starts and choices."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff.datasets import Dataset
from adagrad_diff.experiments.paper import PROBLEMS, hinge, news20, splice, two_moons
from looping import looped

SHARED = Path(__file__).parents[3] / "shared" / "data"  # the real files, on machines that have them
real_data = pytest.mark.skipif(
    not (SHARED / "splice.t").exists(), reason="the LIBSVM files are not here"
)

RNG = np.random.default_rng(5)
CODES = RNG.integers(1, 5, (30, 6)).astype(float)
SIGNS = np.where(RNG.random(30) < 0.5, -1.0, 1.0)
COUNTS = RNG.poisson(0.4, (40, 9)).astype(float)
COUNTS[7] = COUNTS[:, 4] = 0.0  # a sample without words, a word nobody uses
CLASSES = np.arange(40) % 20 + 1.0

SMALL = {
    "hinge": {"samples": 30, "features": 7, "nonzeros": 3},
    "lad": {"samples": 30, "features": 7, "nonzeros": 3},
    "news20": {},
    "splice": {},
    "2moons": {"samples": 24},
}


@pytest.fixture
def real_loader():
    """To be asked for by the tests that read the real files."""


@pytest.fixture(autouse=True)
def small_files(request, monkeypatch):
    """A few rows in place of the data files."""
    if "real_loader" in request.fixturenames:
        return

    def load(name, directory=None, *, stand_in=False, download=True):
        assert download
        title, source = (f"stand-in for {name}", "stand-in") if stand_in else (name, "directory")
        A, b = {"splice.t": (CODES, SIGNS), "news20": (sparse.csr_array(COUNTS), CLASSES)}[name]
        return Dataset(A, b, title, source, None if stand_in else "ab12")

    monkeypatch.setattr("adagrad_diff.datasets.load", load)


def small(name, **more):
    return PROBLEMS[name](**{**SMALL[name], **more})


# ---------------------------------------------------------------- the formulas


def regression(samples, features, nonzeros, noise=1.0, seed=0):
    """A, w with a mask, and b = A w + noise: in the order in which they are drawn."""
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[0])
    A, w, epsilon = (
        rng.normal(size=(samples, features)),
        rng.normal(size=features),
        rng.normal(size=samples),
    )
    w[rng.permutation(features) >= nonzeros] = 0
    return A, w, A @ w + noise * epsilon


def formula(name, lam=0.01, sigma=1e-4, width=1.0, **data):
    """F of Section 4, and the box in which it is finite."""
    A, b = {
        "news20": (COUNTS, np.where(CLASSES <= 10, 1, -1)),
        "splice": (CODES, SIGNS),
    }.get(name) or regression(**SMALL["lad"], **data)[::2]
    l1 = lambda x: lam * abs(x).sum()
    logistic = lambda x: np.log(1 + np.exp(-b * (A @ x))).mean()
    return {
        "hinge": lambda x: np.maximum(0, 1 - np.sign(b) * (A @ x)).mean() + l1(x),
        "lad": lambda x: abs(b - A @ x).mean() + l1(x),
        "news20": lambda x: logistic(x) + sigma / 2 * x @ x,
        "splice": lambda x: logistic(x) + l1(x),
    }[name]


def objective(problem, x):
    return problem.loss.value_and_grad(x)[0] + problem.penalty.value(x)


VARIANTS = [
    ("hinge", {}),
    ("hinge", {"lam": 0.3, "noise": 0.0, "seed": 4}),
    ("lad", {"lam": 0.3, "noise": 2.5, "seed": 4}),
    ("news20", {}),
    ("news20", {"sigma": 0.7}),
    ("splice", {"lam": 0.3}),
]


@looped(("name", "more"), VARIANTS)
def test_the_objective_is_the_formula(name, more):
    problem, F = small(name, **more), formula(name, **more)
    for x in problem.x0s.T:
        np.testing.assert_allclose(objective(problem, x), F(x), rtol=1e-12)


@pytest.mark.peer
@looped("more", [{}, {"lam": 0.3, "noise": 0.4, "seed": 4, "width": 0.6}])
def test_the_objective_of_two_moons_is_the_formula(more):
    from sklearn.datasets import make_moons

    problem, choices = small("2moons", **more), {"noise": 0.1, "seed": 0, "lam": 1e-3} | more
    points, moon = make_moons(24, noise=choices["noise"], random_state=choices["seed"])
    distances = np.sum((points[:, None] - points) ** 2, axis=-1)
    K, b = np.exp(-distances / choices.get("width", 1) ** 2), np.where(moon == 1, 1, -1)
    for x in problem.x0s.T:
        F = x @ K @ x / (2 * choices["lam"]) - x @ b
        np.testing.assert_allclose(objective(problem, x), F, rtol=1e-12)
        assert objective(problem, -x) == objective(problem, x + 1.1 * b / 24) == np.inf


FIXED = {  # dimensions and starts, iterations, reference eta, strength, title
    "hinge": ((100, 10), 1000, 0.063, 1e-2, "Hinge loss on synthetic data"),
    "lad": ((100, 10), 1000, 0.042, 1e-2, "LAD regression on synthetic data"),
    "news20": ((9, 10), 2500, 0.863, 1e-4, "Logistic regression on news20"),
    "splice": ((6, 10), 1000, 0.238, 1e-2, "Logistic regression on splice.t"),
    "2moons": ((300, 10), 20, 0.002, 1e-3, "SVM dual on 2moons"),
}


@pytest.mark.peer
@looped("name", PROBLEMS)
def test_what_the_paper_fixes_is_the_default(name):
    problem = PROBLEMS[name]()
    loss, penalty = problem.loss, problem.penalty
    strength = {"news20": lambda: loss.l2, "2moons": lambda: loss.lam}.get(
        name, lambda: float(penalty.l1[0])
    )()
    found = (problem.x0s.shape, problem.n_iter, problem.paper_eta, strength, problem.title)
    assert found == FIXED[name]
    assert (problem.name, problem.real) == (name, True)
    np.testing.assert_allclose(problem.etas(3)[[0, -1]], problem.eta_range)
    if name in ("hinge", "lad"):
        assert loss.A.shape == (500, 100)
        assert problem.data == "synthetic (seed 0)"
    if name in ("news20", "splice"):
        assert (problem.data, problem.sha256) == (problem.title.split()[-1], "ab12")
        assert not loss.intercept
    if name == "2moons":
        assert np.bincount(loss.b.astype(int) + 1).tolist() == [150, 0, 150]


# ---------------------------------------------------------------- data, starts and seeds


@pytest.mark.peer
@looped("name", PROBLEMS)
def test_a_start_and_the_data_do_not_depend_on_how_many_starts_there_are(name):
    few, many = small(name, starts=2), small(name, starts=5)
    assert np.array_equal(few.x0s, many.x0s[:, :2])
    assert len(np.unique(many.x0s, axis=1).T) == 5
    x = few.x0s[:, 0]
    assert np.array_equal(few.loss.value_and_grad(x)[1], many.loss.value_and_grad(x)[1])
    again = small(name, starts=5)
    assert np.array_equal(again.x0s, many.x0s)
    assert not np.array_equal(small(name, starts=5, seed=1).x0s, many.x0s)


@looped("name", ["hinge", "lad", "news20", "splice"])
def test_kinds_of_starts(name):
    x = small(name, starts=400).x0s
    assert abs(x.mean()) < 0.1
    assert abs(x.std() - 1) < 0.1
    np.testing.assert_allclose(small(name, starts=400, start_scale=0.1).x0s, 0.1 * x)
    x = small(name, starts=400, start="uniform", start_scale=3.0).x0s
    assert -3 <= x.min() < -2.9
    assert 2.9 < x.max() <= 3
    assert not small(name, start="zeros").x0s.any()


@pytest.mark.peer
def test_starts_of_two_moons_are_feasible():
    problem = two_moons(starts=50)
    scaled = problem.loss.b[:, None] * problem.x0s * 300
    assert scaled.min() >= 0
    assert scaled.max() <= 1
    assert abs(scaled.mean() - 0.5) < 0.02
    assert abs(scaled.std() - 1 / np.sqrt(12)) < 0.02
    assert not problem.penalty.value(problem.x0s).any()
    np.testing.assert_allclose(two_moons(starts=50, start_scale=0.5).x0s, problem.x0s / 2)
    assert not two_moons(start="zeros").x0s.any()


@looped("positive", [range(1, 11), [3], {2, 20, 7}])
def test_labels_of_news20(positive):
    expected = np.array([1.0 if label in positive else -1.0 for label in CLASSES])
    problem = news20(positive=positive)
    assert np.array_equal(problem.loss.b, expected)
    assert problem.choices["positive"] == sorted(positive)


@looped("positive", [[], [21], range(1, 21)])
def test_labels_that_leave_one_class(positive):
    with pytest.raises(
        ValueError,
        match=r"The 'positive' parameter of news20 must be some of its labels 1 \.\.\. 20",
    ):
        news20(positive=positive)


@looped(("make", "raw"), [(news20, COUNTS), (splice, CODES)])
def test_scaling_and_intercept(make, raw):
    def matrix(**more):
        problem = make(**more)
        A = problem.loss.A
        assert problem.choices["scaling"] == more["scaling"]
        return (
            A.array if make is splice else sparse.csr_array(A.parts[::-1], shape=A.shape).toarray()
        )

    np.testing.assert_array_equal(matrix(scaling="none"), raw)
    expected = [row / (np.linalg.norm(row) or 1) for row in raw]
    np.testing.assert_allclose(matrix(scaling="rows"), expected, rtol=1e-14)
    expected = np.column_stack([column / (np.abs(column).max() or 1) for column in raw.T])
    np.testing.assert_allclose(matrix(scaling="columns"), expected, rtol=1e-14)
    assert make(intercept=True).x0s.shape == (raw.shape[1] + 1, 10)


# ---------------------------------------------------------------- what is written down


@pytest.mark.peer
@looped("name", PROBLEMS)
def test_choices_are_complete_and_make_the_problem_again(name):
    problem = small(name, starts=3, seed=2, start_scale=0.5)
    kept = json.loads(json.dumps(problem.choices))
    assert kept == problem.choices
    parameters = set(inspect.signature(PROBLEMS[name]).parameters)
    assert set(kept) == parameters - {"data", "download"}
    again = PROBLEMS[name](**kept)
    assert np.array_equal(again.x0s, problem.x0s)
    f, g = problem.loss.value_and_grad(problem.x0s)
    f_again, g_again = again.loss.value_and_grad(problem.x0s)
    assert np.array_equal(f, f_again)
    assert np.array_equal(g, g_again)
    assert np.array_equal(problem.penalty.value(problem.x0s), again.penalty.value(problem.x0s))
    written = lambda one: [
        one.title,
        one.n_iter,
        one.eta_range,
        one.paper_eta,
        one.data,
        one.choices,
    ]
    assert written(again) == written(problem)


@looped(("name", "file"), [("news20", "news20"), ("splice", "splice.t")])
def test_a_stand_in_says_so(name, file):
    problem = PROBLEMS[name](stand_in=True)
    assert (problem.data, problem.real, problem.sha256) == (f"stand-in for {file}", False, "")
    assert problem.title == f"Logistic regression on stand-in for {file}"
    assert problem.choices["stand_in"] is True


@pytest.mark.peer
@real_data
@pytest.mark.parametrize(("name", "shape"), [("news20", (15935, 62061)), ("splice", (2175, 60))])
def test_the_real_data(real_loader, name, shape):
    problem = PROBLEMS[name](data=SHARED, stand_in=True, starts=2)  # allowed, but not needed
    assert problem.loss.A.shape == shape
    assert problem.x0s.shape == (shape[1], 2)
    assert (problem.real, problem.choices["stand_in"]) == (True, False)
    assert len(problem.sha256) == 64
    assert "stand-in" not in problem.title
    positives = int(np.sum(problem.loss.b > 0))
    assert positives == (1131 if name == "splice" else 7951)
    if name == "splice":
        assert set(np.unique(problem.loss.A.array)) == {1.0, 2.0, 3.0, 4.0}


@pytest.mark.peer
def test_no_data(real_loader, tmp_path, monkeypatch):
    monkeypatch.setattr("adagrad_diff.datasets._files.cache", lambda: tmp_path / "cache")
    with pytest.raises(ValueError, match="news20"):
        news20(data=tmp_path, download=False)
    problem = news20(data=tmp_path, download=False, stand_in=True, starts=1)
    assert (problem.data, problem.real, problem.loss.A.shape) == (
        "stand-in for news20",
        False,
        (15935, 62061),
    )
    inside = splice(data=tmp_path, download=False, stand_in=True)
    assert (inside.data, inside.real, inside.choices["stand_in"]) == ("splice.t", True, False)


WRONG = [
    ({"samples": 0}, "'samples' parameter of hinge must be an integer >= 1. Got 0 instead."),
    ({"features": 2.5}, "'features' parameter of hinge must be an integer >= 1. Got 2.5 instead."),
    ({"starts": True}, "'starts' parameter of hinge must be an integer >= 1. Got True instead."),
    ({"nonzeros": 101}, "'nonzeros' parameter of hinge must be at most 'features', 100."),
    ({"seed": -1}, "'seed' parameter of hinge must be an integer >= 0. Got -1 instead."),
    ({"lam": -1.0}, "'lam' parameter of hinge must be a positive number. Got -1.0 instead."),
    ({"noise": np.nan}, "'noise' parameter of hinge must be a number >= 0. Got nan instead."),
    (
        {"start": "feasible"},
        "'start' parameter of hinge must be one of 'normal', 'uniform', 'zeros'",
    ),
    ({"eta_range": (1.0, 0.1)}, r"'eta_range' .* must be two increasing numbers. Got \[1.0, 0.1\]"),
    ({"eta_range": 0.1}, r"'eta_range' parameter of hinge must be two increasing numbers"),
    ({"eta_range": (0.0, 0.1)}, "'eta_range' parameter of hinge must be a positive number. Got"),
]


@looped(("wrong", "sentence"), WRONG)
def test_wrong_arguments(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        hinge(**wrong)
    with pytest.raises(ValueError, match=r"'scaling' .* of splice must be one of 'none', 'rows', "):
        splice(scaling="unit")
