"""What the documents show runs, snippets and examples, and the files they name exist."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SNIPPETS = [snippet for page in PAGES for snippet in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)]
ELSEWHERE = {"torch_distributed"}  # examples that are run by tests of their own
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem not in ELSEWHERE)


NEEDY = ("sweep", "sensitivity", "torch", "optax", "sklearn", "dask")  # words of snippets that need other libraries


@pytest.mark.parametrize(
    "snippet",
    [pytest.param(s, marks=pytest.mark.peer) if any(word in s for word in NEEDY) else s for s in SNIPPETS],
    ids=range(len(SNIPPETS)),
)
def test_snippets_run(snippet):
    exec(compile(snippet, "a snippet", "exec"), {"__name__": "__main__"})


@pytest.mark.peer
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", [path.name])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def test_contributing_names_files_that_exist():
    named = re.findall(
        r"`((?:src|tests|docs|benchmarks|tools|\.ci)/[\w./]*|[A-Z]+\.md)`", (ROOT / "CONTRIBUTING.md").read_text()
    )
    assert len(named) > 25  # it has looked
    for name in named:
        assert (ROOT / name).exists(), f"CONTRIBUTING.md names {name}, which is not there: say where it is now"
