"""Tensors get other memory at any time. The fused step is attacked: it gives what the plain one gives, or says why not."""

import copy
import io
import multiprocessing
import os
import pickle
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import ALL, MODES, states_of  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff  # noqa: E402
from adagrad_diff.torch._fused import overlapping  # noqa: E402
from adagrad_diff.torch._plain import Plain, is_plain  # noqa: E402

pytestmark = pytest.mark.peer

SIZE = 3000


def pair(kind=AdaGradDiff, count=3, dtype=torch.float32, **options):
    """The same parameters twice: for the fused step, and for the plain one."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(SIZE) for _ in range(count)]
    params = [[torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays] for _ in range(2)]
    options = {"lr": 0.1, "penalty": L1(0.01), **options}
    return params, [kind(p, **options, **MODES[mode]) for p, mode in zip(params, ("fused", "single"), strict=True)]


def gradients(params, n):
    for k, p in enumerate(params):
        p.grad = torch.tensor(np.random.default_rng(10 * n + k).standard_normal(p.shape), dtype=p.dtype)


def run(params, optimizers, steps, first=0, before=None):
    """Steps of both, `before` each of which something is done to the parameters, gradients or buffers of either."""
    for n in range(first, first + steps):
        for some, optimizer in zip(params, optimizers, strict=True):
            gradients(some, n)
            if before is not None:
                before(some, optimizer, n)
            optimizer.step()


def same(params, optimizers):
    torch.testing.assert_close(params[0], params[1], rtol=2e-5, atol=1e-6)
    torch.testing.assert_close(*map(states_of, optimizers), rtol=2e-5, atol=1e-6)


def tensors_of(params, optimizer):
    return [t for p in params for t in (p.data, *optimizer.state[p].values()) if t.ndim]


# ---------------------------------------------------------------- memory that moves


def share(params, optimizer, n):
    for t in tensors_of(params, optimizer):
        t.share_memory_()
    for p in params:
        p.grad.share_memory_()


def move_storage(params, optimizer, n):
    for t in tensors_of(params, optimizer):
        t.set_(t.clone())


def grow_storage(params, optimizer, n):
    for t in tensors_of(params, optimizer):
        t.untyped_storage().resize_(t.nbytes * (n + 2))


def replace_data(params, optimizer, n):
    for p in params:
        p.data = torch.cat([p.data, p.data])[SIZE:]  # a view, away from the beginning of its storage
        optimizer.state[p]["prev"] = torch.cat([optimizer.state[p]["prev"]] * 2)[:SIZE]


def strided_gradient(params, optimizer, n):
    for p in params:
        p.grad = torch.stack([p.grad, p.grad], 1)[:, 0]


def strided_buffers(params, optimizer, n):
    for p in params:
        state = optimizer.state[p]
        for name in ("total", "prev"):
            state[name] = torch.stack([state[name]] * 2, 1)[:, 1]


def negated_gradient(params, optimizer, n):
    for p in params:
        p.grad = torch._neg_view(-p.grad)
        assert p.grad.is_neg()


def negated_buffer(params, optimizer, n):
    for p in params:
        optimizer.state[p]["prev"] = torch._neg_view(-optimizer.state[p]["prev"])


def zero_gradient(params, optimizer, n):
    for p in params:
        p.grad = torch._efficientzerotensor(p.shape)


ATTACKS = [
    share,
    move_storage,
    grow_storage,
    replace_data,
    strided_gradient,
    strided_buffers,
    negated_gradient,
    negated_buffer,
    zero_gradient,
]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda f: f.__name__)
def test_memory_that_moves(kind, attack):
    params, optimizers = pair(kind)
    run(params, optimizers, 2)
    run(params, optimizers, 3, first=2, before=attack)
    run(params, optimizers, 2, first=5)
    same(params, optimizers)


def test_plain_arrays():
    x = torch.ones(4, 3)
    assert is_plain(x, torch.float32, 12)
    assert is_plain(x.view(-1)[3:], torch.float32, 9)
    odd = [x.T, x.to_sparse(), torch._neg_view(x), x.double(), x.to("meta"), torch._efficientzerotensor(4, 3), x[:0]]
    assert not any(is_plain(t, torch.float32, 12) for t in odd)
    x.untyped_storage().resize_(40)
    assert not is_plain(x, torch.float32, 12)


def test_what_has_changed_is_seen():
    """In all tensors at once: every question whose answer was yes is asked again at every step."""
    tensors = [torch.ones(3, 3) for _ in range(4)]
    changes = {
        "shape": lambda t: t.set_(torch.ones(9)),
        "strides": lambda t: t.t_(),
        "dtype": lambda t: setattr(t, "data", t.double()),
        "negated": lambda t: setattr(t, "data", torch._neg_view(t.data)),
        "zeros": lambda t: setattr(t, "data", torch._efficientzerotensor(3, 3)),
        "freed": lambda t: t.untyped_storage().resize_(0),
        "shrunk": lambda t: t.untyped_storage().resize_(20),
    }
    for name, change in changes.items():
        for k in range(4):
            some = [t.clone() for t in tensors]
            plain = Plain(some, 4)
            for _ in range(2):
                assert plain.addresses(some).tolist() == [[t.data_ptr() for t in some]]
            change(some[k])
            assert plain.addresses(some) is None, name
    some = [t.clone() for t in tensors]
    plain = Plain(some, 4)
    plain.addresses(some)
    some[2].set_(torch.zeros(3, 3))  # other memory, of the same kind
    assert plain.addresses(some).tolist() == [[t.data_ptr() for t in some]]
    assert plain.addresses(some[:3]) is None


# ---------------------------------------------------------------- memory that is not there


def freed(t):
    t.untyped_storage().resize_(0)


def shrunk(t):
    t.untyped_storage().resize_(t.nbytes // 3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("damage", [freed, shrunk])
@pytest.mark.parametrize("what", ["parameter", "gradient", "total"])
def test_storage_that_is_too_small_is_said(mode, damage, what):
    """PyTorch's own operations would crash."""
    for kind in ALL:
        p = torch.ones(SIZE, requires_grad=True)
        optimizer = kind([p], lr=0.1, **MODES[mode])
        p.grad = torch.ones(SIZE)
        optimizer.step()
        damage({"parameter": p, "gradient": p.grad, "total": optimizer.state[p]["total"]}[what])
        with pytest.raises(RuntimeError, match=r"smaller than the tensor: it was freed or resized\. Give it memory again"):
            optimizer.step()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 10, 2 * SIZE])
