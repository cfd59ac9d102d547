"""A constant's name means one thing in the whole package: whoever reads it in a message or a test knows which one it is."""

import ast

import graph


def constants(tree):
    """The names in capitals that a module assigns, wherever it does so outside of functions and classes."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and node.id.isupper()
            and len(node.id) > 1
        ):
            yield node.id, node.lineno
        yield from constants(node)


def doubles(package):
    """A sentence for each name that two modules assign."""
    found = {}
    for path in graph.modules(package).values():
        for name, line in constants(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(name, {}).setdefault(str(path.relative_to(package)), line)
    for name, places in sorted(found.items()):
        if len(places) > 1:
            where = " and ".join(f"{path} (line {line})" for path, line in places.items())
            yield (
                name,
                f"{name} is assigned in {where}: give each a name that says what it is, or import it from one place.",
            )


def test_no_constant_has_two_meanings():
    wrong = [said for _, said in doubles(graph.PACKAGE)]
    assert not wrong, "\n".join(["", *wrong])


def test_a_name_with_two_meanings_is_seen(tmp_path):
    files = {
        "one.py": "LIMIT, _CACHE = 3, {}\nif True:\n    DEPTH: int = 1",
        "two.py": "DEPTH = 2\nA = 1",
        "three.py": "from one import LIMIT\nA = 1\n\ndef f():\n    _CACHE = 1\n    for k in LIMIT:\n        DEPTH = 1",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    said = dict(doubles(tmp_path))
    assert list(said) == ["DEPTH"]
    assert said["DEPTH"].startswith("DEPTH is assigned in one.py (line 3) and two.py (line 1): ")
