"""Proximal operators of tensors compared with the formulas that all integrations share."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import KINDS, MODES, PENALTIES  # noqa: E402

import adagrad_diff.torch as package  # noqa: E402
from adagrad_diff.penalties import six_penalties as six  # noqa: E402
from adagrad_diff.torch import (  # noqa: E402
    L1,
    AdamDiff,
    Box,
    GroupL2,
    NonNegative,
    Penalty,
    _step,
)
from pairwise import pairwise  # noqa: E402
from prox_six import ARGUMENTS, BAD_IN_A_DOOR, STRENGTHS, make, points, prox, value  # noqa: E402

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_prox_and_value_are_those_of_the_formulas(name, strength):
    penalty, stated = make(package, name, strength), make(six, name, strength)
    for size, z, step in points():
        x = torch.tensor(z)
        penalty.prox_(x, torch.tensor(step))
        np.testing.assert_allclose(x.numpy(), prox(stated, z, step), rtol=1e-13, atol=1e-14 * size)
        np.testing.assert_allclose(penalty.value(x).item(), value(stated, x.numpy()), rtol=1e-13)
        assert penalty.value(x.float()).dtype == torch.float32


@pairwise(
    kind=KINDS,
    mode=MODES,
    penalty=[None, *PENALTIES],
    dtype=[torch.float32, torch.bfloat16],
    tensor=[False, True],
)
def test_a_zero_learning_rate_changes_no_feasible_parameter(kind, mode, penalty, dtype, tensor):
    x = torch.tensor([[0.0, 0.25], [0.375, 1e-30]], dtype=dtype, requires_grad=True)
    before = x.detach().clone()
    optimizer = kind([x], lr=torch.tensor(0.0) if tensor else 0.0, penalty=penalty, **MODES[mode])
    for g in (0.0, 1.0):
        x.grad = torch.full_like(x, g)
        optimizer.step()
        assert torch.equal(x, before)


def test_values_outside_the_domain():
    x = torch.tensor([-1.0, 2.0])
    assert NonNegative().value(x) == Box(0.0, 1.0).value(x) == math.inf
    assert Box(-1.0, 2.0).value(x) == 0


@pytest.mark.parametrize(("name", "arguments", "message"), BAD_IN_A_DOOR, ids=str)
def test_bad_penalties(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(package, name)(**arguments)


def test_nan_in_a_group_is_not_hidden():
    x = GroupL2(1.0).prox(torch.tensor([[1.0, math.nan], [3.0, 4.0]]), torch.ones(()))
    assert x.isnan().all(1).tolist() == [True, False]


# ---------------------------------------------------------------- entries without a gradient


@pairwise(kind=KINDS, mode=MODES, penalty=[L1(1e-5), *PENALTIES], blocks=["element", "row"])
def test_a_penalty_leaves_rows_alone_that_no_batch_contained(kind, mode, penalty, blocks):
    """With prox_unseen, the long step lr / eps wipes them."""
    torch.manual_seed(0)
    table = torch.nn.Embedding(50, 8)
    options = {"weight_decay": 0.0, "penalty": penalty, "blocks": blocks, **MODES[mode]}
    optimizer = kind(table.parameters(), lr=0.1, **options)
    before = table.weight.detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        table(torch.tensor([3, 7])).square().sum().backward()
        optimizer.step()
    assert (table.weight != before).any(1).nonzero().flatten().tolist() == [3, 7]
    if penalty == L1(1e-5):
        optimizer.param_groups[0]["prox_unseen"] = True
        optimizer.step()
        assert table.weight.any(1).nonzero().flatten().tolist() == [3, 7]


@pytest.mark.parametrize("mode", MODES)
def test_bounds_hold_after_the_squares_have_decayed_to_zero(mode):
    x = torch.ones(1, requires_grad=True)
    optimizer = AdamDiff([x], lr=0.1, betas=(0.9, 0.5), penalty=NonNegative(), **MODES[mode])
    for _ in range(200):
        x.grad = torch.ones(1)
        optimizer.step()
    assert optimizer.state[x]["total"].item() == 0
    assert x.item() == 0


# ---------------------------------------------------------------- penalties of users


@dataclass(frozen=True)
class SpikeAtOne(Penalty):
    """lam sum |x_i - 1|."""

    lam: float
    separable = True

    def value(self, x):
        return self.lam * (x - 1).abs().sum()

    def prox(self, z, step):
        return 1 + L1(self.lam).prox(z - 1, step)


class OneTensor(SpikeAtOne):
    """The same, but not in pieces."""

    separable = False


@pairwise(kind=KINDS, mode=MODES, penalty=[SpikeAtOne(0.3), OneTensor(0.3)])
def test_a_penalty_of_a_user(monkeypatch, kind, mode, penalty):
    """Its step is that of L1 around another point, and a state dict describes it."""
    monkeypatch.setitem(_step.BATCH_ENTRIES, "cpu", 5)
    x, y = (torch.linspace(-1, 3, 12, requires_grad=True) for _ in range(2))
    ours = kind([x], lr=0.1, penalty=penalty, weight_decay=0.0, **MODES[mode])
    shifted = kind([y], lr=0.1, penalty=L1(0.3), weight_decay=0.0)
    with torch.no_grad():
        y -= 1
    for _ in range(20):
        x.grad, y.grad = torch.sin(x.detach() - 1), torch.sin(y.detach())
        ours.step()
        shifted.step()
    torch.testing.assert_close(x.detach(), y.detach() + 1)
    assert (x == 1).any()
    other = kind([x])
    other.load_state_dict(ours.state_dict())
    assert other.param_groups[0]["penalty"] == penalty
