"""The report page: one HTML file with the verdict, the figures, their numbers, and how to run it again.

The page asks nobody for anything: its style, its scripts and its data are in the file, and a content security policy that knows
them by their hashes keeps everything else out. The figures are drawn in the browser by the scripts of `page/`, in the order of
`SCRIPTS`. (Vega-Lite would be 0.9 MB of each page and 84 MB of each installation; these are 30 kB, and their colours are those
of the style sheet, so that dark screens and paper need no second drawing.)
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from .._files import as_path
from .._files import write as write_whole
from .._messages import require
from ._page_text import clean, embedded, moment, number, power

SCRIPTS = ("svg.js", "panel.js", "state.js", "figures.js", "map.js", "tables.js", "main.js")
ITERATE_WORDS = {
    "last": "last iterate",
    "best": "best iterate so far",
    "average": "average of the iterates",
}


def page(content: Mapping[str, Any]) -> str:
    """The page of a study as HTML.

    Parameters
    ----------
    content : dict
        What `Sensitivity.content()` returns: plain text, numbers, lists and dicts. Text is shown as it is, whatever is in it. A
        number that is not finite counts as missing. It may have `others`, a list of (title, file) of pages beside this one.
        `gap_name` is what gaps are called, "relative gap" if it is not there.

    Returns
    -------
    str
        A document that needs nothing beside itself.

    Examples
    --------
    >>> run = {"rule": "DoG", "eta": None, "last": [0.1], "best": [0.1], "average": [0.2], "failed": False, "step": [1.0]}
    >>> run["curve"] = {"median": [0.1], "low": [0.1], "high": [0.1]}
    >>> content = {"title": "A <b> study", "created": "2026-11-18", "version": "1.0", "command": [], "about": [], "n_iter": 1}
    >>> content |= {"iterations": [1], "f_star": {"value": 0.5, "how": "given", "sentence": ""}, "starts": 1, "etas": []}
    >>> content |= {"rules": [{"name": "DoG", "free": True, "published": None}], "runs": [run], "scores": [], "verdict": []}
    >>> "<title>A &lt;b&gt; study</title>" in page(content)
    True
    """
    jinja2 = require("jinja2", "report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number, "power": power, "moment": moment}
    content = {"gap_name": "relative gap", **clean(content)}
    others = content.get("others", [])
    content = {name: part for name, part in content.items() if name != "others"}
    free = {rule["name"] for rule in content["rules"] if rule["free"]}
    ranked: dict[str, list[Any]] = {}
    for score in sorted(content["scores"], key=lambda score: merit(score, score["rule"] in free)):
        ranked.setdefault(score["iterate"], []).append(score)
    style, script = part("page.css"), "".join(map(part, SCRIPTS))
    script = f'"use strict";\n(() => {{\n{script}}})();\n'
    as_is = (
        jinja2.utils.markupsafe.Markup
    )  # ours, and JSON without a single bracket: nothing in it ends the element
    text: str = environment.from_string(part("page.html")).render(
        **content,
        others=others,
        iterates={name: words for name, words in ITERATE_WORDS.items() if name in ranked},
        ranked=ranked,
        free=free,
        widest=max(
            (score["decades_10x"] or 0 for score in content["scores"] if score["rule"] not in free),
            default=0,
        )
        or 1,
        thresholds=list(
            dict.fromkeys(level for score in content["scores"] for level in score["decades_below"])
        ),
        style=as_is(style),
        script=as_is(script),
        data=as_is(embedded(content)),
        policy=f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src {digest(style)}; "
        f"script-src {digest(script)}",
    )
    return text


def write(path: Any, content: Mapping[str, Any]) -> Path:
    """Write the page of a study into a file, whole or not at all.

    Parameters
    ----------
    path : path
        The file. What was there before is replaced when the new page is complete.
    content : dict
        As for `page`.

    Returns
    -------
    Path
    """
    target, text = as_path(path, "path"), page(content).encode("utf-8")
    write_whole(target, lambda file: file.write(text))
    return target


def merit(score: Mapping[str, Any], free: bool) -> tuple[bool, float, float]:
    """Rules with a step size first, those that forgive most at the top; then by the best gap."""
    gap = math.inf if score["best_gap"] is None else score["best_gap"]
    return free, 0.0 if free else -(score["decades_10x"] or 0.0), gap


@cache
def part(name: str) -> str:
    """A file of the page, as it is installed with the package."""
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """How a content security policy names a script or a style sheet."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"
