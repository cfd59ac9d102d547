"""
Group lasso: which questions matter?
====================================

Categorical features enter a logistic regression, or stay out of it, with all their indicators at
once.
"""

import matplotlib.pyplot as plt
import numpy as np

from adagrad_diff import GroupL2, Logistic, minimize
from adagrad_diff.experiments.style import METHODS, style

SAMPLES, FEATURES, LEVELS, LAM = 400, 12, 5, 0.03
DECIDE = [1, 4, 9]  # the questions that the label depends on


def survey(rng):
    """Return answers to 12 questions with 5 choices each, as indicators; three decide the label."""
    answers = rng.integers(LEVELS, size=(SAMPLES, FEATURES))
    A = np.eye(LEVELS)[answers].reshape(SAMPLES, -1)
    effect = np.zeros((FEATURES, LEVELS))
    effect[DECIDE] = rng.normal(scale=2.0, size=(3, LEVELS))
    score = A @ effect.ravel()
    return A, np.where(score + rng.logistic(size=SAMPLES) > np.median(score), 1.0, -1.0)


def by_cvxpy(A, b):
    import cvxpy as cp

    x, c = cp.Variable(A.shape[1]), cp.Variable()
    loss = cp.sum(cp.logistic(cp.multiply(-b, A @ x + c))) / SAMPLES
    norms = cp.norm(cp.reshape(x, (FEATURES, LEVELS), order="C"), 2, axis=1)
    return cp.Problem(cp.Minimize(loss + LAM * cp.sum(norms))).solve(solver=cp.CLARABEL)


def picture(norms):
    """The coefficients of each question, as one length: exactly zero for those that stay out."""
    with style():
        _, axes = plt.subplots(figsize=(5.2, 2.4), layout="constrained")
        colors = [
            METHODS["AdaGrad-Diff" if k in DECIDE else "AdaGrad"]["color"] for k in range(FEATURES)
        ]
        axes.bar(range(FEATURES), norms, color=colors)
        axes.set(
            xlabel="question (blue: those that decide)",
            ylabel="norm of its coefficients",
            xticks=range(FEATURES),
        )
        plt.show()


def main():
    A, b = survey(np.random.default_rng(0))
    penalty = GroupL2(LAM, groups=np.repeat(np.arange(FEATURES), LEVELS))
    result = minimize(
        Logistic(A, b, intercept=True), penalty=penalty, eta=1.0, max_iter=3000
    )  # the intercept is free
    theirs = by_cvxpy(A, b)
    norms = np.linalg.norm(result.x[:-1].reshape(FEATURES, LEVELS), axis=1)
    print(f"objective: {result.fun:.9f} by AdaGrad-Diff, {theirs:.9f} by cvxpy")
    print(
        f"selected questions: {np.flatnonzero(norms)} (1, 4 and 9 decide), norms {norms[norms > 0].round(2)}"
    )
    assert abs(result.fun - theirs) <= 1e-6 * abs(theirs)
    picture(norms)


if __name__ == "__main__":
    main()
