"""State dicts, copies and pickles: a resumed run is the same run."""

import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import BOTH, KINDS, PENALTIES, parameter, run, same, states_of  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, AdamWDiff, GroupL2  # noqa: E402
from pairwise import pairwise  # noqa: E402

pytestmark = pytest.mark.peer

OPTIONS = [
    {},
    {"weight_decay": 0.1},
    {"penalty": L1(0.01)},
    {"penalty": GroupL2(0.01), "blocks": "row"},
    {"maximize": True, "accumulator_dtype": torch.float64},
    {"lr": torch.tensor(0.05), "capturable": True},
]


def begin(kind, options, dtype=torch.float32, named=False):
    params = [torch.linspace(-1, 1, 6).reshape(2, 3).to(dtype), torch.ones(4, dtype=dtype)]
    params = [p.requires_grad_() for p in params]
    return params, kind(
        zip("ab", params, strict=True) if named else params, **{"lr": 0.05, **options}
    )


def used(kind, steps=2, **options):
    params, optimizer = begin(kind, options)
    run(params, optimizer, steps)
    return optimizer


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
    earlier_steps=[0, 2],
    named=BOTH,
)
def test_a_resumed_run_is_the_same_run(kind, options, dtype, way, earlier_steps, named):
    """Every option comes from the file, and earlier steps of the loading optimizer do not matter."""
    options = copy.deepcopy(options)
    params, optimizer = begin(kind, options, dtype, named)
    run(params, optimizer, 3)
    if way == "file":
        saved = through_a_file({"optimizer": optimizer.state_dict(), "params": params})
        again, resumed = begin(kind, {"lr": 0.7}, dtype)
        run(again, resumed, earlier_steps, first=50)
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
    same((params, states_of(optimizer)), (again, states_of(resumed)))
    theirs, ours = ({**o.param_groups[0], "params": 0} for o in (optimizer, resumed))
    assert theirs == ours


def test_a_state_dict_shares_nothing():
    """Scripts also put their own values into the state."""
    params, optimizer = begin(AdamDiff, {"lr": torch.tensor(0.05)})
    run(params, optimizer, 2)
    optimizer.state["epoch"], optimizer.state["seen"] = 1, torch.tensor([2.0])
    saved = optimizer.state_dict()
    kept = copy.deepcopy(saved)
    others, other = begin(AdamDiff, {})
    other.load_state_dict(saved)
    assert other.state["epoch"] == 1
    optimizer.state["seen"].add_(1)
    for some, one in ((params, optimizer), (others, other)):
        one.param_groups[0]["lr"].mul_(0.5)
        run(some, one, 2)
    same((saved["state"], saved["param_groups"][0]["lr"]), (kept["state"], torch.tensor(0.05)))


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_penalties_are_saved_as_plain_data(penalty):
    optimizer, other = used(AdaGradDiff, penalty=penalty), used(AdaGradDiff)
    content = through_a_file(optimizer.state_dict())
    assert isinstance(content["param_groups"][0]["penalty"], dict)
    assert optimizer.param_groups[0]["penalty"] is penalty
    other.load_state_dict(content)
    assert other.param_groups[0]["penalty"] == penalty
    content["param_groups"][0]["penalty"]["name"] = "Unknown"
    with pytest.raises(ValueError, match=r"has a penalty 'Unknown'.* Import the module"):
        other.load_state_dict(content)


