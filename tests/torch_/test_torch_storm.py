"""reduce="storm": the directions of the formula, and closures that fail."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import BOTH, KINDS, MODES, parameter, same, states_of  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, GroupL2  # noqa: E402
from pairwise import pairwise  # noqa: E402
from prox_twin import Twin  # noqa: E402

pytestmark = pytest.mark.peer

STEPS = 6


def parameters():
    rng = np.random.default_rng(0)
    return [torch.tensor(rng.standard_normal(s), requires_grad=True) for s in ((3, 4), (5,), ())]


def batch_of(n, params):
    rng = np.random.default_rng(n)
    return [torch.tensor(rng.standard_normal(p.shape)) for p in params]


def loss_of(params, batch):
    """Return a loss in which the parameters depend on each other."""
    terms = [
        (p * b).sin().sum() + (p - 0.3 * b).square().sum()
        for p, b in zip(params, batch, strict=True)
    ]
    return sum(terms) + params[0].mean() * params[1].sum()


def gradients_at(weights, batch):
    params = [torch.tensor(x, requires_grad=True) for x in weights]
    return [g.numpy() for g in torch.autograd.grad(loss_of(params, batch), params)]


def closure_of(optimizer, params, batch):
    def closure():
        optimizer.zero_grad()
        loss = loss_of(params, batch)
        loss.backward()
        return loss

    return closure


@pairwise(
    kind=[AdaGradDiff, AdamDiff],
    mode=MODES,
    penalty=[None, L1(0.05), GroupL2(0.2)],
    maximize=BOTH,
    weight_decay=[0.0, 0.3],
    decoupled_weight_decay=BOTH,
    donate_grads=BOTH,
    resume=BOTH,
)
def test_directions_follow_the_formula(
    kind, mode, penalty, maximize, weight_decay, decoupled_weight_decay, donate_grads, resume
):
    options = {"penalty": penalty, "maximize": maximize, "weight_decay": weight_decay}
    options["decoupled_weight_decay"] = decoupled_weight_decay
    params = parameters()
    make = lambda: kind(
        params,
        0.03,
        reduce="storm",
        reduce_rate=0.3,
        donate_grads=donate_grads,
        **MODES[mode],
        **options,
    )
    optimizer = make()
    twins = [Twin(p.detach().numpy(), kind is AdamDiff, 0.03, **options) for p in params]
    before = direction = None
    for n in range(STEPS):
        batch, here = batch_of(n, params), [twin.x for twin in twins]
        new = gradients_at(here, batch)
        if before is None:
            direction = new
        else:
            old = gradients_at(before, batch)
            direction = [g + 0.7 * (d - h) for g, d, h in zip(new, direction, old, strict=True)]
        before = here
        for twin, d in zip(twins, direction, strict=True):
            twin.step(d)
        if resume and n == 3:
            saved, optimizer = optimizer.state_dict(), make()
            optimizer.load_state_dict(saved)
        loss = optimizer.step(closure_of(optimizer, params, batch))
        assert loss.item() == pytest.approx(loss_of([torch.tensor(x) for x in here], batch).item())
        for p, twin in zip(params, twins, strict=True):
            np.testing.assert_allclose(p.detach().numpy(), twin.x, rtol=1e-9, atol=1e-11)


@pairwise(error=[ValueError, KeyboardInterrupt, None], mode=MODES, fails=[1, 2])
def test_a_step_that_fails_or_is_skipped_changes_nothing(error, mode, fails):
    results = []
    for disturbed in BOTH:
        params = parameters()
        optimizer = AdamDiff(params, lr=0.1, skip_nonfinite=True, reduce="storm", **MODES[mode])
        for n in range(4):
            closure, calls = closure_of(optimizer, params, batch_of(n, params)), []

            def broken(closure=closure, calls=calls, params=params):
                calls.append(closure())
                if len(calls) == fails:
                    if error:
                        raise error("stop")
                    params[0].grad[0, 0] = np.inf

            if disturbed and n == 2:
                if error:
                    with pytest.raises(error, match="stop"):
                        optimizer.step(broken)
                else:
                    optimizer.step(broken)
            optimizer.step(closure)
        results.append((params, states_of(optimizer)))
    same(*results)


def test_dropout_is_the_same_at_both_points():
    x, masks = torch.ones(50, requires_grad=True), []
    optimizer = AdaGradDiff([x], lr=0.01, reduce="storm")

    def closure():
        dropped = torch.nn.functional.dropout(x, 0.5)
        masks.append(dropped.detach() != 0)
        dropped.sum().backward()

    torch.manual_seed(3)
    for _ in range(2):
        optimizer.step(closure)
    assert torch.equal(masks[1], masks[2])
    assert not torch.equal(masks[0], masks[1])


def test_a_parameter_without_a_gradient_starts_again():
    x, y = parameter(), parameter()
    optimizer = AdaGradDiff(
        [{"params": [x]}, {"params": [y]}], lr=0.1, reduce="storm", reduce_rate=0.2
    )
    for n in range(4):
        used = [x] if n == 2 else [x, y]
        optimizer.step(lambda used=used, n=n: sum(((p - n) ** 2).sum() for p in used).backward())
        assert ("x_prev" in optimizer.state[y]) == (n != 2)
    same(optimizer.state[y]["prev"], y.grad)
    optimizer.param_groups[0]["reduce"] = optimizer.param_groups[1]["reduce"] = None
    y.grad = torch.ones_like(y)
    optimizer.step()
    assert "x_prev" not in optimizer.state[x]


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_closures(kind):
    x = parameter()
    optimizer = kind([x], reduce="storm")
    x.grad = torch.ones_like(x)
    with pytest.raises(RuntimeError, match=rf"{kind.__name__} with reduce='storm' needs a closure"):
        optimizer.step()
    with pytest.raises(RuntimeError, match=r"The closure has left no gradients"):
        optimizer.step(x.sum)
    same(x.detach(), parameter().detach())
    optimizer.step(lambda: x.square().sum().backward())
    x.data = torch.ones(1, dtype=torch.float64)
    with pytest.raises(
        RuntimeError, match=r"shape \(1,\), but the previous weights in its state have \(3,\)"
    ):
        optimizer.step(lambda: x.square().sum().backward())


def test_sparse_gradients_are_an_error():
    table = torch.nn.Embedding(5, 2, sparse=True)
    optimizer = AdaGradDiff(table.parameters(), lr=0.1, reduce="storm")
    with pytest.raises(
        RuntimeError, match="AdaGradDiff takes sparse gradients only without reduce='storm'"
    ):
        optimizer.step(lambda: table(torch.tensor([1, 3])).sum().backward())
