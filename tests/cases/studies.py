"""Studies for the tests of figures and tables: small real runs, and curves given by a formula."""

from dataclasses import replace

import numpy as np

from adagrad_diff import L1, AdaGrad, AdaGradDiff, Hinge, Status, minimize
from adagrad_diff.experiments.paper.protocol import Study
from adagrad_diff.experiments.result import FStar, Sensitivity

RULES = {"AdaGradDiff": AdaGradDiff, "AdaGrad": AdaGrad}
ABOUT = {
    "title": "Hinge loss on synthetic data",
    "data": "synthetic (seed 0)",
    "real": True,
    "paper_eta": 0.063,
}
STAND_IN = {
    "title": "Logistic regression on stand-in for splice.t",
    "data": "stand-in for splice.t",
    "real": False,
    "paper_eta": 0.238,
}


def dataset(etas, iterations, objective, mean_step, start):
    """Arrays (rule, eta, seed, iteration) in the shape that a sweep returns."""
    import xarray as xr

    dims = ("rule", "eta", "seed", "iteration")
    coords = {
        "rule": list(RULES),
        "eta": etas,
        "seed": np.arange(len(start)),
        "iteration": iterations,
    }
    status = np.where(np.isfinite(objective[..., -1]), Status.MAX_ITER, Status.DIVERGED)
    variables = {
        "objective": (dims, objective),
        "objective_best": (dims[:3], np.nanmin(np.nan_to_num(objective, nan=1e3), axis=-1)),
        "objective_average": (dims[:3], objective[..., -1]),
        "mean_step": (dims, mean_step),
        "status": (dims[:3], status),
    }
    data = xr.Dataset({**variables, "objective_start": (("seed",), start)}, coords)
    return data.assign_coords(free=("rule", [False] * 2), published=("rule", [np.nan] * 2))


def two_sweeps(name, etas, n_iter, trajectories, F_star=None, **about):
    """Return a study made by `trajectories(etas) -> (objective, mean_step, start)`."""
    objective, step, start = trajectories(np.asarray(etas))
    grid = dataset(etas, [n_iter], objective[..., -1:], step[..., -1:], start)
    F_star = float(np.nanmin(objective) if F_star is None else F_star)
    known = FStar(F_star, "protocol", "The smallest value of all iterates.")
    draft = Study(
        **{**ABOUT, **about},
        name=name,
        n_iter=n_iter,
        loss=None,
        penalty=None,
        x0s=np.zeros((1, len(start))),
        eta_range=(etas[0], etas[-1]),
        choices={},
        comparison=Sensitivity(grid, grid.isel(eta=0), known, gap_name="gap"),
        curves=None,
    )
    chosen = np.unique([*draft.panel_etas, *draft.best_eta.values()])
    return replace(draft, curves=dataset(chosen, np.arange(1, n_iter + 1), *trajectories(chosen)))


def by_formula(name="hinge", *, etas=None, seeds=4, n_iter=60, wide=1.5, diverges=np.inf, **about):
    """Return a study with V-shaped gaps in log-log, which are wider for AdaGradDiff.

    Final gap of seed s: (1 + s/10) * 1e-3 * 10^(slope |log10(eta / best)|), reached by a power of
    the iteration. Beyond the eta `diverges` trajectories end half-way.
    """
    etas = np.geomspace(1e-3, 10, 25) if etas is None else np.asarray(etas)

    def trajectories(etas):
        spread = 1 + np.arange(seeds) / 10
        n = np.arange(1, n_iter + 1)
        slope = np.array([1.0, wide])[:, None]
        away = np.abs(np.log10(etas / np.array([[0.08], [0.05]])))
        final = np.minimum(1e-3 * 10 ** (slope * away), 1e3)[..., None, None] * spread[:, None]
        gap = final * (10.0 / final) ** (1 - n / n_iter)
        step = np.broadcast_to(
            (etas[:, None] / np.sqrt(n))[:, None, :] * spread[:, None], (len(etas), seeds, n_iter)
        )
        step = np.stack([step, step / 3])
        ended = (etas > diverges)[:, None, None] & (n > n_iter / 2)
        return np.where(ended, np.nan, gap), np.where(ended, np.nan, step), 10.0 * spread

    return two_sweeps(name, etas, n_iter, trajectories, F_star=0.0, **about)


def by_running(name, loss, penalty, x0s, etas, n_iter, **about):
    """Both methods on a problem, all trajectories as columns of one matrix."""
    seeds = x0s.shape[1]

    def trajectories(etas):
        starts, columns = np.tile(x0s, len(etas)), np.repeat(etas, seeds)
        objective, step = [], []
        for rule in RULES.values():
            run = minimize(
                loss, starts, penalty, rule(eta=columns), max_iter=n_iter, on_failure="ignore"
            ).history
            objective.append(run.objective.T.reshape(len(etas), seeds, -1))
            step.append(run.mean_step.T.reshape(len(etas), seeds, -1))
        start = np.array(
            [minimize(loss, x, penalty, eta=1.0, max_iter=0, history=0).fun for x in x0s.T]
        )
        return np.array(objective), np.array(step), start

    return two_sweeps(name, etas, n_iter, trajectories, **about)


def hinge(N=40, d=8, nonzeros=3, seeds=3):
    """The data of the paper's hinge problem, at any size: (loss, penalty, x0s)."""
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((N, d)), rng.standard_normal(d)
    w[nonzeros:] = 0.0
    return (
        Hinge(A, np.sign(A @ w + rng.standard_normal(N))),
        L1(1e-2),
        rng.standard_normal((d, seeds)),
    )