def test_a_hook_may_change_what_is_loaded():
    optimizer, other = used(AdaGradDiff, penalty=L1(0.1)), used(AdaGradDiff)
    content = optimizer.state_dict()
    doubled = {k: {n: 2 * t for n, t in state.items()} for k, state in content["state"].items()}
    other.register_load_state_dict_pre_hook(lambda o, content: {**content, "state": doubled})
    other.load_state_dict(content)
    same(states_of(other), list(doubled.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_reset_forgets_all_differences(kind):
    params, optimizer = begin(kind, {})
    run(params, optimizer, 3)
    optimizer.reset()
    others, fresh = begin(kind, {})
    copy_into(others, params)
    run(params, optimizer, 2)
    run(others, fresh, 2)
    same((params, states_of(optimizer)), (others, states_of(fresh)))


def test_buffers_keep_their_precision_for_parameters_of_another_one():
    optimizer, loaded = AdamDiff([x := parameter(dtype=torch.float32)]), AdamDiff([parameter()])
    run([x], optimizer, 1)
    loaded.load_state_dict(optimizer.state_dict())
    same(states_of(loaded), states_of(optimizer))


# ---------------------------------------------------------------- state dicts of others


@pairwise(kind=KINDS, steps=[0, 1])
def test_a_state_dict_of_another_optimizer_is_rejected(kind, steps):
    strangers = [AdaGradDiff] if kind is not AdaGradDiff else [AdamDiff, AdamWDiff]
    for other in (torch.optim.Adagrad, torch.optim.Adam, torch.optim.SGD, *strangers):
        optimizer = used(kind)
        before = copy.deepcopy(states_of(optimizer))
        message = f"This state_dict is not one of {kind.__name__}: .* Load it into the optimizer"
        with pytest.raises(ValueError, match=message):
            optimizer.load_state_dict(used(other, steps).state_dict())
        same(states_of(optimizer), before)


def test_the_message_names_the_buffers_that_differ():
    foreign = used(torch.optim.Adagrad).state_dict()
    foreign["param_groups"] = used(AdaGradDiff).state_dict()["param_groups"]
    message = "state holds 'step', 'sum' where AdaGradDiff has 'prev', 'step', 'total'"
    with pytest.raises(ValueError, match=message):
        used(AdaGradDiff).load_state_dict(foreign)


def test_state_dicts_of_both_adams_fit_each_other():
    """AdamDiff then does as the file says, and AdamWDiff always decouples the decay."""
    coupled, decoupled = used(AdamDiff).state_dict(), used(AdamWDiff).state_dict()
    for kind, content, expected in (
        (AdamDiff, coupled, False),
        (AdamDiff, decoupled, True),
        (AdamWDiff, coupled, True),
        (AdamWDiff, decoupled, True),
    ):
        optimizer = used(kind)
        optimizer.load_state_dict(content)
        assert optimizer.param_groups[0]["decoupled_weight_decay"] is expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_dict_without_later_options(kind):
    """A missing option is that of the loading optimizer, and a step count may be a number."""
    optimizer = used(kind)
    saved = optimizer.state_dict()
    required = {"params", "lr", "eps", "penalty", "blocks", "betas"}
    for name in set(saved["param_groups"][0]) - required:
        del saved["param_groups"][0][name]
    for state in saved["state"].values():
        state["step"] = 2
    params, loaded = begin(kind, {})
    copy_into(params, optimizer.param_groups[0]["params"])
    loaded.load_state_dict(saved)
    for one in (optimizer, loaded):
        run(one.param_groups[0]["params"], one, 2)
    same(params, optimizer.param_groups[0]["params"])


# ---------------------------------------------------------------- damaged state dicts

WRONG = [
    ("total", np.nan, "contains NaN or a negative number"),
    ("total", -1e-30, "contains NaN or a negative number"),
    ("total", -np.inf, "contains NaN or a negative number"),
    ("prev", np.nan, "contains NaN"),
    ("mean", np.nan, "contains NaN"),
    ("step", np.nan, "contains NaN or a negative number"),
    ("step", -1.0, "contains NaN or a negative number"),
]


@pairwise(wrong=WRONG, kind=KINDS, dtype=[torch.float32, torch.complex64, torch.bfloat16])
def test_states_that_cannot_be_valid_are_not_loaded(kind, wrong, dtype):
    name, number, sentence = wrong
    if name == "mean" and kind is AdaGradDiff:
        name = "prev"  # AdaGradDiff has no mean
    params, optimizer = begin(kind, {}, dtype)
    run(params, optimizer, 3)
    saved, before = optimizer.state_dict(), copy.deepcopy(optimizer.state_dict())
    saved["state"][1][name].reshape(-1)[-1] = number
    saved["param_groups"][0]["lr"] = 123.0
    message = rf"^'{name}' of parameter 1 in this state_dict {sentence}\. .*Nothing was changed"
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict(saved)
    assert optimizer.state_dict()["param_groups"] == before["param_groups"]
    same(optimizer.state_dict()["state"], before["state"])


def test_infinite_squares_are_loaded_and_other_kinds_of_numbers_are_not():
    optimizer = used(AdaGradDiff)
    saved = optimizer.state_dict()
    saved["state"][0]["total"].fill_(np.inf)  # squares of large gradients overflow
    optimizer.load_state_dict(saved)
    for change in (torch.Tensor.to_sparse, lambda t: t.to(torch.complex64)):
        wrong = copy.deepcopy(saved)
        wrong["state"][0]["total"] = change(-wrong["state"][0]["total"])
        with pytest.raises(ValueError, match=r"^.total. of parameter 0 in this state_dict "):
            optimizer.load_state_dict(wrong)


@pytest.mark.parametrize("p", [torch.zeros(0), torch.ones(3, device="meta")])
def test_states_without_numbers(p):
    p.grad = torch.zeros_like(p)
    optimizer = AdamDiff([p])
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
