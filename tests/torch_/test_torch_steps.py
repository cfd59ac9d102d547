"""Steps of the torch optimizers compared with NumPy formulas, with the core and with each other."""

from itertools import islice

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import BOTH, KINDS, MODES, PENALTIES, parameter, random, run, states_of  # noqa: E402

import adagrad_diff  # noqa: E402
from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, GroupL2, _step  # noqa: E402
from pairwise import covering, pairwise  # noqa: E402
from prox_twin import Twin  # noqa: E402

pytestmark = pytest.mark.peer

SHAPES = [(3, 4), (5,), ()]
BLOCKS = ["element", "row", "tensor"]
TENSOR_RATE = torch.tensor(0.03, dtype=torch.float64)


def real(x):
    x = x.detach()
    return (torch.view_as_real(x) if x.is_complex() else x).double().numpy()


def gradient(rng, p, n):
    """Return a random gradient whose size changes, with some zeros."""
    g = random(rng, (*p.shape, 2 if p.is_complex() else 1)) * 3 ** np.sin(n)
    g[rng.random(g.shape) < 0.2] = 0
    return (torch.view_as_complex(g) if p.is_complex() else g[..., 0]).to(p.dtype)


def follow(kind, mode, dtype, options, tolerance, *, sync=False, lr=0.03, steps=10):
    """Compare the steps of an optimizer with those of the formulas.

    The third step has no gradients at all, and the second parameter has none before the fifth step.
    """
    rng = np.random.default_rng(0)
    params = [random(rng, s).to(dtype).requires_grad_() for s in SHAPES]
    optimizer = kind(params, lr, **MODES[mode], **options)
    skipped = ("donate_grads", "accumulator_dtype", "capturable", "betas")
    known = {name: value for name, value in options.items() if name not in skipped}
    known |= dict(zip(("b1", "b2"), options.get("betas", ()), strict=False))
    twins = [Twin(real(p), kind is AdamDiff, float(lr), **known) for p in params]
    for n in range(steps):
        given = []
        for k, (p, twin) in enumerate(zip(params, twins, strict=True)):
            g = None if n == 2 or (k == 1 and n < 4) else gradient(rng, p, n)
            given.append(g)
            p.grad = None if g is None else g.clone()
            if g is not None:
                twin.x = real(p) if sync else twin.x
                twin.step(real(g))
        optimizer.step()
        for p, g, twin in zip(params, given, twins, strict=True):
            assert np.all(np.abs(real(p) - twin.x) <= tolerance * (1 + np.abs(twin.x)))
            if options.get("donate_grads"):
                assert p.grad is None
            elif g is not None:
                assert torch.equal(p.grad, g)  # The gradient is neither changed nor kept.
                assert optimizer.state[p]["prev"].data_ptr() != p.grad.data_ptr()
    for p, twin in zip(params, twins, strict=True):
        state, bound = optimizer.state[p], 1e-5 if sync else tolerance
        np.testing.assert_allclose(state["prev"].numpy(), twin.prev, rtol=bound, atol=bound)
        total = state["total"].double().numpy()
        np.testing.assert_allclose(total, twin.total, rtol=10 * bound, strict=True)
    return optimizer


OTHERS = {
    AdaGradDiff: [{}, {"lr_decay": 0.2}, {"initial_accumulator_value": 0.5}],
    AdamDiff: [{}, {"max_move": 0.5}, {"max_move": np.inf, "betas": (0.5, 0.9)}],
}


CASES = covering(
    kind=OTHERS,
    other=range(3),
    lr=[0.03, TENSOR_RATE],
    penalty=[None, *PENALTIES],
    blocks=BLOCKS,
    weight_decay=[0.0, 0.3],
    decoupled_weight_decay=BOTH,
    maximize=BOTH,
    donate_grads=BOTH,
    prox_unseen=BOTH,
    capturable=BOTH,
)


@pytest.mark.parametrize("case", CASES)
def test_every_option_follows_the_formulas(case):
    """Numbers that depend on the step are computed in the precision of the parameter."""
    options = dict(case)
    kind, other, lr = (options.pop(name) for name in ("kind", "other", "lr"))
    options |= {"eps": 0.3 if options["prox_unseen"] else 1e-8, **OTHERS[kind][other]}
    for mode in MODES:
        follow(kind, mode, torch.float64, options, 1e-10, lr=lr)


