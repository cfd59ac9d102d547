"""What no gradient has reached yet stays as it is, whatever the penalty; and moves are bounded where squares are averaged."""

import math

import pytest

torch = pytest.importorskip("torch")

from torch_twin import ALL, MODES, PENALTIES  # noqa: E402

from adagrad_diff.common.moves import MAX_MOVE  # noqa: E402
from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, AdamWDiff, Box, GroupL2, NonNegative  # noqa: E402

pytestmark = pytest.mark.peer


def embedding(kind, sparse=False, **options):
    torch.manual_seed(0)
    table = torch.nn.Embedding(1000, 8, sparse=sparse)
    return table, kind(table.parameters(), lr=0.1, **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_a_penalty_leaves_rows_alone_that_no_batch_has_held(kind, mode):
    """Two rows of a thousand, three batches: with every penalty the others are what they were, to the bit."""
    options = {"weight_decay": 0.0} if kind is AdamWDiff else {}
    for penalty in (L1(1e-5), *PENALTIES):
        for blocks in ("element", "row"):
            table, optimizer = embedding(kind, penalty=penalty, blocks=blocks, **options, **MODES[mode])
            before = table.weight.detach().clone()
            for _ in range(3):
                optimizer.zero_grad()
                table(torch.tensor([3, 7])).square().sum().backward()
                optimizer.step()
            changed = (table.weight != before).any(1).nonzero().flatten().tolist()
            untouched = isinstance(penalty, GroupL2) and penalty.over == "tensor" and not changed
            assert changed == [3, 7] or untouched, penalty


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_the_formula_to_the_letter(kind, mode):
    table, optimizer = embedding(kind, penalty=L1(1e-5), prox_unseen=True, **MODES[mode])
    table(torch.tensor([3, 7])).square().sum().backward()
    optimizer.step()
    assert (table.weight != 0).any(1).nonzero().flatten().tolist() == [3, 7]  # lr / eps is a long way


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_bounds_hold_from_the_first_gradient_on(kind, mode):
    for penalty, inside in ((Box(-0.5, 0.5), 0.5), (NonNegative(), 0.0)):
        x = torch.tensor([-3.0, -2.0], requires_grad=True)
        optimizer = kind([x], lr=0.01, penalty=penalty, weight_decay=0.0, **MODES[mode])
        x.grad = torch.tensor([1.0, 0.0])
        optimizer.step()
        assert x.tolist() == [-inside, -2.0]
        x.grad = torch.tensor([0.0, 1.0])
        optimizer.step()
        assert x.tolist() == [-inside, -inside]


def test_everything_is_seen_if_the_sum_begins_with_a_number():
    x = torch.ones(3, requires_grad=True)
    optimizer = AdaGradDiff([x], lr=0.1, penalty=L1(1.0), initial_accumulator_value=1.0)
    x.grad = torch.zeros(3)
    optimizer.step()
    torch.testing.assert_close(x.detach(), torch.full((3,), 0.9))


def test_an_unseen_entry_counts_in_its_group():
    """The proximal step in a metric that is infinite there: (4, 3) with step 1 for the first entry alone."""
    x = torch.tensor([[4.0, 3.0]], dtype=torch.float64, requires_grad=True)
    optimizer = AdaGradDiff([x], lr=1.0, penalty=GroupL2(1.0), eps=1e-12)
    x.grad = torch.tensor([[1e-9, 0.0]], dtype=torch.float64)  # lr / w = 1e9: z = 3, a = 1e9
    optimizer.step()
    first, second = x[0].tolist()
    assert second == 3.0
    h = math.hypot(first, second)
    assert first == pytest.approx(3.0 * h / (h + 1e9), rel=1e-2)


@pytest.mark.parametrize("mode", MODES)
def test_squares_that_have_decayed_to_nothing_keep_their_bounds(mode):
    """A gradient that stays the same for so long that the average underflows goes on to move its weight, within the bounds."""
    x = torch.ones(1, requires_grad=True)
    optimizer = AdamDiff([x], lr=0.1, betas=(0.9, 0.5), penalty=NonNegative(), **MODES[mode])
    for _ in range(200):
        x.grad = torch.ones(1)
        optimizer.step()
    assert optimizer.state[x]["total"].item() == 0
    assert x.item() == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_gradients_whose_squares_are_no_numbers_wipe_nothing(kind, mode):
    x = torch.ones(2, requires_grad=True)
    optimizer = kind([x], lr=0.1, penalty=L1(1e-3), weight_decay=0.0, **MODES[mode])
    for _ in range(3):
        x.grad = torch.tensor([1e-30, 1.0])
        optimizer.step()
    assert optimizer.state[x]["total"][0] == 0
    assert x[0] == 1.0
    assert x[1] < 0.9


TASK = torch.Generator().manual_seed(5)
X, Y = torch.randn(64, 6, generator=TASK), torch.randn(64, 1, generator=TASK)


def train(kind, penalty, mode, start):
    """300 steps of a small network: its head, or the second factor of a low-rank pair, begins with zeros."""
    torch.manual_seed(1)
    first, second = torch.nn.Linear(6, 16), torch.nn.Linear(16, 1)
    if start == "zero head":  # the gradient of the first layer is exactly zero in the first step
        torch.nn.init.zeros_(second.weight)
        params, model = [*first.parameters(), *second.parameters()], lambda x: second(first(x).tanh())
    else:  # LoRA: B = 0, so A has no gradient at first
        a, b = torch.nn.Parameter(torch.randn(6, 4) / 2), torch.nn.Parameter(torch.zeros(4, 16))
        params, model = [a, b, *second.parameters()], lambda x: second((first(x) + x @ a @ b).tanh())
    options = {"weight_decay": 0.0} if kind is AdamWDiff else {}
    optimizer = kind(params, lr=0.02, penalty=penalty, **options, **MODES[mode])
    for _ in range(300):
        optimizer.zero_grad()
        loss = (model(X) - Y).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()


@pytest.mark.parametrize("start", ["zero head", "low rank"])
@pytest.mark.parametrize("kind", ALL)
def test_a_first_gradient_of_zero_does_no_harm(kind, start):
    plain = train(kind, None, "default", start)
    for mode in ("default", "single"):
        assert train(kind, L1(1e-6), mode, start) == pytest.approx(plain, rel=0.05, abs=0.005)
    assert plain < 0.5  # and something was learned


# ---------------------------------------------------------------- bounded moves


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [AdamDiff, AdamWDiff])
def test_a_gradient_that_stays_moves_no_further_than_the_bound(kind, mode):
    """Averages of its differences decay: unbounded, the last move would be 73 learning rates."""
    for bound in (MAX_MOVE, 3.0):
        x = torch.zeros(4, dtype=torch.float64, requires_grad=True)
        optimizer = kind([x], lr=0.01, betas=(0.9, 0.99), max_move=bound, weight_decay=0.0, **MODES[mode])
        x.grad, largest = torch.tensor([1e-4, 1.0, -30.0, 0.0], dtype=torch.float64), torch.zeros(4)
        for _ in range(400):
            before = x.detach().clone()
            optimizer.step()
            largest = torch.maximum(largest, (x - before).abs().detach().float() / 0.01)
        assert (largest <= bound * (1 + 1e-6)).all()
        assert largest[1:3].tolist() == pytest.approx([bound, bound], rel=1e-3)  # and it is reached
        assert largest[3] == 0


@pytest.mark.parametrize("blocks", ["row", "tensor"])
def test_no_entry_of_a_block_moves_further_either(blocks):
    x = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    optimizer = AdamDiff([x], lr=0.01, max_move=3.0, blocks=blocks)
    x.grad = torch.tensor([[1.0, 2.0, 0.0], [0.1, 0.0, 0.0]], dtype=torch.float64)
    for _ in range(1500):
        before = x.detach().clone()
        optimizer.step()
    moved = (x - before).detach() / 0.01
    size = moved.norm(dim=1) if blocks == "row" else moved.norm()[None]
    torch.testing.assert_close(size, torch.full_like(size, 3.0), rtol=1e-3, atol=0)


def test_without_a_bound_moves_grow():
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = AdamDiff([x], lr=1.0, max_move=math.inf)
    x.grad = torch.ones(1, dtype=torch.float64)
    for _ in range(1000):
        before = x.item()
        optimizer.step()
    assert before - x.item() == pytest.approx(41, abs=1)
