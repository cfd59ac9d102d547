"""The problems behind `tools/references.py`: runs of every rule, and default runs.

Each problem is built twice from one description: with the public interface of the package, and
with the plain formulas of `tests/cases/naive.py`. The plain version decides when a checkout and
the reference file disagree.
"""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq

import adagrad_diff as package

sys.path.append(str(Path(__file__).parents[1] / "tests" / "cases"))
import naive
import naive_rules

SAMPLES, FEATURES, CLASSES = 80, 8, 3
GROUPS = np.arange(FEATURES) // 2
PENALTIES: dict[
    str, dict[str, Any]
] = {  # arguments of each penalty for a problem with FEATURES columns
    "Zero": {},
    "L1": {"lam": 0.02},
    "Ridge": {"lam": 0.1},
    "ElasticNet": {"l1": 0.02, "l2": 0.05},
    "Box": {"lower": -0.1, "upper": 0.3},
    "NonNegative": {},
    "GroupL2": {"lam": 0.05, "groups": GROUPS},
    "FusedLasso": {"l1": 0.01, "tv": 0.03},
    "SLOPE": {"lams": np.linspace(0.06, 0.01, FEATURES)},
    "Simplex": {"radius": 1.0},
    "L1Ball": {"radius": 0.7},
}


def penalty_value(name: str, x: np.ndarray, **p: Any) -> float:
    """Return phi(x). Constraints count as satisfied up to 1e-6, the least tolerance of the runs."""
    x, size, slack = x.ravel(), np.abs(x.ravel()), 1e-6
    feasible = {
        "Box": lambda: np.all((x >= p["lower"] - slack) & (x <= p["upper"] + slack)),
        "NonNegative": lambda: np.all(x >= -slack),
        "Simplex": lambda: np.all(x >= -slack) and abs(x.sum() - p["radius"]) <= slack,
        "L1Ball": lambda: size.sum() <= p["radius"] + slack,
    }
    if name in feasible:
        return 0.0 if feasible[name]() else math.inf
    values = {
        "Zero": lambda: 0.0,
        "L1": lambda: p["lam"] * size.sum(),
        "Ridge": lambda: p["lam"] / 2 * x @ x,
        "ElasticNet": lambda: p["l1"] * size.sum() + p["l2"] / 2 * x @ x,
        "GroupL2": lambda: (
            p["lam"] * sum(np.linalg.norm(x[p["groups"] == g]) for g in set(p["groups"]))
        ),
        "FusedLasso": lambda: p["l1"] * size.sum() + p["tv"] * np.abs(np.diff(x)).sum(),
        "SLOPE": lambda: p["lams"] @ np.sort(size)[::-1],
    }
    return float(values[name]())


def group_prox(z: np.ndarray, step: np.ndarray, lam: float, groups: np.ndarray) -> np.ndarray:
    """Return the prox of `GroupL2` with one step per coordinate, by root finding."""
    x = np.zeros_like(z)
    for g in set(groups):
        mine = groups == g
        threshold, entries = lam * step[mine], z[mine]
        if np.sum((entries / threshold) ** 2) > 1:
            distance = lambda h, t=threshold, e=entries: np.sum((e / (h + t)) ** 2) - 1
            h = brentq(distance, 0.0, np.linalg.norm(entries), xtol=1e-15, rtol=1e-14)
            x[mine] = h * entries / (h + threshold)
    return x


# ------------------------------------------------------------------------------ data


