"""A script that was written for Adagrad, Adam or AdamW: its arguments do what they say, and nothing is ignored in silence."""

import inspect
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import ALL, MODES  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, AdamWDiff  # noqa: E402

pytestmark = pytest.mark.peer

PEERS = {AdaGradDiff: torch.optim.Adagrad, AdamDiff: torch.optim.Adam, AdamWDiff: torch.optim.AdamW}


@pytest.mark.parametrize("kind", ALL)
def test_every_argument_of_the_peer_is_taken_in_the_same_place(kind):
    ours, theirs = (inspect.signature(c.__init__).parameters for c in (kind, PEERS[kind]))
    taken = {**inspect.signature(AdamDiff.__init__).parameters, **ours} if kind is AdamWDiff else ours
    assert theirs.keys() <= taken.keys()
    place = lambda signature: [p.name for p in signature.values() if p.kind is p.POSITIONAL_OR_KEYWORD]  # noqa: E731
    assert place(ours)[: len(place(theirs))] == place(theirs)
    same = theirs.keys() - {"self", "params", "eps"}  # Adagrad's eps is smaller
    assert {name: taken[name].default for name in same} == {name: theirs[name].default for name in same}


OPTIONS = {
    AdaGradDiff: [
        {},
        {"weight_decay": 0.1},
        {"lr_decay": 0.3},
        {"initial_accumulator_value": 0.7},
        {"weight_decay": 0.1, "lr_decay": 0.3, "initial_accumulator_value": 0.2, "maximize": True},
    ],
    AdamDiff: [
        {"max_move": math.inf},
        {"max_move": math.inf, "weight_decay": 0.1, "betas": (0.5, 0.9)},
        {"max_move": math.inf, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"max_move": math.inf, "weight_decay": 0.1, "maximize": True},
    ],
    AdamWDiff: [{"max_move": math.inf}, {"max_move": math.inf, "weight_decay": 0.3, "maximize": True}],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_without_a_previous_gradient_it_is_the_peer(kind, mode):
    """Differences to zero are gradients: then every option gives what PyTorch's own optimizer gives."""
    for options in OPTIONS[kind]:
        rng = np.random.default_rng(0)
        x = torch.tensor(rng.standard_normal((3, 4)), requires_grad=True)
        y = x.detach().clone().requires_grad_()
        ours = kind([x], lr=0.05, eps=1e-8, **options, **MODES[mode])
        common = {name: value for name, value in options.items() if name != "max_move"}
        theirs = PEERS[kind]([y], lr=0.05, eps=1e-8, **common)
        for _ in range(10):
            x.grad = torch.tensor(rng.standard_normal((3, 4)))
            y.grad = x.grad.clone()
            ours.step()
            theirs.step()
            ours.state[x]["prev"].zero_()
            torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("mode", MODES)
def test_weight_decay_in_a_group_counts(kind, mode):
    """A trainer puts it there, with 0 for biases."""
    x, bias = (torch.ones(3, requires_grad=True) for _ in range(2))
    optimizer = kind([{"params": [x], "weight_decay": 0.1}, {"params": [bias], "weight_decay": 0.0}], lr=0.5, **MODES[mode])
    for _ in range(2):
        x.grad, bias.grad = torch.zeros(3), torch.zeros(3)
        optimizer.step()
    assert (x < 0.99).all()
    assert (bias == 1).all()


def test_learning_rates_decay_from_where_they_are():
    """lr_decay that comes later counts the steps from then on; through a state dict it goes on counting."""
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = AdaGradDiff([x], lr=1.0, lr_decay=1.0)
    moves = []
    for n in range(4):
        before = x.item()
        x.grad = torch.ones_like(x)
        optimizer.step()
        moves.append(before - x.item())
        if n == 1:
            saved, optimizer = optimizer.state_dict(), AdaGradDiff([x], lr=0.1)
            optimizer.load_state_dict(saved)
    assert moves == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    plain = AdaGradDiff([x])
    plain.step()
    assert "step" not in plain.state[x]  # nothing that is not needed


# ---------------------------------------------------------------- what is refused


def parameter():
    return torch.ones(3, requires_grad=True)


@pytest.mark.parametrize("kind", [AdamDiff, AdamWDiff])
def test_amsgrad_is_refused(kind):
    for make in (lambda: kind([parameter()], amsgrad=True), lambda: kind([{"params": [parameter()], "amsgrad": True}])):
        with pytest.raises(ValueError, match=f"{kind.__name__} has no 'amsgrad': .* Leave it out"):
            make()
    optimizer = kind([{"params": [parameter()], "amsgrad": False}], amsgrad=False)  # as a script may carry it
    assert "amsgrad" not in optimizer.param_groups[0]


def test_coupled_decay_under_the_name_of_adamw_is_refused():
    with pytest.raises(ValueError, match=r"The weight decay of AdamWDiff is decoupled\. Use AdamDiff"):
        AdamWDiff([parameter()], decoupled_weight_decay=False)
    assert AdamWDiff([parameter()], decoupled_weight_decay=True).defaults["decoupled_weight_decay"]


@pytest.mark.parametrize("kind", ALL)
def test_keys_that_no_option_has_are_refused(kind):
    for name in ("weigth_decay", "momentum", "name"):
        with pytest.raises(ValueError, match=rf"key '{name}', which is no option of {kind.__name__}. Its options are .*eps"):
            kind([{"params": [parameter()], name: 0.1}])
    if kind is not AdaGradDiff:
        with pytest.raises(ValueError, match="the key 'lr_decay'"):
            kind([{"params": [parameter()], "lr_decay": 0.1}])
    kind([{"params": [parameter()], "initial_lr": 0.1, "max_lr": 1.0, "min_lr": 0.0}])  # schedulers put these there


WRONG = [
    ({"lr": "0.1"}, TypeError, "'lr' parameter of .* must be a number, or a tensor with one element. Got '0.1'"),
    ({"lr": None}, TypeError, "'lr' parameter of .* must be a number, or a tensor with one element. Got None"),
    ({"lr": True}, TypeError, "'lr' parameter"),
    ({"lr": [0.1]}, TypeError, "'lr' parameter"),
    ({"lr": torch.tensor([[1.0, 2.0]])}, ValueError, "Tensor lr must be 1-element"),
    ({"eps": None}, TypeError, "'eps' parameter of .* must be a number. Got None"),
    ({"weight_decay": "0.1"}, TypeError, "'weight_decay' parameter of .* must be a number. Got '0.1'"),
    ({"weight_decay": -0.1}, ValueError, "Invalid weight_decay value: -0.1"),
    ({"weight_decay": math.nan}, ValueError, "Invalid weight_decay value: nan"),
    ({"prox_unseen": "no"}, ValueError, "'prox_unseen' parameter of .* must be True or False"),
    ({"skip_nonfinite": 1}, ValueError, "'skip_nonfinite' parameter of .* must be True or False"),
]
ADAGRAD_ONLY = [
    ({"lr_decay": -1.0}, ValueError, "Invalid lr_decay value: -1.0"),
    ({"initial_accumulator_value": -1.0}, ValueError, "Invalid initial_accumulator_value value: -1.0"),
]
ADAM_ONLY = [
    ({"max_move": 0.0}, ValueError, "'max_move' parameter of .* must be a positive number. Got 0.0"),
    ({"max_move": "far"}, TypeError, "'max_move' parameter of .* must be a number. Got 'far'"),
    ({"betas": 0.9}, ValueError, "'betas' parameter of .* must be two numbers. Got 0.9"),
    ({"betas": (0.9,)}, ValueError, "'betas' parameter of .* must be two numbers"),
    ({"betas": ("a", 0.9)}, TypeError, "'betas' parameter of .* must be a number. Got 'a'"),
]


@pytest.mark.parametrize("kind", ALL)
def test_wrong_values_are_said(kind):
    for options, error, message in WRONG + (ADAGRAD_ONLY if kind is AdaGradDiff else ADAM_ONLY):
        with pytest.raises(error, match=message):
            kind([parameter()], **options)
        with pytest.raises(error, match=message):
            kind([{"params": [parameter()], **options}])


@pytest.mark.parametrize("kind", ALL)
def test_parameters_without_memory_and_fused(kind):
    ghost = torch.ones(3, device="meta", requires_grad=True)
    with pytest.raises(RuntimeError, match="cannot step parameters on the meta device with fused=True: they have no memory"):
        kind([ghost], fused=True)
    optimizer = kind([parameter()], fused=True)
    with pytest.raises(RuntimeError, match="to_empty"):
        optimizer.add_param_group({"params": [ghost]})
    assert len(optimizer.param_groups) == 1
    ghost.grad = torch.ones(3, device="meta")
    kind([ghost]).step()  # shapes alone


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_learning_rates_in_tensors_of_any_shape(kind, mode, shape):
    x, y, scalar = parameter(), parameter(), torch.ones((), requires_grad=True)
    rate = torch.full(shape, 0.1)
    optimizer, plain = kind([x, scalar], lr=rate, penalty=L1(0.1), **MODES[mode]), kind([y], lr=0.1, penalty=L1(0.1))
    for _ in range(3):
        x.grad, y.grad, scalar.grad = torch.full((3,), 0.3), torch.full((3,), 0.3), torch.full((), 0.3)
        optimizer.step()
        plain.step()
    torch.testing.assert_close(x, y)
    torch.testing.assert_close(scalar.detach(), y[0].detach())
    assert optimizer.param_groups[0]["lr"] is rate  # schedulers write into it
