"""The import graph, read from the code: which package depends on which, faults, and a drawing.

A package is a directory of adagrad_diff. `make graph` prints each package with those it depends on
and draws them; tests/test_graph.py calls `complaints`.
"""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parents[1]
PACKAGE, DRAWING = HERE / "src" / "adagrad_diff", HERE / "docs" / "graph.svg"
# Packages for users of other software. The others do not import them, so that each is optional.
INTEGRATIONS = (
    "sklearn",
    "torch",
    "optax",
    "dask",
    "experiments",
    "datasets",
    "cli",
    "__main__",
)
HELPERS = "helpers"  # argument checks, files, threads, messages
# When an import happens: with its module, in a function, for type checkers only.
NOW, LAZY, TYPING = "now", "lazy", "typing"


class Import(NamedTuple):
    """One name that a module imports from another module of the package. Modules are dotted names below the package."""

    source: str
    line: int
    target: str
    name: str  # "" for the module itself
    when: str

    @property
    def packages(self) -> tuple[str, str]:
        return package_of(self.source), package_of(self.target)


def package_of(module: str) -> str:
    """Return the package of a module, "" for `adagrad_diff` itself. Private files at the top serve all."""
    first = module.partition(".")[0]
    return HELPERS if _private(first) else first


def modules(package: Path) -> dict[str, Path]:
    """Return the modules of a package by their dotted names below it; `__init__` is ""."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(package: Path) -> list[Import]:
    """Everything the modules of a package import from each other, lazily or not."""
    known = modules(package)
    return [
        found
        for module, path in known.items()
        for found in _imports(module, path, known, package.name)
    ]


def _imports(module: str, path: Path, known: dict[str, Path], package: str) -> Iterator[Import]:
    home = module.split(".") if module else []
    if path.name != "__init__.py":
        home = home[:-1]

    def resolved(name: str, level: int) -> str | None:
        """The dotted name below the package; None if it is in another one."""
        if level:
            return ".".join([*home[: len(home) - level + 1], *([name] if name else [])])
        return (
            name.removeprefix(package).removeprefix(".")
            if f"{name}.".startswith(f"{package}.")
            else None
        )

    for node, when in _walk(ast.parse(path.read_text(encoding="utf-8")), NOW):
        if isinstance(node, ast.ImportFrom):
            if (target := resolved(node.module or "", node.level)) is None:
                continue
            for alias in node.names:
                inner = f"{target}.{alias.name}" if target else alias.name
                yield Import(
                    module,
                    node.lineno,
                    *((inner, "") if inner in known else (target, alias.name)),
                    when,
                )
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if (target := resolved(alias.name, 0)) is not None:
                    yield Import(module, node.lineno, target, "", when)
        elif (
            isinstance(node, ast.Call)
            and _name(node.func) == "import_module"
            and isinstance(node.args[0], ast.Constant)
        ):
            name = str(node.args[0].value)
            level = len(name) - len(name.lstrip("."))
            if (target := resolved(name.lstrip("."), level)) is not None:
                yield Import(module, node.lineno, target, "", when)


def _walk(node: ast.AST, when: str) -> Iterator[tuple[ast.AST, str]]:
    """Every node below this one, and when it is reached."""
    later = (
        LAZY
        if when == NOW and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        else when
    )
    for field, value in ast.iter_fields(node):
        typing = (
            isinstance(node, ast.If) and field == "body" and _name(node.test) == "TYPE_CHECKING"
        )
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child, TYPING if typing else later
                yield from _walk(child, TYPING if typing else later)


def _name(node: ast.AST) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")


def dependencies(found: Iterable[Import]) -> dict[str, set[str]]:
    """Return the packages that each depends on, without imports for type checkers only."""
    needs: dict[str, set[str]] = {}
    for each in found:
        one, other = each.packages
        needs.setdefault(one, set())
        needs.setdefault(other, set())
        if one != other and each.when != TYPING:
            needs[one].add(other)
    return needs


def complaints(package: Path = PACKAGE) -> list[str]:
    """What is wrong with the graph, a sentence each that says where, and what to do."""
    found, known = imports(package), modules(package)
    inside = [each for each in found if each.source]  # `__init__` may import everything
    return [
        *_circles(inside, known),
        *_integrations(inside, known),
        *_init_imports(inside, known),
        *_private_imports(inside, known),
        *_private_attributes(known),
    ]


def _place(each: Import, known: dict[str, Path]) -> str:
    path = known[each.source]
    return f"{path.relative_to(known[''].parent)}, line {each.line}"


def _circles(found: list[Import], known: dict[str, Path]) -> Iterator[str]:
    """Yield circles among modules, then among packages."""
    run = [each for each in found if each.when != TYPING]
    for kind, ends in (
        ("Modules", lambda each: (each.source, each.target)),
        ("Packages", lambda each: each.packages),
    ):
        edges: dict[str, dict[str, Import]] = {}
        for each in run:
            one, other = ends(each)
            if one != other:
                edges.setdefault(one, {}).setdefault(other, each)
        for circle in _shortest_circles(edges):
            steps = zip(circle, [*circle[1:], circle[0]], strict=True)
            said = "; ".join(
                f"{_place(edges[a][b], known)}, imports {edges[a][b].target}" for a, b in steps
            )
            yield (
                f"{kind} depend on each other in a circle ({said}): move what they share into a {kind.lower()[:-1]} "
                "that knows none of them. To import it lazily is no way out."
            )


def _shortest_circles(edges: dict[str, dict[str, Import]]) -> list[list[str]]:
    """A shortest circle through each node that has one, each circle once."""
    circles: dict[frozenset[str], list[str]] = {}
    for first in sorted(edges):
        before, queue = {first: ""}, deque([first])
        while queue:
            node = queue.popleft()
            for other in edges.get(node, ()):
                if other == first:
                    circle = [node]
                    while before[circle[-1]]:
                        circle.append(before[circle[-1]])
                    circles.setdefault(frozenset(circle), circle[::-1])
                    queue.clear()
                    break
                if other not in before:
                    before[other] = node
                    queue.append(other)
    return list(circles.values())


def _integrations(found: list[Import], known: dict[str, Path]) -> Iterator[str]:
    for each in found:
        one, other = each.packages
        if other in INTEGRATIONS and one not in INTEGRATIONS:
            yield (
                f"{_place(each, known)}: the package {one} imports {each.target}, an integration. "
                f"Integrations depend on the other packages, never the reverse: move what {one} needs."
            )


def _init_imports(found: list[Import], known: dict[str, Path]) -> Iterator[str]:
    for each in found:
        if each.target == "":
            yield (
                f"{_place(each, known)}: imports {each.name or 'adagrad_diff'} from the top of adagrad_diff, "
                "which imports everything. Import it from the package where it is defined."
            )


def _private_imports(found: list[Import], known: dict[str, Path]) -> Iterator[str]:
    for each in found:
        names = [*each.target.split("."), each.name]
        if each.packages[1] == HELPERS:
            names = names[1:]
        if each.packages[0] != each.packages[1] and any(map(_private, names)):
            yield (
                f"{_place(each, known)}: imports {'.'.join(filter(None, names))}, a private name of the "
                f"package {each.packages[1]}. "
                "Give it a public name there, or do without it."
            )


def _private_attributes(known: dict[str, Path]) -> Iterator[str]:
    """Yield uses of private attributes that another package of adagrad_diff defines."""
    trees = {
        module: ast.parse(path.read_text(encoding="utf-8"))
        for module, path in known.items()
        if module
    }
    owners: dict[str, set[str]] = {}
    for module, tree in trees.items():
        for name in _defined(tree):
            owners.setdefault(name, set()).add(package_of(module))
    for module, tree in trees.items():
        for line, name in sorted(set(_touched(tree))):
            homes = owners.get(name, set())
            if homes and package_of(module) not in homes:
                yield (
                    f"{known[module].relative_to(known[''].parent)}, line {line}: uses {name}, "
                    f"a private attribute of the package {', '.join(sorted(homes))}. Give it a public name there, or do without it."
                )


def _defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and _name(node.value) in ("self", "cls")
        ):
            names = [node.attr]
        elif (
            isinstance(node, ast.Call)
            and _name(node.func) == "__setattr__"
            and isinstance(node.args[1], ast.Constant)
        ):
            names = [str(node.args[1].value)]
        else:
            continue
        yield from filter(_private, names)


def _touched(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _private(node.attr):
            yield node.lineno, node.attr
        elif (
            isinstance(node, ast.Call)
            and _name(node.func) in ("getattr", "hasattr")
            and len(node.args) > 1
        ):
            name = node.args[1]
            if isinstance(name, ast.Constant) and _private(str(name.value)):
                yield node.lineno, str(name.value)


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def layers(needs: dict[str, set[str]]) -> list[list[str]]:
    """Return the packages in layers, each above all that it depends on, and close to them."""
    depth: dict[str, int] = {}

    def deep(name: str, above: tuple[str, ...] = ()) -> int:
        if name not in depth:
            below = [deep(other, (*above, name)) for other in needs[name] if other not in above]
            depth[name] = 1 + max(below, default=-1)
        return depth[name]

    rows: list[list[str]] = [[] for _ in range(1 + max(map(deep, needs), default=-1))]
    for name in sorted(needs):
        rows[depth[name]].append(name)
    place: dict[str, float] = {}
    for row in rows:
        mean = {
            name: sum(place[other] for other in needs[name] if other in place)
            / max(1, len(needs[name]))
            for name in row
        }
        row.sort(
            key=lambda name: (round(mean[name], 6), name)
        )  # sums over a set are not always the same
        place |= {name: (k + 1) / (len(row) + 1) for k, name in enumerate(row)}
    return rows


def direct(needs: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the graph without dependencies that follow from others."""

    def all_below(name: str) -> set[str]:
        return needs[name].union(*map(all_below, needs[name]))

    return {name: below - set().union(*map(all_below, below)) for name, below in needs.items()}


