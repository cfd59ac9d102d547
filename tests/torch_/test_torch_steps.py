"""Steps of the torch optimizers against plain formulas, against the core, and against each other."""

from itertools import islice

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import MODES, OPTIMIZERS, PENALTIES, states_of  # noqa: E402

import adagrad_diff  # noqa: E402
from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, Box, GroupL2  # noqa: E402
from prox_twin import Twin  # noqa: E402

pytestmark = pytest.mark.peer

SHAPES = [(3, 4), (5,), ()]
STEPS = 40


def cases():
    """Every way to make a step with every penalty, and every kind of block; maximize and donate_grads take turns."""
    some = {"foreach": (None, L1(0.05), GroupL2(0.2)), "fused": (None, L1(0.05))}  # the others are made of the same parts
    combinations = [(mode, penalty, "element") for mode in MODES for penalty in some.get(mode, (None, *PENALTIES))]
    combinations += [
        ("default", penalty, blocks) for penalty in (None, PENALTIES[0], PENALTIES[5]) for blocks in ("row", "tensor")
    ]
    for k, (mode, penalty, blocks) in enumerate(combinations):
        options = {"penalty": penalty, "blocks": blocks, "maximize": k % 2 == 1, "donate_grads": k % 3 == 0}
        yield pytest.param(mode, options, id=f"{mode}-{penalty and penalty.config()['name']}-{blocks}-{k % 6}")


def start(dtype, shapes=SHAPES, seed=0):
    rng = np.random.default_rng(seed)
    arrays = [
        rng.standard_normal((*s, 2)).view(complex)[..., 0] if dtype.is_complex else rng.standard_normal(s) for s in shapes
    ]
    return rng, [torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays]


def gradient(rng, p, n):
    """Random, of sizes that change, with entries that stay zero for a while."""
    g = torch.tensor(rng.standard_normal((*p.shape, 2 if p.is_complex() else 1)) * 3 ** np.sin(n))
    g[rng.random(g.shape) < 0.2] = 0
    return (torch.view_as_complex(g) if p.is_complex() else g[..., 0]).to(p.dtype)


def real(x):
    x = x.detach()
    return (torch.view_as_real(x) if x.is_complex() else x).double().numpy()


def follow(kind, mode, dtype, options, tolerance, *, sync=False, lr=0.03, steps=STEPS):
    """Steps of the optimizer and of its twin, compared as they go."""
    rng, params = start(dtype)
    optimizer = kind(params, lr, **MODES[mode], **options)
    ways = ("donate_grads", "accumulator_dtype")  # the twin has none of these
    known = {name: value for name, value in options.items() if name not in ways}
    twins = [Twin(real(p), kind is AdamDiff, float(lr), **known) for p in params]
    for n in range(steps):
        for p, twin in zip(params, twins, strict=True):
            p.grad = gradient(rng, p, n)
            if sync:
                twin.x = real(p)
            twin.step(real(p.grad))
        optimizer.step()
        for p, twin in zip(params, twins, strict=True):
            assert np.all(np.abs(real(p) - twin.x) <= tolerance * (1 + np.abs(twin.x)))
    for p, twin in zip(params, twins, strict=True):
        state, bound = optimizer.state[p], tolerance if not sync else 1e-5
        np.testing.assert_allclose(state["prev"].numpy(), twin.prev, rtol=bound, atol=bound)
        np.testing.assert_allclose(state["total"].double().numpy(), twin.total, rtol=bound * 10, strict=True)
    return optimizer


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize(("mode", "options"), list(cases()))
def test_equals_the_formulas(kind, mode, options):
    follow(kind, mode, torch.float64, options, 1e-10)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_every_other_option_equals_the_formulas(kind, mode):
    """One after the other, with a penalty and without; what is to be seen later than in the first step is."""
    options = [
        {"weight_decay": 0.3},
        {"weight_decay": 0.3, "decoupled_weight_decay": True},
        {"weight_decay": 0.3, "maximize": True},
        {"prox_unseen": True, "eps": 0.3},
    ]
    if kind is AdaGradDiff:
        options += [{"lr_decay": 0.2}, {"initial_accumulator_value": 0.5}]
        options += [{"lr_decay": 0.2, "weight_decay": 0.5, "decoupled_weight_decay": True}]
    else:
        options += [{"max_move": 0.5}, {"max_move": np.inf}, {"max_move": 0.7, "weight_decay": 0.1}]
    for some in options:
        for penalty in (None, PENALTIES[2], Box(-0.3, 0.4)):
            follow(kind, mode, torch.float64, {**some, "penalty": penalty}, 1e-10, steps=12)
    for blocks in ("row", "tensor"):
        for penalty in (None, GroupL2(0.2)):
            follow(kind, mode, torch.float64, {**options[-1], "penalty": penalty, "blocks": blocks}, 1e-10, steps=12)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_single_precision(kind, mode):
    follow(kind, mode, torch.float32, {"penalty": PENALTIES[2], "eps": 1e-3}, 1e-4)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", ["single", "foreach", "default"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_has_single_precision_state(kind, mode, dtype):
    options = {"penalty": L1(0.01), "eps": 1e-4}
    optimizer = follow(kind, mode, dtype, options, torch.finfo(dtype).eps, sync=True, steps=60)
    assert {t.dtype for state in states_of(optimizer) for t in state.values()} == {torch.float32}


