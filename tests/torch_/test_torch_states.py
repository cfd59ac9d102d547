"""State dicts, copies and pickles: a resumed run is the same run."""

import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import BOTH, KINDS, MODES, PENALTIES, parameter, same, states_of  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, AdamWDiff, GroupL2  # noqa: E402
from pairwise import pairwise  # noqa: E402

pytestmark = pytest.mark.peer

OPTIONS = [
    {},
    {"foreach": True, "weight_decay": 0.1},
    {"penalty": L1(0.01)},
    {"penalty": GroupL2(0.01), "blocks": "row"},
    {"maximize": True, "accumulator_dtype": torch.float64},
    {"lr": torch.tensor(0.05), "capturable": True},
]


def run(params, optimizer, steps, first=0):
    """Make the steps first, first + 1, ... with gradients that depend on the parameters."""
    for n in range(first, first + steps):
        for k, p in enumerate(params):
            noise = torch.tensor(np.random.default_rng(100 * n + k).standard_normal(p.shape)).to(
                p.dtype
            )
            p.grad = (p.detach() - 0.3) + 0.1 * noise
        optimizer.step()


def begin(kind, options, dtype=torch.float32, named=False):
    params = [torch.linspace(-1, 1, 6).reshape(2, 3).to(dtype), torch.ones(4, dtype=dtype)]
    params = [p.requires_grad_() for p in params]
    return params, kind(
        zip("ab", params, strict=True) if named else params, **{"lr": 0.05, **options}
    )


def copy_into(params, values):
    with torch.no_grad():
        for p, q in zip(params, values, strict=True):
            p.copy_(q)


def through_a_file(content):
    file = io.BytesIO()
    torch.save(content, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pairwise(
    kind=KINDS,
    options=OPTIONS,
    dtype=[torch.float32, torch.bfloat16],
    way=["file", "deepcopy", "pickle"],
    used=BOTH,
    named=BOTH,
)
def test_a_resumed_run_is_the_same_run(kind, options, dtype, way, used, named):
    """Every option comes from the file, and earlier steps of the loading optimizer do not matter."""
    options = copy.deepcopy(options)
    params, optimizer = begin(kind, options, dtype, named)
    run(params, optimizer, 3)
    if way == "file":
        saved = through_a_file({"optimizer": optimizer.state_dict(), "params": params})
        again, resumed = begin(kind, {"lr": 0.7}, dtype)
        run(again, resumed, 2 * used, first=50)
        copy_into(again, saved["params"])
        resumed.load_state_dict(saved["optimizer"])
        assert resumed.param_groups[0].get("param_names") == (["a", "b"] if named else None)
    elif way == "deepcopy":
        again, resumed = copy.deepcopy((params, optimizer))
    else:
        again, resumed = pickle.loads(pickle.dumps((params, optimizer)))
    before = optimizer.state_dict()
    run(again, resumed, 3, first=3)
    same(optimizer.state_dict()["state"], before["state"])  # The two share nothing.
    run(params, optimizer, 3, first=3)
    same(params, again)
    same(states_of(optimizer), states_of(resumed))
    theirs, ours = ({**o.param_groups[0], "params": 0} for o in (optimizer, resumed))
    assert theirs == ours


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [OPTIONS[0], OPTIONS[5]], ids=["number", "tensor"])
def test_a_state_dict_shares_nothing(kind, options):
    params, optimizer = begin(kind, copy.deepcopy(options))
    run(params, optimizer, 2)
    optimizer.state["epoch"], optimizer.state["seen"] = 1, torch.tensor([2.0])  # as some scripts do
    saved = optimizer.state_dict()
    kept = copy.deepcopy(saved)
    others = [begin(kind, {}) for _ in range(2)]
    for _, other in others:
        other.load_state_dict(saved)
        assert other.state["epoch"] == 1
    optimizer.state["seen"].add_(1)
    for some, one in [(params, optimizer), *others]:
        if isinstance(one.param_groups[0]["lr"], torch.Tensor):
            one.param_groups[0]["lr"].mul_(0.5)
        run(some, one, 2)
    assert saved["param_groups"] == kept["param_groups"]
    same(saved["state"], kept["state"])


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_penalties_are_saved_as_plain_data(penalty):
    _, optimizer = begin(AdaGradDiff, {"penalty": penalty})
    content = through_a_file(optimizer.state_dict())
    assert isinstance(content["param_groups"][0]["penalty"], dict)
    assert optimizer.param_groups[0]["penalty"] is penalty
    _, other = begin(AdaGradDiff, {})
    other.load_state_dict(content)
    assert other.param_groups[0]["penalty"] == penalty


def test_sparse_runs_resume():
    """The state contains the support of the last gradient, also before a dense gradient."""
    results = []
    for resume in BOTH:
        x = torch.ones(5, 2, requires_grad=True)
        optimizer = AdaGradDiff([x], lr=0.1)
        for n, rows in enumerate(([0, 1], [1, 2], None, [3], [0])):
            x.grad = torch.ones(5, 2) * (n + 1)
            if rows is not None:
                x.grad = (
                    x.grad * torch.zeros(5, 1).index_fill(0, torch.tensor(rows), 1.0)
                ).to_sparse(1)
            optimizer.step()
            if resume:
                content, optimizer = (
                    through_a_file(optimizer.state_dict()),
                    AdaGradDiff([x], lr=0.7),
                )
                optimizer.load_state_dict(content)
        results.append((x.detach(), optimizer.state_dict()["state"]))
    same(*results)


