"""
Monotone regression: a curve that must rise
===========================================

A dose-response curve that is known to rise, by least squares and by least absolute deviations. The
curve is linear between knots: its values there are the unknowns, and they must not decrease. One
measurement in ten is an outlier, which absolute deviations hardly notice.
"""

import matplotlib.pyplot as plt
import numpy as np

from adagrad_diff import LAD, Monotone, Squared, minimize
from adagrad_diff.experiments.style import GREY, METHODS, style

SAMPLES, KNOTS = 200, 20


def experiment(rng):
    """Return doses, interpolation weights, measured responses, and true responses at the knots."""
    dose, knots = np.sort(rng.uniform(0, 1, SAMPLES)), np.linspace(0, 1, KNOTS)
    A = np.maximum(1 - np.abs(dose[:, None] - knots) * (KNOTS - 1), 0)
    response = 1 / (1 + np.exp(-12 * (dose - 0.5))) + 0.1 * rng.standard_normal(SAMPLES)
    b = np.where(rng.uniform(size=SAMPLES) < 0.1, response + 2.0, response)
    return dose, A, b, 1 / (1 + np.exp(-12 * (knots - 0.5)))


def by_cvxpy(A, b, name):
    import cvxpy as cp

    x = cp.Variable(KNOTS)
    loss = cp.sum_squares(A @ x - b) / 2 if name == "least squares" else cp.norm1(A @ x - b)
    return cp.Problem(cp.Minimize(loss / SAMPLES), [cp.diff(x) >= 0]).solve(solver=cp.CLARABEL)


def picture(dose, b, truth, curves):
    knots = np.linspace(0, 1, KNOTS)
    with style():
        _, axes = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
        axes.plot(dose, b, ".", color=GREY, alpha=0.4, label="measured")
        axes.plot(knots, truth, color="black", linestyle=":", label="true curve")
        for (name, x), look in zip(
            curves.items(), (METHODS["AdaGrad"], METHODS["AdaGrad-Diff"]), strict=True
        ):
            axes.plot(knots, x, **look, label=name)
        axes.set(xlabel="dose", ylabel="response")
        axes.legend()
        plt.show()


def main():
    dose, A, b, truth = experiment(np.random.default_rng(0))
    curves = {}
    # The squared loss is smooth and reaches the optimum. Absolute deviations approach it slowly, so
    # the best x is taken.
    for name, loss, eta, tolerance in (
        ("least squares", Squared, 0.2, 1e-6),
        ("absolute deviations", LAD, 0.01, 1e-4),
    ):
        result = minimize(loss(A, b), penalty=Monotone(), eta=eta, max_iter=5000)
        ours, theirs, x = result.fun_best, by_cvxpy(A, b, name), result.x_best
        print(f"{name}: objective {ours:.9f} by AdaGrad-Diff, {theirs:.9f} by cvxpy")
        print(
            f"  {np.unique(x).size} levels at {KNOTS} knots, mean error {np.abs(x - truth).mean():.3f}"
        )
        assert abs(ours - theirs) <= tolerance * theirs
        curves[name] = x
    picture(dose, b, truth, curves)


if __name__ == "__main__":
    main()
