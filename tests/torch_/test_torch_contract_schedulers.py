"""What torch asks of schedulers (`test_lrscheduler`), asked of them with our optimizers.

Which rates a scheduler computes is torch's affair: they must be those that it computes for an optimizer of torch. Ours is that
every step is made with them.
"""

import copy
import gc
import io
import math
import pickle
import types
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

from contract_parts import advance  # noqa: E402
from contract_schedules import CYCLES, SINGLE, STEPS, TOGETHER, Slower, half  # noqa: E402
from torch.optim import lr_scheduler as lr  # noqa: E402
from torch.optim.swa_utils import SWALR, AveragedModel  # noqa: E402

from adagrad_diff.torch import AdaGradDiff, AdamDiff, AdamWDiff  # noqa: E402

pytestmark = pytest.mark.peer

KINDS = [AdaGradDiff, AdamDiff, AdamWDiff]
METRICS = [10 - 0.0165 * n for n in range(12)] + [3.0 + n for n in range(STEPS)]
every_kind = pytest.mark.parametrize("kind", KINDS)


def two_groups(kind, rates=(0.05, 0.5), tensor=True, **options):
    """An optimizer with two groups, of which the second has its rate in a tensor."""
    x, y = (torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0])) for _ in range(2))
    second = torch.tensor(rates[1]) if tensor else rates[1]
    return kind([{"params": [x]}, {"params": [y], "lr": second}], lr=rates[0], **options)


