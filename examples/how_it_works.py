"""
How it works: differences against gradients
===========================================

AdaGrad and AdaGrad-Diff with the same eta, first on a function of one variable, then on real data
(scikit-learn's breast cancer table, logistic loss and L1 penalty).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from adagrad_diff import L1, AdaGrad, AdaGradDiff, Logistic, minimize
from adagrad_diff.experiments.style import GREY, METHODS, style
from adagrad_diff.experiments.theory import record

RULES = {"AdaGrad-Diff": AdaGradDiff, "AdaGrad": AdaGrad}
STEPS, START = 30, 10.0
ETAS, ITERATIONS = (0.01, 0.1, 1.0), 300


def slope(x):
    """f(x) = sqrt(1 + x^2): far from its minimum the gradient is nearly 1 and hardly changes."""
    value = np.sqrt(1 + x[0] ** 2)
    return value, x / value


def one_dimension(runs):
    with style():
        _, axes = plt.subplots(2, 2, figsize=(5.8, 4.4), layout="constrained")
        grid = np.linspace(-2.5, 10.5, 200)
        axes[0, 0].plot(grid, np.sqrt(1 + grid**2), color=GREY, linewidth=0.7)
        for (name, run), lift in zip(runs.items(), (0.0, 0.6), strict=True):
            look, x, g = METHODS[name], run.x[:, 0], run.g[:, 0]
            before = np.concatenate([[0.0], g[:-1]])
            axes[0, 0].plot(
                x,
                np.sqrt(1 + x**2) + lift,
                look["marker"],
                color=look["color"],
                mfc=look["markerfacecolor"],
                label=name,
            )
            axes[0, 1].plot(x, **look)
            axes[1, 0].plot(np.abs(g) if name == "AdaGrad" else np.abs(g - before), **look)
            axes[1, 1].plot(run.w[:, 0], **look)
        axes[0, 0].set(title="The iterates (AdaGrad's drawn higher)", xlabel="x", ylabel="f(x)")
        axes[0, 1].set(title="Where it is", xlabel="iteration", ylabel="x")
        axes[1, 0].set(title="What is added: |g|, or its change", xlabel="iteration")
        axes[1, 1].set(title="The weight w: steps are eta g / w", xlabel="iteration")
        axes[0, 0].legend(loc="upper left")
        plt.show()


def real_run(gaps, steps):
    with style():
        _, axes = plt.subplots(
            2, len(ETAS), figsize=(5.8, 4.0), layout="constrained", sharex=True, sharey="row"
        )
        for k, eta in enumerate(ETAS):
            for name in RULES:
                look = {key: METHODS[name][key] for key in ("color", "linestyle")}
                axes[0, k].loglog(gaps[name, eta], **look, label=name)
                axes[1, k].loglog(steps[name, eta], **look)
            axes[0, k].set_title(f"eta = {eta:g}")
            axes[1, k].set_xlabel("iteration")
        axes[0, 0].set_ylabel("F - F*")
        axes[1, 0].set_ylabel("mean step, eta / w")
        axes[0, 0].legend(loc="lower left")
        plt.show()


def main():
    runs = {
        name: record(slope, np.array([START]), rule=rule(eta=1.0), iterations=STEPS)
        for name, rule in RULES.items()
    }
    for name, run in runs.items():
        near = np.flatnonzero(np.abs(run.x[:, 0]) < 0.5)
        when = f"after {near[0]} steps" if near.size else f"not in {STEPS} steps"
        print(f"{name}: within 0.5 of the minimum {when}; last weight {run.w[-1, 0]:.2f}")
    assert np.abs(runs["AdaGrad-Diff"].x[-1, 0]) < np.abs(runs["AdaGrad"].x[-1, 0])
    one_dimension(runs)

    A, b = load_breast_cancer(return_X_y=True)
    loss, penalty = Logistic((A - A.mean(0)) / A.std(0), 2.0 * b - 1, intercept=True), L1(0.01)
    best = minimize(loss, penalty=penalty, tol=1e-10).fun  # proven
    gaps, steps = {}, {}
    for name, rule in RULES.items():
        for eta in ETAS:
            run = record(loss, np.zeros(A.shape[1] + 1), penalty, rule(eta=eta), ITERATIONS)
            gaps[name, eta], steps[name, eta] = (
                np.maximum(run.F - best, 1e-12),
                (eta / run.w).mean(1),
            )
            print(
                f"{name}, eta = {eta:g}: F - F* = {gaps[name, eta][-1]:.1e} after {ITERATIONS} iterations"
            )
    assert gaps["AdaGrad-Diff", 0.01][-1] < gaps["AdaGrad", 0.01][-1]
    real_run(gaps, steps)


if __name__ == "__main__":
    main()
