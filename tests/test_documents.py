"""What the documents show runs, snippets and examples, and the files they name exist."""

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
READ = [
    page for page in PAGES if "```\n\n```text\n" in page.read_text(encoding="utf-8")
]  # from top to bottom, see below
ALONE = [page for page in PAGES if page not in READ]
SNIPPETS = [
    snippet
    for page in ALONE
    for snippet in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
]
ELSEWHERE = {"torch_distributed"}  # examples that are run by tests of their own
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem not in ELSEWHERE)


# Pages that say what their snippets print are read from top to bottom: these run one after the other, as a reader types
# them, and print that. Tutorials do so where nothing is installed but their extra.
EXTRAS = {
    "scikit_learn": {"sklearn"},
    "pytorch": {"torch"},
    "jax": {"jax", "optax"},
    "step_sizes": {
        "sklearn",
        "matplotlib",
        "pandas",
        "xarray",
        "click",
        "jinja2",
        "tqdm",
    },
}
OTHERS = {
    *set().union(*EXTRAS.values()),
    "dask",
    "distributed",
    "cvxpy",
    "polars",
    "pyarrow",
    "zarr",
    "h5py",
} - {"jinja2"}
TYPED = """
import contextlib, io, re, sys
from importlib.machinery import PathFinder
text, absent = sys.stdin.read(), sys.argv[1:]
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in absent else super().find_spec(name, path, target)
sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
place = {"__name__": "__main__"}
for code, _, said in re.findall(r"```python\\n(.*?)```(\\s+```text\\n(.*?)```)?", text, flags=re.DOTALL):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "a snippet", "exec"), place)
    if out.getvalue() != said:
        sys.exit(f"The page says:\\n{said}\\nIt prints:\\n{out.getvalue()}")
"""


@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.parametrize("page", READ, ids=lambda page: page.stem)
def test_pages_can_be_typed(page):
    absent = OTHERS - EXTRAS[page.stem] if page.stem in EXTRAS else set()
    command = [sys.executable, "-W", "error", "-c", TYPED, *sorted(absent)]
    done = subprocess.run(
        command, input=page.read_text(), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def test_tutorials_are_found():
    assert {*EXTRAS, "minimize", "extend"} <= {page.stem for page in READ}


NEEDY = (
    "sweep",
    "sensitivity",
    "torch",
    "optax",
    "sklearn",
    "dask",
)  # words of snippets that need other libraries


@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(s, marks=pytest.mark.peer) if any(word in s for word in NEEDY) else s
        for s in SNIPPETS
    ],
    ids=range(len(SNIPPETS)),
)
def test_snippets_run(snippet):
    names = {"__name__": "__main__"}
    exec(compile(snippet, "a snippet", "exec"), names)
    if "the second entry is exactly zero" in snippet:
        assert names["x"][1] == 0.0


@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", [path.name])
    monkeypatch.chdir(tmp_path)
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    drawn = []
    monkeypatch.setattr(
        pyplot,
        "show",
        lambda: drawn.append([pyplot.figure(k).canvas.draw() for k in pyplot.get_fignums()]),
    )
    runpy.run_path(str(path), run_name="__main__")
    pyplot.close("all")
    assert capsys.readouterr().out
    assert drawn, f"{path.name} has no picture for the gallery"


def test_contributing_names_files_that_exist():
    named = re.findall(
        r"`((?:src|tests|docs|benchmarks|tools|\.ci)/[\w./]*|[A-Z]+\.md)`",
        (ROOT / "CONTRIBUTING.md").read_text(),
    )
    assert len(named) > 25  # it has looked
    for name in named:
        assert (ROOT / name).exists(), (
            f"CONTRIBUTING.md names {name}, which is not there: say where it is now"
        )


def test_links_lead_somewhere():
    """To files that are there, from the README and every page."""
    seen = 0
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text(encoding="utf-8")):
            if "gallery/" in target:  # made by `make docs`, which looks at these links
                continue
            assert (page.parent / target).exists(), (
                f"{page.relative_to(ROOT)} links to {target}, which is not there"
            )
            seen += 1
    assert seen > 20  # it has looked


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 105
    assert max(map(len, lines)) < 100
    assert (ROOT / "docs/step_sizes.png").stat().st_size < 100_000


def test_guides_have_titles():
    for page in (ROOT / "docs" / "guide").glob("*.md"):
        assert page.read_text(encoding="utf-8").startswith("# "), page


def test_versions_agree():
    from adagrad_diff import __version__

    released = re.search(
        r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert released[1] == __version__
    assert f"version: {__version__}\ndate-released: {released[2]}" in citation


def test_pythons_agree():
    """Each Python in the classifiers has passed the tests that CONTRIBUTING.md names, and the pages speak of these."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    minors = [
        int(line.rpartition(".")[2]) for line in project["classifiers"] if ":: Python :: 3." in line
    ]
    first, last = minors[0], minors[-1]
    assert minors == [*range(first, last + 1)]
    assert project["requires-python"] == f">=3.{first}"
    for page in ("README.md", "docs/guide/install.md"):
        assert f"3.{first} to 3.{last}" in (ROOT / page).read_text(encoding="utf-8"), page
    for page in ("docs/policy.md", "CHANGELOG.md"):
        assert f"and 3.{last}" in (ROOT / page).read_text(encoding="utf-8"), page


def test_pages_install_from_the_copy():
    """It is not on PyPI: `pip install 'adagrad-diff[dask]'` finds nothing there."""
    pages = [*PAGES, *(ROOT / "docs" / "reference").glob("*.rst")]
    assert [
        page.name
        for page in pages
        if "pip install 'adagrad-diff" in page.read_text(encoding="utf-8")
    ] == []
