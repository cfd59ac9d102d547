"""How wide the range of good step sizes is: the table that the paper lacks."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ..._messages import require
from ..scores import LEVELS, widths
from ..tables import TERMINAL_WIDTH, cells, markdown_table, text_table
from .protocol import TITLES, Study

if TYPE_CHECKING:
    import pandas as pd

WITHIN = 10.0  # times the method's own best gap
PAPER_LEVELS = {name: level for name, level in LEVELS.items() if level >= 1e-3}
PAPER_COLUMNS: dict[str, tuple[str, str]] = {
    "problem": ("problem", ""),
    "data": ("data", ""),
    "method": ("method", ""),
    "best eta": ("best_eta", ".3g"),
    "gap there": ("gap_at_best", ".3g"),
    "within 10x": ("decades_within_10x", ".2f"),
    **{f"gap < {name.removeprefix('below_')}": (f"decades_{name}", ".2f") for name in PAPER_LEVELS},
    "reference": ("reference_eta", ".3g"),
    "paper's": ("paper_eta", ".3g"),
}
EXPLANATION = (
    "Gaps (objective minus optimum) are means over the starts, after the budget of iterations. "
    "'within 10x' (of the method's own best gap) and 'gap < ...' are decades of eta: the length, "
    "in log10(eta), of the set of step sizes where the gap is that small. '{}' means that the set "
    "touches an end of the grid and may go on beyond it. The reference eta is the mean of the two "
    "best etas; 'paper's' is the one that the paper reports."
)
STAND_IN_ROWS = (
    "Rows whose data are a stand-in come from generated data: they are not comparable with the "
    "paper's."
)


def summary(studies: Mapping[str, Study]) -> pd.DataFrame:
    """Return one row per problem and method: the best eta, and how far from it one may be.

    Parameters
    ----------
    studies : dict of name -> Study

    Returns
    -------
    DataFrame
        problem, data, method, best_eta, gap_at_best; decades_within_10x (of the method's own best
        gap), decades_below_1e-1, _1e-2, _1e-3, and for each of the four an at_edge_... that says
        whether the range touches an end of the grid, so that the number is a lower bound;
        reference_eta, paper_eta, real; F_star, iterations, seeds, etas.
    """
    rows = [_row(study, rule) for study in studies.values() for rule in TITLES]
    return require("pandas", "paper").DataFrame(rows)


def _row(study: Study, rule: str) -> dict[str, Any]:
    etas, gaps = study.comparison.etas, study.mean_gap.sel(rule=rule).values
    best = float(gaps.min())
    return {
        "problem": study.name,
        "data": study.data,
        "method": TITLES[rule],
        "best_eta": study.best_eta[rule],
        "gap_at_best": best,
        **widths(etas, gaps, {"within_10x": WITHIN * best, **PAPER_LEVELS}),
        "reference_eta": study.reference_eta,
        "paper_eta": study.paper_eta,
        "real": study.real,
        "F_star": study.F_star,
        "iterations": study.n_iter,
        "seeds": study.gap.sizes["seed"],
        "etas": len(etas),
    }


def to_text(frame: pd.DataFrame) -> str:
    """Return the table of `summary` for a terminal: each problem's data have their own line."""
    rows = _cells(frame, ">=")
    data = "; ".join(dict.fromkeys(f"{name}, {data}" for name, data, *_ in rows))
    notes = [f"Data: {data}.", *_notes(frame, ">=")]
    heads = [
        head.removeprefix("gap ") if "<" in head else head
        for head in PAPER_COLUMNS
        if head != "data"
    ]
    table = text_table(heads, [[name, *cells] for name, _, *cells in rows], words=2)
    return "\n".join([*table, "", *(fill(text, TERMINAL_WIDTH) for text in notes)]) + "\n"


def to_markdown(frame: pd.DataFrame) -> str:
    """Return the table of `summary` in Markdown, with what its columns mean."""
    table = markdown_table([*PAPER_COLUMNS], _cells(frame, "≥"), words=3)
    return "\n\n".join(["\n".join(table), *_notes(frame, "≥")]) + "\n"


def _cells(frame: pd.DataFrame, at_least: str) -> list[list[str]]:
    """Return the text of every cell; no generated data may pass for the paper's."""
    generated = ~frame["real"] & ~frame["data"].str.contains("stand-in")
    data = frame["data"].mask(generated, frame["data"] + " (stand-in)")
    return cells(frame.assign(data=data).to_dict("records"), PAPER_COLUMNS, at_least)


def _notes(frame: pd.DataFrame, at_least: str) -> list[str]:
    return [EXPLANATION.format(at_least), *([] if frame["real"].all() else [STAND_IN_ROWS])]
