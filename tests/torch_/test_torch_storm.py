"""reduce="storm": directions by their formula, both gradients on the same batch, and whatever happens the weights are there."""

import io
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_twin import ALL, MODES, OPTIMIZERS, PENALTIES, states_of  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, Box, GroupL2  # noqa: E402
from prox_twin import Twin  # noqa: E402

pytestmark = pytest.mark.peer

SHAPES = [(3, 4), (5,), ()]
STEPS = 12


def real(x):
    return torch.view_as_real(x) if x.is_complex() else x


def start(dtype=torch.float64, seed=0):
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.standard_normal((*s, 2)), dtype=torch.float64) for s in SHAPES], dtype


def parameters(dtype=torch.float64):
    draws, dtype = start(dtype)
    made = [torch.view_as_complex(x) if dtype.is_complex else x[..., 0] for x in draws]
    return [x.to(dtype).clone().requires_grad_() for x in made]


def batch_of(n, params):
    """Random numbers for each entry, and which batch it is."""
    rng = np.random.default_rng(n)
    return [torch.tensor(rng.standard_normal(real(p).shape), dtype=real(p).dtype) for p in params]


def loss_of(params, batch):
    """Nothing that a sum over parameters would give: they depend on each other."""
    terms = [(real(p) * b).sin().sum() + (real(p) - 0.3 * b).square().sum() for p, b in zip(params, batch, strict=True)]
    return sum(terms) + real(params[0]).mean() * real(params[1]).sum()


def gradients_at(weights, batch, dtype):
    """In plain arrays, at weights that are plain arrays."""
    params = [torch.tensor(x) for x in weights]
    params = [(torch.view_as_complex(x) if dtype.is_complex else x).to(dtype).requires_grad_() for x in params]
    grads = torch.autograd.grad(loss_of(params, batch), params)
    return [real(g).double().numpy() for g in grads]


def closure_of(optimizer, params, batch):
    def closure():
        optimizer.zero_grad()
        loss = loss_of(params, batch)
        loss.backward()
        return loss

    return closure


def arrays(params):
    return [real(p.detach()).double().numpy().copy() for p in params]


# ---------------------------------------------------------------- the formula


def follow(kind, mode, dtype, options, tolerance, *, sync=False, rate=0.3, lr=0.03):
    """The optimizer beside twins that are fed with directions by their formula."""
    params = parameters(dtype)
    optimizer = kind(params, lr, reduce="storm", reduce_rate=rate, **MODES[mode], **options)
    known = {name: value for name, value in options.items() if name not in ("donate_grads", "accumulator_dtype")}
    twins = [Twin(x, kind is AdamDiff, lr, **known) for x in arrays(params)]
    before = direction = None
    for n in range(STEPS):
        batch = batch_of(n, params)
        if sync:
            for p, twin in zip(params, twins, strict=True):
                twin.x = arrays([p])[0]
        here = [twin.x for twin in twins]
        new = gradients_at(here, batch, dtype)
        if before is None:
            direction = new
        else:
            old = gradients_at(before, batch, dtype)
            direction = [g + (1 - rate) * (d - h) for g, d, h in zip(new, direction, old, strict=True)]
        before = here
        for twin, d in zip(twins, direction, strict=True):
            twin.step(d)
        loss = optimizer.step(closure_of(optimizer, params, batch))
        assert loss.item() == pytest.approx(loss_of([torch.tensor(x) for x in here], batch).item(), rel=0.05, abs=0.05)
        for x, twin in zip(arrays(params), twins, strict=True):
            assert np.all(np.abs(x - twin.x) <= tolerance * (1 + np.abs(twin.x))), n
    for p, twin in zip(params, twins, strict=True):
        np.testing.assert_allclose(optimizer.state[p]["prev"].double().numpy(), twin.prev, rtol=tolerance, atol=10 * tolerance)
    return optimizer


def cases():
    combinations = [(mode, penalty, {}) for mode in MODES for penalty in (None, L1(0.05), GroupL2(0.2))]
    combinations += [("default", penalty, {}) for penalty in PENALTIES]
    combinations += [("default", L1(0.02), {"blocks": blocks}) for blocks in ("row", "tensor")]
    for mode in MODES:
        combinations += [
            (mode, None, {"maximize": True}),
            (mode, None, {"weight_decay": 0.3}),
            (mode, Box(-0.5, 0.5), {"weight_decay": 0.3, "maximize": True}),
            (mode, None, {"weight_decay": 0.3, "decoupled_weight_decay": True}),
            (mode, None, {"donate_grads": True}),
        ]
    for mode, penalty, options in combinations:
        name = "-".join([mode, str(penalty and penalty.config()["name"]), *options])
        yield pytest.param(mode, {"penalty": penalty, **options}, id=name)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize(("mode", "options"), list(cases()))
