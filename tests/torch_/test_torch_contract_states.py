"""What torch asks of what its optimizers remember, save and load, and of hooks, asked of ours."""

import copy
import io
import itertools

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # torch's own test utilities need it

import contract_infos as infos  # noqa: E402
from contract_infos import every_input, inputs_in  # noqa: E402
from contract_parts import Line, repeat_step, states, with_gradients  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook  # noqa: E402

from adagrad_diff.torch import AdamDiff, AdamWDiff  # noqa: E402

pytestmark = pytest.mark.peer

BOTH = [False, True]
PAIRS = list(itertools.product(BOTH, BOTH))


@pytest.fixture(params=infos.NAMES)
def info(request):
    return infos.infos()[request.param]


def same(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=0)


def named(params, really=True):
    return [(f"name{k}", p) for k, p in enumerate(params)] if really else params


def equal(a, b):
    """Two state dicts say the same."""
    assert a.keys() == b.keys()
    if "state" in a:
        same(a["state"], b["state"])
        for group, other in zip(a["param_groups"], b["param_groups"], strict=True):
            equal(group, other)
    else:
        assert {name: value for name, value in a.items() if name != "lr"} == {n: value for n, value in b.items() if n != "lr"}
        assert type(a["lr"]) is type(b["lr"])
        assert a["lr"] == b["lr"]


# ---------------------------------------------------------------- saved and loaded


