"""Training with transformers, accelerate and Lightning, and with the parameter groups of timm."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")

EXAMPLES = Path(__file__).parents[2] / "examples" / "trainers"
NEEDED = {  # packages beside PyTorch
    "transformers_trainer": ("transformers", "accelerate"),
    "accelerate_loop": ("accelerate",),
    "lightning_module": ("lightning",),
    "timm_groups": (),
}

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(NEEDED)


@pytest.mark.parametrize("name", NEEDED)
def test_training(name, capsys):
    for package in NEEDED[name]:
        pytest.importorskip(package)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert "The loss fell from" in capsys.readouterr().out
