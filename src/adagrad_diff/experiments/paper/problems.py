"""The five problems of the paper's Section 4.

Each function gives one problem at the paper's sizes, with data and starts from a seed. What the
paper leaves open is a parameter, and the default is the reading that reproduces the paper's
reference step sizes. All of it is in `Problem.choices`: `PROBLEMS[p.name](**p.choices)` is p again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ... import _check
from ..._messages import require
from ...losses import LAD, Hinge, KernelSVMDual, Logistic
from ...penalties import L1, Penalty, Zero

DATA_SEED, START_SEED = 0, 1  # purposes of random numbers
CHECKS: dict[str, Callable[[Any, str, str], Any]] = {
    **dict.fromkeys(("samples", "features", "n_iter", "starts"), partial(_check.count, least=1)),
    **dict.fromkeys(("nonzeros", "seed"), _check.count),
    **dict.fromkeys(("lam", "width", "start_scale"), _check.positive),
    **dict.fromkeys(("noise", "sigma"), _check.nonnegative),
    "intercept": lambda value, name, owner: bool(value),
}


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A problem min F(x) = f(x) + phi(x), where to start, how long to run, which steps to try.

    Examples
    --------
    >>> from adagrad_diff.experiments.paper import hinge
    >>> problem = hinge(samples=50, features=10, nonzeros=3, starts=4)
    >>> problem.title, problem.data, problem.x0s.shape
    ('Hinge loss on synthetic data', 'synthetic (seed 0)', (10, 4))
    >>> problem.etas(6).round(4).tolist()
    [0.0001, 0.001, 0.01, 0.1, 1.0, 10.0]
    """

    name: str
    title: str
    loss: Any  # f
    penalty: Penalty  # phi
    x0s: np.ndarray  # (d, starts)
    n_iter: int
    eta_range: tuple[float, float]  # both ends of the grid
    paper_eta: float  # the reference step size that the paper reports
    data: str
    real: bool  # False for a stand-in
    choices: dict[str, Any]  # every open choice, fit for JSON
    sha256: str = ""  # of the data file, if there is one

    def etas(self, count: int) -> np.ndarray:
        """Return `count` step sizes, evenly spaced in log(eta) from end to end of `eta_range`."""
        return np.geomspace(*self.eta_range, count)


def hinge(
    *,
    samples: int = 500,
    features: int = 100,
    nonzeros: int = 20,
    noise: float = 1.0,
    lam: float = 1e-2,
    n_iter: int = 1000,
    starts: int = 10,
    seed: int = 0,
    start: str = "normal",
    start_scale: float = 1.0,
    eta_range: tuple[float, float] = (1e-4, 1e1),
) -> Problem:
    r"""Hinge loss and L1 on synthetic data, the paper's first problem.

    .. math:: F(x) = \frac1N \sum_{j=1}^N \max(0, 1 - b_j \langle a_j, x\rangle) + \lambda \|x\|_1,
              \qquad b = \mathrm{sgn}(A w + \text{noise} \cdot \epsilon)

    A, the nonzero entries of w, and epsilon are standard normal.

    Parameters
    ----------
    samples, features, nonzeros : int
        N, the dimension, and how many entries of w are not zero. Which ones is drawn: A has no
        preferred columns.
    noise : float
        Standard deviation of the noise.
    lam : float
        Strength of the penalty.
    n_iter : int
        Budget of iterations.
    starts : int
        How many starts. The k-th is the same however many there are.
    seed : int
        Of the data and, independently, of the starts.
    start : {"normal", "uniform", "zeros"}
        x^1: N(0, s^2) or uniform in [-s, s] in every coordinate, s = `start_scale`, or all zeros.
        The paper does not say; N(0, I) gives its reference step sizes.
    start_scale : float
        The s of `start`.
    eta_range : (float, float)
        Ends of the grid of step sizes, which the paper shows in its figures only.

    Examples
    --------
    >>> from adagrad_diff.experiments.paper import hinge
    >>> problem = hinge()
    >>> problem.loss.A.shape, problem.x0s.shape, problem.n_iter, problem.paper_eta
    ((500, 100), (100, 10), 1000, 0.063)
    """
    choices = _choices(locals(), "hinge")
    A, b = _regression(choices)
    b = np.where(b < 0, -1.0, 1.0)
    return _problem("hinge", "Hinge loss on synthetic data", Hinge(A, b), L1(lam), choices, 0.063)