@cache
def features(kind: str) -> Any:
    """Return the data matrix of that kind: dense, sparse, or badly scaled."""
    rng = np.random.default_rng(29)
    A = rng.standard_normal((SAMPLES, FEATURES)) + 0.5 * rng.standard_normal((SAMPLES, 1))
    word, _, number = kind.partition(" ")  # such as "offset 1e4"
    thin = np.where(rng.random(A.shape) < 0.4, A, 0.0)
    kinds = {
        "dense": lambda: A,
        "csr": lambda: sparse.csr_array(thin),
        "csc": lambda: sparse.csc_array(thin),
        "units": lambda: A * np.logspace(-3, 4, FEATURES),
        "units-csr": lambda: sparse.csr_array(thin * np.logspace(-3, 4, FEATURES)),
        "ties": lambda: np.round(A),
        "collinear": lambda: np.column_stack([A[:, :-1], A[:, 0] + float(number) * A[:, -1]]),
        "offset": lambda: A + float(number),
        "wide": lambda: np.random.default_rng(30).standard_normal((30, 60)),
    }
    return kinds[word]()


def targets(loss: str, kind: str) -> np.ndarray:
    """Return targets that the loss accepts. Ties in the data come with ties in the targets."""
    A, rng = dense(features(kind)), np.random.default_rng(31)
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    noise = rng.standard_normal(len(A))
    z = A[:, 0] - A[:, 1] + 0.5 * A[:, 3] + noise
    if loss in ("Hinge", "SquaredHinge", "Logistic"):
        return np.where(z > 0, 1.0, -1.0)
    if loss == "Multinomial":
        return np.digitize(z, [-1.0, 1.0])
    if loss == "Poisson":
        return rng.poisson(np.exp(0.4 * np.clip(z, -3, 3))).astype(float)
    return np.round(z) if kind == "ties" else z


def dense(A: Any) -> np.ndarray:
    return A.toarray() if sparse.issparse(A) else A


