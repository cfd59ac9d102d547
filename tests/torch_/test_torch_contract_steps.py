"""What torch asks of the steps of its own optimizers (`TestOptimRenewed`), asked of ours; `contract_table` has the list."""

import copy
import itertools
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # torch's own test utilities need it

import contract_infos as infos  # noqa: E402
from contract_infos import FLAGS, FORLOOP, every_input, inputs_in  # noqa: E402
from contract_parts import Line, advance, rosenbrock, rosenbrock_gradient, states, with_gradients  # noqa: E402

pytestmark = pytest.mark.peer

close = torch.testing.assert_close


@pytest.fixture(params=infos.NAMES)
def info(request):
    return infos.infos()[request.param]


def test_every_option_is_among_the_inputs(info):
    """And none of the three ways to make a step: each test chooses that itself."""
    tried = set().union(*(case.kwargs for case in info.optim_inputs_func("cpu")))
    assert not tried & set(FLAGS)
    defaults = info.optim_cls([torch.zeros(1)]).defaults
    untried = set(defaults) - tried - set(FLAGS) - {"amsgrad"}  # which may only be False
    assert untried <= ({"decoupled_weight_decay"} if info.name == "AdamWDiff" else set()), "add to contract_infos.own_options"


def test_what_is_wrong_is_refused(info):
    for case in info.optim_error_inputs_func("cpu", torch.float32):
        params, options = case.optimizer_error_input.params, case.optimizer_error_input.kwargs
        late = case.error_on.name == "STEP_ERROR"
        optimizer = info.optim_cls(params, **options) if late else None
        complaint = pytest.warns if issubclass(case.error_type, Warning) else pytest.raises
        with complaint(case.error_type, match=case.error_regex):
            optimizer.step() if late else info.optim_cls(params, **options)


def test_tensors_that_torch_refuses_are_taken(info):
    """A learning rate in a tensor together with `foreach`: see `contract_infos.ACCEPTED`."""
    results = []
    for lr in (0.01, torch.tensor(0.01)):
        line = Line()
        optimizer = info.optim_cls(line.params, lr=lr, foreach=True)
        for _ in range(3):
            line.step(optimizer)
        results.append(line.params)
    close(*results)


# ---------------------------------------------------------------- in the right direction


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("scheduled", [True, False])
def test_the_loss_goes_the_right_way(info, contiguous, scheduled):
    """Each set of options with one of the lists of schedulers: all of those have their turn."""
    turns = itertools.cycle(info.scheduler_inputs if scheduled else [()])
    for options, constructors in zip(inputs_in(info, **FORLOOP), turns, strict=False):
        line = Line(contiguous=contiguous)
        optimizer = info.optim_cls(line.params, **options)
        schedulers = [constructor(optimizer) for constructor in constructors]
        before = line.loss().item()
        for _ in range(20):
            advance(schedulers, line.step(optimizer))
        assert (line.loss().item() > before) == options.get("maximize", False), options


def test_schedulers_of_groups_go_the_right_way(info):
    for constructors in info.scheduler_inputs:
        line = Line()
        optimizer = info.optim_cls([{"params": line.params[:1]}, {"params": line.params[1:], "lr": 0.01}])
        schedulers = [constructor(optimizer) for constructor in constructors]
        before = line.loss().item()
        for _ in range(20):
            advance(schedulers, line.step(optimizer))
        assert line.loss().item() < before


def test_groups_have_their_own_weight_decay(info):
    """A group with other options is as good as an optimizer of its own."""
    for options in every_input(info, "differentiable"):
        together, apart = Line(), Line()
        other = {**copy.deepcopy(options), "weight_decay": 0.0}
        one = info.optim_cls([{"params": together.params[:1], **options}, {"params": together.params[1:], **other}])
        two = [info.optim_cls(apart.params[:1], **copy.deepcopy(options)), info.optim_cls(apart.params[1:], **other)]
        before = together.loss().item()
        for _ in range(6):
            together.step(one)
            apart.loss().backward()
            for optimizer in two:
                optimizer.step()
                optimizer.zero_grad()
        assert (together.loss().item() > before) == options.get("maximize", False), options
        close(together.params, apart.params)


def test_groups_have_their_own_learning_rate(info):
    for options in every_input(info, "differentiable"):
        line, still = Line(), torch.nn.Parameter(torch.randn(2, 2))
        start, before = still.detach().clone(), line.loss().item()
        optimizer = info.optim_cls([{"params": line.params, "lr": 1e-3, **options}, {"params": [still]}], lr=1e-28)
        for _ in range(6):
            optimizer.zero_grad()
            line.loss().backward()
            still.grad = torch.rand_like(still)
            optimizer.step()
        assert (line.loss().item() > before) == options.get("maximize", False), options
        close(still.detach(), start)


