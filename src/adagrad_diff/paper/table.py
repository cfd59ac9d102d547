"""How wide the range of good step sizes is: the table that the paper lacks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import require
from ..study.decades import decades
from ..study.files import write_all
from ..study.scores import WITHIN  # here: times the method's own best gap
from ..study.text import LINE, MARKUP
from ._numbers import TITLES_OF_RULES, over_seeds

if TYPE_CHECKING:
    import pandas as pd

    from .protocol import Study

ORDER = ("hinge", "lad", "news20", "splice", "2moons")  # the paper's
GAP_LEVELS = {"1e-1": 1e-1, "1e-2": 1e-2, "1e-3": 1e-3}
RANGES = ("within_10x", *(f"below_{name}" for name in GAP_LEVELS))

HEADINGS = {
    "problem": "problem",
    "data": "data",
    "method": "method",
    "best_eta": "best eta",
    "gap_at_best": "gap there",
    "decades_within_10x": "within 10x",
    **{f"decades_below_{name}": f"gap < {name}" for name in GAP_LEVELS},
    "reference_eta": "reference eta",
    "paper_eta": "paper's",
}
WORDS = ("problem", "data", "method")  # the other columns are numbers, and aligned to the right
# A terminal has 100 columns: there the data of each problem have a line of their own, and headings are short.
SHORT_HEADINGS = {name: heading for name, heading in HEADINGS.items() if name != "data"} | {
    **{f"decades_below_{name}": f"< {name}" for name in GAP_LEVELS},
    "reference_eta": "reference",
}
EXPLANATION = (
    "Gaps (objective minus optimum) are means over the starts, after the budget of iterations. 'within 10x' (of the method's "
    "own best gap) and '{}' are decades of eta: the length, in log10(eta), of the set of step sizes where the gap is that "
    "small. '{}' means that the set touches an end of the grid and may go on beyond it. The reference eta is the mean of the "
    "two best etas; 'paper's' is the one that the paper reports."
)
STAND_IN_ROWS = "Rows whose data are a stand-in come from generated data: they are not comparable with the paper's."


def summary(studies: Mapping[str, Study]) -> pd.DataFrame:
    """One row per problem and method: the best eta, and how far from it one may be.

    Parameters
    ----------
    studies : dict of name -> Study

    Returns
    -------
    DataFrame
        problem, data, method, best_eta, gap_at_best; decades_within_10x (of the method's own best gap), decades_below_1e-1,
        _1e-2, _1e-3, and for each of the four an at_edge_... that says whether the range touches an end of the grid, so
        that the number is a lower bound; reference_eta, paper_eta, real; F_star, iterations, seeds, etas.
    """
    pd = require("pandas", "paper")
    if not studies:
        raise ValueError("'studies' is empty: there is nothing to put into the table.")
    names = sorted(
        studies, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name)
    )
    return pd.DataFrame([_row(studies[name], rule) for name in names for rule in TITLES_OF_RULES])


def _row(study: Study, rule: str) -> dict[str, Any]:
    etas = study.grid.eta.values
    gaps = over_seeds(study.gap.sel(rule=rule).transpose("eta", "seed").values, absent=np.inf)[
        "mean"
    ]
    order = np.argsort(etas)
    etas, gaps = etas[order], gaps[order]
    best = float(gaps[np.argmin(np.abs(etas - study.best_eta[rule]))])
    thresholds = dict(zip(RANGES, (WITHIN * best, *GAP_LEVELS.values()), strict=True))
    # Without a single trajectory that ended well there is no best gap, and no eta is near it.
    widths = {
        name: decades(etas, gaps, limit) if np.isfinite(best) else (0.0, False)
        for name, limit in thresholds.items()
    }
    return {
        "problem": study.name,
        "data": study.data,
        "method": TITLES_OF_RULES[rule],
        "best_eta": study.best_eta[rule],
        "gap_at_best": best,
        **{f"decades_{name}": width for name, (width, _) in widths.items()},
        **{f"at_edge_{name}": at_edge for name, (_, at_edge) in widths.items()},
        "reference_eta": study.reference_eta,
        "paper_eta": study.paper_eta,
        "real": study.real,
        "F_star": study.F_star,
        "iterations": study.n_iter,
        "seeds": study.gap.sizes["seed"],
        "etas": len(etas),
    }


def write(studies: Mapping[str, Study], out: Any) -> list[Path]:
    """Write table.csv (every column of `summary`) and table.md (for reading) into a directory."""
    frame = summary(studies)
    return write_all(
        out,
        {
            "table.csv": lambda path: frame.to_csv(path, index=False),
            "table.md": lambda path: path.write_text(to_markdown(frame), encoding="utf-8"),
        },
    )


def to_text(frame: pd.DataFrame) -> str:
    """The table of `summary` for a terminal."""
    rows = _rows(frame, at_least=">=")
    data = fill(
        "Data: "
        + "; ".join(dict.fromkeys(f"{row['problem']}, {row['data']}" for row in rows))
        + ".",
        LINE,
    )
    columns = []
    for name, heading in SHORT_HEADINGS.items():
        cells = [heading, *(row[name] for row in rows)]
        width = max(map(len, cells))
        align = str.ljust if name in WORDS else str.rjust
        head, *below = (align(cell, width) for cell in cells)
        columns.append([head, "-" * width, *below])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    return (
        "\n".join([*lines, "", data, *(fill(note, LINE) for note in _notes(frame, "< ...", ">="))])
        + "\n"
    )


def to_markdown(frame: pd.DataFrame) -> str:
    """The table of `summary` in Markdown, with what its columns mean."""
    ruler = ["---" if name in WORDS else "---:" for name in HEADINGS]
    rows = [
        [MARKUP.sub(r"\\\g<0>", row[name]) for name in HEADINGS]
        for row in _rows(frame, at_least="≥")
    ]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (HEADINGS.values(), ruler, *rows))
    return "\n\n".join([table, *_notes(frame, "gap < ...", "≥")]) + "\n"


def _rows(frame: pd.DataFrame, at_least: str) -> list[dict[str, str]]:
    """The cells of every row, by the name of their column."""
    rows = []
    for row in frame.to_dict("records"):
        cells = {
            name: _line(row[name]) if isinstance(row[name], str) else f"{row[name]:.3g}"
            for name in HEADINGS
        }
        for name in RANGES:
            cells[f"decades_{name}"] = (
                at_least if row[f"at_edge_{name}"] else ""
            ) + f"{row[f'decades_{name}']:.2f}"
        if not row["real"] and "stand-in" not in row["data"]:
            cells["data"] += " (stand-in)"
        rows.append(cells)
    return rows


def _line(text: str) -> str:
    """The text without line breaks, or anything else that a terminal acts upon."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _notes(frame: pd.DataFrame, below: str, at_least: str) -> list[str]:
    return [EXPLANATION.format(below, at_least), *([] if frame["real"].all() else [STAND_IN_ROWS])]
