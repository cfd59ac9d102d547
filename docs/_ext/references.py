"""Which words are links, and which members of a class are ours to document."""

from __future__ import annotations

import inspect

from docutils import nodes


def plain(app, env, node, content):
    """A word in single backticks that is no name of ours is code. Links that say what they are must lead there."""
    if (
        node.get("refdomain") == "py"
        and node.get("reftype") == "obj"
        and not node.get("refexplicit")
    ):
        return nodes.literal(node["reftarget"], content.astext())
    return None


def foreign(app, what, name, thing, skip, options):
    """Leave out what a class has from other libraries: PyTorch and scikit-learn document it themselves."""
    if isinstance(thing, property):
        thing = thing.fget
    if inspect.isroutine(thing) and not (getattr(thing, "__module__", None) or "").startswith(
        "adagrad_diff"
    ):
        return True
    return None


def setup(app):
    app.connect("missing-reference", plain)
    app.connect("autodoc-skip-member", foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
