"""What the documents show runs: README snippets and examples."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(s, marks=pytest.mark.peer) if any(word in s for word in ("sweep", "torch", "optax", "sklearn")) else s
        for s in SNIPPETS
    ],  # which need other libraries
    ids=range(len(SNIPPETS)),
)
def test_readme_snippets_run(snippet):
    exec(compile(snippet, "README.md", "exec"), {"__name__": "__main__"})


@pytest.mark.peer
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
