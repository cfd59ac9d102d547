"""The table of a comparison for a terminal, and in Markdown."""

from __future__ import annotations

import re
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .scores import BELOW, WITHIN, Score, is_near

if TYPE_CHECKING:
    from .result import Sensitivity

HEADS = (
    "rule",
    f"within {WITHIN:g}x",
    *(f"< {name}" for name in BELOW),
    "best eta",
    "gap there",
    "default",
    "regret",
)
MARKUP = re.compile(r"[\\`*_{}\[\]<>&#|~!$]")  # what Markdown does not take literally, somewhere
LINE = 100
NOTE_ON_SCORES = (
    f"Decades of eta: within {WITHIN:g}x, where the gap (the mean over the starts) is below {WITHIN:g} times the smallest of "
    "all rules; < 1e-1 and so on, below that gap. '{}': the range touches an end of the grid. 'all' or '-': a rule without a "
    "step size is that good, or not. default: the published step size; regret: its gap over the smallest of all rules."
)


def as_text(found: Sensitivity) -> str:
    """The table of the last iterates, with what it means."""
    rows = [HEADS, *(cells(score, ">=") for score in ranked(found.scores, "last"))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [*found.verdict[:2], found.f_star.sentence, NOTE_ON_SCORES.format(">=")]
    return "\n".join([*lines, "", *(fill(note, LINE) for note in notes)])


def as_markdown(found: Sensitivity, iterate: str) -> str:
    """The table of one kind of iterate."""
    rows = [
        [MARKUP.sub(r"\\\g<0>", cell) for cell in cells(score, "≥")]
        for score in ranked(found.scores, iterate)
    ]
    ruler = ["---", *["---:"] * (len(HEADS) - 1)]
    heads = [MARKUP.sub(r"\\\g<0>", head) for head in HEADS]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ruler, *rows)) + "\n"


def ranked(scores: list[Score], iterate: str) -> list[Score]:
    """The widest range first, then the smallest gap."""
    ours = [score for score in scores if score["iterate"] == iterate]
    return sorted(
        ours,
        key=lambda s: (-s["decades_10x"], float("inf") if s["best_gap"] is None else s["best_gap"]),
    )


def cells(score: Score, at_least: str) -> list[str]:
    """One row."""

    def width(value: float, good: bool, edge: bool = False) -> str:
        if score["free"]:
            return "all" if good else "-"
        return f"{at_least if edge else ''}{value:.1f}"

    gap = score["best_gap"]
    return [
        " ".join(
            "".join(letter if letter.isprintable() else " " for letter in score["rule"]).split()
        ),
        width(score["decades_10x"], is_near(score), score["at_edge"]),
        *(
            width(score["decades_below"][name], gap is not None and gap < limit)
            for name, limit in BELOW.items()
        ),
        _number(score["best_eta"], ".2g"),
        _number(score["best_gap"], ".1e"),
        _number(score["default_eta"], "g"),
        _number(score["regret"], ".2g"),
    ]


def _number(value: Any, spec: str) -> str:
    return "" if value is None else format(value, spec)
