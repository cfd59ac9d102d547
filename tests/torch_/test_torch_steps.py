"""Steps of the torch optimizers compared with NumPy formulas, with the core and with each other."""

from itertools import islice

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import BOTH, MODES, PENALTIES, parameter, states_of  # noqa: E402

import adagrad_diff  # noqa: E402
from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, GroupL2  # noqa: E402
from pairwise import pairwise  # noqa: E402
from prox_twin import Twin  # noqa: E402

pytestmark = pytest.mark.peer

SHAPES = [(3, 4), (5,), ()]
KINDS = (AdaGradDiff, AdamDiff)
BLOCKS = ["element", "row", "tensor"]


def real(x):
    x = x.detach()
    return (torch.view_as_real(x) if x.is_complex() else x).double().numpy()


def gradient(rng, p, n):
    """Return a random gradient whose size changes, with some zeros."""
    g = torch.tensor(rng.standard_normal((*p.shape, 2 if p.is_complex() else 1)) * 3 ** np.sin(n))
    g[rng.random(g.shape) < 0.2] = 0
    return (torch.view_as_complex(g) if p.is_complex() else g[..., 0]).to(p.dtype)


def follow(kind, mode, dtype, options, tolerance, *, sync=False, lr=0.03, steps=10):
    """Compare the steps of an optimizer with those of the formulas.

    The third step has no gradients at all, and the second parameter has none before the fifth step.
    """
    rng = np.random.default_rng(0)
    params = [torch.tensor(rng.standard_normal(s)).to(dtype).requires_grad_() for s in SHAPES]
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
            if g is not None and not options.get("donate_grads"):
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


@pairwise(
    kind=KINDS,
    penalty=[None, *PENALTIES],
    blocks=BLOCKS,
    weight_decay=[0.0, 0.3],
    decoupled_weight_decay=BOTH,
    other=range(3),
    maximize=BOTH,
    donate_grads=BOTH,
    prox_unseen=BOTH,
    lr=[0.03, torch.tensor(0.03, dtype=torch.float64)],
)
def test_every_option_follows_the_formulas_in_every_mode(
    kind,
    penalty,
    blocks,
    weight_decay,
    decoupled_weight_decay,
    other,
    maximize,
    donate_grads,
    prox_unseen,
    lr,
):
    options = {
        "penalty": penalty,
        "blocks": blocks,
        "weight_decay": weight_decay,
        "decoupled_weight_decay": decoupled_weight_decay,
        "maximize": maximize,
        "donate_grads": donate_grads,
        "prox_unseen": prox_unseen,
        "eps": 0.3 if prox_unseen else 1e-8,
        **OTHERS[kind][other],
    }
    for mode in MODES:
        follow(kind, mode, torch.float64, options, 1e-10, lr=lr)


@pairwise(
    kind=KINDS,
    mode=MODES,
    dtype=[
        torch.float32,
        torch.float64,
        torch.bfloat16,
        torch.float16,
        torch.complex64,
        torch.complex128,
    ],
    accumulator_dtype=[None, torch.float64],
    penalty=[None, L1(0.02), GroupL2(0.1)],
)
def test_every_precision_follows_the_formulas(kind, mode, dtype, penalty, accumulator_dtype):
    """Half precision has buffers in single precision, and complex entries are two real ones."""
    half = dtype in (torch.bfloat16, torch.float16)
    tolerance = torch.finfo(dtype).eps if half else 1e-10 if torch.finfo(dtype).bits == 64 else 1e-5
    options = {"penalty": penalty, "accumulator_dtype": accumulator_dtype, "eps": 1e-3}
    optimizer = follow(kind, mode, dtype, options, tolerance, sync=tolerance > 1e-10)
    default = torch.float64 if tolerance == 1e-10 else torch.float32
    found = {
        t.dtype for state in states_of(optimizer) for name, t in state.items() if name != "step"
    }
    assert found == {accumulator_dtype or default}


@pytest.mark.parametrize("kind", KINDS)
def test_accumulators_of_another_precision_are_those_of_the_plain_step(kind):
    """Lists of tensors are for accumulators in the precision of the parameter; others take the plain step, bit for bit."""
    found = []
    for foreach in (False, True):
        x = torch.linspace(-1, 2, 7, requires_grad=True)
        optimizer = kind(
            [x], lr=0.1, foreach=foreach, accumulator_dtype=torch.float64, penalty=L1(0.01)
        )
        for n in range(20):
            x.grad = torch.sin(3 * x.detach() + n) / 3
            optimizer.step()
        found.append(x.detach())
    assert torch.equal(*found)