def svg(needs: dict[str, set[str]]) -> str:
    """Return the drawing: integrations on the left; arrows that follow from others are left out."""
    rows, wide, high = layers(needs), 1160, 74
    at = {}
    for level, row in enumerate(rows):
        for left, side in (
            (0, [name for name in row if name in INTEGRATIONS]),
            (1, [name for name in row if name not in INTEGRATIONS]),
        ):
            for k, name in enumerate(side):
                x = (
                    wide / 2 * (left + (k + 1) / (len(side) + 1)) + (-1) ** level * 55
                )  # few arrows run behind a box then
                at[name] = round(x), high * (len(rows) - level) - high // 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high * len(rows)}"',
        ' font-family="sans-serif" font-size="14">',
        "<title>Packages of adagrad_diff: an arrow leads to what a package depends on; what follows from others is left out</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#777"/></marker></defs>',
        f'<rect width="{wide}" height="{high * len(rows)}" fill="white"/>',
    ]
    for name, below in direct(needs).items():
        x, y = at[name]
        for other in sorted(below):
            u, v = at[other]
            curve = f"M{x} {y + 15}C{x} {(y + v) // 2} {u} {(y + v) // 2} {u} {v - 16}"
            lines.append(f'<path d="{curve}" fill="none" stroke="#777" marker-end="url(#tip)"/>')
    for name, (x, y) in sorted(at.items()):
        fill = "#d6e8f5" if name in INTEGRATIONS else "#f2f2f2"
        lines.append(
            f'<rect x="{x - 50}" y="{y - 15}" width="100" height="30" rx="4" fill="{fill}" stroke="#777"/>'
        )
        lines.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle">{name}</text>')
    return "\n".join([*lines, "</svg>\n"])


def table(needs: dict[str, set[str]]) -> str:
    """Return a table of each package and the packages it depends on, from the top."""
    names = [name for row in reversed(layers(needs)) for name in row]
    return "\n".join(f"{name:<13} {', '.join(sorted(needs[name])) or '-'}" for name in names)


def drawn(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Return the packages with what they depend on, without the top, which imports all of them."""
    return dependencies(each for each in imports(package) if each.source and each.target)


if __name__ == "__main__":
    print(table(drawn()))
    wrong = complaints()
    if not any("in a circle" in said for said in wrong):  # a graph with circles has no layers
        DRAWING.write_text(svg(drawn()), encoding="utf-8")
        print(f"\n{DRAWING.relative_to(HERE)} is drawn.")
    sys.exit("\n".join(wrong) or None)
