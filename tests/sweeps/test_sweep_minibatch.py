"""Sweeps with minibatches: all trajectories see the same batches, and are what they are alone."""

import numpy as np
from scipy import sparse

from adagrad_diff import (
    L1,
    AdaGrad,
    AdaGradDiff,
    Adam,
    Logistic,
    Minibatch,
    Multinomial,
    minimize,
    sweep,
)
from looping import looped
from sweeping import (
    CLASSES,
    ETAS,
    HALF,
    LABELS,
    A,
    assert_same,
    assert_single_runs,
    schedule,
    starts,
)

CASES = {
    "dense": lambda: Minibatch(Logistic(A, LABELS), 2),
    "CSR": lambda: Minibatch(Logistic(sparse.csr_array(HALF), LABELS, intercept=True), 2, seed=7),
    "noise": lambda: Minibatch(Logistic(sparse.csr_array(HALF), LABELS), 2, reduce=None),
    "classes": lambda: Minibatch(Multinomial(A, CLASSES), 2),
}
TWO = {"Diff": AdaGradDiff, "AdaGrad": AdaGrad}
RULES = {**TWO, "Adam": Adam, "schedule": schedule}


@looped("case", CASES)
def test_every_trajectory_is_a_run_of_its_own(case):
    loss, rules = CASES[case](), RULES if case == "CSR" else TWO
    x0s = starts(loss)
    result = sweep(loss, L1(0.02), rules, ETAS, x0s, 12)
    assert_single_runs(result, loss, L1(0.02), rules, x0s, rtol=1e-9)
    alone = minimize(loss, x0s[..., 0], L1(0.02), eta=0.3, max_iter=12)
    np.testing.assert_allclose(result.passes, alone.history.passes, rtol=1e-13)
    assert result.passes.dims == ("iteration",)


def test_one_chunk_is_one_run():
    """Bit for bit: a sweep is `minimize` with several step sizes."""
    loss = CASES["CSR"]()
    x0s = starts(loss, count=1)
    result = sweep(loss, L1(0.02), {"Diff": AdaGradDiff}, ETAS, x0s, 12)
    together = minimize(loss, x0s[:, 0], L1(0.02), AdaGradDiff(result.eta.values), max_iter=12)
    np.testing.assert_array_equal(result.x.squeeze().transpose("coordinate", "eta"), together.x)
    np.testing.assert_array_equal(
        result.objective.squeeze().transpose("iteration", "eta"), together.history.objective
    )


@looped("options", [{"memory": 3_000}, {"n_jobs": 2, "memory": 3_000}, {"record": 5}])
def test_chunks_share_batches(options):
    loss = CASES["CSR"]()
    arguments = (loss, L1(0.02), TWO, ETAS, starts(loss), 15)
    whole, found = sweep(*arguments), sweep(*arguments, **options)
    if "record" in options:
        whole = whole.sel(iteration=found.iteration).assign_attrs(found.attrs)
        np.testing.assert_array_equal(found.passes, loss.schedule(15)[found.iteration.values - 1])
    assert_same(found, whole, rtol=1e-9)


def test_without_minibatches_there_are_no_passes_to_tell():
    assert (
        "passes"
        not in sweep(
            Logistic(A, LABELS), None, {"Diff": AdaGradDiff}, [0.1], starts(Logistic(A, LABELS)), 3
        ).coords
    )