@pairwise(
    kind=OTHERS,
    mode=MODES,
    dtype=["float32", "float64", "bfloat16", "float16", "complex64", "complex128"],
    accumulator_dtype=[None, torch.float64],
    penalty=[None, L1(0.02), GroupL2(0.1)],
)
def test_every_precision_follows_the_formulas(kind, mode, dtype, penalty, accumulator_dtype):
    """Half precision has buffers in single precision, and complex entries are two real ones."""
    dtype = getattr(torch, dtype)
    half = dtype in (torch.bfloat16, torch.float16)
    tolerance = torch.finfo(dtype).eps if half else 1e-10 if torch.finfo(dtype).bits == 64 else 1e-5
    options = {"penalty": penalty, "accumulator_dtype": accumulator_dtype, "eps": 1e-3}
    optimizer = follow(kind, mode, dtype, options, tolerance, sync=tolerance > 1e-10)
    default = torch.float64 if tolerance == 1e-10 else torch.float32
    found = {t.dtype for s in states_of(optimizer) for name, t in s.items() if name != "step"}
    assert found == {accumulator_dtype or default}


@pairwise(
    kind=KINDS,
    dtype=[torch.float32, torch.bfloat16],
    penalty=[None, L1(0.01), GroupL2(0.01)],
    options=[{"maximize": True}, {"lr": TENSOR_RATE}, {"weight_decay": 0.1}],
    layout=[torch.contiguous_format, torch.channels_last],
    other_layout=BOTH,
)
def test_lists_make_the_steps_of_single_tensors(
    monkeypatch, kind, dtype, penalty, options, layout, other_layout
):
    """Large tensors are split, and small ones are updated together."""
    monkeypatch.setitem(_step.BATCH_ENTRIES, "cpu", 64)
    found = []
    for mode in MODES.values():
        rng = np.random.default_rng(0)
        params = [random(rng, s, dtype=dtype) for s in ((2, 3, 4, 5), (60,), (0,), (7, 9), (63,))]
        params[0] = params[0].contiguous(memory_format=layout)
        params[3] = params[3].mT if other_layout else params[3]
        params = [p.requires_grad_() for p in params]
        optimizer = kind(params, penalty=penalty, **options, **mode)
        run(params, optimizer, 4)
        found.append((params, states_of(optimizer)))
    torch.testing.assert_close(*found)


def test_lazily_conjugated_gradient():
    z = torch.tensor([1 + 2j, -3j], requires_grad=True)
    z.grad = torch.tensor([1 - 1j, 2j]).conj()
    AdaGradDiff([z], lr=0.5).step()
    torch.testing.assert_close(z.detach(), torch.tensor([0.5 + 1.5j, -2.5j]))


@pairwise(kind=KINDS, mode=MODES, penalty=[None, L1(0.1)])
def test_without_eps_entries_without_a_gradient_stay(kind, mode, penalty):
    x = torch.ones(3, requires_grad=True)
    optimizer = kind([x], lr=0.125, eps=0.0, weight_decay=0.0, penalty=penalty, **MODES[mode])
    for k in range(3):
        x.grad = torch.tensor([0.0, -1.0 - k, 1e-3])
        optimizer.step()
    assert x[0] == 1.0
    assert x[1] > 1.1
    assert x[2] < 0.9


@pairwise(mode=MODES, blocks=[("element", None), ("row", "row"), ("tensor", "all")], group=BOTH)
def test_trajectory_is_that_of_the_core(mode, blocks, group):
    rng = np.random.default_rng(1)
    A, classes = rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    x = torch.zeros(5, 3, dtype=torch.float64, requires_grad=True)
    ours, theirs = L1(0.05), adagrad_diff.L1(0.05)
    if group:
        ours, theirs = GroupL2(0.1), adagrad_diff.GroupL2(0.1, np.repeat(np.arange(5), 3))
    optimizer = AdaGradDiff([x], 0.4, penalty=ours, blocks=blocks[0], **MODES[mode])
    A_t, classes_t = torch.tensor(A), torch.tensor(classes)
    rule = adagrad_diff.AdaGradDiff(0.4, blocks=blocks[1])
    loss = adagrad_diff.Multinomial(A, classes)
    for state in islice(adagrad_diff.iterate(loss, np.zeros((5, 3)), theirs, rule), 20):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(A_t @ x, classes_t).backward()
        optimizer.step()
        np.testing.assert_allclose(x.detach().numpy(), state.x, rtol=0, atol=1e-10)
    assert (x == 0).any()


@pytest.mark.parametrize("mode", MODES)
def test_gradients_accumulated_in_place(mode):
    """A reference to the gradient's memory would make every difference zero."""
    results = []
    for set_to_none in BOTH:
        x = parameter()
        optimizer = AdaGradDiff([x], lr=0.3, **MODES[mode])
        for _ in range(3):
            optimizer.zero_grad(set_to_none=set_to_none)
            for _ in range(2):
                (x**4).sum().backward()
            optimizer.step()
        results.append((x.detach(), states_of(optimizer)))
    torch.testing.assert_close(*results, rtol=0, atol=0)


# ---------------------------------------------------------------- sparse gradients


