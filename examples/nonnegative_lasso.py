r"""
Nonnegative lasso: what is in a mixture?
========================================

The spectrum of a mixture, explained by few of many known spectra. For x >= 0 the L1 norm is the sum
of the coefficients. It is linear, so it belongs to the smooth part: with Q = A'A / N, :math:`|A x -
b|^2 / (2 N) + \lambda \sum_i x_i` is a quadratic, and the constraint alone is left for the proximal
step.
"""

import matplotlib.pyplot as plt
import numpy as np

from adagrad_diff import NonNegative, Quadratic, minimize
from adagrad_diff.experiments.style import GREY, METHODS, style

SAMPLES, SPECTRA, LAM = 200, 60, 0.02


def mixture(rng):
    """Spectra with one peak each, as columns, and a noisy mixture of five of them."""
    place, width = np.linspace(0, 1, SPECTRA), rng.uniform(0.005, 0.03, SPECTRA)
    A = np.exp(-(((np.linspace(0, 1, SAMPLES)[:, None] - place) / width) ** 2))
    A *= np.sqrt(SAMPLES) / np.linalg.norm(A, axis=0)
    amounts = np.zeros(SPECTRA)
    amounts[rng.choice(SPECTRA, 5, replace=False)] = rng.uniform(0.5, 2.0, 5)
    return A, A @ amounts + 0.1 * rng.standard_normal(SAMPLES), amounts


def by_cvxpy(A, b):
    import cvxpy as cp

    x = cp.Variable(SPECTRA, nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b) / (2 * SAMPLES) + LAM * cp.sum(x)))
    return problem.solve(solver=cp.CLARABEL)


def picture(A, b, amounts, x):
    blue, orange = METHODS["AdaGrad-Diff"]["color"], METHODS["AdaGrad"]["color"]
    with style():
        _, (left, right) = plt.subplots(1, 2, figsize=(5.6, 2.6), layout="constrained")
        left.plot(b, color=GREY, linewidth=0.7, label="measured")
        left.plot(A @ x, color=blue, label="explained")
        left.set(xlabel="wavelength", title="The mixture")
        left.legend()
        right.plot(amounts, "s", color=orange, markerfacecolor="white", label="true")
        right.plot(x, "o", color=blue, markersize=2.5, label="found")
        right.set(xlabel="spectrum", title="How much of each")
        right.legend()
        plt.show()


def main():
    A, b, amounts = mixture(np.random.default_rng(0))
    loss = Quadratic(A.T @ A / SAMPLES, A.T @ b / SAMPLES - LAM)
    result = minimize(loss, penalty=NonNegative(), eta=0.5, max_iter=5000)
    ours, theirs = (
        result.fun + b @ b / (2 * SAMPLES),
        by_cvxpy(A, b),
    )  # a Quadratic has no constant term
    print(f"objective: {ours:.9f} by AdaGrad-Diff, {theirs:.9f} by cvxpy")
    print(
        f"true spectra:  {np.flatnonzero(amounts)}\nfound spectra: {np.flatnonzero(result.x > 0.05)}"
    )
    assert abs(ours - theirs) <= 1e-6 * abs(theirs)
    picture(A, b, amounts, result.x)


if __name__ == "__main__":
    main()