def test_a_parameter_replaced_after_the_backward_pass_is_said(mode, size):
    for kind in ALL:
        p = torch.ones(SIZE, requires_grad=True)
        optimizer = kind([p], lr=0.1, **MODES[mode])
        p.grad = torch.ones(SIZE)
        p.data = torch.ones(size)
        with pytest.raises(RuntimeError, match=r"but its gradient has \(3000,\): .* Compute the gradient again"):
            optimizer.step()


@pytest.mark.parametrize("mode", MODES)
def test_a_parameter_replaced_between_steps_is_said(mode):
    p = torch.ones(SIZE, requires_grad=True)
    optimizer = AdaGradDiff([p], lr=0.1, **MODES[mode])
    p.grad = torch.ones(SIZE)
    optimizer.step()
    p.grad, p.data = None, torch.ones(7)
    p.grad = torch.ones(7)
    with pytest.raises(RuntimeError, match=r"has shape \(7,\), but the previous gradient in its state has \(3000,\)"):
        optimizer.step()
    del optimizer.state[p]
    optimizer.step()
    torch.testing.assert_close(p.detach(), torch.full((7,), 0.9))


# ---------------------------------------------------------------- memory that two tensors share


def test_what_overlaps_is_seen():
    table = np.array([[1000, 500, 2000, 3000], [1040, 500, 2040, 3040]], np.uint64)
    lengths = np.array([40, 40])
    assert not overlapping(table, lengths)  # gradients may be the same
    for row, column, value in [(1, 0, 1039), (1, 2, 2000), (0, 3, 1001)]:
        crooked = table.copy()
        crooked[row, column] = value
        assert overlapping(crooked, lengths)


@pytest.mark.parametrize("kind", ALL)
def test_overlapping_views_are_stepped_one_after_the_other(kind):
    """Two parameters in one memory, large enough for threads."""
    half = 1 << 19
    results = []
    torch.set_num_threads(2)
    for mode in ("fused", "single"):
        whole = torch.linspace(-1, 1, 3 * half)
        params = [torch.nn.Parameter(whole[: 2 * half]), torch.nn.Parameter(whole[half:])]
        optimizer = kind(params, lr=0.01, **MODES[mode])
        for n in range(2):
            for p in params:
                p.grad = torch.linspace(-1, 2, 2 * half) + n
            optimizer.step()
        results.append(whole)
    torch.set_num_threads(1)
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)


