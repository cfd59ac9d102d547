"""Nothing is swallowed: NaN, changed weights in a graph, loss scales, state dicts of others."""

import math
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch_twin import ALL, MODES, PENALTIES, states_of  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, AdamWDiff, GroupL2  # noqa: E402

pytestmark = pytest.mark.peer

NAN, INF = math.nan, math.inf


# ---------------------------------------------------------------- NaN


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_a_nan_gradient_gives_a_nan_weight(kind, mode):
    """In the first step or later, with every penalty; a group becomes NaN as a whole, everything else goes on."""
    for penalty in (None, *PENALTIES):
        for first in (0, 2):
            for bad in (NAN, INF, -INF):
                x = torch.ones(2, 3, requires_grad=True)
                optimizer = kind([x], lr=0.01, penalty=penalty, weight_decay=0.0, **MODES[mode])
                for n in range(4):
                    x.grad = torch.full((2, 3), 0.1 + n)
                    if n == first:
                        x.grad[0, 1] = bad
                    optimizer.step()
                broken = x.isnan()
                grouped = isinstance(penalty, GroupL2)
                assert broken[0, 1], (penalty, first, bad)
                assert broken[0].all() == grouped
                assert broken[1].all() == (grouped and penalty.over == "tensor")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_steps_with_gradients_that_are_not_finite_are_skipped_if_asked(kind, mode):
    """The whole of them, in all groups, state and all: as if the step had not been asked for."""
    params, others = ([torch.ones(3, requires_grad=True) for _ in range(2)] for _ in range(2))
    groups = [{"params": params[:1], "skip_nonfinite": True}, {"params": params[1:], "lr": 0.5}]
    optimizer, plain = (
        kind(groups, lr=0.1, penalty=L1(0.01), **MODES[mode]),
        kind([{"params": others[:1]}, {"params": others[1:], "lr": 0.5}], lr=0.1, penalty=L1(0.01), **MODES[mode]),
    )
    for n in range(5):
        for p, q in zip(params, others, strict=True):
            p.grad = torch.tensor([1.0, -2.0, 0.5]) + n
            q.grad = p.grad.clone()
        if n in (1, 3):
            params[0].grad[n % 3] = NAN if n == 1 else INF
        else:
            plain.step()
        optimizer.step()
        assert all(torch.equal(p, q) for p, q in zip(params, others, strict=True))
    torch.testing.assert_close(states_of(optimizer), states_of(plain), rtol=0, atol=0)
    params[1].grad[0] = NAN  # this group did not ask
    optimizer.step()
    assert params[1].isnan().tolist() == [True, False, False]


def test_sparse_gradients_are_looked_at_too():
    x = torch.ones(4, 2, requires_grad=True)
    optimizer = AdaGradDiff([x], lr=0.1, skip_nonfinite=True)
    x.grad = torch.sparse_coo_tensor([[1]], [[NAN, 1.0]], (4, 2), check_invariants=True)
    optimizer.step()
    assert torch.equal(x, torch.ones(4, 2))
    assert not optimizer.state


# ---------------------------------------------------------------- autograd and loss scales


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_a_backward_through_a_changed_weight_raises(kind, mode):
    x = torch.ones(3, requires_grad=True)
    optimizer = kind([x], lr=0.1, **MODES[mode])
    loss = (x**2).sum()
    version = x._version
    x.grad = torch.ones(3)
    optimizer.step()
    assert x._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_in_inference_mode():
    with torch.inference_mode():
        x = torch.ones(3)
        x.grad = torch.ones(3)
        AdaGradDiff([x], lr=0.25).step()
    assert x.tolist() == [0.75] * 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_a_grad_scaler_leaves_it_to_the_step(kind, mode, monkeypatch):
    """It hands over the scale and what it has found, unscales nothing itself, and the run is that without a scaler."""
    seen = []
    original = kind.step

    def spied(self, closure=None):
        seen.append((float(self.grad_scale), float(self.found_inf)))
        return original(self, closure)

    x, y = (torch.tensor([1.0, -2.0, 3.0], requires_grad=True) for _ in range(2))
    optimizer, plain = (kind([p], lr=0.1, penalty=L1(0.01), **MODES[mode]) for p in (x, y))
    monkeypatch.setattr(optimizer, "step", spied.__get__(optimizer))
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=2)
    for n in range(5):
        for p, one in ((x, optimizer), (y, plain)):
            one.zero_grad()
            loss = (p**4).sum() * (INF if n == 2 and p is x else 1.0)
            (scaler.scale(loss) if p is x else loss).backward()
        scaled = x.grad.clone()
        scaler.step(optimizer)
        assert torch.equal(x.grad, scaled) or n == 2  # gradients are read, not written
        scaler.update()
        if n != 2:
            plain.step()
        torch.testing.assert_close(x, y, rtol=1e-6, atol=0)
    assert [found for _, found in seen] == [0, 0, 1, 0, 0]
    assert [scale for scale, _ in seen] == [16, 16, 32, 16, 16]


