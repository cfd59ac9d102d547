"""The protocol of Appendix B against a loop over naive runs; columns against single runs; going on after a stop."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import adagrad_diff
import naive
from adagrad_diff import AdaGrad, AdaGradDiff, Quadratic, Status, minimize, sweep
from adagrad_diff.datasets import Dataset
from adagrad_diff.losses.linear import LinearOracle
from adagrad_diff.experiments.paper import PROBLEMS, Problem, hinge, lad, protocol, study
from adagrad_diff.penalties import Zero

pytestmark = pytest.mark.peer  # xarray, and scikit-learn for the moons

SHARED = Path(__file__).parents[3] / "shared" / "data"
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
    assert found.provenance["refined_by"] == {"rule": fastest[0], "eta": pytest.approx(fastest[1])}
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


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_study_says_what_it_is(tiny, name):
    problem = tiny(name, seed=3)
    found = study(problem, etas=3, progress=False)
    for field in ("name", "title", "data", "real", "n_iter", "paper_eta", "choices"):
        assert getattr(found, field) == getattr(problem, field)
    kept = json.loads(json.dumps({"choices": found.choices, **found.provenance}))
    assert kept["etas"] == 3
    assert kept["rules"] == list(RULES)
    assert kept["sha256"] == problem.sha256
    assert kept["versions"]["adagrad-diff"] == adagrad_diff.__version__
    assert kept["versions"]["numpy"] == np.__version__
    assert set(kept["versions"]) >= {"python", "scipy", "numba", "xarray"}
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
    """Even when the runs of the figures get below everything before them: one iteration, so hardly a refinement."""
    for seed in range(4):
        problem = lad(samples=30, features=6, nonzeros=2, n_iter=2, starts=3, seed=seed)
        found = study(problem, etas=3, progress=False)
        assert float(found.gap.min()) >= 0
        assert float(found.curve_gap.min()) >= 0


def test_the_grid_keeps_some_iterations_and_no_points():
    found = study(hinge(**TINY["hinge"], starts=2), etas=3, progress=False)
    assert found.grid.iteration.values.tolist() == list(range(1, 13))
    long = study(
        lad(samples=20, features=3, nonzeros=1, n_iter=1010, starts=1), etas=2, progress=False
    )
    assert long.grid.iteration.values.tolist() == [*range(5, 1011, 5)]
    assert "x" not in found.grid
    assert found.grid.sizes["seed"] == 2


@pytest.mark.parametrize("etas", [1, 0, 2.5, True, "many"])
def test_wrong_size_of_the_grid(etas):
    with pytest.raises(ValueError, match="The 'etas' parameter of study must be an integer >= 2"):
        study(hinge(**TINY["hinge"]), etas=etas)


# ---------------------------------------------------------------- step sizes that are far too large


def bowl(eta_range):
    """A step is at most eta long in each coordinate, and f of a point that far out overflows its limit."""
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
    changed = replace(found, grid=grid)
    assert float(changed.gap.sel(rule=rule, eta=eta, seed=2)) == np.inf
    assert float(changed.mean_gap.sel(rule=rule, eta=eta)) == np.inf
    assert changed.best_eta["AdaGrad"] != eta
    assert changed.best_eta["AdaGradDiff"] == found.best_eta["AdaGradDiff"]


def test_curves_of_diverged_trajectories_are_infinite():
    problem = bowl((1e-2, 1.0))
    curves = sweep(
        problem.loss, problem.penalty, RULES.values(), [0.1, 1e199], problem.x0s, 20, progress=False
    )
    found = replace(study(problem, etas=3, progress=False), curves=curves)
    assert not np.isnan(found.curve_gap).any()
    assert np.isinf(found.curve_gap.sel(eta=1e199).isel(iteration=-1)).all()
    assert np.isfinite(found.curve_gap.sel(eta=0.1)).all()


# ---------------------------------------------------------------- stopped and continued


@pytest.mark.parametrize("stage", ["grid", "refine", "curves"])
@pytest.mark.parametrize("name", ["lad", "2moons"])
def test_a_stopped_study_continues_to_the_same_result(tiny, name, stage, tmp_path, monkeypatch):
    problem = tiny(name)
    plain = study(problem, etas=6, progress=False)
    real = sweep

    def stopped(*args, checkpoint, **options):
        if checkpoint.name == stage:
            raise KeyboardInterrupt
        return real(*args, checkpoint=checkpoint, **options)

    with monkeypatch.context() as patch:
        patch.setattr(adagrad_diff.sweeps, "sweep", stopped)
        with pytest.raises(KeyboardInterrupt):
            study(problem, etas=6, checkpoint=tmp_path, progress=False)
    done = ("grid", "refine", "curves").index(stage)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(("grid", "refine", "curves")[:done])
    assert_same(study(problem, etas=6, checkpoint=str(tmp_path), progress=False), plain)


def test_a_finished_study_is_only_read(tmp_path, monkeypatch):
    evaluations, evaluate = [], LinearOracle.__call__

    def counted(oracle, x, out):
        evaluations.append(x.shape)
        return evaluate(oracle, x, out)

    monkeypatch.setattr(LinearOracle, "__call__", counted)
    problem = hinge(**TINY["hinge"], starts=3)
    first = study(problem, etas=6, checkpoint=tmp_path, progress=False)
    assert len(evaluations) > 12 + 120 + 12
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert {path.name for path in tmp_path.iterdir()} == {"grid", "refine", "curves"}

    evaluations.clear()
    assert_same(
        study(hinge(**TINY["hinge"], starts=3), etas=6, checkpoint=tmp_path, progress=False), first
    )
    assert len(evaluations) <= 3  # of the starts
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")} == files


@pytest.mark.parametrize(
    "other", [{"seed": 1}, {"lam": 0.5}, {"starts": 2}, {"n_iter": 13}, {"eta_range": (0.1, 0.2)}]
)
def test_the_checkpoint_of_another_problem(other, tmp_path):
    settings = {**TINY["hinge"], "starts": 3}
    study(hinge(**settings), etas=4, checkpoint=tmp_path, progress=False)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="belongs to another sweep"):
        study(hinge(**{**settings, **other}), etas=4, checkpoint=tmp_path, progress=False)
    with pytest.raises(ValueError, match="belongs to another sweep"):
        study(hinge(**settings), etas=5, checkpoint=tmp_path, progress=False)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_options_reach_the_sweep(tmp_path, monkeypatch):
    calls = []

    def watched(*args, **options):
        calls.append((args, options))
        return sweep(*args, **{**options, "progress": False})

    monkeypatch.setattr(adagrad_diff.sweeps, "sweep", watched)
    problem = hinge(**TINY["hinge"], starts=3)
    study(problem, etas=4, checkpoint=tmp_path, memory="100MB", n_jobs=1, progress=True)
    assert [options["checkpoint"] for _, options in calls] == [
        tmp_path / "grid",
        tmp_path / "refine",
        tmp_path / "curves",
    ]
    assert [args[5] for args, _ in calls] == [12, 120, 12]
    for _, options in calls:
        assert (options["memory"], options["n_jobs"], options["progress"], options["keep_x"]) == (
            "100MB",
            1,
            True,
            False,
        )
        assert options["label"].startswith("hinge: ")


# ---------------------------------------------------------------- one engine

FULL = {
    "hinge": {"n_iter": 200},
    "lad": {"n_iter": 200},
    "news20": {"n_iter": 5, "starts": 1},
    "splice": {"n_iter": 50},
    "2moons": {},
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_column_is_the_single_run(name):
    """The paper's sizes and fewer iterations, with the real splice.t where it is.

    Steps that are not much too large only: on splice.t, a start that is off by one unit in the last place is 1e-8 away
    for a while in later iterations, whatever computes it.
    """
    files = {
        "data": SHARED if SHARED.is_dir() and name == "splice" else None,
        "stand_in": True,
        "download": False,
    }
    problem = PROBLEMS[name](
        **{"starts": 2, **FULL[name]}, **(files if name in ("news20", "splice") else {})
    )
    etas = problem.paper_eta * np.array([0.1, 1.0, 10.0, 100.0])
    columns = sweep(
        problem.loss,
        problem.penalty,
        protocol.RULES,
        etas,
        problem.x0s,
        problem.n_iter,
        progress=False,
    )
    for number, rule in enumerate(protocol.RULES):
        for (k, x0), eta in product(enumerate(problem.x0s.T), etas):
            alone = minimize(
                problem.loss,
                x0,
                problem.penalty,
                rule(eta),
                max_iter=problem.n_iter,
                on_failure="ignore",
            )
            column = columns.isel(rule=number).sel(eta=eta, seed=k)
            assert int(column.status) == alone.status
            assert int(column.nit) == alone.nit
            if eta > 50 * problem.paper_eta:
                assert 0.1 < float(column.objective[-1]) / alone.fun < 10
                continue
            np.testing.assert_allclose(
                column.x, alone.x, rtol=0, atol=1e-12 * np.abs(alone.x).max()
            )
            np.testing.assert_allclose(column.objective[-1], alone.fun, rtol=1e-12)
            np.testing.assert_allclose(column.objective_best, alone.fun_best, rtol=1e-12)
            np.testing.assert_allclose(column.mean_step, alone.history.mean_step, rtol=1e-10)
            np.testing.assert_allclose(column.objective, alone.history.objective, rtol=1e-10)