def test_tied_weights():
    """One parameter in two layers gets one step by the sum of both gradients."""
    results = []
    for mode in ("fused", "single"):
        torch.manual_seed(0)
        table, head = torch.nn.Embedding(7, 5), torch.nn.Linear(5, 7, bias=False)
        head.weight = table.weight
        model = torch.nn.Sequential(table, head)
        optimizer = AdaGradDiff(model.parameters(), lr=0.1, **MODES[mode])
        assert len(optimizer.param_groups[0]["params"]) == 1
        for n in range(4):
            optimizer.zero_grad()
            model(torch.tensor([n, n + 1])).square().sum().backward()
            optimizer.step()
        results.append(table.weight.detach())
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("mode", MODES)
def test_a_gradient_that_is_the_parameter_itself(mode):
    """x.grad = x: every entry is read before it is written."""
    x = torch.linspace(1, 2, SIZE, requires_grad=True)
    x.grad = x.detach()
    AdaGradDiff([x], lr=0.5, **MODES[mode]).step()
    torch.testing.assert_close(x.detach(), torch.linspace(0.5, 1.5, SIZE))


# ---------------------------------------------------------------- copies, threads, processes


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("way", ["deepcopy", "pickle", "torch.save"])
def test_copies_in_the_middle_of_training(kind, way):
    """The original is thrown away: a copy that knew its addresses would write to freed memory."""

    def copied(thing):
        if way == "deepcopy":
            return copy.deepcopy(thing)
        if way == "pickle":
            return pickle.loads(pickle.dumps(thing))
        file = io.BytesIO()
        torch.save(thing, file)
        file.seek(0)
        return torch.load(file, weights_only=False)

    params, optimizers = pair(kind)
    for n in range(4):
        run(params, optimizers, 2, first=2 * n)
        params, optimizers = copied((params, optimizers))
        torch.randn(10 * SIZE)  # what was freed is used again
    run(params, optimizers, 1, first=9)
    same(params, optimizers)


def test_two_threads():
    """Each with an optimizer of its own, at the same time, as often as they can; and both with the same one (no crash)."""
    (reference,), (plain,) = (part[1:] for part in pair(AdamDiff))
    for n in range(30):
        gradients(reference, n % 5)
        plain.step()
    results, errors = [], []

    def work(shared=None):
        try:
            (params, _), (optimizer, _) = pair(AdamDiff)
            for n in range(30):
                gradients(params, n % 5)
                optimizer.step()
                if shared is not None:
                    shared.step()
            results.append(params)
        except BaseException as error:
            errors.append(error)

    (params, _), (shared, _) = pair()
    gradients(params, 0)
    for arguments in ((), (shared,)):
        threads = [threading.Thread(target=work, args=arguments) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    assert len(results) == 4
    for params in results:
        torch.testing.assert_close(params, reference, rtol=2e-5, atol=1e-6)


def child_steps(params, optimizer, done):
    """What a worker process does: steps, in memory that it shares with us."""
    torch.set_num_threads(1)
    gradients(params, 3)
    optimizer.step()
    done.put([p.detach().sum().item() for p in params])


def test_an_optimizer_sent_to_a_new_process():
    sent_to_a_worker_process("spawn")


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning")
def test_an_optimizer_sent_to_a_forked_process():
    sent_to_a_worker_process("fork")


def sent_to_a_worker_process(how):
    import torch.multiprocessing as mp

    (params, twins), (optimizer, plain) = pair()
    run((params, twins), (optimizer, plain), 2)
    share(params, optimizer, 0)
    context = mp.get_context(how)
    done = context.Queue()
    process = context.Process(target=child_steps, args=(params, optimizer, done))
    process.start()
    theirs = done.get(timeout=120)
    process.join(60)
    assert process.exitcode == 0
    gradients(twins, 3)
    plain.step()
    np.testing.assert_allclose(theirs, [p.detach().sum().item() for p in twins], rtol=1e-4)
    same((params, twins), (optimizer, plain))  # the memory is shared: the worker's step is ours
    run((params, twins), (optimizer, plain), 2, first=5)
    same((params, twins), (optimizer, plain))
    assert os.getpid() != process.pid
