"""The picture of the README: `python docs/step_sizes.py` writes docs/step_sizes.png.

The paper's LAD problem: what is left of the gap to the proven optimum after 1000 iterations,
against the step size.
"""

from pathlib import Path

from matplotlib.figure import Figure

from adagrad_diff import AdaGrad, AdaGradDiff, minimize, sweep
from adagrad_diff.experiments.paper import lad
from adagrad_diff.experiments.style import METHODS, style

TITLES = {"AdaGradDiff": "AdaGrad-Diff", "AdaGrad": "AdaGrad"}


def draw() -> Figure:
    problem = lad(starts=5)
    best = minimize(problem.loss, penalty=problem.penalty, tol=1e-9).fun
    etas = problem.etas(60)
    runs = sweep(
        problem.loss,
        problem.penalty,
        [AdaGradDiff, AdaGrad],
        etas,
        problem.x0s,
        problem.n_iter,
        record=problem.n_iter,
    )
    gaps = runs.objective.isel(iteration=-1) - best
    with style():
        figure = Figure(
            figsize=(5.6, 2.7), layout="constrained", facecolor="white"
        )  # its own page, on dark ones too
        axes = figure.subplots()
        for rule, title in TITLES.items():
            gap, look = gaps.sel(rule=rule), METHODS[title]
            axes.fill_between(
                etas, gap.min("seed"), gap.max("seed"), color=look["color"], alpha=0.2, linewidth=0
            )
            axes.plot(etas, gap.mean("seed"), **look, markevery=6, label=title)
        axes.set(
            xscale="log",
            yscale="log",
            xlim=(etas[0], etas[-1]),
            xlabel="step size",
            ylabel="gap to the optimum",
        )
        axes.set_title("The paper's LAD problem after 1000 iterations, five starts")
        axes.legend(loc="lower left")
    return figure


if __name__ == "__main__":
    with style():
        draw().savefig(Path(__file__).with_suffix(".png"), dpi=160)