@pairwise(
    dtype=[torch.float64, torch.complex128],
    maximize=BOTH,
    blocks=BLOCKS,
    sparse_dim=[1, 2],
    dense_every=[None, 1, 3],
    resume=BOTH,
)
def test_sparse_gradients_make_the_steps_of_dense_ones(
    dtype, maximize, blocks, sparse_dim, dense_every, resume
):
    """Also if every step is made by a new optimizer that has loaded the state."""
    rng = np.random.default_rng(4)
    initial = random(rng, (6, 2), dtype=dtype)
    x, y = (initial.clone().requires_grad_() for _ in range(2))
    options = {"lr": 0.2, "maximize": maximize, "blocks": blocks}
    sparse, dense = AdaGradDiff([x], **options), AdaGradDiff([y], **options)
    for n in range(16):
        rows = torch.tensor(rng.integers(0, 6, rng.integers(0, 5)))  # with repetitions, or empty
        values = random(rng, (len(rows), 2), dtype=dtype)
        g = torch.sparse_coo_tensor(rows[None], values, (6, 2), check_invariants=True)
        y.grad = g.to_dense()
        as_dense = dense_every is not None and n % (dense_every + 1) == dense_every
        x.grad = y.grad.clone() if as_dense else g if sparse_dim == 1 else y.grad.to_sparse(2)
        if resume:
            saved, sparse = sparse.state_dict(), AdaGradDiff([x])
            sparse.load_state_dict(saved)
        sparse.step()
        dense.step()
        torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-14)
        assert torch.equal(x.grad.to_dense(), y.grad)
        state = {name: t.to_dense() for name, t in sparse.state[x].items()}
        torch.testing.assert_close(state, dense.state[y], rtol=1e-12, atol=1e-14)


def test_sparse_steps_keep_a_sparse_gradient():
    """Only the step right after a dense gradient visits every entry."""
    x = torch.ones(6, 2, requires_grad=True)
    optimizer = AdaGradDiff([x], lr=0.2)
    for k in range(4):
        ones = torch.ones(6, 2)
        x.grad = ones if k == 1 else ones.index_fill(0, torch.arange(5), 0.0).to_sparse(1)
        optimizer.step()
        assert optimizer.state[x]["prev"].is_sparse == (k != 1)
    assert optimizer.state[x]["prev"].indices().tolist() == [[5]]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (AdaGradDiff, {"penalty": L1(0.1)}, "sparse gradients only without a penalty"),
        (AdaGradDiff, {"weight_decay": 0.1}, "weight_decay option is not compatible with sparse"),
        (AdamDiff, {}, "AdamDiff does not support sparse gradients"),
    ],
)
def test_sparse_gradients_that_an_option_excludes(kind, options, message):
    x, y = (torch.ones(3, 2, requires_grad=True) for _ in range(2))
    y.grad, x.grad = torch.ones(3, 2), torch.ones(3, 2).to_sparse()
    with pytest.raises(RuntimeError, match=message):
        kind([y, x], **options).step()
    assert (y == 1).all()  # Nothing has changed.


# ---------------------------------------------------------------- step sizes


def test_step_sizes():
    x, unused = torch.zeros(4, requires_grad=True), torch.zeros(2, requires_grad=True)
    table = torch.zeros(9, 1, requires_grad=True)
    groups = [{"params": [x, table]}, {"params": [unused]}, {"params": []}]
    optimizer = AdaGradDiff(groups, lr=0.5, eps=0.0)
    x.grad, unused.grad = torch.tensor([1.0, -2.0, 4.0, 0.0]), torch.zeros(2)
    table.grad = torch.tensor([8.0, *[0.0] * 8])[:, None].to_sparse(1)
    optimizer.step()
    described = optimizer.step_sizes(quantiles=[0.0, 0.5, 1.0])
    assert described[0] == {"quantiles": [1 / 16, 3 / 16, 1 / 2], "at_max_move": 0.0}
    assert all(np.isnan(one["quantiles"]).all() for one in described[1:])


@pytest.mark.parametrize(("blocks", "largest"), [("element", 1.0), ("row", 5**-0.5)])
def test_step_sizes_at_the_largest_move(blocks, largest):
    """A gradient that stays the same reaches the bound, one that alternates does not."""
    x, y = (torch.zeros(1, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    optimizer = AdamDiff([x, y], betas=(0.0, 0.5), lr=1.0, max_move=2.0, blocks=blocks)
    for k in range(60):
        x.grad = torch.tensor([[2.0, 4.0]], dtype=torch.float64)
        y.grad = x.grad * (-1) ** k
        optimizer.step()
    (described,) = optimizer.step_sizes()
    assert described["at_max_move"] == 0.5
    assert len(described["quantiles"]) == 5
    assert described["quantiles"][-1] == pytest.approx(largest)