def test_a_learning_rate_in_a_tensor_is_that_number(info):
    """Whatever axes of length one the tensor has: each set of options has one of the shapes."""
    for k, options in enumerate(every_input(info, "differentiable")):
        shape = (1,) * (k % 3)
        lines = Line(), Line()
        lrs = 1e-3, torch.full(shape, 1e-3)
        runs = [(line, info.optim_cls(line.params, **{**options, "lr": lr})) for line, lr in zip(lines, lrs, strict=True)]
        for _ in range(5):
            for line, optimizer in runs:
                line.step(optimizer)
            close(lines[0].params, lines[1].params)
        assert runs[1][1].param_groups[0]["lr"].shape == shape


# ---------------------------------------------------------------- sparse and complex


def test_sparse_gradients_are_dense_ones():
    """One coordinate after the other, by gradients with two entries for one index; every second time with schedulers."""
    info = infos.infos()["AdaGradDiff"]  # the others take none, and say so
    changes, constructors = info.metadata_for_sparse
    for k, options in enumerate({**options, **changes} for options in inputs_in(info, **FORLOOP)):
        if options.get("penalty") is not None:
            continue  # which would change every entry: refused
        params = [torch.nn.Parameter(torch.tensor([1.5, 1.5])) for _ in range(2)]
        optimizers = [info.optim_cls([p], **copy.deepcopy(options)) for p in params]
        schedulers = [[constructor(o) for constructor in constructors if k % 2] for o in optimizers]
        before = rosenbrock(params[0]).item()
        for n in range(30):
            i = (n + 1) % 2
            for p, optimizer, ours, dense in zip(params, optimizers, schedulers, (False, True), strict=True):
                g = rosenbrock_gradient(p)[i]
                p.grad = torch.sparse_coo_tensor([[i, i]], [g / 4, g - g / 4], (2,), check_invariants=True)
                p.grad = p.grad.to_dense() if dense else p.grad
                optimizer.step()
                advance(ours, rosenbrock(p.detach()))
            close(*params, rtol=5e-6, atol=5e-6)
        assert (rosenbrock(params[0]).item() > before) == options.get("maximize", False), options


def test_a_complex_parameter_is_its_real_view(info):
    random = torch.Generator().manual_seed(0)
    for options in every_input(info, "differentiable"):
        start = [torch.randn(shape, generator=random) for shape in ((10, 5, 2), (10, 2), (10, 5, 2))]
        real = [t.clone().requires_grad_() for t in start]
        mixed = [torch.view_as_complex(t.clone()).requires_grad_() for t in start[:2]] + [start[2].clone().requires_grad_()]
        optimizers = info.optim_cls(real, **options), info.optim_cls(mixed, **copy.deepcopy(options))
        for _ in range(3):
            for p, q in zip(real, mixed, strict=True):
                p.grad = torch.randn(p.shape, generator=random)
                q.grad = torch.view_as_complex(p.grad.clone()) if q.is_complex() else p.grad.clone()
            for optimizer in optimizers:
                optimizer.step()
            close([torch.view_as_real(q) if q.is_complex() else q for q in mixed], real)


def test_a_complex_parameter_is_its_real_and_its_imaginary_part(info):
    from torch.testing._internal.common_optimizers import TensorTracker

    case = infos.case()
    for options in every_input(info, "differentiable"):
        if options.get("blocks", "element") != "element":
            continue  # a block would hold both parts
        z = torch.tensor([0.3 - 0.7j, -1.2 + 0.4j], requires_grad=True)
        parts = [part.detach().clone().requires_grad_() for part in (z.real, z.imag)]
        one, two = info.optim_cls([z], **options), info.optim_cls(parts, **copy.deepcopy(options))
        tracker = TensorTracker()
        for _ in range(3):
            one.zero_grad()
            two.zero_grad()
            rosenbrock(z).abs().backward()
            for tensor in (z.real, z.imag, z.grad.real, z.grad.imag):
                tracker.add(tensor)
            for part in parts:
                tracker.pop_check_set(part, case)
            rosenbrock(torch.complex(*parts)).abs().backward()
            for part in parts:
                tracker.pop_check_set(part.grad, case)
            one.step()
            two.step()
            close(z.detach(), torch.complex(*parts).detach())
        assert tracker.all_popped()


# ---------------------------------------------------------------- every way makes the same steps


