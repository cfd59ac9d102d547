"""State dicts, copies and pickles of the torch optimizers: a resumed run is the same run."""

import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import MODES, OPTIMIZERS, PENALTIES, states_of  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, GroupL2  # noqa: E402

pytestmark = pytest.mark.peer

OPTIONS = [
    {},
    {"foreach": True},
    {"penalty": L1(0.01)},
    {"penalty": GroupL2(0.01), "blocks": "row"},
    {"maximize": True, "accumulator_dtype": torch.float64},
    {"lr": torch.tensor(0.05)},
]


def run(params, optimizer, steps, first=0):
    """Steps n = first, ... with gradients that depend on where we are."""
    for n in range(first, first + steps):
        for k, p in enumerate(params):
            noise = torch.tensor(np.random.default_rng(100 * n + k).standard_normal(p.shape)).to(p.dtype)
            p.grad = (p.detach() - 0.3) + 0.1 * noise
        optimizer.step()


def begin(kind, options, dtype=torch.float32):
    params = [torch.linspace(-1, 1, 6).reshape(2, 3).to(dtype).requires_grad_(), torch.ones(4, dtype=dtype, requires_grad=True)]
    return params, kind(params, **{"lr": 0.05, **options})


def same(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=0)


def through_a_file(content):
    file = io.BytesIO()
    torch.save(content, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
def test_a_resumed_run_is_the_same_run(kind, options, dtype, used):
    params, optimizer = begin(kind, options, dtype)
    run(params, optimizer, 4)
    saved = through_a_file({"optimizer": optimizer.state_dict(), "params": params})
    run(params, optimizer, 4, first=4)

    again, resumed = begin(kind, {"lr": 0.7}, dtype)  # every option comes from the file
    if used:  # what it has done before does not matter
        run(again, resumed, 2, first=50)
    with torch.no_grad():
        for p, q in zip(again, saved["params"], strict=True):
            p.copy_(q)
    resumed.load_state_dict(saved["optimizer"])
    assert resumed.param_groups[0]["penalty"] == options.get("penalty")
    run(again, resumed, 4, first=4)
    same(params, again)
    same(states_of(optimizer), states_of(resumed))


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_state_dict_shares_nothing(kind, options):
    params, optimizer = begin(kind, options)
    run(params, optimizer, 3)
    saved = optimizer.state_dict()
    kept = copy.deepcopy(saved)
    same(optimizer.state_dict()["state"], saved["state"])  # deterministic
    others = [begin(kind, options) for _ in range(2)]
    for _, other in others:
        other.load_state_dict(saved)
    for some, one in [(params, optimizer), *others]:
        if isinstance(one.param_groups[0]["lr"], torch.Tensor):
            one.param_groups[0]["lr"].mul_(0.5)
        run(some, one, 3)
    assert saved["param_groups"] == kept["param_groups"]
    same(saved["state"], kept["state"])
    same(states_of(others[0][1]), states_of(others[1][1]))


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_penalties_survive(kind, penalty):
    _, optimizer = begin(kind, {"penalty": penalty})
    content = through_a_file(optimizer.state_dict())
    assert isinstance(content["param_groups"][0]["penalty"], dict)
    assert optimizer.param_groups[0]["penalty"] is penalty  # not replaced by its description
    _, other = begin(kind, {})
    other.load_state_dict(content)
    assert other.param_groups[0]["penalty"] == penalty


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))], ids=["deepcopy", "pickle"])
def test_copies_go_the_same_way_by_themselves(kind, options, copied):
    params, optimizer = begin(kind, options)
    run(params, optimizer, 3)
    clones, clone = copied((params, optimizer))
    run(params, optimizer, 3, first=3)
    before = copy.deepcopy(states_of(optimizer))
    run(clones, clone, 3, first=3)
    same(params, clones)
    same(before, states_of(clone))
    same(before, states_of(optimizer))