@dataclass
class Problem:
    """A loss, data and a penalty, by name."""

    loss: str
    data: str = "dense"
    penalty: str = "Zero"
    dtype: str = "float64"
    options: dict[str, Any] = field(default_factory=dict)  # l2, intercept, weights, tau, delta
    strengths: dict[str, Any] = field(default_factory=dict)  # instead of those in PENALTIES

    @property
    def name(self) -> str:
        words = [self.loss, *(f"{k}={v:g}" for k, v in self.options.items()), self.data]
        words += [
            self.penalty,
            *(f"{k}={v:g}" for k, v in self.strengths.items() if np.isscalar(v)),
        ]
        return " ".join([*words, *(["float32"] if self.dtype == "float32" else [])])

    @property
    def intercept(self) -> bool:
        return bool(self.options.get("intercept"))

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the penalty."""
        chosen = PENALTIES[self.penalty] | self.strengths
        if self.loss == "Multinomial" and self.penalty == "GroupL2":  # rows of the matrix x
            chosen["groups"] = np.repeat(np.arange(FEATURES), CLASSES)
        return chosen

    def loss_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self.loss in ("Quadratic", "KernelSVMDual"):
            A, b = features("dense")[:30], targets("Logistic", "dense")[:30]
            Q = A @ A.T / 30 + 0.1 * np.eye(30)
            return (Q, b, *([0.5] if self.loss == "KernelSVMDual" else [])), {}
        options = dict(self.options)
        if options.pop("weights", False):
            options["sample_weight"] = np.arange(features(self.data).shape[0]) % 4 + 0.5
        return (features(self.data).astype(self.dtype), targets(self.loss, self.data)), options

    def package_loss(self) -> Any:
        positional, options = self.loss_arguments()
        if self.loss == "Multinomial":
            options["classes"] = CLASSES
        return getattr(package, self.loss)(*positional, **options)

    def package_penalty(self) -> Any:
        return getattr(package, self.penalty)(**self.arguments)

    def split(self, x: np.ndarray) -> np.ndarray:
        """Return the entries of x that the penalty sees."""
        return x[:-1] if self.intercept else x

    def naive_loss(self) -> Any:
        """Return x -> (value, gradient) in double precision, of exactly the data the package gets."""
        (A, *rest), options = self.loss_arguments()
        return getattr(naive, self.loss)(dense(A).astype(np.float64), *rest, **options)

    def objective(self, x: Any) -> float:
        """Return F(x) by the plain formulas."""
        x = np.asarray(x, dtype=np.float64)
        return float(
            self.naive_loss()(x)[0] + penalty_value(self.penalty, self.split(x), **self.arguments)
        )


# ------------------------------------------------------------------------------ every rule

ITERATIONS = 200
LOOKS = (1, 3, 10, 30, 100)  # iterations whose objectives are kept: many runs end at the optimum
# The parameters are such that rounding errors do not grow over 200 iterations.
RULES: dict[str, dict[str, Any]] = {
    "FISTA": {},
    "KATE": {"eta": 0.1, "delta": 0.5, "eps": 1e-3},
    "AdaDelta": {"eta": 2.0, "rho": 0.8, "eps": 1e-4},
    "AdaGrad": {"eta": 0.3, "eps": 1e-8},
    "AdaGradDiff": {"eta": 0.3, "eps": 1e-8},
    "AdaGradNorm": {"eta": 0.7, "b0": 0.2},
    "AdaPG": {},
    "Adam": {"eta": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3},
    "AdamDiff": {"eta": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "max_move": 3.0},
    "Constant": {"eta": 0.1},
    "DAdaptation": {"eps": 1e-3, "d0": 1e-4, "start": 1.0},
    "DelayedAdaGrad": {"eta": 0.4, "beta": 0.5, "power": 0.7},
    "DoG": {"eps": 1e-3, "first": 1e-2},
    "DualAveraging": {"eta": 0.5, "eps": 0.01},
    "FreeAdaGradDiff": {"eps": 1e-3, "first": 1e-2},
    "Prodigy": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-3, "d0": 1e-2},
    "RMSDiff": {"eta": 0.02, "beta": 0.9, "eps": 1e-3, "max_move": 3.0},
    "RMSProp": {"eta": 0.01, "beta": 0.9, "eps": 1e-2},
}
WITHOUT_BLOCKS = ("FISTA", "AdaGradNorm", "AdaPG", "Constant", "DAdaptation", "Prodigy")
SMOOTH = ("Logistic", "Squared", "Huber", "Multinomial", "SquaredHinge", "Poisson", "Quadratic")
LABELS = [0, 0, 1, 2, 1, 0, 3, 2]  # blocks whose coordinates are not neighbors
RULE_PROBLEMS: list[tuple[Problem, Any]] = [  # with the blocks of the rules that have blocks
    (Problem("Logistic", options={"l2": 0.01, "intercept": True, "weights": True}), None),
    (Problem("Squared", "csr", "L1"), None),
    (Problem("LAD", "dense", "L1"), "all"),
    (Problem("Hinge", "csc", "ElasticNet", options={"intercept": True}), LABELS),
    (Problem("Multinomial", "ties", "GroupL2"), "row"),
]


def start(problem: Problem) -> np.ndarray:
    shape = (FEATURES + problem.intercept, *([CLASSES] if problem.loss == "Multinomial" else []))
    return np.random.default_rng(32).standard_normal(shape)


def run_rule(problem: Problem, rule: str, blocks: Any, x0: Any = None) -> Any:
    """Run a rule for 200 iterations and return the package's result."""
    named = {} if rule in WITHOUT_BLOCKS else {"blocks": blocks}
    return package.minimize(
        problem.package_loss(),
        start(problem) if x0 is None else x0,
        problem.package_penalty(),
        getattr(package, rule)(**RULES[rule], **named),
        max_iter=ITERATIONS,
        on_failure="ignore",
    )


