"""The two tables of docs/theory.md that `adagrad-diff verify` does not print: `python docs/theory_tables.py [DIR]`.

splice.t comes with the package; DIR is a directory with a copy of yours.
"""

import sys

import numpy as np

from adagrad_diff import AdaGradDiff
from adagrad_diff.experiments.paper import PROBLEMS
from adagrad_diff.experiments.theory import main_bound, record
from adagrad_diff.experiments.theory.inequalities import parts
from adagrad_diff.experiments.theory.verification import solve

ITERATIONS = 2000
GRID = 10.0 ** np.arange(-3, 3.01, 0.25)  # around the paper's eta


def main(data=None):
    """What the bound says about eta, and where it is lost at the paper's eta."""
    about_eta, lost = [], []
    for name in ("hinge", "lad", "splice", "2moons"):
        options = {"data": data, "stand_in": True} if name == "splice" else {}
        problem = PROBLEMS[name](starts=1, **options)
        label, x_star = (
            problem.name if problem.real else f"{problem.name} (stand-in)",
            solve(problem),
        )
        rows = []
        for eta in problem.paper_eta * GRID:
            run = record(
                problem.loss, problem.x0s[:, 0], problem.penalty, AdaGradDiff(eta), ITERATIONS
            )
            said = main_bound(run, x_star)
            distance = np.max((run.x[:-1] - x_star) ** 2)
            value, size = run.objective(x_star)
            rows.append(
                (eta, np.sqrt(distance / 2), said.right[-1], said.left[-1], run.F[-1] - value)
            )
            if np.isclose(eta, problem.paper_eta):
                p = parts(run, x_star, value, size)
                summed = np.mean(p.before - p.after + p.alpha) / (2 * eta)
                lost.append(
                    (label, said.left[-1], np.mean(run.F[1:] - value), summed, said.right[-1])
                )
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


def table(head, rows):
    """Print a table in Markdown."""
    print("|", " | ".join(head), "|\n|", " | ".join(["---"] + ["---:"] * (len(head) - 1)), "|")
    for name, *numbers in rows:
        print("|", " | ".join([name, *(f"{number:.2g}" for number in numbers)]), "|")
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
