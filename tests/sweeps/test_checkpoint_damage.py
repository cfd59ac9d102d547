"""Checkpoints under attack: whatever their files hold, a sweep refuses them in a sentence or gives the same bits."""

import itertools
import json
import re
import zipfile

import numpy as np
import pytest

from adagrad_diff import L1, AdaGrad, AdaGradDiff, Squared, sweep
from checkpointing import REAL, X0S, A, digest, half_way, schedule, snapshot
from damage import at_most, attempt, damaged

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl

N = 20
OPTIONS = {"record": 3, "n_jobs": 1}


def arguments():
    rules = {"Diff": AdaGradDiff, "AdaGrad": AdaGrad, "schedule": schedule}
    return Squared(A, REAL), L1(0.01), rules, [0.1, 0.2], X0S, N


def run(directory=None):
    return digest(sweep(*arguments(), **OPTIONS, checkpoint=directory))


@pytest.fixture(scope="module")
def expected():
    return run()


def once(make):
    """Made once; afterwards the same files are written."""
    made = {}

    def again(monkeypatch, directory):
        if not made:
            made["path"] = make(monkeypatch, directory).name
            made["files"] = {file.name: file.read_bytes() for file in directory.iterdir()}
        for name, content in made["files"].items():
            (directory / name).write_bytes(content)
        return directory / made["path"]

    return again


@once
def finished(monkeypatch, directory):
    run(directory)
    return directory / "part-0001.npz"


@once
def in_progress(monkeypatch, directory):
    return half_way(monkeypatch, directory, arguments(), OPTIONS)


KINDS = {"finished": finished, "in progress": in_progress}


def arrays(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def refused(path):
    """The sweep says which file it is, why, and what to do; and leaves it as it is."""
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"cannot be used: .*\. Delete it and run again: only that part is computed") as caught:
        run(path.parent)
    assert str(caught.value).startswith(f"{path} cannot be used: ")
    assert path.read_bytes() == before
    return str(caught.value)


