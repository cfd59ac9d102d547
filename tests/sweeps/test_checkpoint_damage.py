"""Checkpoints under attack: whatever their files hold, a sweep refuses them in a sentence or gives the same bits."""

import json
import re
import zipfile

import numpy as np
import pytest

from adagrad_diff import L1, AdaGrad, AdaGradDiff, Squared, sweep
from adagrad_diff.solvers.checkpoint import save
from adagrad_diff.sweeps.checkpoint import SWEEP_FORMAT
from checkpointing import REAL, X0S, A, digest, schedule, snapshot
from damage import at_most, attempt, damaged
from looping import looped
from pairwise import pairwise

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


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("finished")
    run(directory)
    return {file.name: file.read_bytes() for file in directory.iterdir()}


@pytest.fixture
def part(files, tmp_path):
    """One part of a finished sweep."""
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path / "part-0001.npz"


def arrays(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files if name not in ("header", "sha256")}


def put(path, arrays):
    """Write arrays as a sweep does, with a checksum."""
    if any(array.dtype.hasobject for array in arrays.values()):
        np.savez(path, **arrays)
    else:
        save(path, {"format": SWEEP_FORMAT}, arrays)


def refused(path):
    """The sweep says which file it is, why, and what to do; and leaves it as it is."""
    before = path.read_bytes()
    with pytest.raises(
        ValueError,
        match=r"cannot be used: .*\. Delete it and run again: only that part is computed",
    ) as caught:
        run(path.parent)
    assert str(caught.value).startswith(f"{path} cannot be used: ")
    assert path.read_bytes() == before
    return str(caught.value)


RESHAPED = {
    "one column": lambda a: a[..., :1],
    "more columns": lambda a: np.concatenate([a, a], axis=-1),
    "an axis more": lambda a: a[None],
    "other rows": lambda a: a[: len(a) // 2] if a.ndim > 1 else a[:2],
    "half": lambda a: a.astype(np.float16),
    "complex": lambda a: a.astype(np.complex128),
    "objects": lambda a: a.astype(object),
    "absent": lambda a: None,
}


@looped("change", RESHAPED)
def test_arrays_of_another_shape_or_type(part, expected, change):
    """Each of them, alone: no kernel gets to see it."""
    path, intact = part, arrays(part)
    assert len(intact) >= 6
    for name, array in intact.items():
        new = {**intact, name: RESHAPED[change](array)}
        put(path, {key: value for key, value in new.items() if value is not None})
        refused(path)
    put(path, intact)
    assert run(path.parent) == expected


def test_values_that_cannot_be(part, expected):
    path, intact = part, arrays(part)
    wrong = {"nit": (-1, N + 1, 1 << 60), "status": (-1, 4, 99)}
    for name, values in wrong.items():
        for value in values:
            new = intact[name].copy()
            new[-1] = value
            put(path, {**intact, name: new})
            assert name in refused(path)
    put(path, {**intact, "more": np.zeros(3)})
    assert "more" in refused(path)
    put(path, {name: np.asfortranarray(array) for name, array in intact.items()})
    assert run(path.parent) == expected  # the same numbers in another order


def test_a_bomb(part):
    path = part
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("objective.npy", "w") as file,
    ):
        file.write(bytes(1 << 21))
    assert "compressed" in refused(path)
    path.write_bytes(bytes(1 << 20))
    assert "1,048,576 bytes" in refused(path)


@pairwise(
    fault=["flipped", "one bit", "zeroed", "cut out", "truncated", "doubled"],
    which=["part", "manifest"],
)
def test_every_byte_region(tmp_path, files, part, expected, which, fault):
    path = part if which == "part" else tmp_path / "manifest.json"
    kinds = (
        rf"{re.escape(str(path))} (cannot be used: .*Delete it|is not the manifest of a sweep: .*Choose another)"
        rf"|The checkpoint in {re.escape(str(tmp_path))} belongs to another sweep: .* is not the same"
    )
    count = 0
    for content in damaged(files[path.name], fault, regions=4):
        for file in tmp_path.iterdir():
            file.unlink()
        for name, intact in files.items():
            (tmp_path / name).write_bytes(content if name == path.name else intact)
        answer, sentence = attempt(run, tmp_path)
        if sentence is None:
            assert answer == expected
        else:
            count += 1
            assert re.match(kinds, sentence), sentence
            assert path.read_bytes() == content
    assert count > 3


