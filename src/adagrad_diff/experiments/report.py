"""The report page: one HTML file with verdict, figures, their numbers, and how to run it again.

The page requests nothing: its style, scripts and data are in the file, and a content security
policy that identifies them by their hashes blocks everything else. The scripts of `page/` draw the
figures in the browser.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files import as_path
from .._files import write as write_file
from .._messages import require
from .._version import __version__
from .scores import known
from .style import style_of
from .tables import NOTES, TABLE_COLUMNS, cells

if TYPE_CHECKING:
    from .result import Sensitivity

SCRIPTS = ("svg.js", "panel.js", "state.js", "figures.js", "map.js", "tables.js", "main.js")
ITERATE_WORDS = {
    "last": "last iterate",
    "best": "best iterate so far",
    "average": "average of the iterates",
}
FIRST_SHOWN = ("AdaGradDiff", "AdaGrad", "AdamDiff", "Adam")  # until others are chosen
GAP_DIGITS, CURVE_DIGITS = 6, 3  # significant digits
UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}  # in a script element


def content(found: Sensitivity, title: str, about: Any, command: Any) -> dict[str, Any]:
    """Return the dict of `Sensitivity.content`. Numbers are finite or None."""
    data, columns = found.data, TABLE_COLUMNS[found.within]
    free = data.free.values.tolist()
    etas = [float(f"{eta:.10g}") for eta in found.etas]  # 0.01, not 0.010000000000000002
    gaps = {name: number_lists(found.gap(name).values, GAP_DIGITS) for name in found.iterates}
    failed = found.failed.any("seed").values
    summaries: dict[str, Any] = {"median": np.median, "low": np.min, "high": np.max}
    curves = found.curve().values
    curve = {name: number_lists(f(curves, axis=2), CURVE_DIGITS) for name, f in summaries.items()}
    steps = number_lists(data.mean_step.mean("seed").values, CURVE_DIGITS)
    tables, ranked = {}, [one["rule"] for one in found.ranked()]
    for name in found.iterates:
        scores = found.ranked(name)
        bars = [0.0 if one["free"] else one[f"decades_{found.within}"] for one in scores]
        rows = zip(cells(scores, columns, "≥"), bars, strict=True)
        tables[name] = [{"cells": row, "bar": bar} for row, bar in rows]
    relative = "" if found.unit == "1" else f", divided by {found.unit} = {found.scale:.4g}"
    gap_words = f"objective - optimum{relative}" if found.unit else "as the function returns it"
    shown = [rule for rule in FIRST_SHOWN if rule in ranked]
    shown += [rule for rule in ranked if rule not in FIRST_SHOWN]
    return {
        "title": title,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": __version__,
        "command": [str(line) for line in command],
        "about": [[str(part) for part in pair] for pair in about],
        "gap_name": found.gap_name,
        "gap_words": gap_words,
        "n_iter": found.n_iter,
        "iterations": data.iteration.values.tolist(),
        "f_star": vars(found.f_star),
        "starts": data.sizes["seed"],
        "etas": etas,
        "rules": [
            {"name": rule, "free": free[k], "published": known(data.published[k]), **style_of(rule)}
            for k, rule in enumerate(found.rules)
        ],
        "shown": shown[: len(FIRST_SHOWN)],
        "runs": [
            {
                "rule": rule,
                "eta": None if free[k] else etas[j],
                **{name: values[k][j] for name, values in gaps.items()},
                "failed": bool(failed[k, j]),
                "curve": {name: values[k][j] for name, values in curve.items()},
                "step": steps[k][j],
            }
            for k, rule in enumerate(found.rules)
            for j in range(1 if free[k] else len(etas))
        ],
        "scores": found.scores,
        "heads": [*columns],
        "tables": tables,
        "note": NOTES[found.within].format("≥"),
        "verdict": found.verdict,
    }


def number_lists(values: np.ndarray, digits: int) -> Any:
    """Return nested lists of finite numbers with a few significant digits, or None."""
    if values.ndim:
        return [number_lists(part, digits) for part in values]
    return float(f"{values:.{digits}g}") if np.isfinite(values) else None


def page(content: Mapping[str, Any]) -> str:
    """Return the page of a comparison as HTML.

    Parameters
    ----------
    content : dict
        What `Sensitivity.content()` returns: plain text, numbers, lists and dicts. Text is shown as
        it is, whatever it contains. `others` may hold pairs (title, file) of pages in the same
        directory.

    Returns
    -------
    str
        A document that needs no other file.
    """
    jinja2 = require("jinja2", "report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    data = {name: part for name, part in content.items() if name != "others"}
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).translate(UNSAFE)
    style, script = part("page.css"), "".join(map(part, SCRIPTS))
    script = f'"use strict";\n(() => {{\n{script}}})();\n'
    safe = jinja2.utils.markupsafe.Markup
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
    policy += f"style-src {digest(style)}; script-src {digest(script)}"
    tables = content["tables"]
    html = environment.from_string(part("page.html")).render(
        **{"others": [], **content},
        widest=max((row["bar"] for rows in tables.values() for row in rows), default=0) or 1,
        iterates={name: words for name, words in ITERATE_WORDS.items() if name in tables},
        style=safe(style),
        script=safe(script),
        data=safe(text),
        policy=policy,
    )
    return str(html.replace("\0", "\N{REPLACEMENT CHARACTER}"))


def write(path: Any, content: Mapping[str, Any]) -> Path:
    """Write the page of a comparison to a file, completely or not at all."""
    target = as_path(path, "path")
    write_text(target, page(content))
    return target


def write_text(path: Path, text: str) -> None:
    """Write a text to a file, completely or not at all."""
    write_file(path, lambda file: file.write(text.encode("utf-8", "replace")))


def part(name: str) -> str:
    """Return a file of the page."""
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return the hash of a script or a style sheet for a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"