def run_rule_naively(problem: Problem, rule: str, blocks: Any) -> dict[str, Any]:
    """Run the same rule by the plain formulas. Return objectives and the final iterate."""
    x0, loss, arguments = start(problem), problem.naive_loss(), problem.arguments
    free = (
        x0[-1].size if problem.intercept else 0
    )  # entries at the end that the penalty does not see

    def flat_loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        f, g = loss(x.reshape(x0.shape))
        return f, g.ravel()

    def prox(z: np.ndarray, step: np.ndarray) -> np.ndarray:
        seen = slice(0, z.size - free)
        if problem.penalty == "GroupL2":
            new = group_prox(z[seen], step[seen], arguments["lam"], arguments["groups"])
        else:
            new = getattr(naive, problem.penalty)(**arguments).prox(z[seen], step[seen])
        return np.concatenate([new, z[z.size - free :]])

    same = naive.same_block(blocks, x0.shape, free)
    if rule in ("AdaGrad", "AdaGradDiff"):
        penalty, labels = naive.Penalty(lambda x: 0.0, prox), np.argmax(same, axis=1)
        xs = naive.run(
            flat_loss,
            x0.ravel(),
            penalty,
            rule,
            iterations=ITERATIONS,
            blocks=labels,
            **RULES[rule],
        ).x
    else:
        one = {} if rule in WITHOUT_BLOCKS else {"one": same}
        xs = getattr(naive_rules, rule)(
            flat_loss, x0.ravel(), prox, ITERATIONS, **RULES[rule], **one
        )
    xs = [x.reshape(x0.shape) for x in xs]
    # FISTA counts evaluations of the loss, so only its final iterate has a counterpart here.
    path = None if rule == "FISTA" else [problem.objective(xs[n]) for n in LOOKS]
    return {"fun": problem.objective(xs[-1]), "x": xs[-1].ravel().tolist(), "path": path}


def stop(result: Any) -> None:
    raise StopIteration


def run_to_end(end: str) -> Any:
    """Return the result of a run that ends with that status."""
    easy, counts = Problem("Logistic", options={"l2": 0.01}), Problem("Poisson")
    diff = package.AdaGradDiff(0.3)
    problem, rule, options = {
        "CONVERGED": (easy, diff, {"tol": 1e-3}),
        "MAX_ITER": (easy, diff, {"tol": 1e-12, "max_iter": 5}),
        "CALLBACK": (easy, diff, {"callback": stop}),
        "DIVERGED": (Problem("Squared"), package.Constant(100.0), {}),
        "NOT_FINITE": (counts, package.Constant(1e4), {}),
    }[end]
    return package.minimize(
        problem.package_loss(), start(problem), None, rule, on_failure="ignore", **options
    )


ENDS = ("CONVERGED", "MAX_ITER", "CALLBACK", "DIVERGED", "NOT_FINITE")


# ------------------------------------------------------------------------------ default runs


