"""Parameter groups, wrong options, schedulers, closures, gradient scalers and autograd."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.optim.lr_scheduler import OneCycleLR, StepLR  # noqa: E402
from torch.optim.swa_utils import SWALR  # noqa: E402
from torch_twin import BOTH, KINDS, MODES, parameter, run, same  # noqa: E402

from adagrad_diff import L1 as CoreL1  # noqa: E402
from adagrad_diff.torch import (  # noqa: E402
    L1,
    AdaGradDiff,
    AdamDiff,
    AdamWDiff,
    Box,
    ElasticNet,
    GroupL2,
    Ridge,
)
from pairwise import pairwise  # noqa: E402

pytestmark = pytest.mark.peer


def descend(x, optimizer):
    optimizer.zero_grad()
    (x**4).sum().backward()
    optimizer.step()


# ---------------------------------------------------------------- groups


@pairwise(kind=[AdaGradDiff, AdamDiff], mode=MODES)
def test_every_option_per_group(kind, mode):
    groups = [
        {"lr": 0.3, "weight_decay": 0.1},
        {"lr": 0.1, "penalty": L1(0.05), "maximize": True},
        {"penalty": Box(-0.1, 0.1), "eps": 0.5},
        {"blocks": "tensor"},
    ]
    params = [parameter() for _ in groups]
    pairs = [{"params": [p], **group} for p, group in zip(params, groups, strict=True)]
    together = kind(pairs[:-1], lr=0.02, **MODES[mode])
    together.add_param_group(pairs[-1])
    alone = [parameter() for _ in groups]
    others = [kind([p], **{"lr": 0.02, **group}) for p, group in zip(alone, groups, strict=True)]
    run(params, together, 4)
    for p, other in zip(alone, others, strict=True):
        run([p], other, 4)
    torch.testing.assert_close(params[0], alone[0])


# Keys that timm, MAE and BEiT (lr_scale, group_name), SAM wrappers (rho) and training scripts use.
FOREIGN = {
    "lr_scale": 0.5,
    "group_name": "layer_3_no_decay",
    "layer_decay": 0.75,
    "rho": 0.05,
    "initial_lr": 0.1,
    "weight_decay_end": 0.1,
    "no_weight_decay": True,
    "wd_mult": 0.0,
    7: "not a string",
}


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_other_libraries_are_kept(kind):
    (one, two), (first, second) = ((parameter(), parameter((4.0,))) for _ in range(2))
    optimizer = kind([{"params": [one], "lr": 0.1, **FOREIGN}])
    optimizer.add_param_group({"params": [two], **FOREIGN})
    plain = kind([{"params": [first], "lr": 0.1}, {"params": [second]}])
    run([one, two], optimizer, 3)
    run([first, second], plain, 3)
    same([one, two], [first, second])
    plain.load_state_dict(optimizer.state_dict())
    for group in optimizer.param_groups + plain.param_groups:
        assert {name: group[name] for name in FOREIGN} == FOREIGN


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("weigth_decay", "weight_decay"),
        ("weightdecay", "weight_decay"),
        ("LR", "lr"),
        ("pentaly", "penalty"),
        ("block", "blocks"),
        ("maximise", "maximize"),
    ],
)
def test_a_misspelled_option_warns(name, meant):
    for kind in KINDS:
        message = (
            f"^A parameter group has the key '{name}', which is not an option of {kind.__name__}. "
            f"Did you mean '{meant}'"
        )
        with pytest.warns(UserWarning, match=message) as found:
            optimizer = kind([{"params": [parameter()], name: 0.1}])
        assert found[0].filename == __file__
        with pytest.warns(UserWarning, match=message):
            optimizer.add_param_group({"params": [parameter()], name: 0.1})
        assert [group[name] for group in optimizer.param_groups] == [0.1, 0.1]


# ---------------------------------------------------------------- wrong options

NUMBER = "must be a finite number. Got"
BAD = [
    ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
    ({"lr": math.nan}, ValueError, f"'lr' parameter of .* {NUMBER} nan"),
    ({"lr": torch.ones(2)}, ValueError, "Tensor lr must be 1-element"),
    ({"lr": "0.1"}, ValueError, f"'lr' parameter of .* {NUMBER} '0.1'"),
    ({"lr": True}, ValueError, "'lr' parameter"),
    ({"eps": -1e-9}, ValueError, "Invalid epsilon value: -1e-09"),
    ({"eps": None}, ValueError, f"'eps' parameter of .* {NUMBER} None"),
    ({"weight_decay": -0.1}, ValueError, "Invalid weight_decay value: -0.1"),
    ({"blocks": "column"}, ValueError, "'blocks' parameter .* one of 'element', 'row', 'tensor'"),
    ({"penalty": CoreL1(0.1)}, TypeError, "must be a penalty of adagrad_diff.torch"),
    ({"accumulator_dtype": torch.int32}, ValueError, "must be a floating-point dtype"),
    ({"prox_unseen": "no"}, ValueError, "'prox_unseen' parameter of .* must be True or False"),
    ({"fused": True, "foreach": True}, RuntimeError, "`fused` and `foreach` cannot be `True`"),
    ({"fused": True, "differentiable": True}, RuntimeError, "`fused` does not support"),
]
ADAGRAD_ONLY = [
    ({"lr_decay": -1.0}, ValueError, "Invalid lr_decay value: -1.0"),
    ({"initial_accumulator_value": -1.0}, ValueError, "Invalid initial_accumulator_value value"),
]
ADAM_ONLY = [
    ({"max_move": 0.0}, ValueError, "'max_move' parameter of .* must be a positive number"),
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
    with pytest.raises(ValueError, match=r"AdamWDiff is decoupled\. Use AdamDiff"):
        AdamWDiff([parameter()], decoupled_weight_decay=False)


# ---------------------------------------------------------------- schedulers and closures

SCHEDULES = {
    "StepLR": lambda o, cycle: StepLR(o, 2, 0.5),
    "averaging": lambda o, cycle: SWALR(o, swa_lr=0.02, anneal_epochs=3),
    "one cycle": lambda o, cycle: OneCycleLR(o, 0.3, total_steps=9, cycle_momentum=cycle),
}


@pairwise(kind=KINDS, mode=MODES, shape=[None, (), (1, 1)], words=SCHEDULES)
def test_steps_are_made_with_the_rates_of_a_scheduler(kind, mode, shape, words):
    """A scheduler also moves betas[0], and a run resumes from the state dicts of both."""
    x, y = parameter(), parameter()
    lr = 0.1 if shape is None else torch.full(shape, 0.1, dtype=torch.float64)
    make = lambda rate: kind([x], lr=rate, penalty=L1(0.01), **MODES[mode])
    ours, by_hand = make(lr), kind([y], lr=0.1, penalty=L1(0.01))
    cycle, rates = kind is not AdaGradDiff, set()
    schedule = SCHEDULES[words](ours, cycle)
    for n in range(8):
        group = ours.param_groups[0]
        changes = {"lr": float(group["lr"])} | ({"betas": group["betas"]} if cycle else {})
        by_hand.param_groups[0].update(changes)
        rates.add(round(changes["lr"], 6))
        descend(x, ours)
        descend(y, by_hand)
        torch.testing.assert_close(x, y, rtol=1e-7, atol=0)
        schedule.step()
        if n == 4:
            saved, plan = ours.state_dict(), schedule.state_dict()
            ours = make(0.7)
            schedule = SCHEDULES[words](ours, cycle)
            schedule.load_state_dict(plan)
            ours.load_state_dict(saved)
    assert len(rates) > 2
    if shape is not None and words != "averaging":
        assert ours.param_groups[0]["lr"].shape == shape


def test_a_closure():
    x, y = parameter(), parameter()
    optimizer, plain = AdaGradDiff([x], lr=0.1), AdaGradDiff([y], lr=0.1)

    def closure():
        assert torch.is_grad_enabled()
        optimizer.zero_grad()
        loss = (x**4).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 98.0
    descend(y, plain)
    assert torch.equal(x, y)


# ---------------------------------------------------------------- mixed precision and autograd


@pairwise(kind=KINDS, maximize=BOTH)
def test_a_gradient_scaler_skips_steps(kind, maximize):
    """The run is that without a scaler, but for one step that is skipped as a whole."""
    options = {"lr": 0.1, "penalty": L1(0.01), "maximize": maximize}
    (x, y), z = (parameter(), parameter((1.0,))), parameter()
    optimizer, plain = kind([x, y], **options), kind([z], **options)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    for n in range(4):
        optimizer.zero_grad()
        scaler.scale((x**4).sum() + y.sum() * (math.inf if n == 2 else 1.0)).backward()
        before = y.item()
        scaler.step(optimizer)
        scaler.update()
        assert (y.item() == before) == (n == 2)
        if n != 2:
            descend(z, plain)
        torch.testing.assert_close(x, z, rtol=1e-12, atol=0)


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


def test_a_step_in_inference_mode():
    with torch.inference_mode():
        x = torch.ones(3)
        x.grad = torch.ones(3)
        AdaGradDiff([x], lr=0.25).step()
    assert x.tolist() == [0.75] * 3
