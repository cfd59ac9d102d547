"""Parameter groups carry keys of other libraries, and states that cannot be valid are not loaded."""

import copy

import pytest

torch = pytest.importorskip("torch")

from adagrad_diff.torch import AdaGradDiff, AdamDiff, AdamWDiff  # noqa: E402
from pairwise import pairwise  # noqa: E402

pytestmark = pytest.mark.peer
KINDS = [AdaGradDiff, AdamDiff, AdamWDiff]
# Keys that timm, MAE and BEiT (lr_scale, group_name, layer_id), SAM wrappers (rho, adaptive) and training scripts use.
FOREIGN = {
    "lr_scale": 0.5,
    "name": "head",
    "group_name": "layer_3_no_decay",
    "layer_id": 3,
    "layer_decay": 0.75,
    "rho": 0.05,
    "adaptive": True,
    "initial_lr": 0.1,
    "max_lr": 1.0,
    "min_lr": 0.0,
    "swa_lr": 0.05,
    "lr_mult": 2.0,
    "weight_decay_scale": 1.0,
    "weight_decay_end": 0.1,
    "no_weight_decay": True,
    "wd_mult": 0.0,
    "momentum": 0.9,
    "nesterov": False,
    "warmup_steps": 100,
    "use_muon": False,
    7: "not a string",
}


def parameters():
    return [torch.nn.Parameter(torch.tensor([3.0, -4.0])), torch.nn.Parameter(torch.ones(2, 3))]


def steps(optimizer, count=3):
    params = [p for group in optimizer.param_groups for p in group["params"]]
    for k in range(count):
        for p in params:
            p.grad = (1.0 + k) * p.detach()
        optimizer.step()
    return [p.detach().clone() for p in params]


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_other_libraries_are_kept(kind):
    one, two = parameters()
    optimizer = kind([{"params": [one], "lr": 0.1, **FOREIGN}])
    optimizer.add_param_group({"params": [two], **FOREIGN})
    for group in optimizer.param_groups:
        assert {name: group[name] for name in FOREIGN} == FOREIGN
    first, second = parameters()
    for x, y in zip(
        steps(optimizer),
        steps(kind([{"params": [first], "lr": 0.1}, {"params": [second]}])),
        strict=True,
    ):
        assert torch.equal(x, y)
    saved = optimizer.state_dict()
    for group in saved["param_groups"]:
        assert {name: group[name] for name in FOREIGN} == FOREIGN
    one, two = parameters()
    loaded = kind([{"params": [one]}, {"params": [two]}])
    loaded.load_state_dict(saved)
    for group in loaded.param_groups:
        assert {name: group[name] for name in FOREIGN} == FOREIGN
    steps(copy.deepcopy(loaded))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("weigth_decay", "weight_decay"),
        ("weightdecay", "weight_decay"),
        ("LR", "lr"),
        ("pentaly", "penalty"),
        ("block", "blocks"),
        ("maximise", "maximize"),
        ("redce_rate", "reduce_rate"),
    ],
)
def test_a_misspelled_option_warns(kind, name, meant):
    one, two = parameters()
    message = rf"^A parameter group has the key '{name}', which is not an option of {kind.__name__}. Did you mean '{meant}'"
    with pytest.warns(UserWarning, match=message) as found:
        optimizer = kind([{"params": [one], name: 0.1}])
    assert found[0].filename == __file__
    with pytest.warns(UserWarning, match=message):
        optimizer.add_param_group({"params": [two], name: 0.1})
    assert [group[name] for group in optimizer.param_groups] == [0.1, 0.1]


def saved_state(kind, dtype=torch.float32):
    params = [
        torch.nn.Parameter(torch.ones(3, dtype=dtype)),
        torch.nn.Parameter(torch.ones(2, 2, dtype=dtype)),
    ]
    optimizer = kind(params)
    steps(optimizer)
    return optimizer, optimizer.state_dict()


WRONG = [
    ("total", float("nan"), "contains NaN or a negative number"),
    ("total", -1e-30, "contains NaN or a negative number"),
    ("total", float("-inf"), "contains NaN or a negative number"),
    ("prev", float("nan"), "contains NaN"),
    ("mean", float("nan"), "contains NaN"),
    ("step", float("nan"), "contains NaN or a negative number"),
    ("step", -1.0, "contains NaN or a negative number"),
]


@pairwise(wrong=WRONG, kind=KINDS, dtype=[torch.float32, torch.complex64, torch.bfloat16])
def test_states_that_cannot_be_valid_are_not_loaded(kind, wrong, dtype):
    (name, number, sentence), (optimizer, saved) = wrong, saved_state(kind, dtype)
    if name == "mean" and kind is AdaGradDiff:
        name = "prev"  # AdaGradDiff has no mean
    before = copy.deepcopy(optimizer.state_dict())
    damaged = copy.deepcopy(saved)
    buffer = damaged["state"][1].setdefault(name, torch.zeros(()))
    buffer.reshape(-1)[-1] = number
    damaged["param_groups"][0]["lr"] = 123.0
    with pytest.raises(
        ValueError,
        match=rf"^'{name}' of parameter 1 in this state_dict {sentence}\. .*Nothing was changed",
    ):
        optimizer.load_state_dict(damaged)
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    for key, state in before["state"].items():
        for word, value in state.items():
            assert torch.equal(after["state"][key][word], value)
    optimizer.load_state_dict(saved)


@pytest.mark.parametrize("kind", KINDS)
def test_states_with_other_kinds_of_tensors(kind):
    optimizer, saved = saved_state(kind)
    infinite = copy.deepcopy(saved)
    infinite["state"][0]["total"].fill_(float("inf"))  # squares of large gradients overflow
    optimizer.load_state_dict(infinite)
    for change in (torch.Tensor.to_sparse, lambda t: t.to(torch.complex64)):
        wrong = copy.deepcopy(saved)
        wrong["state"][0]["total"] = change(-wrong["state"][0]["total"])
        with pytest.raises(ValueError, match=r"^.total. of parameter 0 in this state_dict "):
            optimizer.load_state_dict(wrong)
    empty = kind([torch.nn.Parameter(torch.zeros(0))])
    steps(empty)
    empty.load_state_dict(empty.state_dict())
    missing = kind([torch.nn.Parameter(torch.ones(3, device="meta"))])
    steps(missing, 1)
    missing.load_state_dict(missing.state_dict())
    plain = copy.deepcopy(saved)
    plain["state"][0]["step"] = 3
    optimizer.load_state_dict(plain)
