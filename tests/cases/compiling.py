"""Compile the kernels that most tests need, each once: python compiling.py [PART ...], before the workers of pytest begin.

Workers that begin together would each compile all of them. Here every core takes its share, and the workers find them on disk.
"""

import subprocess
import sys

import numpy as np
from scipy import sparse

from adagrad_diff import (
    L1,
    L2,
    Box,
    BoxHyperplane,
    FusedLasso,
    GroupL2,
    L1Ball,
    L2Ball,
    LInf,
    Logistic,
    Minibatch,
    Ridge,
    minimize,
)
from adagrad_diff._threads import cores
from loss_zoo import LINEAR, SCALAR, make
from rule_zoo import KINDS, made

LAYOUTS = (np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array)
PENALTIES = [
    Box(-1.0, 1.0),
    BoxHyperplane(-1.0, 1.0, np.ones(4), 0.3),
    FusedLasso(0.1, 0.1),
    GroupL2(0.1, [0, 0, 1, 1]),
]
PENALTIES += [L1(0.1), L1Ball(1.0), L2(0.1), L2Ball(1.0), LInf(0.1), Ridge(0.1)]


def losses(share, shares):
    """One iteration of each, for one trajectory and for several, with and without all terms, and a finish."""
    A = np.random.default_rng(0).standard_normal((8, 4))
    for kind in LINEAR[share::shares]:
        for dtype in (np.float64, np.float32):
            for layout in LAYOUTS:
                loss = make(
                    kind,
                    layout(A.astype(dtype)),
                    np.arange(8),
                    l2=0.1,
                    sample_weight=True,
                    intercept=True,
                )
                for batch in ((), (3,)):
                    minimize(
                        loss, np.zeros((*loss.shape, *batch), dtype), L1(0.1), eta=0.1, max_iter=1
                    )
                minimize(
                    loss, penalty=L1(0.1), tol=1e-9, max_iter=1, on_failure="ignore"
                )  # the finish, and its proof


def walks(share, shares):
    """With minibatches, in the compiled walk and step by step; in single precision, one loss."""
    A = np.random.default_rng(0).standard_normal((8, 4))
    cases = [(kind, np.float64) for kind in SCALAR] + [(Logistic, np.float32)]
    for kind, dtype in cases[share::shares]:
        for layout in (np.asarray, sparse.csr_array):
            loss = make(kind, layout(A.astype(dtype)), np.arange(8), intercept=True)
            for batch in ((), (3,)):
                for reduce in ("svrg", None):
                    x0 = np.zeros((*loss.shape, *batch), dtype)
                    minimize(
                        Minibatch(loss, 1, reduce=reduce),
                        x0,
                        eta=0.1,
                        max_iter=4,
                        on_failure="ignore",
                    )


def rules(share, shares):
    """Two iterations of each, for one trajectory and for several."""
    A = np.random.default_rng(0).standard_normal((8, 4))
    for kind in KINDS[share::shares]:
        for dtype in (np.float64, np.float32):
            for batch in ((), (3,)):
                loss = make(LINEAR[0], A.astype(dtype), np.arange(8))
                minimize(
                    loss,
                    np.zeros((*loss.shape, *batch), dtype),
                    L1(0.1),
                    made(kind),
                    max_iter=2,
                    on_failure="ignore",
                )


def penalties(share, shares):
    """One prox of each, in single and in double precision."""
    for penalty in PENALTIES[share::shares]:
        for dtype in (np.float64, np.float32):
            for z in (np.ones(4, dtype), np.ones((4, 3), dtype)):
                penalty.prox(z, 0.5)
                penalty.value(z)


PARTS = {part.__name__: part for part in (losses, walks, rules, penalties)}

if __name__ == "__main__":
    if "of" in sys.argv:
        share, shares = int(sys.argv[1]), int(sys.argv[3])
        # Not all begin with what losses have in common.
        for name in sys.argv[4:][:: -1 if share % 2 else 1]:
            PARTS[name](share, shares)
    else:
        parts = sys.argv[1:] or list(PARTS)
        command = [sys.executable, __file__]
        started = [
            subprocess.Popen([*command, str(k), "of", str(cores()), *parts]) for k in range(cores())
        ]
        sys.exit(max(process.wait() for process in started))
