"""The two tables of docs/theory.md that `adagrad-diff verify` does not print, and its figure.

    python docs/theory_tables.py [DIR]           prints the tables
    python docs/theory_tables.py figure [DIR]    verifies, draws theory/bound_against_truth.png

splice.t comes with the package; DIR is a directory of LIBSVM files.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from adagrad_diff import AdaGradDiff
from adagrad_diff.experiments.figures import new_figure
from adagrad_diff.experiments.paper.reproduction import load_problem
from adagrad_diff.experiments.style import FINE_PRINT, GREY, RED, clear_ticks, style
from adagrad_diff.experiments.theory import main_bound, verify
from adagrad_diff.experiments.theory.comparison import parts
from adagrad_diff.experiments.theory.verification import record_run, solve

ITERATIONS = 2000
GRID = 10.0 ** np.arange(-3, 3.01, 0.25)  # around the paper's eta


def main(data=None):
    """What the bound says about eta, and where it is lost at the paper's eta."""
    about_eta, lost = [], []
    for name in ("hinge", "lad", "splice", "2moons"):
        problem = load_problem(name, data, starts=1)
        label, x_star = (
            problem.name if problem.real else f"{problem.name} (stand-in)",
            solve(problem),
        )
        rows = []
        for eta in problem.paper_eta * GRID:
            run = record_run(problem, AdaGradDiff(eta), ITERATIONS)
            said, p = main_bound(run, x_star), parts(run, x_star, "Lemma 1")
            distance = np.max((run.x[:-1] - x_star) ** 2)
            rows.append((eta, np.sqrt(distance / 2), said.right[-1], said.left[-1], p.gap[-1]))
            if np.isclose(eta, problem.paper_eta):
                summed = np.mean(p.before - p.after + p.alpha) / (2 * eta)
                lost.append((label, said.left[-1], np.mean(p.gap), summed, said.right[-1]))
        eta, red, bound, average, last = np.array(rows).T
        best = [eta[np.argmin(column)] for column in (bound, average, last)]
        about_eta.append((label, red[np.argmin(bound)], *best, problem.paper_eta))
    table(
        (
            "problem",
            "red line",
            "smallest bound at",
            "best average at",
            "best last iterate at",
            "paper's eta",
        ),
        about_eta,
    )
    table(
        ("problem", "F(xbar) - F_star", "mean gap of the iterates", "Lemma 1 summed up", "bound"),
        lost,
    )


LINES = {
    "distance": {"color": "#D55E00", "linestyle": "--", "label": r"its $\Delta_{\max}/2\eta$ term"},
    "steps": {"color": "#009E73", "linestyle": "-.", "label": r"its $\eta$ term"},
    "growth": {"color": GREY, "linestyle": ":", "label": "its last term"},
    "bound_sum": {"color": "black", "label": "bound"},
    "truth": {"color": "#0072B2", "linewidth": 1.6, "label": r"truth, $F(\bar x^n) - F_\star$"},
}
ETA_OF_BOUND = r"$\eta = (\Delta_{\max}/2)^{1/2}$"
BELOW_TRUTH = 5  # times smaller values are not shown


def draw(found, data):
    """Draw a column per problem: along the run with the middle eta, and at its end against eta."""
    frame = pd.DataFrame(found.bounds)
    problems = frame.problem.unique()
    with style():
        figure, grid = new_figure(1.9 * len(problems) + 0.5, 3.9, 2, len(problems))
        for (along, across), name in zip(grid.T, problems, strict=True):
            here = frame[frame.problem == name].sort_values("eta")
            middle, best = here.iloc[len(here) // 2], here.loc[here.bound_sum.idxmin()]
            problem = load_problem(name.removesuffix(" (stand-in)"), data, starts=2)
            bound = main_bound(
                record_run(problem, AdaGradDiff(middle.eta), int(middle.n) - 1), solve(problem)
            )
            lines = {**bound.terms, "bound_sum": bound.right, "truth": bound.left}
            for key, look in LINES.items():
                along.plot(bound.n, lines[key], **look)
                across.plot(here.eta, here[key], marker=".", **look)
            across.axvline(best.eta_of_bound, color=RED, linestyle=":", label=ETA_OF_BOUND)
            along.set(title=f"{name}, $\\eta$ = {middle.eta:.2g}", xlabel="$n$")
            across.set(xlabel=r"$\eta$")
            for ax, truth in ((along, bound.left), (across, here.truth.values)):
                least = truth[truth > 0].min(initial=1.0)
                ax.set(xscale="log", yscale="log", ylim=(least / BELOW_TRUTH, None))
                clear_ticks(ax)
        grid[0, 0].set_ylabel("along a run")
        grid[1, 0].set_ylabel("at its end")
        entries = grid[1, 0].get_legend_handles_labels()
        columns = 3 if len(problems) > 1 else 1
        figure.legend(*entries, loc="outside lower center", ncols=columns, fontsize=FINE_PRINT)
    return figure


def table(head, rows):
    """Print a table in Markdown."""
    print("|", " | ".join(head), "|\n|", " | ".join(["---"] + ["---:"] * (len(head) - 1)), "|")
    for name, *numbers in rows:
        print("|", " | ".join([name, *(f"{number:.2g}" for number in numbers)]), "|")
    print()


if __name__ == "__main__":
    if sys.argv[1:2] == ["figure"]:
        place = Path(__file__).parent / "theory"
        data = next(iter(sys.argv[2:]), None)
        figure = draw(verify(output=place, data=data), data)
        figure.savefig(place / "bound_against_truth.png", dpi=200)
    else:
        main(*sys.argv[1:])