def test_equals_the_formula(kind, mode, options):
    follow(kind, mode, torch.float64, options, 1e-10)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_every_precision(kind, mode):
    follow(kind, mode, torch.float32, {"eps": 1e-3}, 1e-4)
    follow(kind, mode, torch.complex128, {"penalty": L1(0.01), "maximize": True}, 1e-10)
    double = follow(kind, mode, torch.float32, {"eps": 1e-3, "accumulator_dtype": torch.float64}, 1e-4)
    assert {t.dtype for state in states_of(double) for k, t in state.items() if k not in ("x_prev", "step")} == {torch.float64}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", ["single", "foreach", "default"])
def test_half_precision_has_a_direction_in_single_precision(kind, mode):
    """Gradients have errors of the size of bfloat16; the weights before are what they were, to the bit."""
    optimizer = follow(kind, mode, torch.bfloat16, {"eps": 1e-2}, 0.05, sync=True)
    state = states_of(optimizer)[0]
    assert (state["prev"].dtype, state["x_prev"].dtype) == (torch.float32, torch.bfloat16)


@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ALL)
def test_without_noise_it_is_the_plain_optimizer(kind, mode, rate):
    """The old gradient is the old direction then; with rate 1 it is so for any batches, to the bit."""
    results = []
    for reduce in (None, "storm"):
        params = parameters()
        optimizer = kind(params, lr=0.05, penalty=L1(0.01), reduce=reduce, reduce_rate=rate, **MODES[mode])
        for n in range(30):
            optimizer.step(closure_of(optimizer, params, batch_of(n if rate == 1 else 0, params)))
        results.append(arrays(params))
    for plain, reduced in zip(*results, strict=True):
        np.testing.assert_allclose(reduced, plain, rtol=1e-9 * (rate < 1), atol=1e-11 * (rate < 1))


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_the_direction_has_the_gradient_as_its_mean_and_less_noise(rate):
    """f(x) = E |x - b|^2 / 2: the error of d is (1 - a) its last error + a noise, whose variance tends to a / (2 - a)."""
    generator, entries = torch.Generator().manual_seed(0), 20000
    x = torch.zeros(entries, dtype=torch.float64, requires_grad=True)
    optimizer, expected, squares = AdaGradDiff([x], lr=0.1, reduce="storm", reduce_rate=rate), None, []
    for n in range(150):
        noise, at = torch.randn(entries, dtype=torch.float64, generator=generator), x.detach().clone()

        def closure(b=3.0 - noise):  # the mean of the gradient is x - 3
            optimizer.zero_grad()
            loss = (x - b).square().sum() / 2
            loss.backward()
            return loss

        optimizer.step(closure)
        error = optimizer.state[x]["prev"] - (at - 3.0)
        expected = noise if expected is None else (1 - rate) * expected + rate * noise
        torch.testing.assert_close(error, expected, rtol=0, atol=1e-12)
        if n >= 100:
            squares.append(error.square().mean().item())
            assert abs(error.mean().item()) < 5 / entries**0.5
    assert np.mean(squares) == pytest.approx(rate / (2 - rate), rel=0.05)


# ---------------------------------------------------------------- what a closure may do


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_two_evaluations_on_one_batch_in_the_memory_of_the_parameters(kind, mode):
    params = parameters()
    optimizer, places = kind(params, lr=0.1, reduce="storm", **MODES[mode]), [p.data_ptr() for p in params]
    seen, before = [], None
    for n in range(4):
        batch, here = batch_of(n, params), arrays(params)
        inner, visits = closure_of(optimizer, params, batch), []

        def closure(inner=inner, visits=visits):
            visits.append(arrays(params))
            return inner()

        loss = optimizer.step(closure)
        expected = [here] if before is None else [before, here]
        assert len(visits) == len(expected)
        for visit, weights in zip(visits, expected, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(visit, weights, strict=True))
        new = gradients_at(here, batch, torch.float64)  # what is left behind belongs to the new weights
        assert all(np.array_equal(p.grad.numpy(), g) for p, g in zip(params, new, strict=True))
        assert loss.item() == loss_of([torch.tensor(x) for x in here], batch).item()
        before = here
        seen.append(len(visits))
    assert seen == [1, 2, 2, 2]
    assert [p.data_ptr() for p in params] == places


