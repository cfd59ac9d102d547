"""Tables for a terminal, for Markdown and for the report page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .scores import LEVELS

if TYPE_CHECKING:
    from .result import Sensitivity

TERMINAL_WIDTH = 100
MARKUP = re.compile(r"[\\`*_{}\[\]<>&#|~!$]")  # characters with a meaning in Markdown
# Columns by the range that rules are ranked by: heading -> score and format.
TABLE_COLUMNS: dict[str, dict[str, tuple[str, str]]] = {
    "10x": {
        "rule": ("rule", ""),
        "within 10x": ("decades_10x", ".1f"),
        **{f"< {name.removeprefix('below_')}": (f"decades_{name}", ".1f") for name in LEVELS},
        "best eta": ("best_eta", ".2g"),
        "gap there": ("best_gap", ".1e"),
        "default": ("default_eta", "g"),
        "regret": ("regret", ".2g"),
    },
    "2x": {
        "method": ("rule", ""),
        "within 2x": ("decades_2x", ".1f"),
        "within 1.1x": ("decades_1.1x", ".1f"),
        "best lr": ("best_eta", ".2g"),
        "loss there": ("best_gap", ".3g"),
        "sensitivity": ("sensitivity", ".3g"),
        "centered": ("centered", ".3g"),
        "1 trial": ("expected_best_1", ".3g"),
        "4 trials": ("expected_best_4", ".3g"),
    },
}
NOTES = {
    "10x": (
        "Decades of eta: within 10x, where the gap (the mean over the starts) is below 10 times "
        "the smallest gap of all rules; < 1e-1 and so on, below that gap. '{}': the range touches "
        "an end of the grid. 'all' or '-': a rule without a step size is that good, or not. "
        "default: the published step size; regret: its gap over the smallest of all rules."
    ),
    "2x": (
        "Decades of the learning rate where the loss (the mean over the seeds) is below 2 and 1.1 "
        "times the smallest loss of all methods. '{}': the range touches an end of the grid. "
        "sensitivity: the mean over the grid of the loss, at most the initial one, minus the best; "
        "centered: the same within a decade of the method's own best learning rate. 1 trial, 4 "
        "trials: the expected best loss of so many random learning rates of the grid."
    ),
}


def cells(
    records: Sequence[Mapping[str, Any]],
    columns: Mapping[str, tuple[str, str]],
    at_least: str = ">=",
) -> list[list[str]]:
    """Return a row of text per record. A range that touches an end of the grid is a lower bound."""
    return [[_cell(one, *column, at_least) for column in columns.values()] for one in records]


def _cell(one: Mapping[str, Any], name: str, spec: str, at_least: str) -> str:
    value = one[name]
    if name.startswith("decades") and one.get("free"):
        return "all" if value > 0 else "-"
    if isinstance(value, str):  # in one line, without control characters of terminals
        return " ".join("".join(c if c.isprintable() else " " for c in value).split())
    mark = at_least if one.get(name.replace("decades", "at_edge")) is True else ""
    return "" if value is None else f"{mark}{value:{spec}}"


def as_text(found: Sensitivity) -> str:
    """Return the table of the last iterates for a terminal, with what it means."""
    columns = TABLE_COLUMNS[found.within]
    notes = [*found.verdict[:2], found.f_star.sentence, NOTES[found.within].format(">=")]
    lines = text_table([*columns], cells(found.ranked(), columns))
    return "\n".join([*lines, "", *(fill(text, TERMINAL_WIDTH) for text in notes)])


def as_markdown(found: Sensitivity, iterate: str) -> str:
    """Return the table of one kind of iterate in Markdown."""
    columns = TABLE_COLUMNS[found.within]
    return "\n".join(markdown_table([*columns], cells(found.ranked(iterate), columns, "≥"))) + "\n"


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> list[str]:
    """Return the lines of a table; the first columns hold words, the others numbers.

    Examples
    --------
    >>> for line in text_table(["rule", "eta"], [["Adam", "1"], ["AdaGradDiff", "0.5"]]):
    ...     print(line)
    rule         eta
    -----------  ---
    Adam           1
    AdaGradDiff  0.5
    """
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    template = "  ".join(f"{{:{'<' if k < words else '>'}{n}}}" for k, n in enumerate(widths))
    lines = [heads, ["-" * width for width in widths], *rows]
    return [template.format(*line).rstrip() for line in lines]


def markdown_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1
) -> list[str]:
    r"""Return the lines of a table in Markdown, in which no cell is markup.

    Examples
    --------
    >>> for line in markdown_table(["rule", "eta"], [["a|b", "1"]]):
    ...     print(line)
    | rule | eta |
    | --- | ---: |
    | a\|b | 1 |
    """
    head, *body = [[MARKUP.sub(r"\\\g<0>", cell) for cell in line] for line in (heads, *rows)]
    ruler = ["---" if k < words else "---:" for k in range(len(heads))]
    return [f"| {' | '.join(line)} |" for line in (head, ruler, *body)]