@pairwise(kind=KINDS, mode=MODES, lr=[0.03, torch.tensor(0.03)])
def test_capturable_steps_are_counted_in_single_precision(kind, mode, lr):
    options = {"capturable": True, **({"lr_decay": 0.2} if kind is AdaGradDiff else {})}
    follow(kind, mode, torch.float64, options, 1e-5, lr=lr)


def test_lazily_conjugated_gradient():
    z = torch.tensor([1 + 2j, -3j], requires_grad=True)
    z.grad = torch.tensor([1 - 1j, 2j]).conj()
    AdaGradDiff([z], lr=0.5).step()
    torch.testing.assert_close(z.detach(), torch.tensor([0.5 + 1.5j, -2.5j]))


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_donated_gradients_are_kept(kind, mode):
    x = parameter()
    optimizer = kind([x], lr=0.1, donate_grads=True, **MODES[mode])
    x.grad = g = torch.ones_like(x)
    optimizer.step()
    assert optimizer.state[x]["prev"].data_ptr() == g.data_ptr()
    assert x.grad is None


@pytest.mark.parametrize("mode", MODES)
def test_gradients_accumulated_in_place(mode):
    """The gradient's memory is used again, so a reference to it would make every difference zero."""
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


@pairwise(
    kind=KINDS,
    mode=MODES,
    arrange=[
        lambda t: t.mT.contiguous().mT,
        lambda t: t.contiguous(memory_format=torch.channels_last),
    ],
)
def test_strides_and_empty_tensors_do_not_matter(kind, mode, arrange):
    """Parameters with other strides than their gradients, among empty and large ones."""
    results = []
    for options, order in ((MODES["single"], torch.clone), (MODES[mode], arrange)):
        rng = np.random.default_rng(0)
        draw = lambda rng=rng: torch.tensor(rng.standard_normal((2, 3, 4, 5)))
        x, y = order(draw()).requires_grad_(), draw().requires_grad_()
        empty, large = (
            torch.zeros(n, dtype=torch.float32, requires_grad=True) for n in (0, 70_001)
        )
        optimizer = kind([x, empty, y, large], lr=0.1, penalty=L1(0.01), **options)
        for _ in range(3):
            g = draw()
            x.grad, y.grad, empty.grad = g.clone(), order(g), torch.zeros(0)
            large.grad = torch.linspace(-1, 1, len(large))
            optimizer.step()
        results.append((x.detach(), y.detach(), large.detach()))
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- sparse gradients


@pairwise(maximize=BOTH, blocks=BLOCKS, sparse_dim=[1, 2], dense_every=[None, 1, 3], mode=MODES)
def test_sparse_gradients_make_the_steps_of_dense_ones(
    maximize, blocks, sparse_dim, dense_every, mode
):
    rng = np.random.default_rng(4)
    initial = torch.tensor(rng.standard_normal((6, 2)))
    x, y = (initial.clone().requires_grad_() for _ in range(2))
    options = {"lr": 0.2, "maximize": maximize, "blocks": blocks, **MODES[mode]}
    sparse, dense = AdaGradDiff([x], **options), AdaGradDiff([y], **options)
    for n in range(16):
        rows = torch.tensor(rng.integers(0, 6, rng.integers(0, 5)))  # with repetitions, or empty
        values = torch.tensor(rng.standard_normal((len(rows), 2)))
        g = torch.sparse_coo_tensor(rows[None], values, (6, 2), check_invariants=True)
        y.grad = g.to_dense()
        as_dense = dense_every is not None and n % (dense_every + 1) == dense_every
        x.grad = y.grad.clone() if as_dense else g if sparse_dim == 1 else y.grad.to_sparse(2)
        sparse.step()
        dense.step()
        torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-14)
        assert torch.equal(x.grad.to_dense(), y.grad)
        for name in ("total", "prev"):
            torch.testing.assert_close(
                sparse.state[x][name], dense.state[y][name], rtol=1e-12, atol=1e-14
            )


def test_sparse_steps_stay_cheap_after_a_dense_one():
    """Only the step right after a dense gradient visits every entry."""
    x = torch.ones(6, 2, requires_grad=True)
    optimizer = AdaGradDiff([x], lr=0.2)
    for k in range(4):
        ones = torch.ones(6, 2)
        x.grad = ones if k == 1 else ones.index_fill(0, torch.arange(5), 0.0).to_sparse(1)
        optimizer.step()
        assert ("support" in optimizer.state[x]) == (k != 1)
    assert optimizer.state[x]["support"].tolist() == [[5]]


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