RESHAPED = {
    "one column": lambda a: a[..., :1],
    "no column": lambda a: a[..., :0],
    "more columns": lambda a: np.concatenate([a, a], axis=-1),
    "an axis more": lambda a: a[None],
    "fewer axes": lambda a: a[..., 0],
    "other rows": lambda a: a[: len(a) // 2] if a.ndim > 1 else a[:2],
    "single": lambda a: a.astype(np.float32),
    "half": lambda a: a.astype(np.float16),
    "32 bits": lambda a: np.zeros(a.shape, np.int32 if a.dtype.kind == "i" else np.uint32),
    "complex": lambda a: a.astype(np.complex128),
    "text": lambda a: a.astype(np.str_),
    "objects": lambda a: a.astype(object),
    "the other end first": lambda a: a.astype(a.dtype.newbyteorder() if a.dtype.itemsize > 1 else np.int8),
    "absent": lambda a: None,
}


@pytest.mark.parametrize("change", RESHAPED)
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_another_shape_or_type(tmp_path, monkeypatch, expected, kind, change):
    """Each of them, alone: no kernel gets to see it."""
    path = KINDS[kind](monkeypatch, tmp_path)
    intact = arrays(path)
    assert len(intact) >= 6
    for name, array in intact.items():
        new = {**intact, name: RESHAPED[change](array)}
        with open(path, "wb") as file:
            np.savez(file, **{key: value for key, value in new.items() if value is not None})
        refused(path)
    path.unlink()
    assert run(tmp_path) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_cannot_be(tmp_path, monkeypatch, expected, kind):
    path = KINDS[kind](monkeypatch, tmp_path)
    intact = arrays(path)
    wrong = {"nit": (-1, N + 1, 1 << 60), "status": (-1, 4, 99)} if kind == "finished" else {"state.n": (-1, N + 1, 1 << 60)}
    for name, values in wrong.items():
        for value in values:
            new = intact[name].copy()
            new[-1] = value
            with open(path, "wb") as file:
                np.savez(file, **{**intact, name: new})
            assert name in refused(path)
    with open(path, "wb") as file:
        np.savez(file, **intact, more=np.zeros(3))
    assert "more" in refused(path)
    with open(path, "wb") as file:
        np.savez(file, **{name: np.asfortranarray(array) for name, array in intact.items()})
    assert run(tmp_path) == expected  # the same numbers in another order


@pytest.mark.parametrize("kind", KINDS)
def test_a_bomb(tmp_path, monkeypatch, kind):
    path = KINDS[kind](monkeypatch, tmp_path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("objective.npy", "w") as file:
        file.write(bytes(1 << 21))
    assert "compressed" in refused(path)
    path.write_bytes(bytes(1 << 20))
    assert "1,048,576 bytes" in refused(path)


REGION_FAULTS = ["flipped", "one bit", "zeroed", "cut out", "truncated", "doubled"]


@pytest.mark.parametrize("fault", REGION_FAULTS)
@pytest.mark.parametrize("kind", [*KINDS, "manifest"])
def test_every_byte_region(tmp_path, monkeypatch, expected, kind, fault):
    path = KINDS.get(kind, in_progress)(monkeypatch, tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    path = path if kind in KINDS else tmp_path / "manifest.json"
    kinds = (
        rf"{re.escape(str(path))} (cannot be used: .*Delete it|is not the manifest of a sweep: .*Choose another)"
        rf"|The checkpoint in {re.escape(str(tmp_path))} belongs to another sweep: .* is not the same"
    )
    count = 0
    # Every other region for this fault, the rest for the next one.
    for content in itertools.islice(damaged(before[path], fault, regions=12), REGION_FAULTS.index(fault) % 2, None, 2):
        for file in tmp_path.iterdir():
            file.unlink()
        for file, intact in before.items():
            file.write_bytes(content if file == path else intact)
        answer, sentence = attempt(run, tmp_path)
        if sentence is None:
            assert answer == expected
        else:
            count += 1
            assert re.match(kinds, sentence), sentence
            assert path.read_bytes() == content
    assert count > 5


DEEP = "[" * 200_000 + "]" * 200_000
PLANS = {
    "unknown rule": lambda plan: [["Foo", *plan[0][1:]], *plan[1:]],
    "rules in another order": lambda plan: plan[::-1],
    "a column twice": lambda plan: [*plan, plan[-1]],
    "a chunk missing": lambda plan: plan[:-1],
    "a rule missing": lambda plan: [chunk for chunk in plan if chunk[0] != "AdaGrad"],
    "a gap": lambda plan: [[plan[0][0], 1, plan[0][2]], *plan[1:]],
    "negative": lambda plan: [[plan[0][0], -1, plan[0][2]], *plan[1:]],
    "huge": lambda plan: [[plan[0][0], 0, 10**30], *plan[1:]],
    "empty chunks": lambda plan: [[plan[0][0], 0, 0], *plan],
    "backwards": lambda plan: [[plan[0][0], plan[0][2], 0], *plan[1:]],
    "fractions": lambda plan: [[plan[0][0], 0.0, plan[0][2]], *plan[1:]],
    "truth values": lambda plan: [[plan[0][0], False, plan[0][2]], *plan[1:]],
    "text": lambda plan: [[plan[0][0], "0", plan[0][2]], *plan[1:]],
    "two etas of a schedule": lambda plan: [*(c for c in plan if c[0] != "schedule"), ["schedule", 0, 6]],
    "infinite": lambda plan: [[plan[0][0], 0, float("inf")], *plan[1:]],
    "nan": lambda plan: [[plan[0][0], float("nan"), plan[0][2]], *plan[1:]],
    "pairs": lambda plan: [chunk[1:] for chunk in plan],
    "a name that is none": lambda plan: [[None, *plan[0][1:]], *plan[1:]],
    "a dict": lambda plan: {str(k): chunk for k, chunk in enumerate(plan)},
    "nothing": lambda plan: None,
    "no chunk": lambda plan: [],
}


@pytest.mark.parametrize("case", PLANS)
def test_hostile_plans(tmp_path, monkeypatch, case):
    in_progress(monkeypatch, tmp_path)
    path = tmp_path / "manifest.json"
    content = json.loads(path.read_text())
    assert {len(chunk) for chunk in content["plan"]} == {3}
    path.write_text(json.dumps(content | {"plan": PLANS[case](content["plan"])}))
    assert_no_manifest(path)


MANIFESTS = {
    "deep": lambda content: DEEP,
    "deep inside": lambda content: json.dumps(content)[:-1] + f', "more": {DEEP}}}',
    "a deep plan": lambda content: json.dumps(content | {"plan": 0}).replace('"plan": 0', f'"plan": {DEEP}'),
    "a deep format": lambda content: '{"format": %s, "description": {}, "plan": []}' % ("[" * 900 + "]" * 900),
    "many digits": lambda content: json.dumps(content | {"plan": 0}).replace('"plan": 0', '"plan": ' + "9" * 10_000),
    "a number for the description": lambda content: json.dumps(content | {"description": 3}),
    "a list for the description": lambda content: json.dumps(content | {"description": []}),
    "nothing for the description": lambda content: json.dumps(content | {"description": None}),
    "no description": lambda content: json.dumps({key: content[key] for key in ("format", "plan")}),
    "no format": lambda content: json.dumps({key: content[key] for key in ("description", "plan")}),
    "Infinity": lambda content: "Infinity",
    "half a letter": lambda content: '"\\ud800"',
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_hostile_manifests(tmp_path, monkeypatch, case):
    in_progress(monkeypatch, tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(MANIFESTS[case](json.loads(path.read_text())))
    assert_no_manifest(path)


def assert_no_manifest(path):
    before = snapshot(path.parent)
    with pytest.raises(ValueError, match=r"is not the manifest of a sweep: .*\. Choose another 'checkpoint'\.$") as caught:
        run(path.parent)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 1000
    assert snapshot(path.parent) == before


@pytest.mark.parametrize("kind", [*KINDS, "new"])
def test_a_disk_that_is_full(tmp_path, monkeypatch, expected, kind):
    """The last good files stay, and the sweep goes on from them when there is room again."""
    if kind != "new":
        KINDS[kind](monkeypatch, tmp_path)
    if kind == "finished":
        (tmp_path / "part-0002.npz").unlink()
    before = {name: content for name, (content, _) in snapshot(tmp_path).items()}
    with at_most(400), pytest.raises(OSError, match=r"^'checkpoint' cannot be written: .*: File too large\.$"):
        run(tmp_path)
    after = {name: content for name, (content, _) in snapshot(tmp_path).items()}
    assert before.items() <= after.items()
    assert not list(tmp_path.glob("*.partial"))
    assert run(tmp_path) == expected