@dataclass
class Default:
    """A run without a step size: of `minimize`, or of an estimator with the same objective."""

    problem: Problem
    tol: float = 1e-6
    estimator: tuple[str, dict[str, Any]] | None = None

    @property
    def name(self) -> str:
        return f"{self.estimator[0]}: {self.problem.name}" if self.estimator else self.problem.name

    def run(self) -> tuple[np.ndarray, float, float, bool]:
        """Return x, the reported objective, the reported gap, and whether it is a success."""
        problem = self.problem
        if self.estimator is None:
            loss = problem.package_loss()
            penalty = loss.box() if problem.loss == "KernelSVMDual" else problem.package_penalty()
            found = package.minimize(loss, penalty=penalty, tol=self.tol, on_failure="ignore")
            return found.x, float(found.fun), float(found.gap), bool(found.success)
        from adagrad_diff import sklearn as estimators

        name, parameters = self.estimator
        (A, b), options = problem.loss_arguments()
        model = getattr(estimators, name)(tol=self.tol, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(A, b, **{k: v for k, v in options.items() if k == "sample_weight"})
        x = np.vstack([np.atleast_2d(model.coef_).T, np.atleast_2d(model.intercept_)])
        x = x if problem.loss == "Multinomial" else x[:, 0]
        return x, float(model.objective_), float(model.dual_gap_), bool(model.converged_)


LOSSES: dict[str, dict[str, Any]] = {  # with the parameter that some of them have
    "LAD": {},
    "Quantile": {"tau": 0.3},
    "Hinge": {},
    "Squared": {},
    "Huber": {"delta": 0.5},
    "Logistic": {},
    "SquaredHinge": {},
    "Poisson": {},
    "Multinomial": {},
}


def default_runs() -> list[Default]:
    """Return the default runs: all losses and main penalties over all kinds of data."""
    full, runs = {"intercept": True}, []
    others = (
        "Simplex",
        "NonNegative",
        "FusedLasso",
        "GroupL2",
        "L1Ball",
        "SLOPE",
        "Box",
        "Box",
        "GroupL2",
    )
    for (loss, own), other in zip(LOSSES.items(), others, strict=True):
        weighted = own | full | {"weights": True}
        runs += [
            Problem(loss, "dense", "L1", options=own),
            Problem(loss, "csr", "ElasticNet", options=own | full),
            Problem(loss, "units", "L1", options=weighted),
            Problem(loss, "ties", other, options=own),
            Problem(loss, "csc", "Ridge", "float32", options=weighted),
        ]
    runs += [
        Problem("Quadratic", penalty="L1"),
        Problem("Quadratic", penalty="Box"),
        Problem("KernelSVMDual"),
    ]
    runs += [Problem("Squared", "collinear 1e-7", penalty) for penalty in ("Zero", "L1")]
    runs += [Problem(loss, "offset 1e4", "L1", "float32", full) for loss in ("LAD", "Logistic")]
    runs += [Problem(loss, "wide", "L1") for loss in ("Squared", "Hinge")]
    runs += [
        Problem(loss, "units-csr", "Zero", options=full | {"l2": 0.01})
        for loss in ("Logistic", "LAD")
    ]
    defaults = [Default(problem, 1e-4 if problem.dtype == "float32" else 1e-6) for problem in runs]
    # Rounding of float32 with such an offset made the old code report successes that are none.
    defaults += [
        Default(Problem(loss, "offset 1e5", "Ridge", "float32", full))
        for loss in ("Squared", "SquaredHinge")
    ]
    ridge = {"lam": 1 / SAMPLES}
    fits: list[tuple[Problem, str, dict[str, Any]]] = [
        (Problem("Squared", "units", "L1", options=full), "Lasso", {"alpha": 0.02}),
        (
            Problem("LAD", "ties", "L1", options=full | {"weights": True}),
            "LADRegressor",
            {"alpha": 0.02},
        ),
        (
            Problem("Quantile", "csr", "L1", options=full | {"tau": 0.9}),
            "QuantileRegressor",
            {"quantile": 0.9, "alpha": 0.02},
        ),
        (
            Problem("Huber", "units", "Ridge", options=full | {"delta": 1.35}),
            "HuberRegressor",
            {"alpha": 0.1},
        ),
        (Problem("Poisson", "dense", "Ridge", options=full), "PoissonRegressor", {"alpha": 0.1}),
        (Problem("Hinge", "units", "L1", options=full), "SparseSVC", {"alpha": 0.02}),
        (Problem("Hinge", "dense", "Ridge", options=full, strengths=ridge), "LinearSVC", {}),
        (
            Problem("Logistic", "csc", "Ridge", options=full, strengths=ridge),
            "LogisticRegression",
            {},
        ),
        (
            Problem("Multinomial", "ties", "L1", options=full),
            "LogisticRegression",
            {"penalty": "l1", "alpha": 0.02},
        ),
        (
            Problem("Squared", "dense", "GroupL2", options=full),
            "GroupLasso",
            {"alpha": 0.05, "groups": GROUPS},
        ),
    ]
    return defaults + [
        Default(problem, 1e-6, (name, parameters)) for problem, name, parameters in fits
    ]
