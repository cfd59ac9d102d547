"""The torch optimizers in the company of everything else: groups, schedulers, scalers, hooks, autograd, the compiler."""

import importlib.util
import math
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.optim.lr_scheduler import LambdaLR, StepLR  # noqa: E402
from torch_twin import MODES, OPTIMIZERS, states_of  # noqa: E402

from adagrad_diff import L1 as CoreL1  # noqa: E402
from adagrad_diff.torch import (  # noqa: E402
    L1,
    AdaGradDiff,
    AdamDiff,
    Box,
    ElasticNet,
    GroupL2,
    NonNegative,
    Ridge,
    _foreach,
    _ways,
)
from prox_twin import Twin  # noqa: E402

pytestmark = pytest.mark.peer


def parameter(values=(1.0, -2.0, 3.0), dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def descend(x, optimizer, steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        (x**4).sum().backward()
        optimizer.step()


# ---------------------------------------------------------------- groups


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_every_option_per_group(kind, mode):
    groups = [
        {"lr": 0.3},
        {"lr": 0.1, "penalty": L1(0.05), "maximize": True},
        {"penalty": Box(-0.1, 0.1), "eps": 0.5},
        {"blocks": "tensor"},
        {"penalty": NonNegative(), "lr": 0.2},
    ]
    params = [parameter() for _ in groups]
    together = kind([{"params": [p], **group} for p, group in zip(params[:-1], groups, strict=False)], lr=0.02, **MODES[mode])
    together.add_param_group({"params": params[-1], **groups[-1]})
    twins = [
        Twin(p.detach().numpy(), kind is AdamDiff, **{"lr": 0.02, **group}) for p, group in zip(params, groups, strict=True)
    ]
    for n in range(5):
        for p, twin in zip(params, twins, strict=True):
            p.grad = p.detach() * (1 + n % 2) + 0.5
            twin.step(p.grad.numpy())
        together.step()
    for p, twin in zip(params, twins, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), twin.x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_named_parameters(kind):
    model = torch.nn.Linear(2, 1)
    optimizer = kind(model.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


BAD = [
    ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
    ({"lr": math.nan}, ValueError, "Invalid learning rate: nan"),
    ({"lr": torch.ones(2)}, ValueError, "Tensor lr must be 1-element"),
    ({"eps": -1e-8}, ValueError, "Invalid epsilon value: -1e-08"),
    ({"eps": 0.0}, ValueError, "Invalid epsilon value: 0.0"),
    ({"eps": math.nan}, ValueError, "Invalid epsilon value: nan"),
    ({"blocks": "column"}, ValueError, "'blocks' parameter .* must be one of 'element', 'row', 'tensor'"),
    ({"penalty": 0.1}, TypeError, "must be a penalty of adagrad_diff.torch"),
    ({"penalty": CoreL1(0.1)}, TypeError, "must be a penalty of adagrad_diff.torch"),
    ({"accumulator_dtype": torch.int32}, ValueError, "must be a floating-point dtype"),
    ({"fused": True, "foreach": True}, RuntimeError, "`fused` and `foreach` cannot be `True` together"),
    ({"fused": True, "differentiable": True}, RuntimeError, "`fused` does not support `differentiable`"),
]


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize(("options", "error", "message"), BAD, ids=str)
def test_bad_options(kind, options, error, message):
    with pytest.raises(error, match=message):
        kind([parameter()], **options)
    with pytest.raises(error, match=message):
        kind([{"params": [parameter()], **options}])
    optimizer = kind([parameter()])
    with pytest.raises(error, match=message):
        optimizer.add_param_group({"params": [parameter()], **options})
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize(("betas", "k"), [((1.0, 0.9), 0), ((0.9, -0.1), 1)])
def test_bad_betas(betas, k):
    with pytest.raises(ValueError, match=f"Invalid beta parameter at index {k}: {betas[k]}"):
        AdamDiff([parameter()], betas=betas)
    with pytest.raises(ValueError, match=f"Invalid beta parameter at index {k}: {betas[k]}"):
        AdamDiff([{"params": [parameter()], "betas": betas}])


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_bad_parameters(kind):
    x = parameter()
    with pytest.raises(ValueError, match="empty parameter list"):
        kind([])
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        kind([{"params": [x]}, {"params": [x]}])
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        kind([x * 2])
    with pytest.raises(TypeError, match="params argument given to the optimizer"):
        kind(x)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        kind([{"params": [x, x]}])


# ---------------------------------------------------------------- schedulers, closures, hooks


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("in_tensor", [False, True])
@pytest.mark.parametrize("scheduler", ["StepLR", "LambdaLR"])
def test_schedulers(kind, mode, in_tensor, scheduler):
    x, y = parameter(), parameter()
    lr = torch.tensor(0.1, dtype=torch.float64) if in_tensor else 0.1
    scheduled, by_hand = kind([x], lr=lr, **MODES[mode]), kind([y], lr=0.1, **MODES[mode])
    schedule = StepLR(scheduled, 2, 0.5) if scheduler == "StepLR" else LambdaLR(scheduled, lambda n: 0.5 ** (n // 2))
    for n in range(6):
        by_hand.param_groups[0]["lr"] = 0.1 * 0.5 ** (n // 2)
        descend(x, scheduled, 1)
        descend(y, by_hand, 1)
        schedule.step()
        torch.testing.assert_close(x, y, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_closure(kind):
    x, y = parameter(), parameter()
    optimizer, plain = kind([x], lr=0.1), kind([y], lr=0.1)

    def closure():
        assert torch.is_grad_enabled()
        optimizer.zero_grad()
        loss = (x**4).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 98.0
    descend(y, plain, 1)
    assert torch.equal(x, y)
    assert plain.step() is None


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_hooks_around_a_step(kind):
    x, seen = parameter(), []
    optimizer = kind([x], lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: seen.append(x.detach().clone()))
    optimizer.register_step_post_hook(lambda *_: seen.append(x.detach().clone()))
    x.grad = torch.ones_like(x)
    optimizer.step()
    torch.testing.assert_close(seen[0] - 0.1, seen[1], rtol=1e-6, atol=0)


# ---------------------------------------------------------------- mixed precision


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_grad_scaler_skips_the_whole_step(kind, mode):
    x, y, z = parameter(), parameter((1.0,)), parameter()
    optimizer, plain = kind([x, y], lr=0.1, penalty=L1(0.01), **MODES[mode]), kind([z], lr=0.1, penalty=L1(0.01), **MODES[mode])
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    for n in range(4):
        optimizer.zero_grad()
        scaler.scale((x**4).sum() + y.sum() * (math.inf if n == 2 else 1.0)).backward()
        before = [t.clone() for state in states_of(optimizer) for t in (*state.values(), x, y)]
        scaler.step(optimizer)
        scaler.update()
        if n == 2:
            after = [t for state in states_of(optimizer) for t in (*state.values(), x, y)]
            assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
        else:
            descend(z, plain, 1)
        torch.testing.assert_close(x, z, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("donate_grads", [False, True])
def test_found_inf_and_grad_scale(kind, mode, maximize, donate_grads):
    """The protocol by which a scaler leaves it to the optimizer to unscale or to skip."""
    x, y = parameter(), parameter()
    options = {"lr": 0.1, "maximize": maximize, "donate_grads": donate_grads, **MODES[mode]}
    scaled, plain = kind([x], **options), kind([y], **options)
    scaled.grad_scale = torch.tensor(8.0)
    for n in range(5):
        g = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64) * (1 + n)
        scaled.found_inf = torch.tensor(float(n == 2))
        x.grad, y.grad = 8 * g, g.clone()
        if n == 2:
            x.grad[1] = math.inf
        else:
            plain.step()
        scaled.step()
        torch.testing.assert_close(x, y, rtol=1e-12, atol=0)
    torch.testing.assert_close(states_of(scaled), states_of(plain), rtol=1e-12, atol=0)


# ---------------------------------------------------------------- autograd and the compiler


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("blocks", ["element", "row"])
@pytest.mark.parametrize("penalty", [None, L1(0.1), Ridge(0.5), ElasticNet(0.1, 0.2), Box(-0.5, 5.0), GroupL2(0.3)], ids=repr)
def test_differentiable(kind, blocks, penalty):
    """The derivative of two steps with respect to the start, both gradients and the learning rate."""

    def two_steps(start, g1, g2, lr):
        x = torch.nn.Parameter(torch.zeros_like(start))
        optimizer = kind([x], lr=lr, penalty=penalty, blocks=blocks, eps=0.1, differentiable=True)
        x = start.clone()
        optimizer.param_groups[0]["params"] = [x]
        for g in (g1, g2):
            x.grad = g
            optimizer.step()
        return x

    rng = np.random.default_rng(0)
    inputs = [torch.tensor(rng.uniform(0.5, 2.0, (2, 3)), requires_grad=True) for _ in range(3)]
    lr = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(two_steps, (*inputs, lr))


COMPILER = pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler")


def compiled_is_plain(backend, kind, options):
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


@pytest.mark.filterwarnings("ignore")  # of the compiler's own
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (AdaGradDiff, {"foreach": True, "penalty": L1(0.01)}),
        (AdaGradDiff, {}),
        (AdamDiff, {"foreach": True, "capturable": True}),
    ],
)
def test_compiled_step(kind, options):
    compiled_is_plain("aot_eager", kind, options)


@COMPILER
@pytest.mark.filterwarnings("ignore")  # of the compiler's own
def test_compiled_step_in_machine_code(monkeypatch):
    from torch._inductor import config

    monkeypatch.setattr(config, "compile_threads", 1)  # no processes that import torch once more
    compiled_is_plain("inductor", AdaGradDiff, {"foreach": True})


@pytest.mark.filterwarnings("ignore")  # of the compiler's own
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_compiled_way(kind, monkeypatch):
    """What `fused=True` does on accelerators, here on the CPU: the same numbers, and after a second look no new compilation."""
    torch._dynamo.reset()
    compilations = []

    def backend(graph, inputs):
        compilations.append(1)
        return graph.forward

    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function: compile_(function, backend=backend))
    _foreach.compiled.cache_clear()
    monkeypatch.setattr(_ways, "FUSED", _foreach.Compiled(cpu=True))
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
    _foreach.compiled.cache_clear()


def test_a_machine_that_cannot_compile(monkeypatch):
    def fails(*args, **options):
        raise ImportError("no compiler")

    monkeypatch.setattr(torch, "compile", lambda function: fails)
    _foreach.compiled.cache_clear()
    monkeypatch.setattr(_ways, "FUSED", _foreach.Compiled(cpu=True))
    x = parameter()
    optimizer = AdaGradDiff([x], lr=0.1, fused=True)
    x.grad = torch.ones_like(x)
    with pytest.warns(RuntimeWarning, match="The step is not compiled, but works: ImportError"):
        optimizer.step()
    optimizer.step()
    torch.testing.assert_close(x.detach(), parameter().detach() - 0.2, rtol=1e-6, atol=0)
    _foreach.compiled.cache_clear()


@pytest.mark.skipif(importlib.util.find_spec("expecttest") is None, reason="torch's own test utilities need expecttest")
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_inputs_of_torchs_own_tests(kind):
    from torch.testing._internal.common_optimizers import optim_db

    theirs = next(
        info for info in optim_db if info.optim_cls is (torch.optim.Adagrad if kind is AdaGradDiff else torch.optim.Adam)
    )
    known = kind([parameter()]).defaults
    for case in theirs.optim_inputs_func(device="cpu"):
        options = {name: value for name, value in case.kwargs.items() if name in known}
        x = parameter() if case.params is None else None
        if x is not None:
            descend(x, kind([x], **options), 3)
            assert torch.isfinite(x).all(), case.desc
