"""How wide is the range of good step sizes of every rule?

On the paper's problems, a9a, mushrooms and splice.

    python docs/rules.py [DATA [KEEP]]    # writes rules.csv, rules.png and the tables of rules.md

DATA is a directory of LIBSVM files; what is not there is looked for where
`adagrad_diff.datasets.load` looks, and a stand-in takes the place of what cannot be had. KEEP is a
directory for what is finished: the same command goes on from there.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from adagrad_diff import L1, Hinge, Logistic, profile, sensitivity
from adagrad_diff.datasets import load
from adagrad_diff.experiments.paper import PROBLEMS
from adagrad_diff.experiments.style import line_of, style

HERE = Path(__file__).parent
STARTS = 3
BUDGETS = {
    "hinge": 1000,
    "lad": 1000,
    "news20": 200,
    "splice": 1000,
    "2moons": 20,
}  # iterations: the paper's, but for news20
MORE = (
    ("a9a", Logistic, 1e-3, 300),
    ("mushrooms", Logistic, 1e-3, 500),
    ("splice", Hinge, 1e-2, 500),
)
TABLES = "## Tables"  # where they begin in rules.md
FEW = {"news20": 1}  # starts, where a run takes long


def problems(data):
    """Yield name, title, (loss, penalty), starts and iterations, one problem at a time."""
    for name, make in PROBLEMS.items():
        files = {"data": data, "stand_in": True} if name in ("news20", "splice") else {}
        problem = make(**files, starts=FEW.get(name, STARTS))
        title = "splice.t" if name == "splice" else name
        yield title, problem.title, (problem.loss, problem.penalty), problem.x0s, BUDGETS[name]
    for name, loss, lam, n_iter in MORE:
        found = load(name, data, stand_in=True)
        b = np.where(found.b == found.b.max(), 1.0, -1.0)
        yield (
            name,
            f"{loss.__name__} loss and L1 on {found.name}",
            (loss(found.A, b), L1(lam)),
            STARTS,
            n_iter,
        )


def widths(found, column):
    """Decades by rule and problem, as Markdown; a rule without a step size is good, or not."""
    rules = next(iter(found.values())).rules
    total = {rule: sum(one.score(rule)["decades_10x"] for one in found.values()) for rule in rules}
    free = {rule: found[next(iter(found))].score(rule)["free"] for rule in rules}
    lines = [["rule", *found], ["---", *["---:"] * len(found)]]
    for rule in sorted(rules, key=lambda rule: (free[rule], -total[rule])):
        cells = [column(one.score(rule)) for one in found.values()]
        lines.append([rule, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def within(score):
    if score["free"]:
        return "yes" if score["decades_10x"] > 0 else times(score["regret"])
    return f"{'≥' if score['at_edge_10x'] else ''}{score['decades_10x']:.1f}"


def times(ratio):
    return "failed" if ratio is None else f"{ratio:.0f}x" if ratio < 1e4 else f"{ratio:.0e}x"


def below(name):
    def cell(score):
        if score["free"]:
            return "yes" if score[f"decades_below_{name}"] > 0 else "no"
        return f"{score[f'decades_below_{name}']:.1f}"

    return cell


def best(score):
    return "failed" if score["best_gap"] is None else f"{score['best_gap']:.0e}"


def regret(score):
    return times(score["regret"])


def draw(shares):
    """The share of problems and step sizes within a factor of the best gap, by rule."""
    with style():
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = figure.subplots()
        for rule in shares.rule.values:
            line = {**line_of(str(rule)), "markevery": 6}
            axes.plot(shares.factor, shares.sel(rule=rule), label=str(rule), **line)
        axes.set_xscale("log")
        axes.set_xlabel("factor")
        axes.set_ylabel("share of problems and step sizes\nwithin that factor of the best gap")
        figure.legend(loc="outside right upper", fontsize=7)
    return figure


WORDS = ("rule", "problem", "what it is", "F_star")  # headings of columns of words


def table(heads, rows):
    """Markdown: words to the left, numbers to the right."""
    ruler = ["---" if head in WORDS else "---:" for head in heads]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (heads, ruler, *rows))


def main():
    data, keep, *_ = [*sys.argv[1:], None, None]
    begin, found, tables, about = time.process_time(), {}, [], []
    for name, title, problem, starts, n_iter in problems(data):
        before = time.process_time()
        one = found[name] = sensitivity(
            *problem, starts=starts, n_iter=n_iter, checkpoint=keep and Path(keep) / name
        )
        tables.append(one.table().assign(problem=name, F_star=one.f_star.value, how=one.f_star.how))
        grid = f"{one.etas[0]:g} to {one.etas[-1]:g}"
        about.append(
            [
                name,
                title,
                n_iter,
                one.data.sizes["seed"],
                grid,
                one.f_star.how,
                f"{time.process_time() - before:.0f} s",
            ]
        )
        print(*about[-1], sep=", ", flush=True)
    pd.concat(tables).to_csv(HERE / "rules.csv", index=False, float_format="%.6g")
    shares = {
        iterate: profile(list(found.values()), iterate=iterate)
        for iterate in ("last", "best", "average")
    }
    draw(shares["last"]).savefig(HERE / "rules.png", dpi=150)
    shares["at its best eta"] = profile(list(found.values()), eta="best")
    near = {title: values.sel(factor=10.0, method="nearest") for title, values in shares.items()}
    order = [one.rules[row] for row in np.argsort(-near["last"].values, kind="stable")]
    known = [rule for rule in one.rules if one.score(rule)["default_eta"] is not None]

    def by_problem(rules, cell):
        return table(
            ["rule", *found],
            [[rule, *(cell(each.score(rule)) for each in found.values())] for rule in rules],
        )

    parts = {
        "The problems, and the CPU time of all rules on them": table(
            ["problem", "what it is", "iterations", "starts", "eta", "F_star", "CPU time"], about
        ),
        "Decades of eta within 10 times the smallest gap of all rules": widths(found, within),
        **{
            f"Decades of eta with a gap below {level}": widths(found, below(level))
            for level in ("1e-1", "1e-2")
        },
        "Gaps at the best step size of each rule": by_problem(one.rules, best),
        "Gaps at published step sizes, in units of the smallest gap of all rules": by_problem(
            known, regret
        ),
        "Shares of problems and step sizes within 10 times the smallest gap": table(
            ["rule", *near],
            [
                [rule, *(f"{values.sel(rule=rule).item():.2f}" for values in near.values())]
                for rule in order
            ],
        ),
    }
    took = f"CPU time of the whole: {time.process_time() - begin:.0f} s."
    page = HERE / "rules.md"
    text = page.read_text(encoding="utf-8").partition(TABLES)[0]
    tables = "\n\n".join(f"### {title}\n\n{lines}" for title, lines in parts.items())
    page.write_text(f"{text}{TABLES}\n\n{tables}\n\n{took}\n", encoding="utf-8")
    print(took)


if __name__ == "__main__":
    main()