def step(optimizer, n=0):
    """A step whose gradients depend on where we are."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = p.detach() + math.sin(n)
    optimizer.step()


def listed(schedulers):
    return schedulers if isinstance(schedulers, list) else [schedulers]


def rates(optimizer):
    return [float(group["lr"]) for group in optimizer.param_groups]


def points(optimizer):
    return [p.detach().clone() for group in optimizer.param_groups for p in group["params"]]


def theirs(kind):
    """The optimizer of torch that a scheduler cannot tell from ours."""
    return torch.optim.Adagrad if kind is AdaGradDiff else torch.optim.Adam


def schedules(kind):
    """Every schedule by its words; a momentum moves as well where there is one."""
    cycle = kind is not AdaGradDiff
    cycles = {words: lambda o, make=make: make(o, cycle_momentum=cycle) for words, make in CYCLES.items()}
    return {**SINGLE, **TOGETHER, **cycles}


@every_kind
def test_rates_are_those_of_torch_and_every_step_is_made_with_them(kind):
    for words, make in schedules(kind).items():
        ours, by_hand, twin = two_groups(kind), two_groups(kind, tensor=False), two_groups(theirs(kind))
        schedulers, others, seen = listed(make(ours)), listed(make(twin)), set()
        for n in range(STEPS):
            seen.add(rates(ours)[0])
            assert rates(ours) == pytest.approx(rates(twin), rel=1e-6, abs=1e-12), (words, n)
            for group, other, hand in zip(ours.param_groups, twin.param_groups, by_hand.param_groups, strict=True):
                hand["lr"] = float(group["lr"])
                if "betas" in group:
                    assert group["betas"] == pytest.approx(other["betas"])
                    hand["betas"] = group["betas"]
            for optimizer in (ours, by_hand, twin):
                step(optimizer, n)
            assert [type(group["lr"]) for group in ours.param_groups] == [float, torch.Tensor] or "averaging" in words
            advance(schedulers, METRICS[n])
            advance(others, METRICS[n])
            last = [s.get_last_lr() for s in schedulers]
            assert [float(r) for r in last[-1]] == pytest.approx(rates(ours), rel=1e-6, abs=1e-12)
        torch.testing.assert_close(points(ours), points(by_hand), msg=words)
        assert len(seen) > 1, f"{words} never moves the rate: this compares constants"


@every_kind
def test_momentum_is_cycled_where_there_is_one(kind):
    for make in CYCLES.values():
        optimizer = two_groups(kind)
        if kind is AdaGradDiff:
            with pytest.raises(ValueError, match="momentum"):
                make(optimizer, cycle_momentum=True)
            scheduler = make(optimizer, cycle_momentum=False)
        else:
            scheduler = make(optimizer, cycle_momentum=True, base_momentum=0.7, max_momentum=0.9)
        betas = []
        for n in range(STEPS):
            betas.append(optimizer.param_groups[0].get("betas", (0.0,))[0])
            step(optimizer, n)
            scheduler.step()
        if kind is not AdaGradDiff:
            assert 0.69 <= min(betas) < 0.8
            assert max(betas) == pytest.approx(0.9)


@every_kind
def test_one_after_the_other_by_hand(kind):
    """Annealing first, cycles then: the rate stays below the bound of the cycles."""
    optimizer = two_groups(kind, (0.5, 0.5), tensor=False)
    anneal = lr.CosineAnnealingLR(optimizer, T_max=20, eta_min=0.1)
    cycle = lr.CyclicLR(optimizer, 0.1, 0.3, step_size_up=1, step_size_down=3, cycle_momentum=kind is not AdaGradDiff)
    for n in range(40):
        step(optimizer, n)
        (anneal if n <= 20 else cycle).step()
    assert max(rates(optimizer)) <= 0.3


# ---------------------------------------------------------------- epochs given by their number


@every_kind
def test_epochs_by_number(kind):
    """The formula for an epoch, the same as so many steps; it warns, for torch wants to do without it."""
    for words in ("step", "milestones", "constant", "linear", "exponential", "polynomial", "cosine"):
        one, other = two_groups(kind), two_groups(kind)
        steps, jumps = SINGLE[words](one), SINGLE[words](other)
        for n in range(1, STEPS):
            for optimizer in (one, other):
                step(optimizer, n)
            steps.step()
            with pytest.warns(UserWarning, match="epoch parameter"):
                jumps.step(n)
            assert rates(other) == pytest.approx(rates(one), rel=1e-4, abs=1e-7), (words, n)
        seen = []
        for _ in range(3):
            with pytest.warns(UserWarning, match="epoch parameter"):
                jumps.step(2)
            seen.append(rates(other))
        assert seen[0] == seen[1] == seen[2], words


@every_kind
def test_restarts_at_any_epoch(kind):
    optimizer = two_groups(kind)
    scheduler = lr.CosineAnnealingWarmRestarts(optimizer, T_0=10, T_mult=2)
    for epoch, now, period in ((0, 0, 10), (0.5, 0.5, 10), (9.9, 9.9, 10), (25, 15, 20), (32, 2, 40), (80, 10, 80), (3, 3, 10)):
        step(optimizer)
        scheduler.step(epoch)
        factor = (1 + math.cos(math.pi * now / period)) / 2
        assert rates(optimizer) == pytest.approx([0.05 * factor, 0.5 * factor], abs=1e-6)
    scheduler = lr.CosineAnnealingWarmRestarts(two_groups(kind), T_0=4)
    for epoch in (7, 8, 9):
        step(scheduler.optimizer)
        scheduler.T_cur = epoch
        scheduler.step()
        assert scheduler.T_cur == (epoch + 1) % 4


# ---------------------------------------------------------------- saved and loaded


@every_kind
def test_a_resumed_schedule_is_the_same_one(kind):
    """Optimizer and scheduler through a file after half of the way, bit by bit; `weights_only` but for a user's objects."""
    for words, make in schedules(kind).items():
        optimizer = two_groups(kind)
        schedulers = listed(make(optimizer))
        for n in range(STEPS // 2):
            step(optimizer, n)
            advance(schedulers, METRICS[n])
        file = io.BytesIO()
        torch.save([points(optimizer), optimizer.state_dict(), [s.state_dict() for s in schedulers]], file)
        file.seek(0)
        start, state, plans = torch.load(file, weights_only=words != "functions of groups")
        resumed = two_groups(kind)
        others = listed(make(resumed))
        for p, x in zip((p for group in resumed.param_groups for p in group["params"]), start, strict=True):
            p.data.copy_(x)
        resumed.load_state_dict(state)
        for scheduler, plan in zip(others, plans, strict=True):
            scheduler.load_state_dict(plan)
        for n in range(STEPS // 2, STEPS):
            for o, s in ((optimizer, schedulers), (resumed, others)):
                step(o, n)
                advance(s, METRICS[n])
            assert rates(resumed) == rates(optimizer), (words, n)
            torch.testing.assert_close(points(resumed), points(optimizer), rtol=0, atol=0, msg=words)


@every_kind
def test_a_scheduler_becomes_the_one_it_loads(kind):
    other = {
        lr.StepLR: {"step_size": 1, "gamma": 0.5},
        lr.MultiStepLR: {"milestones": [1, 4, 6], "gamma": 0.01},
        lr.ExponentialLR: {"gamma": 0.01},
        lr.CosineAnnealingLR: {"T_max": 5, "eta_min": 0.5},
        lr.CosineAnnealingWarmRestarts: {"T_0": 100},
        lr.ReduceLROnPlateau: {"mode": "max", "factor": 0.5, "patience": 10},
        SWALR: {"anneal_epochs": 10, "anneal_strategy": "linear", "swa_lr": 5.0},
    }
    for words in ("step", "milestones", "exponential", "cosine", "warm restarts", "plateau", "averaging"):
        optimizer = two_groups(kind, tensor=False)
        scheduler = SINGLE[words](optimizer)
        for n in range(10):
            step(optimizer, n)
            advance([scheduler], METRICS[n])
        twin = type(scheduler)(two_groups(kind, tensor=False), **other[type(scheduler)])
        twin.load_state_dict(scheduler.state_dict())
        assert {name: value for name, value in vars(twin).items() if name != "optimizer"} == {
            name: value for name, value in vars(scheduler).items() if name != "optimizer"
        }, words
        assert twin.get_last_lr() == scheduler.get_last_lr()


@every_kind
def test_functions_of_schedulers_are_not_saved_but_objects_are(kind):
    optimizer = two_groups(kind)
    assert lr.LambdaLR(optimizer, half).state_dict()["lr_lambdas"] == [None, None]
    saved = lr.LambdaLR(optimizer, Slower(0.3)).state_dict()
    scheduler = lr.LambdaLR(optimizer, Slower(0.9))
    scheduler.load_state_dict(saved)
    assert [f.factor for f in scheduler.lr_lambdas] == [0.3, 0.3]
    for scale in (None, half, Slower(0.5)):
        cycle = lr.CyclicLR(optimizer, 1, 5, cycle_momentum=False, scale_fn=scale, mode="triangular2")
        state = cycle.state_dict()
        pickle.dumps(state)
        assert state["_scale_fn_custom"] == (vars(scale) if isinstance(scale, Slower) else None)
        restored = lr.CyclicLR(optimizer, 1, 5, cycle_momentum=False, scale_fn=scale)
        restored.load_state_dict(state)
        assert restored.mode == "triangular2"
        assert restored._scale_fn_custom is scale
    one = lr.OneCycleLR(optimizer, 0.5, total_steps=10, cycle_momentum=False)
    state = one.state_dict()
    del state["_anneal_func_type"]  # as older versions of torch had it
    one.load_state_dict({**state, "anneal_func": lr.OneCycleLR._annealing_cos})
    step(optimizer)
    one.step()


@every_kind
def test_a_new_scheduler_takes_over(kind):
    """The state of the optimizer alone, and a scheduler that is told where it is: groups carry what schedulers wrote there."""
    cycle = kind is not AdaGradDiff
    makers = {words: make for words, make in SINGLE.items() if "plateau" not in words}
    makers |= {words: lambda o, make=make, **k: make(o, cycle_momentum=cycle, **k) for words, make in CYCLES.items()}
    for words, make in makers.items():
        optimizer, second = two_groups(kind), two_groups(kind)
        scheduler = make(optimizer)
        step(optimizer)
        scheduler.step()
        second.load_state_dict(optimizer.state_dict())
        assert set(second.param_groups[0]) == set(optimizer.param_groups[0])
        successor = make(second, last_epoch=0)
        assert [float(r) for r in successor.get_last_lr()] == pytest.approx(rates(optimizer)), words
        assert rates(kind([dict(group) for group in second.param_groups])) == rates(second)  # an optimizer made of these groups
    optimizer = two_groups(kind)
    step(optimizer)
    lr.ReduceLROnPlateau(optimizer).step(1)
    second = two_groups(kind)
    second.load_state_dict(optimizer.state_dict())
    assert lr.ReduceLROnPlateau(second).get_last_lr() == rates(optimizer)
    with pytest.raises(KeyError, match="initial_lr"):
        lr.StepLR(two_groups(kind), step_size=3, last_epoch=1)
    started = lr.CosineAnnealingLR(optimizer, T_max=5, eta_min=0.1)
    step(optimizer)
    started.step()
    continued = lr.CosineAnnealingLR(optimizer, T_max=5, eta_min=0.1, last_epoch=0)
    assert [float(r) for r in continued.get_last_lr()] == pytest.approx([float(r) for r in started.get_last_lr()], rel=1e-4)


@every_kind
def test_a_tensor_that_changes_later_is_not_the_first_rate(kind):
    """Schedulers remember where they began by a copy, not by the tensor that the optimizer steps with."""
    cycle = kind is not AdaGradDiff
    makers = [
        SINGLE[w] for w in ("step", "milestones", "constant", "linear", "exponential", "polynomial", "cosine", "function")
    ]
    makers += [lambda o: lr.CyclicLR(o, 0.1, 0.2, cycle_momentum=cycle), lambda o: SWALR(o, swa_lr=0.05)]
    makers += [lambda o: lr.OneCycleLR(o, 0.2, total_steps=10, cycle_momentum=cycle)]
    for make in makers:
        rate = torch.tensor(0.1)
        optimizer = kind([torch.nn.Parameter(torch.ones(1))], lr=rate)
        scheduler = make(optimizer)
        group = optimizer.param_groups[0]
        first = copy.deepcopy({name: value for name, value in group.items() if name in ("initial_lr", "max_lr", "swa_lr")})
        for _ in range(2):
            step(optimizer)
            scheduler.step()
            rate.mul_(0.1)
            assert {name: group[name] for name in first} == first
            assert scheduler.base_lrs[0] is not group["lr"]


# ---------------------------------------------------------------- groups that join, warnings, references


@every_kind
def test_a_group_that_joins_has_its_rate_reduced_as_well(kind):
    optimizer = two_groups(kind, (0.5, 0.5))
    scheduler = lr.ReduceLROnPlateau(optimizer, patience=2, min_lr=[1e-5, 1e-4])
    for n in range(6):
        if n == 2:
            optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(2, 3))], "lr": 0.05})
            scheduler.min_lrs.append(1e-6)
        step(optimizer)
        scheduler.step(1.0)
    assert rates(optimizer) == pytest.approx([0.05, 0.05, 0.005])
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(2, 3))], "lr": 0.05})
    scheduler.num_bad_epochs = 2
    with pytest.raises(RuntimeError, match="number of param groups"):
        scheduler.step(1.0)


