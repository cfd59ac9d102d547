"""Parameter groups, wrong options, schedulers, closures, gradient scalers and autograd."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.optim.lr_scheduler import CyclicLR, OneCycleLR, ReduceLROnPlateau, StepLR  # noqa: E402
from torch.optim.swa_utils import SWALR  # noqa: E402
from torch_twin import BOTH, KINDS, MODES, parameter, states_of  # noqa: E402

from adagrad_diff import L1 as CoreL1  # noqa: E402
from adagrad_diff.torch import (  # noqa: E402
    L1,
    AdaGradDiff,
    AdamDiff,
    AdamWDiff,
    Box,
    ElasticNet,
    GroupL2,
    NonNegative,
    Ridge,
)
from pairwise import pairwise  # noqa: E402
from prox_twin import Twin  # noqa: E402

pytestmark = pytest.mark.peer


def descend(x, optimizer, steps=1):
    for _ in range(steps):
        optimizer.zero_grad()
        (x**4).sum().backward()
        optimizer.step()


@pairwise(kind=[AdaGradDiff, AdamDiff], mode=MODES)
def test_every_option_per_group(kind, mode):
    groups = [
        {"lr": 0.3, "weight_decay": 0.1},
        {"lr": 0.1, "penalty": L1(0.05), "maximize": True},
        {"penalty": Box(-0.1, 0.1), "eps": 0.5},
        {"blocks": "tensor"},
        {"penalty": NonNegative(), "lr": 0.2},
    ]
    params = [parameter() for _ in groups]
    pairs = list(zip(params, groups, strict=True))
    together = kind([{"params": [p], **group} for p, group in pairs[:-1]], lr=0.02, **MODES[mode])
    together.add_param_group({"params": params[-1], **groups[-1]})
    twins = [
        Twin(p.detach().numpy(), kind is AdamDiff, **{"lr": 0.02, **group}) for p, group in pairs
    ]
    for n in range(5):
        for p, twin in zip(params, twins, strict=True):
            p.grad = p.detach() * (1 + n % 2) + 0.5
            twin.step(p.grad.numpy())
        together.step()
    for p, twin in zip(params, twins, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), twin.x, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------- wrong options

BAD = [
    ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
    ({"lr": math.nan}, ValueError, "Invalid learning rate: nan"),
    ({"lr": torch.ones(2)}, ValueError, "Tensor lr must be 1-element"),
    (
        {"lr": "0.1"},
        TypeError,
        "'lr' parameter .* a number, or a tensor with one element. Got '0.1'",
    ),
    ({"lr": None}, TypeError, "'lr' parameter"),
    ({"lr": True}, TypeError, "'lr' parameter"),
    ({"eps": 0.0}, ValueError, "Invalid epsilon value: 0.0"),
    ({"eps": math.nan}, ValueError, "Invalid epsilon value: nan"),
    ({"eps": None}, TypeError, "'eps' parameter of .* must be a number. Got None"),
    ({"weight_decay": -0.1}, ValueError, "Invalid weight_decay value: -0.1"),
    ({"weight_decay": math.inf}, ValueError, "Invalid weight_decay value: inf"),
    ({"blocks": "column"}, ValueError, "'blocks' parameter .* one of 'element', 'row', 'tensor'"),
    ({"penalty": 0.1}, TypeError, "must be a penalty of adagrad_diff.torch"),
    ({"penalty": CoreL1(0.1)}, TypeError, "must be a penalty of adagrad_diff.torch"),
    ({"accumulator_dtype": torch.int32}, ValueError, "must be a floating-point dtype"),
    ({"prox_unseen": "no"}, ValueError, "'prox_unseen' parameter of .* must be True or False"),
    ({"skip_nonfinite": 1}, ValueError, "'skip_nonfinite' parameter of .* must be True or False"),
    ({"fused": True, "foreach": True}, RuntimeError, "`fused` and `foreach` cannot be `True`"),
    ({"fused": True, "differentiable": True}, RuntimeError, "`fused` does not support"),
    ({"reduce": "svrg"}, ValueError, "'reduce' parameter .* must be one of None, 'storm'"),
    ({"reduce_rate": 0.0}, ValueError, "'reduce_rate' parameter"),
    ({"reduce": "storm", "differentiable": True}, RuntimeError, "cannot be differentiable"),
]
ADAGRAD_ONLY = [
    ({"lr_decay": -1.0}, ValueError, "Invalid lr_decay value: -1.0"),
    ({"initial_accumulator_value": -1.0}, ValueError, "Invalid initial_accumulator_value value"),
]
ADAM_ONLY = [
    (
        {"max_move": 0.0},
        ValueError,
        "'max_move' parameter of .* must be a positive number. Got 0.0",
    ),
    ({"max_move": "far"}, TypeError, "'max_move' parameter of .* must be a number. Got 'far'"),
    ({"betas": 0.9}, ValueError, "'betas' parameter of .* must be two numbers. Got 0.9"),
    ({"betas": (0.9,)}, ValueError, "'betas' parameter of .* must be two numbers"),
    ({"betas": (1.0, 0.9)}, ValueError, "Invalid beta parameter at index 0: 1.0"),
    ({"betas": (0.9, -0.1)}, ValueError, "Invalid beta parameter at index 1: -0.1"),
    ({"amsgrad": True}, ValueError, "has no 'amsgrad': .* Leave it out"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_options_are_errors(kind):
    for options, error, message in BAD + (ADAGRAD_ONLY if kind is AdaGradDiff else ADAM_ONLY):
        with pytest.raises(error, match=message):
            kind([parameter()], **options)
        optimizer = kind([parameter()])
        with pytest.raises(error, match=message):
            optimizer.add_param_group({"params": [parameter()], **options})
        assert len(optimizer.param_groups) == 1
    with pytest.raises(TypeError, match="unexpected keyword argument 'momentum'"):
        kind([parameter()], momentum=0.1)


def test_flags_of_adam():
    group = AdamDiff([{"params": [parameter()], "amsgrad": False}], amsgrad=False).param_groups[0]
    assert "amsgrad" not in group
    with pytest.raises(
        ValueError, match=r"The weight decay of AdamWDiff is decoupled\. Use AdamDiff"
    ):
        AdamWDiff([parameter()], decoupled_weight_decay=False)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_on_the_meta_device(kind):
    ghost = torch.ones(3, device="meta", requires_grad=True)
    optimizer = kind([parameter()], fused=True)
    with pytest.raises(RuntimeError, match="meta device with fused=True: they have no memory"):
        optimizer.add_param_group({"params": [ghost]})
    assert len(optimizer.param_groups) == 1
    ghost.grad = torch.ones(3, device="meta")
    kind([ghost]).step()


# ---------------------------------------------------------------- schedulers and closures

SCHEDULES = {
    "StepLR": lambda o, cycle: StepLR(o, 2, 0.5),
    "plateau": lambda o, cycle: ReduceLROnPlateau(o, patience=0, threshold=10.0),
    "averaging": lambda o, cycle: SWALR(o, swa_lr=0.02, anneal_epochs=3),
    "triangles": lambda o, cycle: CyclicLR(o, 0.01, 0.2, step_size_up=2, cycle_momentum=cycle),
    "one cycle": lambda o, cycle: OneCycleLR(o, 0.3, total_steps=9, cycle_momentum=cycle),
}


@pairwise(kind=KINDS, mode=MODES, shape=[None, (), (1, 1)], words=SCHEDULES)
def test_steps_are_made_with_the_rates_of_a_scheduler(kind, mode, shape, words):
    """A scheduler also moves betas[0], and a run resumes from the state dicts of both."""
    x, y = parameter(), parameter()
    lr = 0.1 if shape is None else torch.full(shape, 0.1, dtype=torch.float64)
    make = lambda rate: kind([x], lr=rate, penalty=L1(0.01), **MODES[mode])
    ours, by_hand = make(lr), kind([y], lr=0.1, penalty=L1(0.01), **MODES["single"])
    cycle, rates = kind is not AdaGradDiff, set()
    schedule = SCHEDULES[words](ours, cycle)
    for n in range(8):
        group = ours.param_groups[0]
        rates.add(round(float(group["lr"]), 6))
        by_hand.param_groups[0]["lr"] = float(group["lr"])
        if cycle:
            by_hand.param_groups[0]["betas"] = group["betas"]
        for p, optimizer in ((x, ours), (y, by_hand)):
            descend(p, optimizer)
        torch.testing.assert_close(x, y, rtol=1e-7, atol=0)
        schedule.step(*([1.0] if words == "plateau" else []))
        if n == 4:
            kind([dict(group)])  # A group may be used again with the keys that schedulers write.
            saved, plan = ours.state_dict(), schedule.state_dict()
            ours = make(0.7)
            schedule = SCHEDULES[words](ours, cycle)
            schedule.load_state_dict(plan)
            ours.load_state_dict(saved)
    assert len(rates) > 2
    if shape is not None and words != "averaging":
        assert ours.param_groups[0]["lr"].shape == shape


def test_closures_and_hooks():
    x, y, seen = parameter(), parameter(), []
    optimizer, plain = AdaGradDiff([x], lr=0.1), AdaGradDiff([y], lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: seen.append(x[0].item()))
    optimizer.register_step_post_hook(lambda *_: seen.append(x[0].item()))

    def closure():
        assert torch.is_grad_enabled()
        optimizer.zero_grad()
        loss = (x**4).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 98.0
    descend(y, plain)
    assert torch.equal(x, y)
    assert plain.step() is None
    assert seen == pytest.approx([1.0, 0.9])


# ---------------------------------------------------------------- mixed precision and autograd


@pairwise(kind=KINDS, mode=MODES, maximize=BOTH, donate_grads=BOTH, clip=BOTH)
def test_a_gradient_scaler_leaves_unscaling_and_skipping_to_the_step(
    kind, mode, maximize, donate_grads, clip
):
    """The run is that without a scaler, but for one step that is skipped as a whole."""
    options = {"lr": 0.1, "penalty": L1(0.01), "maximize": maximize, "donate_grads": donate_grads}
    (x, y), z = (parameter(), parameter((1.0,))), parameter()
    optimizer, plain = kind([x, y], **options, **MODES[mode]), kind([z], **options, **MODES[mode])
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=2)
    for n in range(5):
        optimizer.zero_grad()
        scaler.scale((x**4).sum() / 100 + y.sum() * (math.inf if n == 2 else 1.0)).backward()
        if clip:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([x], 1e9)
        before, scaled = y.item(), x.grad.clone()
        scaler.step(optimizer)
        assert donate_grads or clip or torch.equal(x.grad, scaled)  # The gradient is not changed.
        scaler.update()
        assert (y.item() == before) == (n == 2)
        if n != 2:
            plain.zero_grad()
            ((z**4).sum() / 100).backward()
            plain.step()
        torch.testing.assert_close(x, z, rtol=1e-12, atol=0)
    torch.testing.assert_close(states_of(optimizer)[0], states_of(plain)[0], rtol=1e-12, atol=0)


@pairwise(
    kind=KINDS,
    blocks=["element", "row"],
    penalty=[None, L1(0.1), Ridge(0.5), ElasticNet(0.1, 0.2), Box(-0.5, 5.0), GroupL2(0.3)],
    weight_decay=[0.0, 0.1],
)
def test_the_derivative_of_two_steps(kind, blocks, penalty, weight_decay):
    """It is taken in the start, both gradients and the learning rate."""
    options = {"penalty": penalty, "blocks": blocks, "weight_decay": weight_decay, "eps": 0.1}

    def two_steps(start, g1, g2, lr):
        optimizer = kind([torch.zeros_like(start)], lr=lr, differentiable=True, **options)
        x = start.clone()
        optimizer.param_groups[0]["params"] = [x]
        for g in (g1, g2):
            x.grad = g
            optimizer.step()
        return x

    rng = np.random.default_rng(0)
    inputs = [torch.tensor(rng.uniform(0.5, 2.0, (1, 2)), requires_grad=True) for _ in range(3)]
    lr = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(two_steps, (*inputs, lr))


@pairwise(kind=KINDS, mode=MODES)
def test_a_backward_pass_through_a_changed_weight_raises(kind, mode):
    x = parameter()
    loss = (x**2).sum()
    x.grad = torch.ones_like(x)
    kind([x], lr=0.1, **MODES[mode]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_step_in_inference_mode():
    with torch.inference_mode():
        x = torch.ones(3)
        x.grad = torch.ones(3)
        AdaGradDiff([x], lr=0.25).step()
    assert x.tolist() == [0.75] * 3
