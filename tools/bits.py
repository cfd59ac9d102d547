"""Whether trajectories are the same bits as those of another checkout.

    PYTHONPATH=OLD/src python tools/bits.py > old.txt;  PYTHONPATH=src python tools/bits.py > new.txt;  diff old.txt new.txt

One line per problem: loss, data, penalty, rule, and a hash of the objective, mean step and iterate of every iteration.
"""

from __future__ import annotations

import hashlib
import itertools
import warnings
from itertools import islice

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import adagrad_diff as package
from adagrad_diff import AdaGrad, AdaGradDiff, iterate, minimize

SAMPLES, FEATURES, ITERATIONS = 300, 12, 25
RULES = {"AdaGradDiff": AdaGradDiff, "AdaGrad": AdaGrad}
DATA = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "float32": lambda A: A.astype(np.float32),
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "operator": aslinearoperator,
}
LOSSES = (
    "Hinge",
    "Huber",
    "LAD",
    "Logistic",
    "Multinomial",
    "Poisson",
    "Quantile",
    "Squared",
    "SquaredHinge",
)
PENALTIES = {
    "Zero": lambda d: package.Zero(),
    "L1": lambda d: package.L1(0.01),
    "ElasticNet": lambda d: package.ElasticNet(0.01, 0.1),
    "Box": lambda d: package.Box(-0.1, 0.2),
    "GroupL2": lambda d: package.GroupL2(0.02, np.arange(d) // 3),
    "Simplex": lambda d: package.Simplex(1.0),
    "FusedLasso": lambda d: package.FusedLasso(0.01, 0.02),
}
OPTIONS = {
    "plain": {},
    "blocks": {"blocks": "some"},
    "scale": {"scale": "some"},
    "schedule": {"eta": lambda n: 0.5 / n**0.5},
    "several": {"eta": [0.01, 0.1, 1.0, 3.0]},
    "many": {"eta": np.logspace(-3, 2, 12)},
}


def targets(loss, A, rng):
    if loss in ("Hinge", "Logistic", "SquaredHinge"):
        return np.where(A[:, 0] + 0.3 * rng.standard_normal(len(A)) > 0, 1, -1)
    if loss == "Multinomial":
        return np.argmax(A[:, :3], axis=1)
    return (
        rng.poisson(1.0, len(A))
        if loss == "Poisson"
        else A[:, 0] - 2 * A[:, 3] + 0.1 * rng.standard_normal(len(A))
    )


def digest(states):
    found = hashlib.sha256()
    for state in states:
        for value in (state.f, state.phi, state.n, state.x, state.g, *state.diagnose()):
            found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()[:16]


def cases():
    everything = itertools.product(LOSSES, DATA, PENALTIES, OPTIONS, RULES, (False, True))
    for k, (loss, data, penalty, option, rule, intercept) in enumerate(everything):
        first = (data, penalty, option) == ("C order", "L1", "plain")
        if first or k % 23 == 0:  # a part that meets every pair
            yield loss, data, penalty, option, rule, intercept


def run(loss, data, penalty, option, rule, intercept):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((SAMPLES, FEATURES)) * (rng.random((SAMPLES, FEATURES)) < 0.5)
    kind, b = getattr(package, loss), targets(loss, A, rng)
    problem = kind(DATA[data](A), b, intercept=intercept, l2=0.01 if intercept else 0.0)
    size = FEATURES * (3 if loss == "Multinomial" else 1)
    options = {"eta": 0.3, **OPTIONS[option]}
    full = int(np.prod(problem.shape))
    if "blocks" in options:
        options["blocks"] = np.arange(full) % 5
    if "scale" in options:
        options["scale"] = 0.5 + np.arange(full) / full
    phi = PENALTIES[penalty](size)
    if penalty == "GroupL2" and "blocks" in options:
        options["blocks"] = None
    x0 = np.zeros(problem.shape)
    return digest(islice(iterate(problem, x0, phi, RULES[rule](**options)), ITERATIONS))


def main():
    warnings.simplefilter("ignore")
    for case in cases():
        try:
            answer = run(*case)
        except (ValueError, TypeError) as error:
            answer = f"{type(error).__name__}"
        print(*case, answer, sep=" | ", flush=True)
    rng = np.random.default_rng(1)
    A = rng.standard_normal((200, 15))
    b = A[:, 0] - A[:, 1]
    for name, options in {"auto": {}, "gap": {"eta": 0.1, "stop": "gap"}}.items():
        result = minimize(
            package.LAD(A, b),
            penalty=package.L1(0.01),
            max_iter=300,
            tol=1e-9,
            on_failure="ignore",
            **options,
        )
        print(
            name,
            result.nit,
            result.status,
            hashlib.sha256(result.x.tobytes()).hexdigest()[:16],
            sep=" | ",
        )


if __name__ == "__main__":
    main()
