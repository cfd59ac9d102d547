"""The import graph has no circles, integrations are optional, and private names stay private."""

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


FAULTS = {
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
    "a module that imports its own package": (
        {"a/__init__.py": "from .one import x", "a/one.py": "from . import y"},
        ["Modules depend on each other in a circle", "a/one.py, line 1, imports a"],
    ),
    "a circle of packages without one of modules": (
        {
            "a/one.py": "from ..b.one import x",
            "a/two.py": "",
            "b/one.py": "",
            "b/two.py": "from ..a import two",
        },
        ["Packages depend on each other in a circle", "b/two.py, line 1, imports a.two"],
    ),
    "a package that imports an integration": (
        {"a/one.py": "def f():\n    from ..sklearn import Lasso", "sklearn/__init__.py": ""},
        ["a/one.py, line 2", "the package a imports sklearn, an integration"],
    ),
    "a package that imports an integration for its types": (
        {
            "a/one.py": "if TYPE_CHECKING:\n    from ..experiments import Sensitivity",
            "experiments/__init__.py": "",
        },
        ["a/one.py, line 2", "the package a imports experiments, an integration"],
    ),
    "a package that imports the top": (
        {"a/one.py": "from .. import __version__"},
        ["a/one.py, line 1", "from the top of adagrad_diff"],
    ),
    "the top by its name": (
        {"a/one.py": "import mine"},
        ["a/one.py, line 1", "from the top of adagrad_diff"],
    ),
    "a private module": (
        {"a/one.py": "from ..b._two import x", "b/_two.py": ""},
        ["a/one.py, line 1: imports b._two.x, a private name of the package b"],
    ),
    "a private name": (
        {"a/one.py": "from mine.b import _x", "b/__init__.py": ""},
        ["a/one.py, line 1: imports b._x, a private name of the package b"],
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
        ["a/one.py, line 2: uses _x, a private attribute of the package b"],
    ),
    "a private function of a module": (
        {"a/one.py": "from .. import b\nb._f()", "b/__init__.py": "def _f(): ..."},
        ["a/one.py, line 2: uses _f, a private attribute of the package b"],
    ),
    "a private attribute by its name": (
        {"a/one.py": "getattr(b, '_x')", "b/__init__.py": "_x = 1"},
        ["a/one.py, line 1: uses _x, a private attribute of the package b"],
    ),
    "a private name of a helper": (
        {"a/one.py": "from .._tools import _x", "_tools.py": ""},
        ["a/one.py, line 1: imports _x, a private name"],
    ),
}


def package(directory, files):
    """A package of these files."""
    top = directory / "mine"
    for name, text in {"__init__.py": "", **files}.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if not (path.parent / "__init__.py").exists():
            (path.parent / "__init__.py").write_text("")
    return top


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_are_found(tmp_path, kind):
    files, wanted = FAULTS[kind]
    said = graph.complaints(package(tmp_path, files))
    assert len(said) == 1, said
    assert all(part in said[0] for part in wanted), said[0]
    assert said[0].endswith(".")


def test_a_graph_without_faults(tmp_path):
    files = {
        "__init__.py": "from .sklearn import Lasso\nfrom .a import _x",  # the top may import everything
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
    assert graph.complaints(package(tmp_path, files)) == []
