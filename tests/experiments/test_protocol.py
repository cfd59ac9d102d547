"""The protocol of Appendix B against a loop over naive runs; diverged runs; resuming."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import adagrad_diff
import naive
from adagrad_diff import AdaGrad, AdaGradDiff, Quadratic, Status, sweep
from adagrad_diff.datasets import Dataset
from adagrad_diff.experiments.paper import PROBLEMS, Problem, hinge, lad, protocol, study
from adagrad_diff.penalties import Zero
from looping import looped

pytestmark = pytest.mark.peer  # xarray, and scikit-learn for the moons

RULES = {"AdaGradDiff": AdaGradDiff, "AdaGrad": AdaGrad}

RNG = np.random.default_rng(8)
CODES, SIGNS = RNG.integers(1, 5, (25, 5)).astype(float), np.where(RNG.random(25) < 0.5, -1.0, 1.0)
COUNTS, CLASSES = RNG.poisson(0.5, (40, 6)).astype(float), np.arange(40) % 20 + 1.0

TINY = {
    "hinge": {"samples": 25, "features": 5, "nonzeros": 2, "n_iter": 12},
    "lad": {"samples": 25, "features": 5, "nonzeros": 2, "n_iter": 12},
    "news20": {"n_iter": 12},
    "splice": {"n_iter": 12},
    "2moons": {"samples": 16, "n_iter": 5},
}


@pytest.fixture
def tiny(monkeypatch):
    """The problems with very few samples."""

    def load(name, directory=None, *, stand_in=False, download=True):
        A, b = {"splice.t": (CODES, SIGNS), "news20": (sparse.csr_array(COUNTS), CLASSES)}[name]
        return Dataset(A, b, name, "directory", "ab12")

    monkeypatch.setattr("adagrad_diff.datasets.load", load)
    return lambda name, **more: PROBLEMS[name](**{**TINY[name], "starts": 3, **more})


def twin(problem):
    """Loss and penalty as plain formulas."""
    c, loss = problem.choices, problem.loss
    if problem.name == "2moons":
        bound = loss.b / len(loss.b)
        return naive.KernelSVMDual(loss.Q.array, loss.b, c["lam"]), naive.Box(
            np.minimum(bound, 0), np.maximum(bound, 0)
        )
    if problem.name == "news20":
        return naive.Logistic(COUNTS, np.where(CLASSES <= 10, 1, -1), l2=c["sigma"]), naive.Zero()
    model = {"hinge": naive.Hinge, "lad": naive.LAD, "splice": naive.Logistic}[problem.name]
    return model(loss.A.array, loss.b), naive.L1(c["lam"])


def naive_runs(problem, rule, eta, n_iter):
    """One trajectory after the other."""
    f, phi = twin(problem)
    return [naive.run(f, x, phi, rule, eta, n_iter) for x in problem.x0s.T]


# ---------------------------------------------------------------- the protocol


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_study_is_what_the_appendix_says(tiny, name):
    problem = tiny(name)
    etas = np.geomspace(*problem.eta_range, 7)
    found = study(problem, etas=7, progress=False)

    seen, last = [], {}
    for rule in RULES:
        for eta in etas:
            runs = naive_runs(problem, rule, eta, problem.n_iter)
            seen += [run.F.min() for run in runs]
            last[rule, eta] = np.array([run.F[-1] for run in runs])
    fastest = min(last, key=lambda key: last[key].mean())
    seen += [run.F.min() for run in naive_runs(problem, *fastest, 10 * problem.n_iter)]
    best = {rule: min(etas, key=lambda eta, rule=rule: last[rule, eta].mean()) for rule in RULES}
    reference = (best["AdaGrad"] + best["AdaGradDiff"]) / 2
    chosen = sorted({0.1 * reference, reference, 10 * reference, *best.values()})
    curves = {
        (rule, eta): naive_runs(problem, rule, eta, problem.n_iter)
        for rule in RULES
        for eta in chosen
    }
    F_star = min(*seen, *(run.F.min() for runs in curves.values() for run in runs))

    scale = max(1.0, abs(F_star))
    assert found.F_star == pytest.approx(F_star, rel=1e-11)
    assert f"{fastest[0]} with eta = {fastest[1]:.3g} having" in found.comparison.f_star.sentence
    assert list(found.gap.rule.values) == list(found.curves.rule.values) == list(RULES)
    np.testing.assert_allclose(found.grid.eta, etas)
    gap = found.gap.transpose("rule", "eta", "seed").values
    expected = np.array([[last[rule, eta] for eta in etas] for rule in RULES]) - F_star
    np.testing.assert_allclose(gap, expected, rtol=1e-9, atol=1e-11 * scale)
    np.testing.assert_allclose(
        found.mean_gap.transpose("rule", "eta"),
        expected.mean(axis=2),
        rtol=1e-9,
        atol=1e-11 * scale,
    )
    assert found.best_eta == pytest.approx(best)
    assert found.reference_eta == pytest.approx(reference)
    assert found.panel_etas == pytest.approx((0.1 * reference, reference, 10 * reference))

    np.testing.assert_allclose(found.curves.eta, chosen)
    assert found.curves.iteration.values.tolist() == list(range(1, problem.n_iter + 1))
    for (rule, eta), runs in curves.items():
        gaps = (
            found.curve_gap.sel(rule=rule)
            .sel(eta=eta, method="nearest")
            .transpose("seed", "iteration")
        )
        np.testing.assert_allclose(
            gaps, [run.F[1:] - F_star for run in runs], rtol=1e-8, atol=1e-10 * scale
        )
        steps = (
            found.curves.mean_step.sel(rule=rule)
            .sel(eta=eta, method="nearest")
            .transpose("seed", "iteration")
        )
        np.testing.assert_allclose(steps, [run.mean_step for run in runs], rtol=1e-9)


def test_a_study_says_what_it_is(tiny):
    problem = tiny("splice", seed=3)
    found = study(problem, etas=3, progress=False)
    for field in ("name", "title", "data", "real", "n_iter", "paper_eta", "choices"):
        assert getattr(found, field) == getattr(problem, field)
    kept = json.loads(json.dumps(found.provenance))
    assert (kept["etas"], kept["sha256"]) == (3, problem.sha256)
    assert kept["versions"]["adagrad-diff"] == adagrad_diff.__version__
    assert set(kept["versions"]) == {"adagrad-diff", "python", "numpy", "scipy", "numba", "xarray"}
    again = study(PROBLEMS[found.name](**kept["choices"]), etas=kept["etas"], progress=False)
    assert_same(again, found)
    assert "xarray" not in repr(found)


def assert_same(one, other):
    """To the last bit."""
    assert one.grid.identical(other.grid)
    assert one.curves.identical(other.curves)
    assert one.F_star == other.F_star
    assert one.best_eta == other.best_eta
    assert one.choices == other.choices
    assert one.provenance == other.provenance


def test_no_gap_is_negative():
    """Even when the runs of the figures get below everything before them: one iteration."""
    for seed in range(4):
        problem = lad(samples=30, features=6, nonzeros=2, n_iter=2, starts=3, seed=seed)
        found = study(problem, etas=3, progress=False)
        assert float(found.gap.min()) >= 0
        assert float(found.curve_gap.min()) >= 0


@looped("etas", [1, 2.5, True, "many"])
def test_wrong_size_of_the_grid(etas):
    with pytest.raises(ValueError, match="The 'etas' parameter of study must be an integer >= 2"):
        study(hinge(**TINY["hinge"]), etas=etas)


# ---------------------------------------------------------------- step sizes that are far too large


def bowl(eta_range):
    """A step is at most eta long in each coordinate, and f of a point that far out overflows."""
    x0s = np.random.default_rng(0).standard_normal((3, 4))
    loss = Quadratic(np.diag([1.0, 2.0, 3.0]), np.ones(3))
    return Problem("bowl", "Bowl", loss, Zero(), x0s, 20, eta_range, 0.1, "synthetic", True, {})


def test_diverged_trajectories_have_infinite_gaps():
    found = study(bowl((1e-1, 1e199)), etas=5, progress=False)
    failed = found.grid.status.isin([int(Status.DIVERGED), int(Status.NOT_FINITE)])
    assert failed.isel(eta=-1).all()
    assert {int(code) for code in np.unique(found.grid.status)} == {1, 5, 6}
    assert not np.isnan(found.gap).any()
    assert np.array_equal(np.isinf(found.gap), failed)
    assert np.isinf(found.mean_gap.isel(eta=-1)).all()
    assert np.isfinite(found.mean_gap.isel(eta=0)).all()
    assert found.best_eta == {"AdaGradDiff": 0.1, "AdaGrad": 0.1}
    assert np.isfinite(found.F_star)


def test_one_failure_among_the_seeds_counts():
    found = study(bowl((1e-2, 1.0)), etas=5, progress=False)
    rule, eta = "AdaGrad", found.best_eta["AdaGrad"]
    grid = found.grid.copy(deep=True)
    grid.status.loc[{"rule": rule, "eta": eta, "seed": 2}] = int(Status.DIVERGED)
    changed = replace(found, comparison=replace(found.comparison, data=grid))
    assert float(changed.gap.sel(rule=rule, eta=eta, seed=2)) == np.inf
    assert float(changed.mean_gap.sel(rule=rule, eta=eta)) == np.inf
    assert changed.best_eta["AdaGrad"] != eta
    assert changed.best_eta["AdaGradDiff"] == found.best_eta["AdaGradDiff"]


# ---------------------------------------------------------------- stopped and continued


STAGES = ("rules-with-a-step-size", "refinement-of-the-optimum", "curves")


@looped(("name", "stopped"), [("lad", 1), ("2moons", 0), ("lad", 2)])
def test_a_stopped_study_continues_to_the_same_result(tiny, tmp_path_factory, name, stopped):
    problem, folder = tiny(name), tmp_path_factory.mktemp("study")

    def run(*args, checkpoint, **options):
        if checkpoint.name == STAGES[stopped]:
            raise KeyboardInterrupt
        return sweep(*args, checkpoint=checkpoint, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "sweep", run)
        patch.setattr("adagrad_diff.experiments.convex.sweep", run)
        with pytest.raises(KeyboardInterrupt):
            study(problem, etas=6, checkpoint=folder, progress=False)
    assert {path.name for path in folder.iterdir()} == set(STAGES[:stopped])
    again = study(problem, etas=6, checkpoint=str(folder), progress=False)
    assert_same(again, study(problem, etas=6, progress=False))
