"""Draw the gap to the optimum against the step size: docs/step_sizes.png.

    .venv/bin/python docs/step_sizes.py

Logistic regression with an L1 penalty on splice.t, whose data come with the package, as in
`adagrad-diff compare splice.t --rules AdaGradDiff,AdaGrad --budget 500`, which writes a page.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from adagrad_diff import L1, AdaGrad, AdaGradDiff, Logistic, at_fraction, datasets, sensitivity
from adagrad_diff.experiments.style import METHODS, style

TITLES = {"AdaGradDiff": "AdaGrad-Diff", "AdaGrad": "AdaGrad"}
ITERATIONS = 500


def draw() -> Figure:
    A, b = datasets.load("splice.t")
    A = np.asarray(A.todense() if hasattr(A, "todense") else A)
    loss = Logistic((A - A.mean(axis=0)) / A.std(axis=0), b, intercept=True)
    penalty = at_fraction(loss, L1(1.0), 0.01)
    found = sensitivity(loss, penalty, [AdaGradDiff, AdaGrad], n_iter=ITERATIONS)
    print(found)
    with style():
        figure = Figure(figsize=(5.6, 2.7), layout="constrained", facecolor="white")
        axes = figure.subplots()
        for rule, title in TITLES.items():
            gap = found.gap("last").sel(rule=rule).mean("seed").clip(min=1e-9)
            axes.plot(found.etas, gap, **METHODS[title], markevery=2, label=title)
        axes.set(xscale="log", yscale="log", xlabel="step size", ylabel="relative gap")
        axes.set_title(f"Logistic regression with L1 on splice.t, {ITERATIONS} iterations")
        axes.legend(loc="lower left")
    return figure


if __name__ == "__main__":
    with style():
        draw().savefig(Path(__file__).with_suffix(".png"), dpi=160)
