"""An iteration of every rule beside one of AdaGradDiff, many trajectories at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from adagrad_diff import (
    ACFGM,
    AGD,
    FISTA,
    KATE,
    L1,
    AdaDelta,
    AdaGrad,
    AdaGradDiff,
    AdaGradNorm,
    Adam,
    AdamDiff,
    AdaPEG,
    AdaPG,
    Constant,
    DAdaptation,
    DelayedAdaGrad,
    DoG,
    DualAveraging,
    FreeAdaGradDiff,
    Hinge,
    Prodigy,
    RMSDiff,
    RMSProp,
    UniAdaGrad,
    UniXGrad,
    iterate,
)

from ._timing import Row, race
from .core import sparse_problem

RULES = {
    "AdaGrad": AdaGrad(0.01),
    "AdaGradNorm": AdaGradNorm(0.01),
    "AdaDelta": AdaDelta(),
    "Adam": Adam(),
    "AdamDiff": AdamDiff(0.001),
    "AdamDiff, blocks": AdamDiff(0.001, blocks="all"),
    "AdaPG": AdaPG(),
    "Constant": Constant(0.01),
    "DAdaptation": DAdaptation(),
    "DelayedAdaGrad": DelayedAdaGrad(0.01),
    "DelayedAdaGrad, power 0.6": DelayedAdaGrad(0.01, power=0.6),
    "DoG": DoG(),
    "DoG, per coordinate": DoG(blocks=None),
    "DualAveraging": DualAveraging(0.01),
    "FISTA": FISTA(),
    "FreeAdaGradDiff": FreeAdaGradDiff(),
    "KATE": KATE(),
    "Prodigy": Prodigy(),
    "RMSDiff": RMSDiff(0.001),
    "RMSProp": RMSProp(),
    "ACFGM": ACFGM(),
    "AGD": AGD(),
    "AdaPEG": AdaPEG(0.01),
    "UniAdaGrad": UniAdaGrad(0.01),
    "UniXGrad": UniXGrad(0.01),
}


def runner(loss: Any, x0: np.ndarray, rule: Any, iterations: int) -> Callable[[], None]:
    def run():
        for state in islice(iterate(loss, x0, L1(1e-3), rule), iterations):
            assert not np.any(state.failed)

    return run


def rows(name: str, loss: Any, x0: np.ndarray, iterations: int) -> Iterator[Row]:
    rules = {"AdaGradDiff": AdaGradDiff(0.01), **RULES}
    times = race(**{title: runner(loss, x0, rule, iterations) for title, rule in rules.items()})
    theirs = times.pop("AdaGradDiff") / iterations
    for title, ours in times.items():
        yield Row(f"{title}, {name}", ours / iterations, "AdaGradDiff", theirs, must=1.5)


def splice() -> Iterator[Row]:
    """The size of splice, hinge + L1: 100 trajectories of 60 coordinates."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((1000, 60)), np.sign(rng.standard_normal(1000))
    yield from rows(
        "1000 x 60, 100 trajectories", Hinge(A, b), 0.1 * rng.standard_normal((60, 100)), 20
    )


def wide() -> Iterator[Row]:
    """More coordinates than samples, sparse data: 20 trajectories of 5000 coordinates."""
    A, b = sparse_problem(2000, 5000, 80)
    x0 = 0.1 * np.random.default_rng(1).standard_normal((5000, 20))
    yield from rows("CSR 2000 x 5000, 20 trajectories", Hinge(A, b), x0, 5)


CASES = [splice, wide]