def flat(params, optimizer):
    """Parameters and what is remembered of them, in one row: two of them are compared at once."""
    kept = [t for state in states(optimizer) for _, t in sorted(state.items())]
    return torch.cat([t.detach().reshape(-1).double() for t in (*params, *kept)])


def compare_ways(info, way, dtype, tolerance, every=1):
    """The loop against another way, in parameters and in what is remembered, at every step.

    One step has no gradients at all, and two parameters have none for a while.
    """
    shapes = (3, 2), (3,), (1, 3), (1,), ()
    for options in inputs_in(info)[::every]:
        params = [[torch.linspace(-1, 1, math.prod(s), dtype=dtype).reshape(s) for s in shapes] for _ in range(2)]
        ways = FORLOOP, {**FORLOOP, way: True}
        optimizers = [info.optim_cls(p, **{**copy.deepcopy(options), **w}) for p, w in zip(params, ways, strict=True)]
        random = torch.Generator().manual_seed(0)
        for n in range(7):
            for k, (p, q) in enumerate(zip(*params, strict=True)):
                p.grad = None if n == 2 or (n in (3, 4) and k in (2, 3)) else torch.randn(p.shape, generator=random).to(dtype)
                q.grad = copy.deepcopy(p.grad)
            for optimizer in optimizers:
                optimizer.step()
            close(*map(flat, params, optimizers), rtol=tolerance, atol=tolerance)
        for s, t in zip(*map(states, optimizers), strict=True):
            assert {name: value.dtype for name, value in s.items()} == {name: value.dtype for name, value in t.items()}
            assert "step" not in s or s["step"].dtype in (torch.float32, torch.float64)


def test_foreach_is_the_loop(info):
    compare_ways(info, "foreach", torch.float64, 1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_fused_is_the_loop(info, dtype):
    tolerance = {torch.float64: 1e-7, torch.float32: 1e-5}.get(dtype, 5e-3)  # torch's own
    compare_ways(info, "fused", dtype, tolerance, 1 if tolerance < 1e-3 else 3)


@pytest.mark.parametrize("default", [torch.float64, torch.float16], ids=str)
def test_the_default_dtype_does_not_matter(info, default):
    """Steps are never counted in half precision, which ends at 2048."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        compare_ways(info, "foreach", torch.float64, 1e-5, 2)  # a rate may be in a tensor of that dtype
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("way", ["foreach", "fused"])
def test_dtypes_side_by_side(info, way):
    dtypes = torch.float64, torch.float32, torch.float16, torch.bfloat16
    start = [torch.rand(2, 3, generator=torch.Generator().manual_seed(k)).to(dtype) for k, dtype in enumerate(dtypes)]
    for options in inputs_in(info):
        if options.get("donate_grads"):
            continue  # it takes the gradient away, and here is one for all steps
        both = [[t.clone().requires_grad_() for t in start] for _ in range(2)]
        optimizers = [info.optim_cls(p, **{**copy.deepcopy(options), **FORLOOP, way: k == 1}) for k, p in enumerate(both)]
        for p in itertools.chain(*both):
            p.grad = torch.full_like(p, 0.3)
        for _ in range(7):
            for optimizer in optimizers:
                optimizer.step()
        for p, q, s, t in zip(*both, *map(states, optimizers), strict=True):
            rtol, atol = (
                5 * tolerance for tolerance in torch.testing._comparison.get_tolerances(p.dtype, rtol=None, atol=None)
            )
            close((p, s), (q, t), rtol=rtol, atol=atol)


def test_foreach_takes_little_memory(info):
    """At most one intermediate of all parameters more than the loop, which works on one at a time."""
    for options in ({}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "maximize": True}):
        peaks = []
        for foreach in (False, True):
            params = with_gradients(*[(64, 64)] * 10)
            optimizer = info.optim_cls(params, **{**options, **FORLOOP, "foreach": foreach})
            optimizer.step()
            for p in params:
                p.grad = torch.ones_like(p)
            peaks.append(peak_memory(optimizer.step))
        assert peaks[1] <= peaks[0] + 10 * 64 * 64 * 4 + 4096, (options, peaks)


def peak_memory(function):
    """The largest number of bytes that torch has on the CPU at once while the function runs, beyond those before it."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        function()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    changes = [e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())]
    return max(itertools.accumulate(changes, initial=0))


def test_a_step_has_a_derivative(info):
    """In the start, the gradient, what is remembered of gradients, and the learning rate."""

    def two_steps(start, g, total, prev, lr):
        x = torch.nn.Parameter(torch.zeros(4, dtype=torch.float64))
        optimizer = info.optim_cls([x], lr=lr, eps=0.1, weight_decay=0.1, differentiable=True)
        x = start.clone()
        optimizer.param_groups[0]["params"] = [x]
        optimizer.state[x] = {"total": total.clone(), "prev": prev.clone()}
        if info.name != "AdaGradDiff":
            optimizer.state[x].update(mean=prev.clone() / 2, step=torch.tensor(9.0))
        for _ in range(2):
            x.grad = g
            optimizer.step()
        return x

    random = torch.Generator().manual_seed(0)
    tensors = [torch.rand(4, dtype=torch.float64, generator=random) + 0.5 for _ in range(4)]
    tensors.append(torch.tensor(0.3, dtype=torch.float64))
    assert torch.autograd.gradcheck(two_steps, [t.requires_grad_() for t in tensors])


# ---------------------------------------------------------------- steps that do nothing


def test_fused_refuses_parameters_without_memory(info):
    """torch says so at the first step, ours at once."""
    params = [torch.ones(2, 3, device="meta") for _ in range(2)]
    with pytest.raises(RuntimeError, match="meta device with fused=True"):
        info.optim_cls(params, fused=True)
    params[0].grad = torch.ones_like(params[0])
    optimizer = info.optim_cls(params)
    optimizer.step()
    assert optimizer.state[params[0]]["prev"].is_meta


def test_nothing_happens_if_a_scaler_found_inf(info):
    for options in every_input(info, "differentiable"):
        for scale in (None, torch.ones(1)):
            params = [torch.ones(1) for _ in range(5)]
            for p in params:
                p.grad = torch.ones_like(p)
            optimizer = info.optim_cls(params, **options)
            optimizer.grad_scale, optimizer.found_inf = scale, torch.ones(())
            optimizer.step()
            assert all(p.item() == 1.0 for p in params), options
            assert all(not t.any() for state in states(optimizer) for t in state.values() if t.numel() == 1), options


def test_a_scaler_leaves_it_to_the_optimizer(info):
    """Scaled steps are the plain ones, the one with an infinite gradient is left out, and nothing is read in between."""
    for options in every_input(info, "differentiable"):
        line, twin = Line(), Line()
        scaled, plain = info.optim_cls(line.params, **options), info.optim_cls(twin.params, **copy.deepcopy(options))
        assert scaled._step_supports_amp_scaling
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0, growth_interval=2)
        for n in range(5):
            scaled.zero_grad()
            scaler.scale(line.loss()).backward()
            if n == 2:
                line.params[0].grad[0, 0] = math.inf
            else:
                twin.step(plain)
            scaler.step(scaled)
            scaler.update()
            close(line.params, twin.params)


