"""
Trend filtering: where do the levels change?
============================================

The levels of a noisy signal, and where they change, by the fused lasso. Beside the total variation,
which makes x piecewise constant, an L1 term sets the baseline to exactly zero. The noise grows with
time, so the samples are weighted by the inverse variance.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import eye_array

from adagrad_diff import FusedLasso, Squared, minimize
from adagrad_diff.experiments.style import GREY, METHODS, style

LENGTH, L1, TV = 300, 2e-4, 1e-2


def signal(rng):
    level = np.repeat([0.0, 2.0, 0.0, -1.0, 1.5, 0.0], LENGTH // 6)
    noise = np.linspace(0.1, 0.6, LENGTH)
    return level, level + noise * rng.standard_normal(LENGTH), noise**-2 / np.sum(noise**-2)


def by_cvxpy(b, weight):
    import cvxpy as cp

    x = cp.Variable(LENGTH)
    loss = cp.sum(cp.multiply(weight, cp.square(x - b))) / 2
    return cp.Problem(cp.Minimize(loss + L1 * cp.norm1(x) + TV * cp.tv(x))).solve(
        solver=cp.CLARABEL
    )


def picture(level, b, x):
    with style():
        _, axes = plt.subplots(figsize=(5.2, 2.8), layout="constrained")
        axes.plot(b, ".", color=GREY, alpha=0.5, markersize=2.5, label="measured")
        axes.plot(level, ":", color="black", label="true levels")
        axes.plot(x, color=METHODS["AdaGrad-Diff"]["color"], label="trend")
        axes.set(xlabel="time")
        axes.legend()
        plt.show()


def main():
    level, b, weight = signal(np.random.default_rng(0))
    loss = Squared(eye_array(LENGTH, format="csr"), b, sample_weight=weight)
    result = minimize(loss, penalty=FusedLasso(L1, TV), eta=1.0, max_iter=3000)
    theirs, x = by_cvxpy(b, weight), result.x
    print(f"objective: {result.fun:.9f} by AdaGrad-Diff, {theirs:.9f} by cvxpy")
    jumps = np.flatnonzero(np.abs(np.diff(x)) > 0.2) + 1
    print(f"large jumps at {jumps} (true ones at {list(range(50, LENGTH, 50))})")
    print(
        f"{np.count_nonzero(x == 0)} of {LENGTH} samples are exactly zero, and there are {np.unique(x).size} levels"
    )
    assert abs(result.fun - theirs) <= 1e-6 * abs(theirs)
    picture(level, b, x)


if __name__ == "__main__":
    main()
