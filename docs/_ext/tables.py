"""Tables that are wider than a phone scroll by themselves, and the page does not."""

from __future__ import annotations

from docutils import nodes


def wrap(app, tree, name):
    for table in list(tree.findall(nodes.table)):
        if "scrolls" in getattr(table.parent, "attributes", {}).get("classes", []):
            continue
        around = nodes.container(classes=["scrolls"])
        table.replace_self(around)
        around += table


def setup(app):
    app.connect("doctree-resolved", wrap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
