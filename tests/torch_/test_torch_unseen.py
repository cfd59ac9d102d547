"""Entries without a gradient so far are left alone by penalties, and the moves of AdamDiff are bounded."""

import math

import pytest

torch = pytest.importorskip("torch")

from torch_twin import KINDS, MODES, PENALTIES  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, AdamWDiff, Box, GroupL2, NonNegative  # noqa: E402
from pairwise import pairwise  # noqa: E402

pytestmark = pytest.mark.peer


def table_and_optimizer(kind, **options):
    torch.manual_seed(0)
    table = torch.nn.Embedding(50, 8)
    return table, kind(table.parameters(), lr=0.1, weight_decay=0.0, **options)


@pairwise(kind=KINDS, mode=MODES, penalty=[L1(1e-5), *PENALTIES], blocks=["element", "row"])
def test_a_penalty_leaves_rows_alone_that_no_batch_contained(kind, mode, penalty, blocks):
    table, optimizer = table_and_optimizer(kind, penalty=penalty, blocks=blocks, **MODES[mode])
    before = table.weight.detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        table(torch.tensor([3, 7])).square().sum().backward()
        optimizer.step()
    assert (table.weight != before).any(1).nonzero().flatten().tolist() == [3, 7]


@pairwise(kind=KINDS, mode=MODES)
def test_prox_unseen_applies_the_penalty_everywhere(kind, mode):
    table, optimizer = table_and_optimizer(kind, penalty=L1(1e-5), prox_unseen=True, **MODES[mode])
    table(torch.tensor([3, 7])).square().sum().backward()
    optimizer.step()
    # The step lr / eps is long.
    assert (table.weight != 0).any(1).nonzero().flatten().tolist() == [3, 7]


@pairwise(kind=KINDS, mode=MODES, penalty=[Box(-0.5, 0.5), NonNegative()])
def test_bounds_hold_from_the_first_gradient_on(kind, mode, penalty):
    x = torch.tensor([-3.0, -2.0], requires_grad=True)
    optimizer = kind([x], lr=0.01, penalty=penalty, weight_decay=0.0, **MODES[mode])
    bound = -0.5 if isinstance(penalty, Box) else 0.0
    for g, expected in (([1.0, 0.0], [bound, -2.0]), ([0.0, 1.0], [bound, bound])):
        x.grad = torch.tensor(g)
        optimizer.step()
        assert x.tolist() == expected


def test_an_initial_value_of_the_sum_makes_every_entry_seen():
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.zeros(3)
    AdaGradDiff([x], lr=0.1, penalty=L1(1.0), initial_accumulator_value=1.0).step()
    torch.testing.assert_close(x.detach(), torch.full((3,), 0.9))


def test_an_unseen_entry_counts_in_the_norm_of_its_group():
    """The metric is infinite for the second entry."""
    x = torch.tensor([[4.0, 3.0]], dtype=torch.float64, requires_grad=True)
    x.grad = torch.tensor([[1e-9, 0.0]], dtype=torch.float64)  # lr / w = 1e9
    AdaGradDiff([x], lr=1.0, penalty=GroupL2(1.0), eps=1e-12).step()
    first, second = x[0].tolist()
    assert second == 3.0
    h = math.hypot(first, second)
    assert first == pytest.approx(3.0 * h / (h + 1e9), rel=1e-2)


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


@pytest.mark.parametrize("blocks", ["row", "tensor"])
def test_the_bound_is_one_for_the_norm_of_a_block(blocks):
    x = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    optimizer = AdamDiff([x], lr=0.01, betas=(0.9, 0.99), max_move=3.0, blocks=blocks)
    x.grad = torch.tensor([[1.0, 2.0, 0.0], [0.1, 0.0, 0.0]], dtype=torch.float64)
    for _ in range(400):
        before = x.detach().clone()
        optimizer.step()
    moved = (x - before).detach() / 0.01
    size = moved.norm(dim=1) if blocks == "row" else moved.norm()[None]
    torch.testing.assert_close(size, torch.full_like(size, 3.0), rtol=1e-3, atol=0)
