"""Docstrings are read in a terminal, too: a bar or a trailing underscore in them is what it looks like, and no markup."""

from __future__ import annotations

import re

from numpydoc import docscrape_sphinx

MARKED = re.compile(
    r"(:\w+:`[^`]*`|``.*?``|`[^`]*`)"
)  # roles, code and names: these stay as they are
INITIAL = re.compile(r"^(\s*)(?=[A-Z]\. [A-Z])")  # V. Author: a name, not the fifth item of a list
BARE = re.compile(r"\||(?<=\w)_(?!\w)|(?<![\w*])\*(?=[a-z]+\b(?!\*))")  # |x|, coef_, *args


def escaped(lines):
    """The same lines, with a backslash before what would be taken for markup; code and formulas stay as they are."""
    made, session, block = (
        [],
        False,
        None,
    )  # a session ends with an empty line, a block where a line is indented as its opener
    for line in lines:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        session = text.startswith(">>> ") or (session and text != "")
        if block is not None and text and indent <= block:
            block = None
        if block is None and text.startswith((".. math::", ".. code")):
            block = indent
        if session or block is not None:
            made.append(line)
            continue
        parts = MARKED.split(line)
        parts[::2] = [BARE.sub(lambda found: "\\" + found.group(), part) for part in parts[::2]]
        made.append(INITIAL.sub(r"\1\\", "".join(parts)))
        if text.endswith("::"):
            block = indent
    return made


def process(app, what, name, thing, options, lines):
    lines[:] = escaped(lines)


def share_environment():
    """One for all docstrings: numpydoc would compile its template for each of them."""
    make, made = docscrape_sphinx.SandboxedEnvironment, []

    def shared(loader):
        if not made:
            made.append(make(loader=loader))
        return made[0]

    docscrape_sphinx.SandboxedEnvironment = shared


def setup(app):
    share_environment()
    app.connect(
        "autodoc-process-docstring", process, priority=900
    )  # after the sections have become lists
    return {"parallel_read_safe": True, "parallel_write_safe": True}