@pairwise(kind=KINDS, mode=MODES, how=["reset", "clear", "pop", "assign", "buffers"])
def test_a_changed_state_counts(kind, mode, how):
    params, optimizer = begin(kind, MODES[mode])
    run(params, optimizer, 3)
    if how == "reset":
        optimizer.reset()
        assert not optimizer.state
    elif how == "clear":
        optimizer.state.clear()
    for p in params:
        if how == "pop":
            optimizer.state.pop(p)
        elif how == "assign":
            optimizer.state[p] = {
                name: torch.zeros_like(t) for name, t in optimizer.state[p].items()
            }
        elif how == "buffers":
            for name, t in optimizer.state[p].items():
                optimizer.state[p][name] = torch.zeros_like(t)
        p.data = p.data.clone()  # Memory may change as well.
    others, fresh = begin(kind, MODES[mode])
    copy_into(others, params)
    run(params, optimizer, 2)
    run(others, fresh, 2)
    same(params, others)
    same(states_of(optimizer), states_of(fresh))


def test_hooks_around_saving_and_loading():
    params, optimizer = begin(AdaGradDiff, {"penalty": L1(0.1)})
    run(params, optimizer, 2)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("before saving"))
    optimizer.register_state_dict_post_hook(lambda o, content: seen.append("after saving"))
    content = optimizer.state_dict()
    _, other = begin(AdaGradDiff, {})
    doubled = {
        k: {name: 2 * t for name, t in state.items()} for k, state in content["state"].items()
    }
    other.register_load_state_dict_pre_hook(lambda o, content: {**content, "state": doubled})
    other.register_load_state_dict_post_hook(lambda o: seen.append("after loading"))
    other.load_state_dict(content)
    assert seen == ["before saving", "after saving", "after loading"]
    same(states_of(other), list(doubled.values()))


# ---------------------------------------------------------------- state dicts of others


def used(kind, steps=1, **options):
    x = torch.ones(3, requires_grad=True)
    optimizer = kind([x], lr=0.1, **options)
    for _ in range(steps):
        x.grad = torch.ones(3)
        optimizer.step()
    return optimizer


@pairwise(kind=KINDS, steps=[0, 1])
def test_a_state_dict_of_another_optimizer_is_rejected(kind, steps):
    strangers = [AdaGradDiff] if kind is not AdaGradDiff else [AdamDiff, AdamWDiff]
    for other in (torch.optim.Adagrad, torch.optim.Adam, torch.optim.SGD, *strangers):
        optimizer = used(kind, 2)
        before = copy.deepcopy(states_of(optimizer))
        message = f"This state_dict is not one of {kind.__name__}: .* Load it into the optimizer"
        with pytest.raises(ValueError, match=message):
            optimizer.load_state_dict(used(other, steps).state_dict())
        same(states_of(optimizer), before)


def test_the_message_names_the_buffers_that_differ():
    foreign = used(torch.optim.Adagrad).state_dict()
    foreign["param_groups"] = used(AdaGradDiff).state_dict()["param_groups"]
    with pytest.raises(
        ValueError, match="state holds 'step', 'sum' where AdaGradDiff has 'prev', 'total'"
    ):
        used(AdaGradDiff).load_state_dict(foreign)


def test_state_dicts_of_both_adams_fit_each_other():
    """AdamDiff then does as the file says, and AdamWDiff always decouples the decay."""
    coupled, decoupled = used(AdamDiff).state_dict(), used(AdamWDiff).state_dict()
    older = copy.deepcopy(decoupled)
    del older["param_groups"][0]["decoupled_weight_decay"]
    cases = [(AdamDiff, coupled, False), (AdamDiff, decoupled, True)]
    for kind, content, expected in (
        *cases,
        *((AdamWDiff, c, True) for c in (coupled, decoupled, older)),
    ):
        optimizer = used(kind)
        optimizer.load_state_dict(content)
        assert optimizer.param_groups[0]["decoupled_weight_decay"] is expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_dict_without_later_options(kind):
    """A missing option is that of the loading optimizer, and a step count may be a number."""
    optimizer = used(kind, 3)
    saved = optimizer.state_dict()
    for name in set(saved["param_groups"][0]) - {
        "params",
        "lr",
        "eps",
        "penalty",
        "blocks",
        "betas",
    }:
        del saved["param_groups"][0][name]
    if "step" in saved["state"][0]:
        saved["state"][0]["step"] = 3
    loaded = used(kind, 0)
    loaded.load_state_dict(saved)
    points = []
    for one in (optimizer, loaded):
        (p,) = one.param_groups[0]["params"]
        p.data, p.grad = torch.ones(3), torch.full((3,), 2.0)
        one.step()
        points.append(p.detach())
    same(*points)


def test_buffers_keep_their_precision_for_parameters_of_another_one():
    optimizer, loaded = AdamDiff([x := parameter(dtype=torch.float32)]), AdamDiff([parameter()])
    x.grad = torch.ones_like(x)
    optimizer.step()
    loaded.load_state_dict(optimizer.state_dict())
    same(states_of(loaded), states_of(optimizer))
