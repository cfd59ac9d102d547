"""Proximal steps of tensors against those of the core."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import MODES, OPTIMIZERS, PENALTIES  # noqa: E402

import adagrad_diff  # noqa: E402
from adagrad_diff.torch import L1, Box, ElasticNet, GroupL2, NonNegative, Penalty, Ridge  # noqa: E402
from adagrad_diff.torch.penalties import from_config  # noqa: E402

pytestmark = pytest.mark.peer

SHAPE = (6, 7)


def core(penalty):
    if isinstance(penalty, GroupL2):
        groups = np.repeat(np.arange(6), 7) if penalty.over == "row" else np.zeros(42, int)
        return adagrad_diff.GroupL2(penalty.lam, groups)
    config = penalty.config()
    return getattr(adagrad_diff, config.pop("name"))(**config)


@pytest.mark.parametrize("strength", [1e-6, 0.3, 1e4])
@pytest.mark.parametrize("make", [L1, Ridge, lambda s: ElasticNet(s, 2 * s), lambda s: Box(-s, s / 2), lambda s: Box(upper=s),
                                  lambda s: NonNegative(), GroupL2, lambda s: GroupL2(s, "tensor")])  # fmt: skip
def test_prox_and_value_are_those_of_the_core(make, strength):
    rng = np.random.default_rng(0)
    penalty = make(strength)
    for wildness in (0.0, 1.0, 8.0):
        for size in (1e-4, 1.0, 1e5):
            z, step = size * rng.standard_normal(SHAPE), 10 ** rng.uniform(-wildness, wildness, SHAPE)
            z[rng.random(SHAPE) < 0.1] = 0
            x = torch.tensor(z)
            penalty.prox_(x, torch.tensor(step))
            expected = core(penalty).prox(z.ravel(), step.ravel()).reshape(SHAPE)
            np.testing.assert_allclose(x.numpy(), expected, rtol=1e-10, atol=1e-10 * size)
            np.testing.assert_allclose(penalty.value(x).item(), core(penalty).value(x.numpy().ravel()), rtol=1e-10)


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L1(-1.0), "'lam' parameter of L1 must be a number >= 0"),
        (lambda: Ridge(math.nan), "'lam' parameter of Ridge"),
        (lambda: ElasticNet(0.1, -1.0), "'l2' parameter of ElasticNet"),
        (lambda: Box(1.0, 0.0), "Box is empty"),
        (lambda: Box(math.nan, 0.0), "Box is empty"),
        (lambda: GroupL2(1.0, "column"), "'over' parameter of GroupL2 must be one of 'row', 'tensor'"),
    ],
)
def test_bad_penalties(make, message):
    with pytest.raises(ValueError, match=message):
        make()
