"""The import graph of the package, read from its code: who depends on whom, what is wrong with it, and a drawing.

A room is a directory of the package. `make graph` prints each room with the rooms it depends on
and draws them; tests/test_graph.py asks `complaints`.
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
# What users come in by. Rooms do not know their doors: whoever wants one thing does not load another.
DOORS = (
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
NOW, LAZY, TYPING = (
    "now",
    "lazy",
    "typing",
)  # when an import happens: with its module, in a function, for type checkers only


class Import(NamedTuple):
    """One name that a module imports from another module of the package. Modules are dotted names below the package."""

    source: str
    line: int
    target: str
    name: str  # "" for the module itself
    when: str

    @property
    def rooms(self) -> tuple[str, str]:
        return room(self.source), room(self.target)


def room(module: str) -> str:
    """Where a module lives; the package's own front is ''. Private files at the top serve all packages."""
    first = module.partition(".")[0]
    return HELPERS if _private(first) else first


def modules(package: Path) -> dict[str, Path]:
    """The modules of a package by their dotted names below it; its front is ''."""
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
    """The rooms that each room depends on; what only type checkers import does not count."""
    needs: dict[str, set[str]] = {}
    for each in found:
        one, other = each.rooms
        needs.setdefault(one, set())
        needs.setdefault(other, set())
        if one != other and each.when != TYPING:
            needs[one].add(other)
    return needs


def complaints(package: Path = PACKAGE) -> list[str]:
    """What is wrong with the graph, a sentence each that says where, and what to do."""
    found, known = imports(package), modules(package)
    inside = [
        each for each in found if each.source
    ]  # the front knows everybody; nobody knows the front
    return [
        *_circles(inside, known),
        *_doors(inside, known),
        *_fronts(inside, known),
        *_private_imports(inside, known),
        *_private_attributes(known),
    ]


def _place(each: Import, known: dict[str, Path]) -> str:
    path = known[each.source]
    return f"{path.relative_to(known[''].parent)}, line {each.line}"


def _circles(found: list[Import], known: dict[str, Path]) -> Iterator[str]:
    """Among modules, then among rooms."""
    run = [each for each in found if each.when != TYPING]
    for kind, ends in (
        ("Modules", lambda each: (each.source, each.target)),
        ("Rooms", lambda each: each.rooms),
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


def _doors(found: list[Import], known: dict[str, Path]) -> Iterator[str]:
    for each in found:
        one, other = each.rooms
        if other in DOORS and one not in DOORS:
            yield (
                f"{_place(each, known)}: the room {one} imports {each.target}, which is a door. Doors depend on rooms, "
                f"never the other way: move what {one} needs into a room."
            )


def _fronts(found: list[Import], known: dict[str, Path]) -> Iterator[str]:
    for each in found:
        if each.target == "":
            yield (
                f"{_place(each, known)}: imports {each.name or 'the package'} from the front of the package, which imports "
                "everything. Import it from the room where it is."
            )


def _private_imports(found: list[Import], known: dict[str, Path]) -> Iterator[str]:
    for each in found:
        names = [*each.target.split("."), each.name]
        if each.rooms[1] == HELPERS:
            names = names[1:]
        if each.rooms[0] != each.rooms[1] and any(map(_private, names)):
            yield (
                f"{_place(each, known)}: imports {'.'.join(filter(None, names))}, a private name of the room {each.rooms[1]}. "
                "Give it a public name there, or do without it."
            )


def _private_attributes(known: dict[str, Path]) -> Iterator[str]:
    """A private attribute belongs to the rooms that define it. Those of other packages are not ours to judge."""
    trees = {
        module: ast.parse(path.read_text(encoding="utf-8"))
        for module, path in known.items()
        if module
    }
    owners: dict[str, set[str]] = {}
    for module, tree in trees.items():
        for name in _defined(tree):
            owners.setdefault(name, set()).add(room(module))
    for module, tree in trees.items():
        for line, name in sorted(set(_touched(tree))):
            homes = owners.get(name, set())
            if homes and room(module) not in homes:
                yield (
                    f"{known[module].relative_to(known[''].parent)}, line {line}: uses {name}, a private attribute of the room "
                    f"{', '.join(sorted(homes))}. Give it a public name there, or do without it."
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
    """The rooms in layers, each above all it depends on, neighbours near what they depend on."""
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
    """Without what follows: a room's arrows to rooms that another of its rooms depends on, too."""

    def all_below(name: str) -> set[str]:
        return needs[name].union(*map(all_below, needs[name]))

    return {name: below - set().union(*map(all_below, below)) for name, below in needs.items()}


def svg(needs: dict[str, set[str]]) -> str:
    """The drawing: doors on the left, rooms on the right; arrows that follow from others are left out."""
    rows, wide, high = layers(needs), 1160, 74
    at = {}
    for level, row in enumerate(rows):
        for left, side in (
            (0, [name for name in row if name in DOORS]),
            (1, [name for name in row if name not in DOORS]),
        ):
            for k, name in enumerate(side):
                x = (
                    wide / 2 * (left + (k + 1) / (len(side) + 1)) + (-1) ** level * 55
                )  # few arrows run behind a box then
                at[name] = round(x), high * (len(rows) - level) - high // 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high * len(rows)}"',
        ' font-family="sans-serif" font-size="14">',
        "<title>Rooms of adagrad_diff: an arrow leads to what a room depends on; what follows from others is left out</title>",
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
        fill = "#d6e8f5" if name in DOORS else "#f2f2f2"
        lines.append(
            f'<rect x="{x - 50}" y="{y - 15}" width="100" height="30" rx="4" fill="{fill}" stroke="#777"/>'
        )
        lines.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle">{name}</text>')
    return "\n".join([*lines, "</svg>\n"])


def table(needs: dict[str, set[str]]) -> str:
    """Each room and the rooms it depends on, from the top."""
    names = [name for row in reversed(layers(needs)) for name in row]
    return "\n".join(f"{name:<13} {', '.join(sorted(needs[name])) or '-'}" for name in names)


def drawn(package: Path = PACKAGE) -> dict[str, set[str]]:
    """The rooms and doors with what they depend on, without the front, which imports all of them."""
    return dependencies(each for each in imports(package) if each.source and each.target)


if __name__ == "__main__":
    print(table(drawn()))
    wrong = complaints()
    if not any("in a circle" in said for said in wrong):  # a graph with circles has no layers
        DRAWING.write_text(svg(drawn()), encoding="utf-8")
        print(f"\n{DRAWING.relative_to(HERE)} is drawn.")
    sys.exit("\n".join(wrong) or None)