DEEP = "[" * 200_000 + "]" * 200_000
PLANS = {
    "unknown rule": lambda plan: [["Foo", *plan[0][1:]], *plan[1:]],
    "rules in another order": lambda plan: plan[::-1],
    "a column twice": lambda plan: [*plan, plan[-1]],
    "a chunk missing": lambda plan: plan[:-1],
    "a gap": lambda plan: [[plan[0][0], 1, plan[0][2]], *plan[1:]],
    "huge": lambda plan: [[plan[0][0], 0, 10**30], *plan[1:]],
    "backwards": lambda plan: [[plan[0][0], plan[0][2], 0], *plan[1:]],
    "fractions": lambda plan: [[plan[0][0], 0.0, plan[0][2]], *plan[1:]],
    "two etas of a schedule": lambda plan: [
        *(c for c in plan if c[0] != "schedule"),
        ["schedule", 0, 6],
    ],
    "nan": lambda plan: [[plan[0][0], float("nan"), plan[0][2]], *plan[1:]],
    "pairs": lambda plan: [chunk[1:] for chunk in plan],
    "nothing": lambda plan: None,
}


@looped("case", PLANS)
def test_hostile_plans(part, files, case):
    path, content = part.with_name("manifest.json"), json.loads(files["manifest.json"])
    assert {len(chunk) for chunk in content["plan"]} == {3}
    path.write_text(json.dumps(content | {"plan": PLANS[case](content["plan"])}))
    assert_no_manifest(path)


MANIFESTS = {
    "deep": lambda content: DEEP,
    "a deep plan": lambda content: json.dumps(content | {"plan": 0}).replace(
        '"plan": 0', f'"plan": {DEEP}'
    ),
    "many digits": lambda content: json.dumps(content | {"plan": 0}).replace(
        '"plan": 0', '"plan": ' + "9" * 10_000
    ),
    "a list for the description": lambda content: json.dumps(content | {"description": []}),
    "no format": lambda content: json.dumps({key: content[key] for key in ("description", "plan")}),
    "Infinity": lambda content: "Infinity",
    "empty": lambda content: "",
    "not JSON": lambda content: "hello",
    "a list": lambda content: "[]",
    "another format": lambda content: json.dumps(content | {"format": "adagrad-diff sweep 0"}),
    "other software": lambda content: '{"name": "my extension", "manifest_version": 3}',
    "half a letter": lambda content: '"\\ud800"',
}


@looped("case", MANIFESTS)
def test_hostile_manifests(part, files, case):
    path = part.with_name("manifest.json")
    path.write_text(MANIFESTS[case](json.loads(files["manifest.json"])))
    assert_no_manifest(path)


def assert_no_manifest(path):
    before = snapshot(path.parent)
    with pytest.raises(
        ValueError, match=r"is not the manifest of a sweep: .*\. Choose another 'checkpoint'\.$"
    ) as caught:
        run(path.parent)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 1000
    assert snapshot(path.parent) == before


@pytest.mark.parametrize("kind", ["finished", "new"])
def test_a_disk_that_is_full(tmp_path, files, expected, kind):
    """The last good files stay, and the sweep goes on from them when there is room again."""
    before = {
        name: content
        for name, content in files.items()
        if kind == "finished" and name != "part-0002.npz"
    }
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    with (
        at_most(400),
        pytest.raises(OSError, match=r"^'checkpoint' cannot be written: .*: File too large\.$"),
    ):
        run(tmp_path)
    after = {name: content for name, (content, _) in snapshot(tmp_path).items()}
    assert before.items() <= after.items()
    assert not list(tmp_path.glob("*.partial"))
    assert run(tmp_path) == expected
