"""How wide the range of good step sizes is: the table that the paper lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.extras import require
from ..study.files import write_all
from ._numbers import TITLES_OF_RULES, over_seeds

if TYPE_CHECKING:
    import pandas as pd

    from .protocol import Study

ORDER = ("hinge", "lad", "news20", "splice", "2moons")  # the paper's
WITHIN = 10.0  # times the method's own best gap
BELOW = {"1e-1": 1e-1, "1e-2": 1e-2, "1e-3": 1e-3}
RANGES = ("within_10x", *(f"below_{name}" for name in BELOW))

HEADINGS = {
    "problem": "problem",
    "data": "data",
    "method": "method",
    "best_eta": "best eta",
    "gap_at_best": "gap there",
    "decades_within_10x": "within 10x",
    **{f"decades_below_{name}": f"gap < {name}" for name in BELOW},
    "reference_eta": "reference eta",
    "paper_eta": "paper's",
}
MARKUP = re.compile(r"[\\`*_{}\[\]<>&#|~!$]")  # what Markdown does not take literally, somewhere
WORDS = 3  # columns of words; the others are numbers and aligned to the right
EXPLANATION = (
    "Gaps F(x) - F_star are means over the starts, after the budget of iterations. 'within 10x' (of the method's own best gap) "
    "and 'gap < ...' are decades of eta: the length, in log10(eta), of the set of step sizes where the gap is that "
    "small. '{}' means that the set touches an end of the grid and may go on beyond it. The reference eta is the mean of the "
    "two best etas; 'paper's' is the one the paper reports."
)
STAND_IN_ROWS = "Rows whose data are a stand-in come from generated data: they are not comparable with the paper's."


def decades(etas: Any, gaps: Any, threshold: float) -> tuple[float, bool]:
    r"""The length of the set of step sizes with a gap below a threshold, in decades.

    .. math:: \Big|\{ \log_{10} \eta : \text{gap}(\eta) < \text{threshold} \}\Big|

    Between the points of the grid, log(gap) is linear in log(eta). Next to an infinite gap (a trajectory that diverged)
    nothing is below the threshold but the other end of the interval itself. A set in several pieces has the sum of their
    lengths.

    Parameters
    ----------
    etas : array
        Increasing positive step sizes.
    gaps : array
        One gap per eta, >= 0; infinite where a trajectory diverged.
    threshold : float
        If it is zero, no gap is below.

    Returns
    -------
    length : float
    at_edge : bool
        Whether the gap is below the threshold at an end of the grid. Then the set may go on outside it, and the length is
        a lower bound.

    Examples
    --------
    >>> decades([0.01, 0.1, 1.0, 10.0], [1.0, 1e-2, 1.0, float("inf")], threshold=0.1)
    (1.0, False)
    >>> decades([0.01, 0.1, 1.0], [1e-3, 1e-2, 1.0], threshold=0.1)
    (1.5, True)
    """
    etas, gaps = np.asarray(etas, np.float64), np.asarray(gaps, np.float64)
    if etas.ndim != 1 or etas.shape != gaps.shape or not etas.size:
        raise ValueError(f"'etas' and 'gaps' must be vectors of the same length. Got shapes {etas.shape} and {gaps.shape}.")
    if not (etas > 0).all() or not (np.diff(etas) > 0).all():
        raise ValueError("'etas' must be positive and increasing: sort them, with their gaps, first.")
    if not (gaps >= 0).all():
        raise ValueError(
            "'gaps' must be numbers >= 0, or infinite. Got a negative number or NaN: is F_star the smallest value?"
        )
    if not threshold > 0:
        return 0.0, False
    with np.errstate(divide="ignore"):
        height = np.log(gaps) - np.log(threshold)  # negative where the gap is below
    left, right = height[:-1], height[1:]
    share = ((left < 0) & (right < 0)).astype(np.float64)  # of each interval
    crossing = (left < 0) != (right < 0)
    inside, outside = np.minimum(left, right)[crossing], np.maximum(left, right)[crossing]
    # From a gap of zero (minus infinity) a line gets to the threshold only at its other end, to an infinite gap at once;
    # from the one to the other it may be anywhere, and counts as half.
    zero, infinite = np.isneginf(inside), np.isposinf(outside)
    with np.errstate(invalid="ignore"):
        share[crossing] = np.select([zero & infinite, zero], [0.5, 1.0], inside / (inside - outside))
    return float(share @ np.diff(np.log10(etas))), bool(height[0] < 0 or height[-1] < 0)


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
    names = sorted(studies, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    return pd.DataFrame([_row(studies[name], rule) for name in names for rule in TITLES_OF_RULES])


def _row(study: Study, rule: str) -> dict[str, Any]:
    etas = study.grid.eta.values
    gaps = over_seeds(study.gap.sel(rule=rule).transpose("eta", "seed").values, absent=np.inf)["mean"]
    order = np.argsort(etas)
    etas, gaps = etas[order], gaps[order]
    best = float(gaps[np.argmin(np.abs(etas - study.best_eta[rule]))])
    thresholds = dict(zip(RANGES, (WITHIN * best, *BELOW.values()), strict=True))
    # Without a single trajectory that ended well there is no best gap, and no eta is near it.
    widths = {name: decades(etas, gaps, limit) if np.isfinite(best) else (0.0, False) for name, limit in thresholds.items()}
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
    cells = _cells(frame, at_least=">=")
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        [cell.ljust(w) if k < WORDS else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))]
        for row in cells
    ]
    lines.insert(1, ["-" * width for width in widths])
    return (
        "\n".join(["  ".join(line).rstrip() for line in lines] + ["", *(fill(note, 110) for note in _notes(frame, ">="))])
        + "\n"
    )


def to_markdown(frame: pd.DataFrame) -> str:
    """The table of `summary` in Markdown, with what its columns mean."""
    head, *rows = _cells(frame, at_least="≥")
    ruler = ["---" if k < WORDS else "---:" for k in range(len(head))]
    rows = [[MARKUP.sub(r"\\\g<0>", cell) for cell in row] for row in rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ruler, *rows))
    return "\n\n".join([table, *_notes(frame, "≥")]) + "\n"


def _cells(frame: pd.DataFrame, at_least: str) -> list[list[str]]:
    """The heading and the rows, as strings."""
    rows = [list(HEADINGS.values())]
    for row in frame.to_dict("records"):
        cells = {name: _line(row[name]) if isinstance(row[name], str) else f"{row[name]:.3g}" for name in HEADINGS}
        for name in RANGES:
            cells[f"decades_{name}"] = (at_least if row[f"at_edge_{name}"] else "") + f"{row[f'decades_{name}']:.2f}"
        if not row["real"] and "stand-in" not in row["data"]:
            cells["data"] += " (stand-in)"
        rows.append(list(cells.values()))
    return rows


def _line(text: str) -> str:
    """The text without line breaks, or anything else that a terminal acts upon."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _notes(frame: pd.DataFrame, at_least: str) -> list[str]:
    return [EXPLANATION.format(at_least), *([] if frame["real"].all() else [STAND_IN_ROWS])]
