"""Three problems of the paper, solved by AdaGrad-Diff and AdaGrad at 0.1, 1 and 10 times the paper's reference step size.

Hinge + L1 and least absolute deviations + L1 (500 x 100, 20 nonzeros, lam = 1e-2, 1000 iterations), and the dual of a
Gaussian-kernel support vector machine on two moons (300 points, lam = 1e-3, 20 iterations). F_star is the smallest
objective seen, refined by ten times the budget of the best run.
"""

import numpy as np
from sklearn.datasets import make_moons

from adagrad_diff import L1, LAD, AdaGrad, AdaGradDiff, Hinge, KernelSVMDual, minimize

SEEDS = 10


def regression_data(rng, samples=500, features=100, nonzeros=20):
    A = rng.standard_normal((samples, features))
    w = np.where(np.arange(features) < nonzeros, rng.standard_normal(features), 0.0)
    return A, A @ rng.permutation(w) + rng.standard_normal(samples)


def problems():
    """(name, loss, penalty, starts as columns, iterations, the paper's reference eta)"""
    rng = np.random.default_rng(0)
    A, b = regression_data(rng)
    yield "hinge + L1", Hinge(A, np.sign(b)), L1(1e-2), rng.standard_normal((100, SEEDS)), 1000, 0.063
    A, b = regression_data(rng)
    yield "LAD + L1", LAD(A, b), L1(1e-2), rng.standard_normal((100, SEEDS)), 1000, 0.042
    points, label = make_moons(300, noise=0.1, random_state=0)
    b = 2.0 * label - 1.0
    K = np.exp(-np.sum((points[:, None] - points) ** 2, axis=2))
    dual = KernelSVMDual(K, b, lam=1e-3)
    yield "SVM dual, 2moons", dual, dual.box(), b[:, None] * rng.uniform(0, 1 / 300, (300, SEEDS)), 20, 0.002


def main():
    print(f"Final gap F(x) - F_star, mean over {SEEDS} starts (the paper's full experiments follow in a later release)\n")
    print(f"{'problem':<18}{'eta':>9}{'AdaGrad-Diff':>15}{'AdaGrad':>12}")
    for name, loss, penalty, x0, budget, reference in problems():
        etas = [0.1 * reference, reference, 10 * reference]
        runs = {
            (rule, eta): minimize(loss, x0, penalty, rule(eta), max_iter=budget)
            for eta in etas
            for rule in (AdaGradDiff, AdaGrad)
        }
        rule, eta = min(runs, key=lambda key: runs[key].fun.mean())
        longer = minimize(loss, x0, penalty, rule(eta), max_iter=10 * budget, history=0)
        F_star = min(longer.fun_best.min(), *(run.fun_best.min() for run in runs.values()))
        for eta in etas:
            gaps = [(runs[rule, eta].fun - F_star).mean() for rule in (AdaGradDiff, AdaGrad)]
            print(f"{name:<18}{eta:>9.2g}{gaps[0]:>15.2e}{gaps[1]:>12.2e}")


if __name__ == "__main__":
    main()