def test_sparse_runs_resume():
    """Where the last gradient was not zero is part of the state, also if a dense gradient comes next."""
    results = []
    for resume in (False, True):
        x = torch.ones(5, 2, requires_grad=True)
        optimizer = AdaGradDiff([x], lr=0.1)
        for n, rows in enumerate(([0, 1], [1, 2], None, [3], [0])):
            x.grad = torch.ones(5, 2) * (n + 1)
            if rows is not None:
                mask = torch.zeros(5, 1).index_fill(0, torch.tensor(rows), 1.0)
                x.grad = (x.grad * mask).to_sparse(1)
            optimizer.step()
            if resume:
                content, optimizer = through_a_file(optimizer.state_dict()), AdaGradDiff([x], lr=0.7)
                optimizer.load_state_dict(content)
        results.append((x.detach(), optimizer.state_dict()["state"]))
    same(*results)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_reset_forgets_everything(kind, mode):
    params, optimizer = begin(kind, MODES[mode])
    run(params, optimizer, 3)
    optimizer.reset()
    assert not optimizer.state
    others, fresh = begin(kind, MODES[mode])
    with torch.no_grad():
        for p, q in zip(others, params, strict=True):
            p.copy_(q)
    run(params, optimizer, 3)
    run(others, fresh, 3)
    same(params, others)
    same(states_of(optimizer), states_of(fresh))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("how", ["clear", "pop", "assign", "buffers"])
def test_the_state_is_what_counts(kind, mode, how):
    """Whoever changes `optimizer.state` gets what they asked for."""
    params, optimizer = begin(kind, MODES[mode])
    run(params, optimizer, 3)
    if how == "clear":
        optimizer.state.clear()
    for p in params:
        if how == "pop":
            optimizer.state.pop(p)
        elif how == "assign":
            optimizer.state[p] = {name: torch.zeros_like(t) for name, t in optimizer.state[p].items()}
        elif how == "buffers":
            for name in list(optimizer.state[p]):
                optimizer.state[p][name] = torch.zeros_like(optimizer.state[p][name])
    others, fresh = begin(kind, MODES[mode])
    with torch.no_grad():
        for p, q in zip(others, params, strict=True):
            p.copy_(q)
    run(params, optimizer, 2)
    run(others, fresh, 2)
    same(params, others)
    same(states_of(optimizer), states_of(fresh))


@pytest.mark.parametrize("mode", MODES)
def test_one_buffer_replaced(mode):
    """Every buffer by itself, the mean of AdamDiff too."""
    for name in ("total", "prev", "mean"):
        (params, optimizer), (others, single) = begin(AdamDiff, MODES[mode]), begin(AdamDiff, MODES["single"])
        for some, one in ((params, optimizer), (others, single)):
            run(some, one, 2)
            for p in some:
                one.state[p][name] = one.state[p][name] * 0.5
            run(some, one, 2, first=2)
        torch.testing.assert_close([params, states_of(optimizer)], [others, states_of(single)])


def test_parameters_may_move():
    """`p.data = ...` gives a parameter other memory."""
    params, optimizer = begin(AdaGradDiff, {})
    others, single = begin(AdaGradDiff, MODES["single"])
    for n in range(3):
        run(params, optimizer, 1, first=n)
        run(others, single, 1, first=n)
        for p in params:
            p.data = p.data.clone()
    torch.testing.assert_close(params, others)


def test_hooks_of_state_dict_and_load():
    params, optimizer = begin(AdaGradDiff, {"penalty": L1(0.1)})
    run(params, optimizer, 2)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("before saving"))
    optimizer.register_state_dict_post_hook(lambda o, content: seen.append("after saving"))
    content = optimizer.state_dict()
    _, other = begin(AdaGradDiff, {})
    doubled = {k: {name: 2 * t for name, t in state.items()} for k, state in content["state"].items()}
    other.register_load_state_dict_pre_hook(lambda o, content: {**content, "state": doubled})
    other.register_load_state_dict_post_hook(lambda o: seen.append("after loading"))
    other.load_state_dict(content)
    assert seen == ["before saving", "after saving", "after loading"]
    same(states_of(other), list(doubled.values()))