@pytest.mark.parametrize("mode", MODES)
def test_double_precision_state_of_single_precision_parameters(mode):
    optimizer = follow(AdaGradDiff, mode, torch.float32, {"accumulator_dtype": torch.float64}, 2e-7, sync=True, steps=30)
    assert {t.dtype for state in states_of(optimizer) for t in state.values()} == {torch.float64}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [{}, {"penalty": L1(0.02), "maximize": True}, {"blocks": "tensor", "donate_grads": True}])
def test_complex_entries_are_two_real_ones(kind, mode, options):
    follow(kind, mode, torch.complex128, options, 1e-10, steps=60)


def test_lazily_conjugated_gradient():
    z = torch.tensor([1 + 2j, -3j], requires_grad=True)
    optimizer = AdaGradDiff([z], lr=0.5)
    z.grad = torch.tensor([1 - 1j, 2j]).conj()
    optimizer.step()
    torch.testing.assert_close(z.detach(), torch.tensor([1 + 2j, -3j]) - 0.5 * torch.tensor([1 + 1j, -1j]))


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("penalty", [None, L1(0.05)])
def test_learning_rate_in_a_tensor(kind, mode, penalty):
    follow(kind, mode, torch.float64, {"penalty": penalty}, 1e-10, lr=torch.tensor(0.03, dtype=torch.float64), steps=50)


