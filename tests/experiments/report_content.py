"""Contents of report pages: made up, but with the shapes that real studies have."""

import numpy as np

from adagrad_diff.experiments.result import FStar, Sensitivity

TUNED = ("AdaGradDiff", "AdaGrad", "AdamDiff", "Adam", "RMSDiff", "RMSProp", "AdaGradNorm")
TUNED += ("DelayedAdaGrad", "DualAveraging", "KATE", "Constant", "AdaDelta")
FREE = ("DoG", "DAdaptation", "Prodigy", "AdaPG", "FISTA")


def content(
    tuned=TUNED, free=FREE, n_etas=21, n_recorded=40, starts=3, n_iter=500, title="a9a, logistic"
):
    """The content of a comparison: slow at small step sizes, failed at far too large ones."""
    import xarray as xr

    rng, names = np.random.default_rng(0), [*tuned, *free]
    etas = np.geomspace(1e-4, 1e3, n_etas).round(9) if n_etas > 1 else np.array([0.1])
    n = np.unique(np.geomspace(1, n_iter, 3 * n_recorded).round())
    n = n[np.linspace(0, n.size - 1, n_recorded).round().astype(int)]
    place, width, rate, floor = rng.random((4, len(names), 1, 1, 1))
    is_free = np.arange(len(names)) >= len(tuned)
    x = np.where(is_free[:, None], -1.5, np.log10(etas))[..., None, None]
    luck = rng.standard_normal((len(names), 1 if not n_etas else etas.size, starts, 1))
    luck = np.where(is_free[:, None, None, None], luck[:, :1], luck)
    slow, wild = np.maximum(0, 2 * place - 2.5 - x), np.maximum(0, x - 2 * place + 2 - 1.2 * width)
    gaps = 10 ** (3 * floor - 6 + 1.3 * wild) * (1 + abs(luck)) * (n / n[-1]) ** 0.1
    gaps += 2 / (1 + n * 10 ** (-1.2 * slow)) ** (0.6 + 1.3 * rate) * 10 ** (0.15 * luck)
    gaps = np.where((wild > 2.5) & (n > 20), np.nan, gaps)
    dims = ("rule", "eta", "seed", "iteration")
    step = np.broadcast_to(10**x / (1 + n) ** (rate / 3), gaps.shape)
    variables = {
        "objective": (dims, gaps),
        "mean_step": (dims, np.where(np.isnan(gaps), np.nan, step)),
        "objective_best": (dims[:3], 0.7 * np.nanmin(gaps, axis=-1)),
        "objective_average": (dims[:3], 3 * gaps[..., -1]),
        "status": (dims[:3], np.where(np.isnan(gaps[..., -1]), 6, 1)),
        "objective_start": ("seed", np.full(starts, 2.0)),
    }
    coords = {"rule": names, "eta": etas, "iteration": n.astype(int)}
    published = np.where(is_free, np.nan, 10.0 ** (np.arange(len(names)) % 3 - 2))
    data = xr.Dataset(variables, coords)
    data = data.assign_coords(free=("rule", is_free), published=("rule", published))
    f_star = FStar(0.0, "certified", "Certified to a relative gap of 1e-10.")
    about = [["Data", "a9a, 32561 samples"], ["Loss", "logistic"]]
    command = ["adagrad-diff compare a9a --loss logistic \\", "    --out report.html"]
    found = Sensitivity(data, data.isel(eta=0), f_star, 1.0, "F(0) - F_star", about=about)
    return found.content(title=title, command=command) | {"created": "2026-11-18"}


def hostile(text):
    """The same, with one text everywhere where a text can be."""
    made = content((text, "AdaGrad"), (f"{text} free",), n_etas=5, n_recorded=6, title=text)
    return made | {
        "created": text,
        "version": text,
        "command": [text],
        "about": [[text, text]],
        "f_star": {"value": 1.0, "how": text, "sentence": text},
        "verdict": [text, text],
    }