def lad(
    *,
    samples: int = 500,
    features: int = 100,
    nonzeros: int = 20,
    noise: float = 1.0,
    lam: float = 1e-2,
    n_iter: int = 1000,
    starts: int = 10,
    seed: int = 0,
    start: str = "normal",
    start_scale: float = 1.0,
    eta_range: tuple[float, float] = (1e-4, 1e1),
) -> Problem:
    r"""Least absolute deviations and L1 on synthetic data, the paper's second problem.

    .. math:: F(x) = \frac1N \sum_{j=1}^N |b_j - \langle a_j, x\rangle| + \lambda \|x\|_1,
              \qquad b = A w + \text{noise} \cdot \epsilon

    Parameters are those of `hinge`. With the same seed A, w and epsilon are the same.

    Examples
    --------
    >>> from adagrad_diff.experiments.paper import lad
    >>> problem = lad()
    >>> problem.loss.A.shape, problem.x0s.shape, problem.n_iter, problem.paper_eta
    ((500, 100), (100, 10), 1000, 0.042)
    """
    choices = _choices(locals(), "lad")
    A, b = _regression(choices)
    return _problem("lad", "LAD regression on synthetic data", LAD(A, b), L1(lam), choices, 0.042)


def news20(
    *,
    data: str | Path | None = None,
    stand_in: bool = False,
    download: bool = True,
    positive: Collection[int] = range(1, 11),
    scaling: str = "none",
    intercept: bool = False,
    sigma: float = 1e-4,
    n_iter: int = 2500,
    starts: int = 10,
    seed: int = 0,
    start: str = "normal",
    start_scale: float = 1.0,
    eta_range: tuple[float, float] = (1e-2, 1e2),
) -> Problem:
    r"""Logistic regression with a ridge term on news20, the paper's third problem.

    .. math:: f(x) = \frac1N \sum_{j=1}^N \log(1 + \exp(-b_j \langle a_j, x\rangle))
              + \frac\sigma2 \|x\|^2, \qquad \varphi = 0

    The paper says news20.binary, but its sizes (15935 x 62061) are those of the news20 of 20
    classes with word counts. The binary target is made from its labels.

    Parameters
    ----------
    data : path, optional
        Directory of the file; see `adagrad_diff.datasets.load` for where else it is looked for.
    stand_in : bool
        Whether generated data may take its place, which the title and `choices` then say.
    download : bool
        Whether the file may be fetched.
    positive : collection of int
        The labels out of 1 ... 20 that become +1. The others become -1.
    scaling : {"none", "rows", "columns"}
        Raw counts, rows of Euclidean norm 1, or columns of largest entry 1 in absolute value.
    intercept : bool
        Whether a constant is fitted as well.
    sigma : float
        Strength of the ridge term.
    n_iter, starts, seed, start, start_scale, eta_range
        As for `hinge`. The seed is that of the starts.

    Examples
    --------
    >>> from adagrad_diff.experiments.paper import news20
    >>> problem = news20(data="data")  # doctest: +SKIP
    >>> problem.loss.A.shape, problem.n_iter  # doctest: +SKIP
    ((15935, 62061), 2500)
    """
    positive = sorted({int(label) for label in positive})
    choices = _choices(locals(), "news20")
    A, b, about = _load("news20", choices, data, download)
    b = np.where(np.isin(b, positive), 1.0, -1.0)
    if np.unique(b).size < 2:
        raise _check.InputError(
            "The 'positive' parameter of news20 must be some of its labels 1 ... 20. "
            f"Got {positive}."
        )
    loss = Logistic(A, b, l2=sigma, intercept=intercept)
    title = f"Logistic regression on {about['data']}"
    return _problem("news20", title, loss, Zero(), choices, 0.863, **about)