def test_a_loaded_state_continues_the_same_run(info):
    """Bit by bit, whether parameters have names or not; and names come through if anybody has them."""
    for k, options in enumerate(every_input(info, "differentiable")):
        first, second = PAIRS[k // 2 % 4]
        line = Line()
        optimizer = info.optim_cls(named(line.params, first), **options)
        for _ in range(3):
            line.step(optimizer)
        twin = copy.deepcopy(line)
        loaded = info.optim_cls(named(twin.params, second), **copy.deepcopy(options))
        saved = optimizer.state_dict()
        untouched = copy.deepcopy(saved)
        loaded.load_state_dict(saved)
        for _ in range(3):
            line.step(optimizer)
            twin.step(loaded)
        same(line.params, twin.params)
        same(states(optimizer), states(loaded))
        equal(saved, untouched)
        names = loaded.state_dict()["param_groups"][0].get("param_names")
        assert names == (["name0", "name1"] if first or second else None)


def test_equal_runs_have_equal_state_dicts(info):
    """Also if a group stands there twice: parameters are numbered, not named by where they are in memory."""
    for options in every_input(info, "differentiable"):
        dicts = []
        for _ in range(2):
            line = Line()
            optimizer = info.optim_cls(line.params, **copy.deepcopy(options))
            for _ in range(2):
                line.step(optimizer)
            dicts.append(optimizer.state_dict())
        equal(*dicts)
        optimizer.param_groups.extend(optimizer.param_groups)
        equal(optimizer.state_dict()["param_groups"][-1], dicts[0]["param_groups"][-1])


def test_older_state_dicts_are_loaded(info):
    """Options that came later are missing: they are as the optimizer that loads has them, and the run goes on."""
    for options in every_input(info, "differentiable"):
        line = Line()
        optimizer = info.optim_cls(line.params, **options)
        line.step(optimizer)
        older = optimizer.state_dict()
        for group in older["param_groups"]:
            for name in info.not_og_supported_flags:
                group.pop(name, None)
        twin = copy.deepcopy(line)
        loaded = info.optim_cls(twin.params, **copy.deepcopy(options))
        loaded.load_state_dict(older)
        line.step(optimizer)
        twin.step(loaded)
        same(line.params, twin.params)


def test_a_state_is_the_same_after_a_file(info):
    for options in every_input(info, "differentiable"):
        for really in BOTH:
            line = Line()
            optimizer = info.optim_cls(named(line.params, really), **copy.deepcopy(options))
            for _ in range(2):
                line.step(optimizer)
            content = optimizer.state_dict()
            for weights_only in BOTH:
                file = io.BytesIO()
                torch.save(content, file)
                file.seek(0)
                equal(torch.load(file, weights_only=weights_only), content)


def test_a_step_count_may_be_a_plain_number(info):
    for options in every_input(info, "differentiable"):
        line = Line()
        optimizer = info.optim_cls(line.params, **options)
        for _ in range(3):
            line.step(optimizer)
        content = optimizer.state_dict()
        for state in content["state"].values():
            if "step" in state:
                assert state["step"] == 3
                state["step"] = state["step"].item()
        twin = copy.deepcopy(line)
        loaded = info.optim_cls(twin.params, **copy.deepcopy(options))
        loaded.load_state_dict(content)
        line.step(optimizer)
        twin.step(loaded)
        same(line.params, twin.params)


def test_a_state_of_other_parameters_is_taken_as_it_is(info):
    """Parameters in another precision than those of the file: buffers keep theirs, where torch would cast them."""
    for options in inputs_in(info):
        line = Line()
        optimizer = info.optim_cls(line.params, **options)
        for _ in range(2):
            line.step(optimizer)
        loaded = info.optim_cls([p.detach().double() for p in line.params], **copy.deepcopy(options))
        loaded.load_state_dict(optimizer.state_dict())
        same(states(loaded), states(optimizer))


def test_decoupled_weight_decay_is_saved():
    """As with Adam and AdamW: AdamDiff does as the file says, AdamWDiff is always decoupled."""
    x = torch.nn.Parameter(torch.ones(2))
    decoupled, coupled = AdamWDiff([x]).state_dict(), AdamDiff([x]).state_dict()
    older = copy.deepcopy(decoupled)
    del older["param_groups"][0]["decoupled_weight_decay"]
    for kind, content, expected in (
        (AdamDiff, decoupled, True),
        (AdamDiff, coupled, False),
        (AdamWDiff, decoupled, True),
        (AdamWDiff, coupled, True),
        (AdamWDiff, older, True),
    ):
        optimizer = kind([x])
        optimizer.load_state_dict(content)
        assert optimizer.param_groups[0]["decoupled_weight_decay"] is expected, kind


def test_copies_have_all_public_attributes(info):
    for options in every_input(info, "differentiable"):
        optimizer = info.optim_cls(with_gradients((2, 3), (2, 3)), **options)
        repeat_step(optimizer, 3)
        twin = copy.deepcopy(optimizer)
        assert {name for name in vars(optimizer) if name[0] != "_"} == {name for name in vars(twin) if name[0] != "_"}
        same(states(twin), states(optimizer))


def test_there_is_a_state_after_a_step(info):
    for options in inputs_in(info):
        optimizer = info.optim_cls(with_gradients((5, 5)), **options)
        optimizer.step()
        expected = {"total", "prev"} if info.name == "AdaGradDiff" else {"total", "prev", "mean", "step"}
        assert set(states(optimizer)[0]) == expected | ({"step"} if options.get("lr_decay") else set()), options


def test_printing(info):
    for options in every_input(info):
        text = repr(info.optim_cls(with_gradients((2, 3)), **options))
        assert text.startswith(info.name)
        assert f"maximize: {options.get('maximize', False)}" in text


# ---------------------------------------------------------------- hooks


def test_hooks_of_state_dicts(info):
    """One before may add an entry of its own to the state, one after takes it out again."""
    for options in every_input(info):
        before, after, both = (info.optim_cls(with_gradients((2, 3)), **copy.deepcopy(options)) for _ in range(3))

        def add(optimizer):
            optimizer.state["test"] = 1

        def take(optimizer, content):
            return {**content, "found": content["state"].pop("test", None)}

        before.register_state_dict_pre_hook(add)
        assert before.state_dict()["state"]["test"] == 1
        after.register_state_dict_post_hook(take)
        assert after.state_dict()["found"] is None
        both.register_state_dict_pre_hook(add)
        both.register_state_dict_post_hook(take)
        content = both.state_dict()
        assert content["found"] == 1
        assert "test" not in content["state"]


def test_hooks_of_loading(info):
    """One before may change what is loaded, in place or by another dict; `prepend` says who is first; one after sees it."""

    def in_place(optimizer, content):
        content["param_groups"][0]["lr"] = 0.002

    def another(optimizer, content):
        content = copy.deepcopy(content)
        content["param_groups"][0]["lr"] = 0.003
        return content

    for options in every_input(info):
        optimizer = info.optim_cls(with_gradients((2, 3)), **options)
        content, seen = optimizer.state_dict(), []
        optimizer.register_load_state_dict_post_hook(lambda loaded, seen=seen: seen.append(float(loaded.param_groups[0]["lr"])))
        optimizer.load_state_dict(content)
        assert seen == [pytest.approx(float(content["param_groups"][0]["lr"]))]
        optimizer.register_load_state_dict_pre_hook(in_place)
        optimizer.load_state_dict(content)
        handle = optimizer.register_load_state_dict_pre_hook(another, prepend=True)
        optimizer.load_state_dict(content)  # which `in_place` changes after all
        handle.remove()
        optimizer.register_load_state_dict_pre_hook(another)
        optimizer.load_state_dict(content)
        assert seen[1:] == [0.002, 0.002, 0.003]
        assert optimizer.param_groups[0]["lr"] == 0.003


def test_hooks_of_steps(info):
    """Those of all optimizers stand outside those of one, and whoever is removed is not called any more."""
    for options in every_input(info):
        x, calls = torch.ones(1, 2), []

        def note(word, calls=calls):
            return lambda *_: calls.append(word)

        ours, other = info.optim_cls([x], **options), torch.optim.SGD([x])
        handles = [register_optimizer_step_pre_hook(note("all before")), register_optimizer_step_post_hook(note("all after"))]
        for optimizer in (ours, other):
            handles.append(optimizer.register_step_pre_hook(note("before")))
            handles.append(optimizer.register_step_post_hook(note("after")))
        try:
            for optimizer in (ours, other, ours):
                optimizer.step()
        finally:
            for handle in handles:
                handle.remove()
        assert calls == ["all before", "before", "after", "all after"] * 3
        ours.step()
        assert len(calls) == 12
