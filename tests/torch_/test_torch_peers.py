"""The optimizers as replacements of torch.optim.Adagrad, Adam and AdamW."""

import importlib.util
import inspect
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import BOTH, KINDS, MODES, PEERS, parameter, random  # noqa: E402

from adagrad_diff.torch import AdaGradDiff, AdamDiff, AdamWDiff  # noqa: E402
from pairwise import pairwise  # noqa: E402

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("kind", KINDS)
def test_every_argument_of_the_peer_is_accepted_in_the_same_place(kind):
    ours, theirs = (inspect.signature(c.__init__).parameters for c in (kind, PEERS[kind]))
    known = (
        {**inspect.signature(AdamDiff.__init__).parameters, **ours} if kind is AdamWDiff else ours
    )
    assert theirs.keys() <= known.keys()
    places = [
        [p.name for p in signature.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        for signature in (ours, theirs)
    ]
    assert places[0][: len(places[1])] == places[1]
    common = theirs.keys() - {"self", "params", "eps"}  # Adagrad's eps is smaller.
    assert {n: known[n].default for n in common} == {n: theirs[n].default for n in common}


OTHERS = {
    AdaGradDiff: [{}, {"lr_decay": 0.3}, {"lr_decay": 0.3, "initial_accumulator_value": 0.7}],
    AdamDiff: [{}, {"betas": (0.5, 0.9)}, {"decoupled_weight_decay": True}],
    AdamWDiff: [{}, {"betas": (0.5, 0.9)}, {}],
}


@pairwise(
    kind=KINDS, mode=MODES, other=range(3), weight_decay=[0.0, 0.3], maximize=BOTH, eps=[0.0, 1e-8]
)
def test_without_a_previous_gradient_it_is_the_peer(kind, mode, other, weight_decay, maximize, eps):
    """The difference between a gradient and zero is the gradient."""
    options = {"lr": 0.05, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
    options |= OTHERS[kind][other]
    rng = np.random.default_rng(0)
    x = random(rng, (3, 4), requires_grad=True)
    y = x.detach().clone().requires_grad_()
    bound = {} if kind is AdaGradDiff else {"max_move": math.inf}
    ours, theirs = kind([x], **options, **bound, **MODES[mode]), PEERS[kind]([y], **options)
    for _ in range(6):
        x.grad = random(rng, (3, 4))
        y.grad = x.grad.clone()
        ours.step()
        theirs.step()
        ours.state[x]["prev"].zero_()
        torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-14)


ACCEPTED = {  # Ours accept these: a learning rate in a tensor suits every mode, and so do betas.
    "lr as Tensor doesn't work with foreach & not capturable",
    "betas must be either both floats or both Tensors",
    r"betas\[0\] as a Tensor is not supported for capturable=False and foreach=True",
}


@pytest.mark.skipif(
    importlib.util.find_spec("expecttest") is None, reason="torch's test utilities need expecttest"
)
@pytest.mark.parametrize("kind", KINDS)
def test_inputs_of_the_tests_of_torch(kind):
    """Every set of options works, and every wrong input is rejected with the same error."""
    from torch.testing._internal.common_optimizers import optim_db

    info = next(info for info in optim_db if info.optim_cls is PEERS[kind])
    for case in info.optim_inputs_func(device="cuda"):  # with options that are for accelerators
        if case.kwargs.get("amsgrad"):
            continue
        for mode in MODES.values():
            x = parameter()
            optimizer = kind([x], **{**case.kwargs, **mode})
            for _ in range(3):
                optimizer.zero_grad()
                (x**2).sum().backward()
                optimizer.step()
            assert ((x**2).sum() > 14) == case.kwargs.get("maximize", False), case.desc
    for case in info.optim_error_inputs_func("cpu", torch.float32):
        given = case.optimizer_error_input
        if given.desc in ACCEPTED:
            continue
        complaint = pytest.warns if issubclass(case.error_type, Warning) else pytest.raises
        with complaint(case.error_type, match=case.error_regex):
            optimizer = kind(given.params, **given.kwargs)
            if case.error_on.name == "STEP_ERROR":
                optimizer.step()