def splice(
    *,
    data: str | Path | None = None,
    stand_in: bool = False,
    download: bool = True,
    scaling: str = "none",
    intercept: bool = False,
    lam: float = 1e-2,
    n_iter: int = 1000,
    starts: int = 10,
    seed: int = 0,
    start: str = "normal",
    start_scale: float = 1.0,
    eta_range: tuple[float, float] = (1e-3, 1e2),
) -> Problem:
    r"""Logistic regression and L1 on splice.t, the paper's fourth problem.

    .. math:: F(x) = \frac1N \sum_{j=1}^N \log(1 + \exp(-b_j \langle a_j, x\rangle))
              + \lambda \|x\|_1

    2175 samples of 60 nucleotides, coded 1 ... 4.

    Parameters
    ----------
    data, stand_in, download, scaling, intercept
        As for `news20`: the codes as they are, and no constant, by default.
    lam : float
        Strength of the penalty.
    n_iter, starts, seed, start, start_scale, eta_range
        As for `hinge`. The seed is that of the starts. N(0, I) gives the paper's reference step
        size, other starts twice it.

    Examples
    --------
    >>> from adagrad_diff.experiments.paper import splice
    >>> problem = splice(data="data")  # doctest: +SKIP
    >>> problem.loss.A.shape, problem.n_iter  # doctest: +SKIP
    ((2175, 60), 1000)
    """
    choices = _choices(locals(), "splice")
    A, b, about = _load("splice.t", choices, data, download)
    loss, title = Logistic(A, b, intercept=intercept), f"Logistic regression on {about['data']}"
    return _problem("splice", title, loss, L1(lam), choices, 0.238, **about)


def two_moons(
    *,
    samples: int = 300,
    noise: float = 0.1,
    width: float = 1.0,
    lam: float = 1e-3,
    n_iter: int = 20,
    starts: int = 10,
    seed: int = 0,
    start: str = "feasible",
    start_scale: float = 1.0,
    eta_range: tuple[float, float] = (1e-5, 1e0),
) -> Problem:
    r"""Dual of a Gaussian-kernel support vector machine on two moons, the paper's fifth problem.

    .. math:: f(\alpha) = \tfrac{1}{2\lambda} \alpha^\top K \alpha - \langle\alpha, b\rangle, \qquad
              0 \le b_j \alpha_j \le 1/N, \qquad K_{jk} = \exp(-\|a_j - a_k\|^2 / \text{width}^2)

    Parameters
    ----------
    samples : int
        N, half of them on each moon.
    noise : float
        Standard deviation of the points about the moons. The paper does not say.
    width : float
        Of the kernel. Where the convention is exp(-|x - y|^2 / (2 s^2)), give sqrt(2) s; s = 1
        halves the reference step size.
    lam : float
        Strength of the primal ridge term.
    start : {"feasible", "zeros", "normal", "uniform"}
        b * alpha uniform in [0, start_scale / N], all zeros, or as for `hinge`: the last two break
        the constraint, where F is infinite, until the first step.
    n_iter, starts, seed, start_scale, eta_range
        As for `hinge`.

    Examples
    --------
    >>> from adagrad_diff.experiments.paper import two_moons
    >>> problem = two_moons(samples=40)
    >>> problem.x0s.shape, float(problem.penalty.value(problem.x0s).max())
    ((40, 10), 0.0)
    """
    choices = _choices(locals(), "two_moons")
    points, moon = require("sklearn.datasets", "paper").make_moons(
        samples, noise=noise, random_state=choices["seed"]
    )
    b = 2.0 * moon - 1.0
    K = np.exp(-np.sum((points[:, None] - points) ** 2, axis=2) / width**2)
    loss = KernelSVMDual(K, b, lam=lam)
    title, name = "SVM dual on 2moons", f"2moons (seed {choices['seed']})"
    return _problem("2moons", title, loss, loss.box(), choices, 0.002, data=name)


