"""Steps through torch.compile."""

import shutil

import pytest

torch = pytest.importorskip("torch")

from torch_twin import parameter, states_of  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, _foreach, _ways  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

COMPILER = shutil.which("g++") or shutil.which("clang++")


@pytest.mark.parametrize(
    ("backend", "kind", "options"),
    [
        ("aot_eager", AdaGradDiff, {"foreach": True, "penalty": L1(0.01)}),
        ("aot_eager", AdaGradDiff, {}),
        ("aot_eager", AdamDiff, {"foreach": True, "capturable": True}),
        pytest.param(
            "inductor", AdaGradDiff, {"foreach": True}, marks=[] if COMPILER else pytest.mark.skip
        ),
    ],
)
def test_a_compiled_step(backend, kind, options):
    torch._dynamo.reset()
    results = []
    for wrap in (lambda f: f, lambda f: torch.compile(f, backend=backend)):
        x = parameter()
        optimizer = kind([x], lr=0.1, **options)
        step = wrap(optimizer.step)
        for n in range(3):
            x.grad = x.detach() ** 3 + n
            step()
        results.append((x, states_of(optimizer)))
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)


@pytest.fixture
def accelerator(monkeypatch):
    """Let fused=True do on the CPU what it does on an accelerator."""
    torch._dynamo.reset()
    _foreach.compiled.cache_clear()
    monkeypatch.setattr(_ways, "FUSED", _foreach.Compiled(cpu=True))
    yield monkeypatch
    _foreach.compiled.cache_clear()


@pytest.mark.parametrize("kind", [AdaGradDiff, AdamDiff])
def test_the_fused_step_of_accelerators(kind, accelerator):
    """The numbers are the same, and the fifth step compiles nothing."""
    compilations = []

    def backend(graph, inputs):
        compilations.append(1)
        return graph.forward

    compile_ = torch.compile
    accelerator.setattr(torch, "compile", lambda function: compile_(function, backend=backend))
    results = []
    for options in ({"fused": True}, {"fused": False, "foreach": False}):
        x, y = parameter(), parameter((1.0,))
        optimizer = kind([x, y], lr=0.1, penalty=L1(0.01), **options)
        for n in range(6):
            x.grad, y.grad = x.detach() ** 3 + n, y.detach() + n
            optimizer.step()
            if n == 3:
                early = len(compilations)
        results.append((x, y, states_of(optimizer)))
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)
    assert 1 <= len(compilations) == early <= 3


def test_a_machine_without_a_compiler(accelerator):
    def fails(*args, **options):
        raise ImportError("no compiler")

    accelerator.setattr(torch, "compile", lambda function: fails)
    x = parameter()
    optimizer = AdaGradDiff([x], lr=0.1, fused=True)
    x.grad = torch.ones_like(x)
    with pytest.warns(RuntimeWarning, match="The step is not compiled, but works: ImportError"):
        optimizer.step()
    optimizer.step()
    torch.testing.assert_close(x.detach(), parameter().detach() - 0.2, rtol=1e-6, atol=0)