@every_kind
def test_the_order_of_steps_is_watched(kind):
    """Schedulers know whether the optimizer has stepped before them, also if somebody has wrapped its step."""

    def wrap(optimizer):
        before = optimizer.step
        optimizer.step = types.MethodType(lambda self, *args, **options: before(*args, **options), optimizer)

    for resumed in (False, True):
        for wrapped in (False, True):
            optimizer = two_groups(kind)
            for group in optimizer.param_groups if resumed else []:
                group["initial_lr"] = 0.01
            scheduler = lr.StepLR(optimizer, 3, last_epoch=10 if resumed else -1)
            if wrapped:
                wrap(optimizer)
            with pytest.warns(UserWarning, match="has been overridden" if wrapped else "how-to-adjust-learning-rate"):
                scheduler.step()
    optimizer = two_groups(kind)
    scheduler = lr.StepLR(optimizer, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            optimizer.step()
            scheduler.step()


@every_kind
def test_nothing_refers_to_itself(kind):
    """Optimizer and scheduler are gone when the last name of them is, without the garbage collector."""

    def run(options):
        optimizer = two_groups(kind, **options)
        makers = [lr.LambdaLR(optimizer, half), lr.CyclicLR(optimizer, 1, 5, cycle_momentum=False)]
        step(optimizer)
        for scheduler in makers:
            scheduler.step()
        optimizer.load_state_dict(optimizer.state_dict())
        return [weakref.ref(optimizer), *map(weakref.ref, makers)]

    for options in ({"foreach": False, "fused": False}, {"foreach": True}, {"fused": True}, {"capturable": True}):
        gc.disable()
        try:
            assert [ref() for ref in run(options)] == [None] * 3, options
        finally:
            gc.enable()


@every_kind
def test_what_schedulers_refuse(kind):
    class Wrong(lr.LRScheduler):
        def get_lr(self, step):
            return [0.1 * step]

    optimizer = two_groups(kind)
    cases = [
        (Wrong, {}, TypeError),
        (lr.LinearLR, {"start_factor": 0.0}, ValueError),
        (lr.LinearLR, {"start_factor": 1.1}, ValueError),
        (lr.CyclicLR, {"base_lr": 0, "max_lr": 0, "mode": "CATS"}, ValueError),
        (lr.OneCycleLR, {"max_lr": 1e-3, "total_steps": 10, "anneal_strategy": "CATS"}, ValueError),
        (lr.OneCycleLR, {"max_lr": 1e-3, "total_steps": 10, "pct_start": 1.1}, ValueError),
        (lr.OneCycleLR, {"max_lr": 1e-3}, ValueError),
        (lr.MultiplicativeLR, {"lr_lambda": 0.95}, TypeError),
        (lr.MultiplicativeLR, {"lr_lambda": [0.95, 0.95]}, TypeError),
        (SWALR, {"swa_lr": 1.0, "anneal_strategy": "exponential"}, ValueError),
        (SWALR, {"swa_lr": 1.0, "anneal_epochs": -1}, ValueError),
        (SWALR, {"swa_lr": 1.0, "anneal_epochs": 1.7}, ValueError),
        (SWALR, {"swa_lr": [1.0, 0.1, 0.01]}, ValueError),
    ]
    for scheduler, options, error in cases:
        with pytest.raises(error):
            scheduler(optimizer, **options)
    step(optimizer)


@every_kind
def test_averaged_models(kind):
    """Stochastic weight averaging: the mean of the points after the change to a constant rate."""
    model = torch.nn.Linear(3, 1)
    optimizer = kind(model.parameters(), lr=0.1)
    averaged, scheduler, seen = AveragedModel(model), SWALR(optimizer, swa_lr=0.05, anneal_epochs=2), []
    for n in range(8):
        step(optimizer, n)
        if n >= 4:
            averaged.update_parameters(model)
            scheduler.step()
            seen.append(model.weight.detach().clone())
    torch.testing.assert_close(averaged.module.weight.detach(), torch.stack(seen).mean(0))
    assert rates(optimizer) == [0.05]