def test_who_sets_gradients_to_zero_and_in_how_many_parts_they_come_does_not_matter():
    def zero_in_place(optimizer, params, batch):
        optimizer.zero_grad(set_to_none=False)
        loss = loss_of(params, batch)
        loss.backward()
        return loss

    def nobody(optimizer, params, batch):
        loss = loss_of(params, batch)
        loss.backward()
        return loss

    def in_parts(optimizer, params, batch):
        optimizer.zero_grad()
        losses = [loss_of(params, batch) / 4 for _ in range(4)]
        for loss in losses:
            loss.backward()
        return sum(losses)

    results = []
    for way in (zero_in_place, nobody, in_parts):
        params = parameters()
        optimizer = AdamDiff(params, lr=0.05, reduce="storm")
        for n in range(5):
            optimizer.step(partial(way, optimizer, params, batch_of(n, params)))
        results.append(arrays(params))
    for result in results[1:]:
        for a, b in zip(result, results[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_dropout_is_the_same_at_both_weights():
    """And draws go on as if there had been one evaluation."""
    x, streams = torch.ones(50, requires_grad=True), []
    for reduce in (None, "storm"):
        torch.manual_seed(3)
        optimizer, masks = AdaGradDiff([x], lr=0.01, reduce=reduce), []

        def closure(masks=masks):
            dropped = torch.nn.functional.dropout(x, 0.5)
            masks.append(dropped.detach() != 0)
            loss = dropped.sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        streams.append((masks, torch.rand(1).item()))
    plain, reduced = (masks for masks, _ in streams)
    assert [len(plain), len(reduced)] == [3, 5]
    for k, (first, second) in enumerate([(0, 0), (1, 2), (3, 4)]):
        assert torch.equal(reduced[first], reduced[second])
        assert torch.equal(reduced[second], plain[k])
    assert not torch.equal(reduced[0], reduced[1])
    assert streams[0][1] == streams[1][1]


def test_an_autocast_around_the_step_sees_the_weights_as_they_are():
    """It keeps weights in half precision, which would be those of the other evaluation."""
    results = []
    for around in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Linear(6, 3)
        optimizer = AdaGradDiff(model.parameters(), lr=0.3, reduce="storm", reduce_rate=0.2)
        for _ in range(5):
            X = torch.randn(7, 6)

            def closure(model=model, optimizer=optimizer, X=X):
                optimizer.zero_grad()
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = model(X).float().square().mean()
                loss.backward()
                return loss

            with torch.autocast("cpu", dtype=torch.bfloat16) if around else nullcontext():
                optimizer.step(closure)
        results.append([p.detach() for p in model.parameters()])
    torch.testing.assert_close(*results, rtol=0, atol=0)


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fails", [1, 2])
def test_after_an_error_in_the_closure_nothing_has_changed(error, mode, fails):
    """Weights and state to the bit, and the next step is the one that would have been made."""
    results = []
    for disturbed in (False, True):
        torch.manual_seed(0)
        params = parameters()
        optimizer = AdamDiff(params, lr=0.1, penalty=L1(0.01), reduce="storm", **MODES[mode])
        for n in range(5):
            closure, calls = closure_of(optimizer, params, batch_of(n, params)), []

            def broken(closure=closure, calls=calls):
                torch.rand(1)
                calls.append(closure())
                if len(calls) == fails:
                    raise error("stop")

            if disturbed and n == 3:
                before, state = arrays(params), [{k: v.clone() for k, v in s.items()} for s in states_of(optimizer)]
                with pytest.raises(error, match="stop"):
                    optimizer.step(broken)
                assert all(np.array_equal(a, b) for a, b in zip(before, arrays(params), strict=True))
                torch.testing.assert_close(states_of(optimizer), state, rtol=0, atol=0)
            optimizer.step(closure)
        results.append(arrays(params))
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_is_skipped_is_as_if_it_had_not_been_asked_for(mode):
    results = []
    for disturbed in (False, True):
        params = parameters()
        optimizer = AdaGradDiff(params, lr=0.1, skip_nonfinite=True, reduce="storm", **MODES[mode])
        for n in range(6):
            if disturbed and n in (0, 2, 4):
                bad = batch_of(n, params)
                bad[1][2] = np.inf
                optimizer.step(closure_of(optimizer, params, bad))
            optimizer.step(closure_of(optimizer, params, batch_of(n, params)))
        results.append(arrays(params))
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("kind", ALL)
def test_without_a_closure_is_an_error(kind):
    x = torch.ones(3, requires_grad=True)
    optimizer = kind([x], reduce="storm")
    with pytest.raises(RuntimeError, match=rf"{kind.__name__} with reduce='storm' needs a closure, step\(closure\)"):
        optimizer.step()
    x.sum().backward()
    with pytest.raises(RuntimeError, match="needs a closure"):
        optimizer.step()
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    scaler.scale(x.sum()).backward()
    with pytest.raises(RuntimeError, match="A GradScaler cannot pass it on"):
        scaler.step(optimizer)
    assert torch.equal(x, torch.ones(3))
    assert not optimizer.state


def test_a_closure_without_gradients_is_an_error():
    x = torch.ones(3, requires_grad=True)
    optimizer = AdaGradDiff([x], reduce="storm")
    x.sum().backward()
    with pytest.raises(RuntimeError, match=r"The closure has left no gradients\. .* calls its backward\(\)"):
        optimizer.step(x.sum)


@pytest.mark.parametrize("first", [True, False])
def test_sparse_gradients_are_an_error(first):
    table = torch.nn.Embedding(5, 2, sparse=True)
    optimizer = AdaGradDiff(table.parameters(), lr=0.1, reduce="storm")

    def closure():
        table(torch.tensor([1, 3])).sum().backward()

    if not first:
        table.sparse = False
        optimizer.step(closure)
        table.sparse = True
    before = table.weight.detach().clone()
    with pytest.raises(RuntimeError, match="AdaGradDiff takes sparse gradients only without reduce='storm'"):
        optimizer.step(closure)
    assert torch.equal(table.weight, before)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reduce": "svrg"}, ValueError, "'reduce' parameter of AdaGradDiff must be one of None, 'storm'. Got 'svrg'"),
        ({"reduce": True}, ValueError, "'reduce' parameter"),
        ({"reduce_rate": 0.0}, ValueError, "'reduce_rate' parameter .* a number above 0 and at most 1. Got 0.0 instead"),
        ({"reduce_rate": 1.1}, ValueError, "'reduce_rate' parameter"),
        ({"reduce_rate": float("nan")}, ValueError, "'reduce_rate' parameter"),
        ({"reduce_rate": "0.1"}, TypeError, "'reduce_rate' parameter of AdaGradDiff must be a number. Got '0.1'"),
        ({"reduce": "storm", "differentiable": True}, RuntimeError, "cannot be differentiable with reduce='storm'"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        AdaGradDiff(parameters(), **options)


def test_a_parameter_that_was_replaced_by_another_shape():
    x = torch.ones(3, requires_grad=True)
    optimizer = AdaGradDiff([x], reduce="storm")
    optimizer.step(lambda: x.square().sum().backward())
    x.data = torch.ones(1)
    with pytest.raises(RuntimeError, match=r"shape \(1,\), but the previous weights in its state have \(3,\)"):
        optimizer.step(lambda: x.square().sum().backward())


# ---------------------------------------------------------------- parameters that come and go, groups, checkpoints


@pytest.mark.parametrize("mode", MODES)
def test_a_parameter_without_a_gradient_stays_and_begins_anew(mode):
    """Its old direction belongs to weights that the others have left."""
    x, y, late = (torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True) for _ in range(3))
    optimizer = AdaGradDiff([x, y], lr=0.1, reduce="storm", reduce_rate=0.2, **MODES[mode])
    points = []
    for n in range(6):
        b = torch.tensor(np.random.default_rng(n).standard_normal(2))
        points.append([p.detach().clone() for p in (x, y)])
        if n == 4:
            optimizer.add_param_group({"params": [late], "lr": 0.5})
        used = [x, y, late] if n >= 4 else [x] if n == 2 else [x, y]

        def closure(used=used, b=b):
            loss = sum(((p - b) ** 2).sum() * x.square().sum() for p in used)
            loss.backward()
            return loss

        optimizer.step(closure)
        if n == 2:
            assert torch.equal(y, points[2][1])
            assert "x_prev" not in optimizer.state[y]
        if n == 3:  # its direction is its gradient again
            torch.testing.assert_close(optimizer.state[y]["prev"], y.grad, rtol=0, atol=0)
        if n == 4:
            torch.testing.assert_close(optimizer.state[late]["prev"], late.grad, rtol=0, atol=0)
    assert all("x_prev" in optimizer.state[p] for p in (x, y, late))


def test_a_gradient_only_at_the_new_weights():
    """None at the old ones is zero: the loss did not depend on the parameter there."""
    x, gate = (torch.tensor([2.0], dtype=torch.float64, requires_grad=True) for _ in range(2))
    optimizer = AdaGradDiff([x, gate], lr=0.5, reduce="storm", reduce_rate=0.25)
    use = iter([True, False, True])

    def closure():
        loss = gate.square().sum() + (x.square().sum() if next(use) else 0.0)
        loss.backward()
        return loss

    optimizer.step(closure)
    first, at = optimizer.state[x]["prev"].clone(), x.detach().clone()
    optimizer.step(closure)
    torch.testing.assert_close(optimizer.state[x]["prev"], 2 * at + 0.75 * first)


@pytest.mark.parametrize("mode", MODES)
def test_groups_with_and_without(mode):
    """All weights go back to the previous point, those of the plain group, too; that one sees its gradients."""
    params = parameters()
    groups = [{"params": params[:1], "reduce": "storm", "reduce_rate": 0.3}, {"params": params[1:]}]
    optimizer = AdaGradDiff(groups, lr=0.05, **MODES[mode])
    twins = [Twin(x, False, 0.05) for x in arrays(params)]
    before = direction = None
    for n in range(STEPS):
        batch, here = batch_of(n, params), [twin.x for twin in twins]
        new = gradients_at(here, batch, torch.float64)
        old = None if before is None else gradients_at(before, batch, torch.float64)
        direction = new[0] if old is None else new[0] + 0.7 * (direction - old[0])
        before = here
        for twin, d in zip(twins, [direction, *new[1:]], strict=True):
            twin.step(d)
        optimizer.step(closure_of(optimizer, params, batch))
    for x, twin in zip(arrays(params), twins, strict=True):
        np.testing.assert_allclose(x, twin.x, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_switched_off_and_on_again_it_begins_anew(kind, loaded):
    """The weights that it remembers are not those before the last step any more."""
    params = parameters()
    optimizer = kind(params, lr=0.1, reduce="storm", reduce_rate=0.2)
    for n, reduce in enumerate(["storm", "storm", None, None, "storm", "storm"]):
        if loaded and n == 2:
            state, optimizer = optimizer.state_dict(), kind(params, lr=0.1)
            optimizer.load_state_dict(state)
        optimizer.param_groups[0]["reduce"] = reduce
        optimizer.step(closure_of(optimizer, params, batch_of(n, params)))
        assert all(("x_prev" in state) is (reduce is not None) for state in states_of(optimizer))
        alike = [torch.equal(optimizer.state[p]["prev"], p.grad) for p in params]
        assert all(alike) if n in (0, 2, 3, 4) else not any(alike)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mode", ["single", "foreach", "default"])
@pytest.mark.parametrize("kind", ALL)
def test_a_resumed_run_is_the_same_run(kind, mode, dtype):
    """To the bit, through a file without pickled objects; what is saved is one buffer more than without reduction."""
    results = []
    for resumed in (False, True):
        params = parameters(dtype)
        optimizer = kind(params, lr=0.1, penalty=L1(0.01), reduce="storm", **MODES[mode])
        for n in range(8):
            if resumed and n == 4:
                file = io.BytesIO()
                torch.save({"params": [p.detach() for p in params], "optimizer": optimizer.state_dict()}, file)
                file.seek(0)
                saved = torch.load(file, weights_only=True)
                assert set(saved["optimizer"]["state"][0]) - {"step"} == {*kind.buffers, "x_prev"}
                params = [p.clone().requires_grad_() for p in saved["params"]]
                optimizer = kind(params, lr=0.7, **MODES[mode])
                optimizer.load_state_dict(saved["optimizer"])
            optimizer.step(closure_of(optimizer, params, batch_of(n, params)))
        results.append((params, states_of(optimizer)))
    torch.testing.assert_close(*results, rtol=0, atol=0)


def test_a_rehearsal_with_zeros_leaves_no_trace():
    """`torch.distributed.checkpoint` makes a step with zeros to see the buffers: the next step is the first one."""
    results = []
    for rehearsed in (False, True):
        params = parameters()
        optimizer = AdaGradDiff(params, lr=0.1, reduce="storm")
        if rehearsed:
            for p in params:
                p.grad = torch.zeros_like(p)
            optimizer.step()
            assert all("x_prev" in state for state in states_of(optimizer))
        for n in range(4):
            optimizer.step(closure_of(optimizer, params, batch_of(n, params)))
        results.append(arrays(params))
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))