@pytest.mark.parametrize(
    ("mode", "blocks", "core_blocks"),
    [*((mode, "element", None) for mode in MODES), ("default", "row", "row"), ("default", "tensor", "all")],
)
@pytest.mark.parametrize("penalty", ["L1", "GroupL2"])
def test_trajectory_is_that_of_the_core(mode, blocks, core_blocks, penalty):
    rng = np.random.default_rng(1)
    A, classes = rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    x = torch.zeros(5, 3, dtype=torch.float64, requires_grad=True)
    ours, theirs = (L1(0.05), adagrad_diff.L1(0.05))
    if penalty == "GroupL2":
        ours, theirs = GroupL2(0.1), adagrad_diff.GroupL2(0.1, np.repeat(np.arange(5), 3))
    optimizer = AdaGradDiff([x], 0.4, penalty=ours, blocks=blocks, **MODES[mode])
    A_t, classes_t = torch.tensor(A), torch.tensor(classes)
    rule = adagrad_diff.AdaGradDiff(0.4, blocks=core_blocks)
    for state in islice(adagrad_diff.iterate(adagrad_diff.Multinomial(A, classes), np.zeros((5, 3)), theirs, rule), STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(A_t @ x, classes_t).backward()
        optimizer.step()
        np.testing.assert_allclose(x.detach().numpy(), state.x, rtol=0, atol=1e-10)
    assert (x == 0).any()


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("options", [{}, {"penalty": L1(0.01)}, {"maximize": True, "donate_grads": True}])
def test_all_ways_are_the_same(kind, options):
    """Seven steps, one without gradients, one layer frozen and then not; parameters and states."""
    results = []
    for mode in MODES.values():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Sigmoid(), torch.nn.Linear(6, 1)).double()
        data = torch.randn(9, 4, dtype=torch.float64)
        optimizer = kind(model.parameters(), lr=0.05, **mode, **options)
        for n in range(7):
            optimizer.zero_grad()
            model[2].requires_grad_(n not in (1, 2))
            if n != 3:
                model(data).square().mean().backward()
            optimizer.step()
        results.append([[p.detach() for p in model.parameters()], states_of(optimizer)])
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("maximize", [False, True])
def test_gradients_are_neither_written_nor_kept(kind, mode, maximize):
    rng, params = start(torch.float32)
    optimizer = kind(params, lr=0.1, penalty=L1(0.1), maximize=maximize, **MODES[mode])
    for n in range(3):
        grads = [gradient(rng, p, n) for p in params]
        for p, g in zip(params, grads, strict=True):
            p.grad = g.clone()
        optimizer.step()
        for p, g in zip(params, grads, strict=True):
            assert torch.equal(p.grad, g)
            assert all(t.data_ptr() != p.grad.data_ptr() for t in optimizer.state[p].values())


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_donated_gradients_are_kept(kind, mode):
    rng, params = start(torch.float32)
    optimizer = kind(params, lr=0.1, donate_grads=True, **MODES[mode])
    for n in range(3):
        for p in params:
            p.grad = gradient(rng, p, n)
        places = [p.grad.data_ptr() for p in params]
        optimizer.step()
        assert [optimizer.state[p]["prev"].data_ptr() for p in params] == places
        assert all(p.grad is None for p in params)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_accumulated_in_place(mode):
    """The memory of the gradient is used again: a reference to it would make every difference zero."""
    results = []
    for set_to_none in (False, True):
        x = torch.tensor([1.0, -2.0], requires_grad=True)
        optimizer = AdaGradDiff([x], lr=0.3, **MODES[mode])
        for _ in range(5):
            optimizer.zero_grad(set_to_none=set_to_none)
            for _ in range(2):
                (x**4).sum().backward()
            optimizer.step()
        results.append((x.detach(), states_of(optimizer)))
    torch.testing.assert_close(*results, rtol=0, atol=0)
    assert results[0][0].abs().max() < 2


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_a_parameter_that_joins_late_starts_afresh(kind, mode):
    x, late = (torch.ones(3, requires_grad=True) for _ in range(2))
    optimizer = kind([x, late], lr=0.1, **MODES[mode])
    for n in range(4):
        x.grad = torch.full((3,), 2.0 + n)
        late.grad = torch.full((3,), 1e-3) if n == 3 else None
        optimizer.step()
        assert (late in optimizer.state) == (n == 3)
    torch.testing.assert_close(late.detach(), torch.full((3,), 0.9), rtol=1e-4, atol=0)  # |g| / |g - 0| = 1


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_without_gradients_nothing_happens(kind, mode):
    x = torch.ones(3, requires_grad=True)
    optimizer = kind([x], lr=0.1, penalty=L1(1.0), **MODES[mode])
    optimizer.step()
    assert torch.equal(x, torch.ones(3))
    assert not optimizer.state
    x.grad = torch.ones(3)
    optimizer.step()
    after, state = x.detach().clone(), {name: t.clone() for name, t in optimizer.state[x].items()}
    x.grad = None
    optimizer.step()
    assert torch.equal(x, after)
    assert all(torch.equal(t, state[name]) for name, t in optimizer.state[x].items())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(0,), (2, 0), (1,)])
def test_empty_and_tiny_parameters(mode, shape):
    params = [torch.zeros(shape, requires_grad=True), torch.ones(3, requires_grad=True), torch.zeros(0, requires_grad=True)]
    for chosen in (params, params[:1]):
        for p in chosen:
            p.grad = torch.ones_like(p)
        AdaGradDiff(chosen, lr=0.1, **MODES[mode]).step()
    torch.testing.assert_close(params[1].detach(), torch.full((3,), 0.9))


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_layouts_do_not_matter(kind, mode):
    """Transposed and channels-last parameters; gradients with other strides than theirs."""
    results = []
    for arrange in (torch.clone, lambda t: t.mT.contiguous().mT, lambda t: t.contiguous(memory_format=torch.channels_last)):
        rng = np.random.default_rng(0)
        x = arrange(torch.tensor(rng.standard_normal((2, 3, 4, 5)))).requires_grad_()
        y = torch.tensor(rng.standard_normal((2, 3, 4, 5)), requires_grad=True)
        optimizer = kind([x, y], lr=0.1, penalty=L1(0.01), **MODES[mode])
        for _ in range(4):
            g = torch.tensor(rng.standard_normal((2, 3, 4, 5)))
            x.grad, y.grad = g.clone(), arrange(g)
            optimizer.step()
        results.append((x.detach(), y.detach()))
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("penalty", [None, L1(0.01)])
def test_many_entries_in_threads(kind, penalty):
    """Tensors that threads share, among small ones, in two precisions."""
    sizes, results = (7, 300_001, 1, 0, 250_000, 33), []
    torch.set_num_threads(2)
    for mode in ("single", "default"):
        rng = np.random.default_rng(0)
        params = [
            torch.tensor(rng.standard_normal(n), dtype=(torch.float32, torch.float64)[k % 2]).requires_grad_()
            for k, n in enumerate(sizes)
        ]
        optimizer = kind(params, lr=0.1, penalty=penalty, **MODES[mode])
        for _ in range(3):
            for p in params:
                p.grad = torch.tensor(rng.standard_normal(len(p)), dtype=p.dtype)
            optimizer.step()
        results.append((params, states_of(optimizer)))
    torch.set_num_threads(1)
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- sparse gradients