def test_nothing_happens_without_gradients(info):
    for options in every_input(info):
        params = [torch.ones(2, 3) for _ in range(2)]
        optimizer = info.optim_cls(params, **options)
        assert optimizer.step(lambda: torch.tensor([1.0])).item() == 1.0
        assert all((p == 1).all() for p in params)


def test_nothing_happens_for_zero_gradients(info):
    for options in every_input(info):
        if options.get("prox_unseen") or options.get("weight_decay"):
            continue  # those move parameters by themselves
        if info.name == "AdamWDiff":
            options["weight_decay"] = 0.0  # it has some by default
        params = [10 * torch.randn(5, 1) for _ in range(2)]  # some are out of bounds, and stay there
        start = copy.deepcopy(params)
        optimizer = info.optim_cls(params, **options)
        for _ in range(3):
            for p in params:
                p.grad = torch.zeros_like(p)
            optimizer.step(lambda: 1.0)
        assert all(torch.equal(p, q) for p, q in zip(params, start, strict=True)), options


def test_gradients_are_never_written_into(info):
    for options in every_input(info):
        x = torch.randn(5, 1)
        optimizer = info.optim_cls([x], **options)
        g = torch.rand(5, 1)
        before, version = g.clone(), g._version
        for _ in range(5):
            x.grad = g.clone() if options.get("donate_grads") else g  # a gradient that is given away may be used
            optimizer.step(lambda: 1.0)
            assert optimizer.state[x]["prev"].data_ptr() != g.data_ptr()
        assert g._version == version
        assert torch.equal(g, before)


def test_autograd_notices_every_step(info):
    """What a loss has saved before a step is out of date after it, in whatever way the step was made."""
    for options in every_input(info, "differentiable"):
        x = torch.ones(3, requires_grad=True)
        optimizer = info.optim_cls([x], **options)
        loss = x.square().sum()
        x.grad = torch.ones(3)
        optimizer.step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
