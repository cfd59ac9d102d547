"""The figure 'bound against truth', and the numbers behind it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import require
from ..study.files import write_all
from ..study.style import FINE_PRINT, GREY, METHODS, RED, clear_ticks, style, thin
from .report import Bound, Verification

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRUTH: dict[str, Any] = {
    "color": METHODS["AdaGrad-Diff"]["color"],
    "linewidth": 1.6,
    "label": r"truth, $F(\bar x^n) - F_\star$",
}
ORANGE = METHODS["AdaGrad"]["color"]
BOUND: dict[str, Any] = {"color": "black", "linewidth": 1.4, "label": "bound"}
TERMS: dict[str, dict[str, Any]] = {
    "distance": {
        "color": ORANGE,
        "linestyle": "--",
        "zorder": 3,
        "label": r"its $\Delta_{\max}/2\eta$ term",
    },
    "steps": {"color": "#009E73", "linestyle": "-.", "label": r"its $\eta$ term"},
    "growth": {"color": GREY, "linestyle": ":", "label": "its last term"},
}
TITLES = {"lad": "LAD", "splice": "splice.t"}  # where the name is not the title


def write(found: Verification, out: str | os.PathLike[str]) -> list[Path]:
    """bound_against_truth.pdf, .png and .csv, and the table of inequalities as CSV."""
    figure = draw(found.bounds)
    return write_all(
        out,
        {
            "bound_against_truth.pdf": lambda path: figure.savefig(
                path, format="pdf", metadata={"CreationDate": None}
            ),
            "bound_against_truth.png": lambda path: figure.savefig(path, format="png", dpi=200),
            "bound_against_truth.csv": lambda path: path.write_text(bounds_csv(found.bounds)),
            "inequalities.csv": lambda path: path.write_text(rows_csv(found)),
        },
    )


def draw(bounds: list[Bound]) -> Figure:
    """One column per problem. First row: along the run whose eta is in the middle; second row: at its end, against eta."""
    names = list(dict.fromkeys(bound.problem for bound in bounds))
    with style():
        figure: Figure = require("matplotlib.figure", "paper").Figure(
            figsize=(1.9 * len(names) + 0.5, 3.9), layout="constrained"
        )
        grid: Any = figure.subplots(2, len(names), squeeze=False)
        for (along, across), name in zip(grid.T, names, strict=True):
            here = sorted(
                (bound for bound in bounds if bound.problem == name), key=lambda bound: bound.eta
            )
            middle = here[len(here) // 2]
            _along(along, middle)
            along.set_title(f"{TITLES.get(name, name)}, $\\eta$ = {middle.eta:.2g}")
            _across(across, here)
        for ax, label in zip(grid[:, 0], ("along a run", "at its end"), strict=True):
            ax.set_ylabel(label)
        handles, labels = grid[1, 0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=3 if len(names) > 1 else 1,
            fontsize=FINE_PRINT,
        )
    return figure


def _along(ax: Axes, bound: Bound) -> None:
    said = bound.said
    at = thin(said.n.size)
    for name, look in TERMS.items():
        ax.plot(said.n[at], _positive(said.terms[name][at]), linewidth=0.9, **look)
    ax.plot(said.n[at], said.right[at], **BOUND)
    ax.plot(said.n[at], _positive(said.left[at]), **TRUTH)
    _axes(ax, "$n$", min(_least(said.left), said.right[-1]))


def _across(ax: Axes, here: list[Bound]) -> None:
    etas = np.array([bound.eta for bound in here])
    for name, look in TERMS.items():
        ax.plot(
            etas, _positive([bound.said.terms[name][-1] for bound in here]), linewidth=0.9, **look
        )
    ax.plot(etas, [bound.said.right[-1] for bound in here], marker="s", **BOUND)
    truth = np.array([bound.said.left[-1] for bound in here])
    ax.plot(etas, _positive(truth), marker="o", **TRUTH)
    best = here[int(np.argmin([bound.said.right[-1] for bound in here]))].best_eta
    ax.axvline(
        best,
        color=RED,
        linewidth=0.8,
        linestyle=(0, (1, 1)),
        label=r"$\eta = (\Delta_{\max}/2)^{1/2}$",
    )
    _axes(ax, r"$\eta$", _least(truth))


def _axes(ax: Axes, label: str, least: float) -> None:
    """Terms that are far below everything else do not stretch the axis."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(bottom=least / 5)
    ax.set_xlabel(label)
    clear_ticks(ax)


def _positive(values: Any) -> np.ndarray:
    """A zero has no place on a logarithmic axis."""
    values = np.asarray(values, float)
    return np.where(values > 0, values, np.nan)


def _least(values: np.ndarray) -> float:
    positive = values[values > 0]
    return float(positive.min()) if positive.size else 1e-16


def bounds_csv(bounds: list[Bound]) -> str:
    """The second row of the figure: everything at the end of each run."""
    lines = ["problem,eta,n,truth,bound_sum,bound_norm,start,distance,steps,growth,eta_of_bound"]
    for bound in bounds:
        terms = [bound.said.terms[name][-1] for name in ("start", "distance", "steps", "growth")]
        values = [
            bound.said.left[-1],
            bound.said.right[-1],
            bound.norm.right[-1],
            *terms,
            bound.best_eta,
        ]
        lines.append(
            f"{bound.problem},{bound.eta:.4g},{bound.said.n[-1]},"
            + ",".join(f"{value:.4g}" for value in values)
        )
    return "\n".join(lines) + "\n"


def rows_csv(found: Verification) -> str:
    """The table of inequalities."""
    lines = ["problem,statement,runs,least_relative_slack,rounding,n,eta,blocks,holds,refused"]
    for row in found.rows:
        values = (
            f"{row.relative:.3g},{row.rounding:.2g},{row.n},{row.eta:.4g},{row.blocks},{row.holds}"
            if row.runs
            else ",,,,,"
        )
        lines.append(f'{row.problem},"{row.statement}",{row.runs},{values},"{row.refused}"')
    return "\n".join(lines) + "\n"
