"""The house stands: no circle, rooms do not know their doors, what is private stays in its room. And a crooked one is seen."""

import pytest

import graph


def test_the_graph_of_the_package():
    wrong = graph.complaints()
    assert not wrong, "\n".join(["", *wrong])


def test_the_drawing_is_that_of_the_code():
    same = graph.DRAWING.is_file() and graph.DRAWING.read_text(encoding="utf-8") == graph.svg(
        graph.drawn()
    )
    assert same, (
        "docs/graph.svg is not what the code draws now: run make graph, and look at what has changed."
    )


def test_what_is_drawn():
    needs = graph.drawn()
    assert needs["helpers"] == set()
    assert {"losses", "penalties", "rules", "duality"} <= needs["solvers"]
    assert {"experiments", "datasets"} <= needs["cli"]  # all of them lazily
    rows = graph.layers(needs)
    level = {name: k for k, row in enumerate(rows) for name in row}
    assert all(level[name] > level[other] for name, below in needs.items() for other in below)
    assert "rules" not in graph.direct(needs)["sweeps"]  # it follows: by way of solvers
    assert all(name in graph.svg(needs) and name in graph.table(needs) for name in needs)


CROOKED = {
    "a circle of modules, one import lazy": (
        {"a/one.py": "from .two import x", "a/two.py": "def f():\n    from .one import y"},
        [
            "Modules depend on each other in a circle",
            "a/one.py, line 1, imports a.two",
            "a/two.py, line 2, imports a.one",
        ],
    ),
    "a circle by importlib": (
        {
            "a/one.py": "from .two import x",
            "a/two.py": "def f():\n    return import_module('.one', __name__)",
        },
        ["Modules depend on each other in a circle", "a/two.py, line 2, imports a.one"],
    ),
    "a module that imports its own room": (
        {"a/__init__.py": "from .one import x", "a/one.py": "from . import y"},
        ["Modules depend on each other in a circle", "a/one.py, line 1, imports a"],
    ),
    "a circle of rooms without one of modules": (
        {
            "a/one.py": "from ..b.one import x",
            "a/two.py": "",
            "b/one.py": "",
            "b/two.py": "from ..a import two",
        },
        ["Rooms depend on each other in a circle", "b/two.py, line 1, imports a.two"],
    ),
    "a room that knows a door": (
        {"a/one.py": "def f():\n    from ..sklearn import Lasso", "sklearn/__init__.py": ""},
        ["a/one.py, line 2", "the room a imports sklearn, which is a door"],
    ),
    "a room that knows a door for its types": (
        {
            "a/one.py": "if TYPE_CHECKING:\n    from ..experiments import Sensitivity",
            "experiments/__init__.py": "",
        },
        ["a/one.py, line 2", "the room a imports experiments, which is a door"],
    ),
    "a room that knows the front": (
        {"a/one.py": "from .. import __version__"},
        ["a/one.py, line 1", "front of the package"],
    ),
    "the front by its name": (
        {"a/one.py": "import house"},
        ["a/one.py, line 1", "front of the package"],
    ),
    "a private module": (
        {"a/one.py": "from ..b._two import x", "b/_two.py": ""},
        ["a/one.py, line 1: imports b._two.x, a private name of the room b"],
    ),
    "a private name": (
        {"a/one.py": "from house.b import _x", "b/__init__.py": ""},
        ["a/one.py, line 1: imports b._x, a private name of the room b"],
    ),
    "a private name for its type": (
        {"a/one.py": "if typing.TYPE_CHECKING:\n    from ..b import _x", "b/__init__.py": ""},
        ["a/one.py, line 2: imports b._x"],
    ),
    "a private attribute": (
        {
            "a/one.py": "def f(b):\n    return b._x",
            "b/__init__.py": "class B:\n    def __init__(self):\n        self._x = 1",
        },
        ["a/one.py, line 2: uses _x, a private attribute of the room b"],
    ),
    "a private function of a module": (
        {"a/one.py": "from .. import b\nb._f()", "b/__init__.py": "def _f(): ..."},
        ["a/one.py, line 2: uses _f, a private attribute of the room b"],
    ),
    "a private attribute by its name": (
        {"a/one.py": "getattr(b, '_x')", "b/__init__.py": "_x = 1"},
        ["a/one.py, line 1: uses _x, a private attribute of the room b"],
    ),
    "a private name of a helper": (
        {"a/one.py": "from .._tools import _x", "_tools.py": ""},
        ["a/one.py, line 1: imports _x, a private name"],
    ),
}


def house(directory, files):
    """A package of these files."""
    package = directory / "house"
    for name, text in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if not (path.parent / "__init__.py").exists():
            (path.parent / "__init__.py").write_text("")
    return package


@pytest.mark.parametrize("kind", CROOKED)
def test_a_crooked_house_is_seen(tmp_path, kind):
    files, wanted = CROOKED[kind]
    said = graph.complaints(house(tmp_path, files))
    assert len(said) == 1, said
    assert all(part in said[0] for part in wanted), said[0]
    assert said[0].endswith(".")


def test_a_straight_house_is_left_alone(tmp_path):
    files = {
        "__init__.py": "from .sklearn import Lasso\nfrom .a import _x",  # the front knows everybody
        "a/__init__.py": "from .one import f",
        "a/one.py": "import os\nfrom . import _two\nfrom ._two import _y\nf = _two._y\nos._exit\nx._replace(a=1)",
        "a/_two.py": "_y = 1",
        "b/one.py": "from .. import a\nfrom ..a.one import f\nif TYPE_CHECKING:\n    from .two import x\nself._y = 2\nself._y",
        "b/two.py": "from .one import z",
        "sklearn/__init__.py": "from ..a import f",
        "__main__.py": "from .cli import main",
        "cli.py": "from .sklearn import Lasso\nfrom adagrad_diff._version import __version__",
        "_version.py": "",
    }
    assert graph.complaints(house(tmp_path, files)) == []