#: The problems by name, in the paper's order.
PROBLEMS: dict[str, Callable[..., Problem]] = {
    "hinge": hinge,
    "lad": lad,
    "news20": news20,
    "splice": splice,
    "2moons": two_moons,
}


def _choices(given: dict[str, Any], owner: str) -> dict[str, Any]:
    """Return the arguments, checked and fit for JSON, without those that say where a file is."""
    choices = {name: value for name, value in given.items() if name not in ("data", "download")}
    for name, check in CHECKS.items():
        if name in choices:
            choices[name] = check(choices[name], name, owner)
    if choices.get("nonzeros", 0) > choices.get("features", 0):
        raise _check.InputError(
            f"The 'nonzeros' parameter of {owner} must be at most 'features', "
            f"{choices['features']}."
        )
    if "scaling" in choices:
        _check.one_of(choices["scaling"], ("none", "rows", "columns"), "scaling", owner)
    starts = ("normal", "uniform", "zeros", *(["feasible"] if owner == "two_moons" else []))
    _check.one_of(choices["start"], starts, "start", owner)
    ends = [_check.positive(end, "eta_range", owner) for end in np.ravel(choices["eta_range"])]
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise _check.InputError(
            f"The 'eta_range' parameter of {owner} must be two increasing numbers. Got {ends}."
        )
    return choices | {"eta_range": ends}


def _generator(seed: int, *purpose: int) -> np.random.Generator:
    """Return independent random numbers for each purpose of a seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose))


def _regression(choices: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return A and A w + noise, where some entries of w are zero."""
    samples, features = choices["samples"], choices["features"]
    rng = _generator(choices["seed"], DATA_SEED)
    A, w = rng.standard_normal((samples, features)), rng.standard_normal(features)
    epsilon = rng.standard_normal(samples)
    mask = rng.permutation(features) < choices["nonzeros"]
    return A, A @ (mask * w) + choices["noise"] * epsilon


def _load(name: str, choices: dict[str, Any], directory: Any, download: bool) -> Any:
    """Return the scaled matrix, the labels and the origin of a data set."""
    from ...datasets import load

    found = load(name, directory, stand_in=bool(choices["stand_in"]), download=download)
    choices["stand_in"] = found.source == "stand-in"
    preprocessing, A = require("sklearn.preprocessing", "paper"), found.A
    if choices["scaling"] == "rows":
        A = preprocessing.normalize(A)
    elif choices["scaling"] == "columns":
        A = preprocessing.maxabs_scale(A)
    about = {"data": found.name, "real": not choices["stand_in"], "sha256": found.sha256 or ""}
    return A, found.b, about


def _problem(
    name: str,
    title: str,
    loss: Any,
    penalty: Penalty,
    choices: dict[str, Any],
    paper_eta: float,
    **about: Any,
) -> Problem:
    """Return a problem with its starts. Without `about`, its data are synthetic."""
    size, s, seed = loss.shape[0], choices["start_scale"], choices["seed"]
    draw: Callable[[np.random.Generator], np.ndarray] = {
        "normal": lambda rng: s * rng.standard_normal(size),
        "uniform": lambda rng: rng.uniform(-s, s, size),
        "zeros": lambda rng: np.zeros(size),
        "feasible": lambda rng: loss.b * rng.uniform(0.0, s / size, size),
    }[choices["start"]]
    starts = [draw(_generator(seed, START_SEED, k)) for k in range(choices["starts"])]
    x0s, n_iter, etas = np.column_stack(starts), choices["n_iter"], choices["eta_range"]
    about = {"data": f"synthetic (seed {seed})", "real": True, "choices": choices, **about}
    return Problem(name, title, loss, penalty, x0s, n_iter, etas, paper_eta, **about)