def sparse_pair(**options):
    """The same parameter twice, for sparse and for dense gradients, each with its optimizer."""
    initial = torch.tensor(np.random.default_rng(3).standard_normal((6, 2)))
    pair = [initial.clone().requires_grad_() for _ in range(2)]
    return *pair, *(AdaGradDiff([x], lr=0.2, **options) for x in pair)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("blocks", ["element", "row", "tensor"])
@pytest.mark.parametrize("sparse_dim", [1, 2])
@pytest.mark.parametrize("dense_every", [None, 1, 3], ids=str)
def test_sparse_equals_dense_at_every_step(maximize, blocks, sparse_dim, dense_every):
    rng = np.random.default_rng(4)
    x, y, sparse, dense = sparse_pair(maximize=maximize, blocks=blocks)
    for n in range(24):
        rows = rng.integers(0, 6, rng.integers(0, 5))  # with repetitions, or none at all
        g = torch.zeros(6, 2, dtype=torch.float64).index_add(
            0, torch.tensor(rows), torch.tensor(rng.standard_normal((len(rows), 2)))
        )
        as_dense = dense_every is not None and n % (dense_every + 1) == dense_every
        x.grad, y.grad = g.clone() if as_dense else g.to_sparse(sparse_dim), g.clone()
        sparse.step()
        dense.step()
        torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-14)
        assert torch.equal(x.grad.to_dense(), g)
        for name in ("total", "prev"):
            torch.testing.assert_close(sparse.state[x][name], dense.state[y][name], rtol=1e-12, atol=1e-14)


def test_gradients_that_are_not_coalesced():
    x, y, sparse, dense = sparse_pair()
    for _ in range(3):
        x.grad = torch.sparse_coo_tensor([[1, 1, 4]], torch.ones(3, 2, dtype=torch.float64), (6, 2), check_invariants=True)
        y.grad = x.grad.to_dense()
        sparse.step()
        dense.step()
        torch.testing.assert_close(x, y)


def test_sparse_steps_stay_cheap_after_a_dense_one():
    """Only the step right after a dense gradient looks at every entry."""
    x, _, optimizer, _ = sparse_pair()
    for k in range(4):
        x.grad = torch.ones_like(x) if k == 1 else torch.ones_like(x).index_fill(0, torch.arange(5), 0.0).to_sparse(1)
        optimizer.step()
        assert ("support" in optimizer.state[x]) == (k != 1)
    assert optimizer.state[x]["support"].tolist() == [[5]]


def test_embedding_with_sparse_gradients():
    results = []
    for sparse in (False, True):
        torch.manual_seed(0)
        table = torch.nn.Embedding(10, 3, sparse=sparse)
        optimizer = AdaGradDiff(table.parameters(), lr=0.1)
        for n in range(8):
            optimizer.zero_grad()
            table(torch.tensor([n, (3 * n) % 10, n])).square().sum().backward()
            optimizer.step()
        results.append(table.weight.detach())
    torch.testing.assert_close(*results)


def test_sparse_gradients_with_a_penalty_are_an_error():
    x, _, optimizer, _ = sparse_pair(penalty=L1(0.1))
    x.grad = torch.ones_like(x).to_sparse()
    before = x.detach().clone()
    with pytest.raises(RuntimeError, match="sparse gradients only without a penalty"):
        optimizer.step()
    assert torch.equal(x, before)


@pytest.mark.parametrize("blocks", ["element", "row"])
@pytest.mark.parametrize("dense_first", [False, True])
def test_adam_diff_takes_no_sparse_gradients(blocks, dense_first):
    x = torch.ones(3, 2, requires_grad=True)
    optimizer = AdamDiff([x], blocks=blocks)
    if dense_first:
        x.grad = torch.ones(3, 2)
        optimizer.step()
    x.grad = torch.ones(3, 2).to_sparse()
    with pytest.raises(RuntimeError, match="AdamDiff does not support sparse gradients"):
        optimizer.step()
