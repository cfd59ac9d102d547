"""Steps through torch.compile: fused=True, and the compiled step method."""

import math
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.utils import counters  # noqa: E402
from torch_twin import KINDS, parameter, run, states_of  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, AdamWDiff, _optimizer, _step  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

NO_COMPILER = """
import torch
from adagrad_diff.torch import AdaGradDiff
x = torch.ones(3, requires_grad=True)
x.grad = torch.ones(3)
optimizer = AdaGradDiff([x], fused=True)
try:
    optimizer.step()
except RuntimeError as error:
    print(error, x.tolist(), dict(optimizer.state))
"""


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    _step._compiled.cache_clear()
    counters.clear()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (AdaGradDiff, {}),
        (AdaGradDiff, {"lr": torch.tensor(0.1), "blocks": "row", "maximize": True}),
        (AdaGradDiff, {"foreach": False, "lr_decay": 0.1}),
        (AdamDiff, {"capturable": True, "penalty": L1(0.01)}),
        (AdamWDiff, {"fused": True}),
    ],
)
def test_a_compiled_step_is_one_graph(kind, options):
    """The step of PyTorch's Adam has the same single break, which is around the step."""
    results = []
    for wrap in (lambda f: f, lambda f: torch.compile(f, backend="aot_eager")):
        x, y = parameter(), parameter((1.0,))
        optimizer = kind([{"params": [x]}, {"params": [y], "weight_decay": 0.1}], **options)
        step = wrap(optimizer.step)
        for n in range(3):
            x.grad, y.grad = x.detach() ** 3 + n, y.detach() + n
            step()
        results.append((x, y, states_of(optimizer)))
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-8)
    assert counters["stats"]["unique_graphs"] == 1
    assert sum(counters["graph_break"].values()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_fused_step(kind, monkeypatch):
    """Later steps, other sizes and other numbers compile nothing anew."""
    monkeypatch.setattr(_optimizer, "COMPILED_ENTRIES", 20)
    results = []
    for options in ({"foreach": False}, {"fused": True}):
        shapes = [(20, 2), (50,), (7, 3, 2), (31,), (60,), (2, 3, 4, 5), (3,)]
        params = [torch.sin(torch.arange(math.prod(s)).float()).reshape(s) for s in shapes]
        params[5] = params[5].contiguous(memory_format=torch.channels_last)
        params = [p.requires_grad_() for p in params]
        groups = [
            {"params": params[:5], "penalty": L1(0.01), "weight_decay": 0.1},
            {"params": params[5:], "penalty": L1(0.02), "weight_decay": 0.2, "lr": 0.2},
        ]
        optimizer = kind(groups, lr=0.1, **options)
        for n in range(4):
            run(params, optimizer, 1, first=n)
            optimizer.param_groups[0]["lr"] *= 0.9
            if n == 0:
                early = counters["stats"]["unique_graphs"]
        results.append((params, states_of(optimizer)))
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)
    assert 1 <= early == counters["stats"]["unique_graphs"] <= 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64])
def test_a_fused_step_of_other_types(dtype, monkeypatch):
    monkeypatch.setattr(_optimizer, "COMPILED_ENTRIES", 1)
    results = []
    for options in ({"foreach": False}, {"fused": True}):
        x = torch.linspace(-1, 1, 40).to(dtype).requires_grad_()
        optimizer = AdaGradDiff([x], lr=torch.tensor(0.1), **options)
        run([x], optimizer, 3)
        results.append((x, states_of(optimizer)))
    torch.testing.assert_close(*results, rtol=1e-2, atol=1e-5)


def test_a_machine_without_a_compiler():
    """The step is an error that says so, and nothing has changed."""
    command = [sys.executable, "-c", NO_COMPILER]
    environment = {"PATH": "", "CXX": "missing-compiler", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    expected = (
        "fused=True compiles the step of AdaGradDiff, and finds no C++ compiler. Install one, such "
        "as g++, or leave fused out. [1.0, 1.0, 1.0] {}"
    )
    assert expected in done.stdout