@pytest.mark.parametrize("kind", ALL)
def test_a_grad_scaler_whose_gradients_are_unscaled_for_clipping(kind):
    x, y = (torch.tensor([1.0, -2.0, 3.0], requires_grad=True) for _ in range(2))
    optimizer, plain = kind([x], lr=0.1), kind([y], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    for _ in range(3):
        optimizer.zero_grad()
        plain.zero_grad()
        scaler.scale((x**4).sum()).backward()
        (y**4).sum().backward()
        scaler.unscale_(optimizer)
        for p in (x, y):
            torch.nn.utils.clip_grad_norm_([p], 1.0)
        scaler.step(optimizer)
        scaler.update()
        plain.step()
        torch.testing.assert_close(x, y, rtol=1e-6, atol=0)


# ---------------------------------------------------------------- state dicts


def used(kind, steps=1, **options):
    x = torch.ones(3, requires_grad=True)
    optimizer = kind([x], lr=0.1, **options)
    for _ in range(steps):
        x.grad = torch.ones(3)
        optimizer.step()
    return optimizer


OTHERS = [torch.optim.Adagrad, torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop]


@pytest.mark.parametrize("steps", [0, 1], ids=["fresh", "used"])
@pytest.mark.parametrize("kind", ALL)
def test_a_state_dict_of_another_optimizer_is_refused(kind, steps):
    strangers = [*OTHERS, *([AdaGradDiff] if kind is not AdaGradDiff else [AdamDiff, AdamWDiff])]
    for other in strangers:
        optimizer = used(kind, 2)
        before = [{k: v.clone() for k, v in state.items()} for state in states_of(optimizer)]
        with pytest.raises(ValueError, match=f"This state_dict is not one of {kind.__name__}: .* Load it into the optimizer"):
            optimizer.load_state_dict(used(other, steps).state_dict())
        torch.testing.assert_close(states_of(optimizer), before)  # and nothing has changed


def test_what_differs_is_named():
    foreign = used(torch.optim.Adagrad).state_dict()
    foreign["param_groups"] = used(AdaGradDiff).state_dict()["param_groups"]
    with pytest.raises(ValueError, match="a parameter's state holds 'step', 'sum' where AdaGradDiff has 'prev', 'total'"):
        used(AdaGradDiff).load_state_dict(foreign)


def test_the_two_adams_exchange_state_dicts():
    """They have the same state; which decay it is stands in the groups, as for PyTorch's."""
    optimizer = used(AdamDiff)
    optimizer.load_state_dict(used(AdamWDiff).state_dict())
    assert optimizer.param_groups[0]["decoupled_weight_decay"]
    used(AdamWDiff).load_state_dict(used(AdamDiff).state_dict())


def test_a_state_dict_from_before_there_were_some_options():
    saved = used(AdamDiff, 3).state_dict()
    for name in ("weight_decay", "decoupled_weight_decay", "max_move", "prox_unseen", "skip_nonfinite"):
        del saved["param_groups"][0][name]
    saved["state"][0]["step"] = 3  # and when a count was a plain number
    optimizer, same = used(AdamDiff, weight_decay=0.0), used(AdamDiff, 3)
    optimizer.load_state_dict(saved)
    for one in (optimizer, same):
        one.param_groups[0]["params"][0].data.fill_(1.0)
        one.step()
    torch.testing.assert_close(*(one.param_groups[0]["params"][0] for one in (optimizer, same)))


@pytest.mark.parametrize("kind", ALL)
def test_whatever_else_stands_in_the_state(kind):
    """`optimizer.state["epoch"] = 1`, as some scripts have it."""
    optimizer = used(kind)
    optimizer.state["epoch"] = 1
    optimizer.state["seen"] = torch.tensor([2.0])
    saved = optimizer.state_dict()
    optimizer.state["seen"].add_(1)
    assert saved["state"]["epoch"] == 1
    assert saved["state"]["seen"].item() == 2  # a copy, as everything
    other = used(kind)
    other.load_state_dict(saved)
    assert other.state["epoch"] == 1
    other.step()


# ---------------------------------------------------------------- an interpreter without the compiler


def test_without_numba_the_plain_step_is_made():
    code = """
import torch
from adagrad_diff.torch import AdaGradDiff, AdamDiff, L1
for kind in (AdaGradDiff, AdamDiff):
    for options in ({}, {"fused": True}):
        x = torch.ones(3, requires_grad=True)
        x.grad = torch.ones(3)
        kind([x], lr=0.25, penalty=L1(1.0), **options).step()
        assert x.tolist() == [0.5] * 3, x
"""
    environment = {"NUMBA_DISABLE_JIT": "1"}

    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
