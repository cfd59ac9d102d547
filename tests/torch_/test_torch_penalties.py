"""Proximal steps of tensors against the statement that all doors share."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import MODES, OPTIMIZERS, PENALTIES  # noqa: E402

import adagrad_diff.torch as door  # noqa: E402
from adagrad_diff.common import six_penalties as six  # noqa: E402
from adagrad_diff.torch import Box, GroupL2, NonNegative, Penalty  # noqa: E402
from adagrad_diff.torch.penalties import from_config  # noqa: E402
from prox_six import ARGUMENTS, BAD_IN_A_DOOR, SHAPE, STRENGTHS, make, points, prox, value  # noqa: E402

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_prox_and_value_are_those_of_the_statement(name, strength):
    penalty, stated = make(door, name, strength), make(six, name, strength)
    for size, z, step in points():
        x = torch.tensor(z)
        penalty.prox_(x, torch.tensor(step))
        np.testing.assert_allclose(x.numpy(), prox(stated, z, step), rtol=1e-13, atol=1e-14 * size)
        np.testing.assert_allclose(penalty.value(x).item(), value(stated, x.numpy()), rtol=1e-13)
        assert penalty.value(x.float()).dtype == torch.float32


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("shape", [(6, 1), (1, 7), (1, 1)])
def test_one_step_for_a_block(penalty, shape):
    """A step that is the same over a block may come in the shape of the blocks."""
    rng = np.random.default_rng(1)
    z, step = torch.tensor(rng.standard_normal(SHAPE)), torch.tensor(rng.uniform(0.1, 2, shape))
    x, y = z.clone(), z.clone()
    penalty.prox_(x, step)
    penalty.prox_(y, step.expand(SHAPE).clone())
    torch.testing.assert_close(x, y, rtol=1e-14, atol=0)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_a_step_of_zero_is_the_identity(penalty):
    x = torch.tensor([[0.0, 0.25], [0.4, 1e-30]])
    before = x.clone()
    penalty.prox_(x, torch.zeros(()))
    assert torch.equal(x, before)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("penalty", [None, *PENALTIES], ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_zero_gradient_and_zero_rate_change_no_feasible_parameter(kind, mode, penalty, dtype):
    x = torch.tensor([[0.0, 0.25], [0.375, 1e-30]], dtype=dtype, requires_grad=True)
    before = x.detach().clone()
    for lr in (0.0, torch.tensor(0.0)):
        x.grad = torch.zeros_like(x)
        kind([x], lr=lr, penalty=penalty, **MODES[mode]).step()
        assert torch.equal(x, before)


@pytest.mark.parametrize("penalty", [*PENALTIES, Box(upper=1.0)], ids=repr)
def test_plain_data_makes_the_same_penalty(penalty):
    assert isinstance(penalty, Penalty)
    assert from_config(penalty.config()) == penalty == from_config(penalty)


def test_values_outside_the_domain():
    x = torch.tensor([-1.0, 2.0])
    assert NonNegative().value(x) == Box(0.0, 1.0).value(x) == math.inf
    assert Box(-1.0, 2.0).value(x) == 0


@pytest.mark.parametrize(("name", "arguments", "message"), BAD_IN_A_DOOR, ids=str)
def test_bad_penalties(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(door, name)(**arguments)


def test_nan_in_a_group_is_not_hidden():
    x = torch.tensor([[1.0, math.nan], [3.0, 4.0]])
    GroupL2(1.0).prox_(x, torch.ones(()))
    assert x.isnan().all(1).tolist() == [True, False]
