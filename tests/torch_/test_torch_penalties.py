"""Proximal operators of tensors compared with the formulas that all integrations share."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import KINDS, MODES, PENALTIES  # noqa: E402

import adagrad_diff.torch as package  # noqa: E402
from adagrad_diff.penalties import six_penalties as six  # noqa: E402
from adagrad_diff.torch import Box, GroupL2, NonNegative  # noqa: E402
from pairwise import pairwise  # noqa: E402
from prox_six import ARGUMENTS, BAD_IN_A_DOOR, SHAPE, STRENGTHS, make, points, prox, value  # noqa: E402

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


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_a_step_for_each_block_is_broadcast(penalty):
    rng = np.random.default_rng(1)
    for shape in ((6, 1), (1, 7), (1, 1)):
        z, step = torch.tensor(rng.standard_normal(SHAPE)), torch.tensor(rng.uniform(0.1, 2, shape))
        x, y = z.clone(), z.clone()
        penalty.prox_(x, step)
        penalty.prox_(y, step.expand(SHAPE).clone())
        torch.testing.assert_close(x, y, rtol=1e-14, atol=0)


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
    x = torch.tensor([[1.0, math.nan], [3.0, 4.0]])
    GroupL2(1.0).prox_(x, torch.ones(()))
    assert x.isnan().all(1).tolist() == [True, False]
