"""Entries without a gradient so far are left alone by penalties, and the moves of AdamDiff are bounded."""

import pytest

torch = pytest.importorskip("torch")

from torch_twin import KINDS, MODES, PENALTIES  # noqa: E402

from adagrad_diff.torch import L1, AdamDiff, AdamWDiff, NonNegative  # noqa: E402
from pairwise import pairwise  # noqa: E402

pytestmark = pytest.mark.peer


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


@pairwise(kind=KINDS, mode=MODES)
def test_gradients_whose_squares_underflow(kind, mode):
    x = torch.ones(2, requires_grad=True)
    optimizer = kind([x], lr=0.1, penalty=L1(1e-3), weight_decay=0.0, **MODES[mode])
    for _ in range(3):
        x.grad = torch.tensor([1e-30, 1.0])
        optimizer.step()
    assert optimizer.state[x]["total"][0] == 0
    assert x[0] == 1.0
    assert x[1] < 0.9


@pairwise(kind=[AdamDiff, AdamWDiff], mode=MODES, bound=[None, 3.0])
def test_a_constant_gradient_moves_at_most_by_the_bound(kind, mode, bound):
    """Without a bound the moves would grow, because the squares of the differences decay."""
    x = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    options = {} if bound is None else {"max_move": bound}
    optimizer = kind([x], lr=0.01, betas=(0.9, 0.99), weight_decay=0.0, **options, **MODES[mode])
    bound, largest = optimizer.param_groups[0]["max_move"], torch.zeros(4, dtype=torch.float64)
    x.grad = torch.tensor([1e-4, 1.0, -30.0, 0.0], dtype=torch.float64)
    for _ in range(400):
        before = x.detach().clone()
        optimizer.step()
        largest = torch.maximum(largest, (x - before).abs().detach() / 0.01)
    assert (largest <= bound * (1 + 1e-6)).all()
    assert largest[1:3].tolist() == pytest.approx([bound, bound], rel=1e-3)
