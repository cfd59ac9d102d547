"""Checkpoints that are damaged, made up, or of another version: one sentence, nothing run, nothing changed."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from adagrad_diff import L1, LAD, State, load_state, minimize
from adagrad_diff.solve import keeping
from damage import attempt, damaged
from looping import looped
from user_losses import data

A, REAL, _, _ = data(samples=30, features=4)
RUN = {"penalty": L1(0.02), "tol": 1e-9, "on_failure": "ignore", "max_iter": 30, "finish": False}


def run(path):
    return minimize(LAD(A, REAL), **RUN, checkpoint=path)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A checkpoint of a race that is under way, with a history and a certificate."""
    path = tmp_path_factory.mktemp("checkpoint") / "run.npz"

    def crash(now):
        if now.nit == 20:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        minimize(LAD(A, REAL), **RUN, checkpoint=path, every=0.0, callback=crash)
    return path.read_bytes()


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "run.npz"
    run(path)
    return path.read_bytes()


EXPECTED = minimize(LAD(A, REAL), **RUN)


def assert_refused(path, content, *, harmless=False):
    """One sentence, and the file stays as it is; or, if a change may be harmless, the right answer."""
    path.write_bytes(content)
    result, sentence = attempt(run, path)
    if sentence is None:
        assert harmless
        assert np.array_equal(result.x, EXPECTED.x)
        assert result.gap == EXPECTED.gap
        return
    assert sentence.startswith((f"{path} is no readable checkpoint of minimize: ", f"The checkpoint {path} cannot be"))
    assert sentence.endswith(("another 'checkpoint'.", "another 'checkpoint'; nothing was changed in this one."))
    assert len(sentence) < 500
    assert path.read_bytes() == content
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@looped("fault", ["flipped", "one bit", "zeroed", "cut out", "truncated", "doubled"])
@looped("which", ["original", "ended"])
def test_damage(tmp_path, request, original, ended, fault, which):
    """What of a ZIP file nobody reads, such as the dates, may change."""
    for content in damaged(request.getfixturevalue(which), fault, regions=12):
        assert_refused(tmp_path / "run.npz", content, harmless=True)


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {member.filename: archive.read(member) for member in archive.infolist()}


def zipped(parts, how=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return file.getvalue()


def test_members_that_are_whole_but_elsewhere(tmp_path, original, ended):
    for content in (original, ended):
        parts = members(content)
        names = list(parts)
        for one, other in zip(names, names[1:] + names[:1], strict=True):
            if parts[one] != parts[other]:
                assert_refused(tmp_path / "run.npz", zipped(parts | {one: parts[other], other: parts[one]}))
            assert_refused(tmp_path / "run.npz", zipped({name: part for name, part in parts.items() if name != one}))
            assert_refused(tmp_path / "run.npz", zipped(parts | {f"more.{one}": parts[one]}))
        mixed = {name: members(ended).get(name, part) for name, part in parts.items() if name != "header.npy"}
        assert_refused(tmp_path / "run.npz", zipped({**mixed, "header.npy": parts["header.npy"]}), harmless=content is ended)


class Trap:
    """An object that does something when it is unpickled."""

    def __reduce__(self):
        return print, ("the trap has closed",)


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_nothing_is_unpickled_or_unpacked(tmp_path, original, capsys):
    path, trap = tmp_path / "run.npz", np.array([Trap()], dtype=object)
    assert_refused(path, pickle.dumps(Trap()))
    assert_refused(path, npz(header=trap, sha256=trap))
    with np.load(io.BytesIO(original)) as content:
        arrays = dict(content)
    for name in ("x", "codes", "header", "notes.race.best"):
        assert_refused(path, npz(**arrays | {name: trap}))
    assert_refused(path, zipped(members(original), zipfile.ZIP_DEFLATED))
    assert_refused(path, zipped({"x.npy": bytes(1 << 24)}, zipfile.ZIP_DEFLATED))  # a bomb
    for content in (b"", b"garbage", b"PK\x05\x06" + bytes(18), npz(), npz(x=np.zeros(3))):
        assert_refused(path, content)
    assert "closed" not in capsys.readouterr().out


def rewritten(content, header=None, **changes):
    """The file with other arrays, and a checksum that is right."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: array for name, array in file.items() if name != "sha256"}
    text = str(arrays.pop("header"))
    if header is not None:
        text = json.dumps(header(json.loads(text)))
    arrays = {name: array for name, array in (arrays | changes).items() if array is not None}
    return npz(header=np.array(text), sha256=np.array(keeping._checksum(text, arrays)), **arrays)


LIES = {
    "another version": {"header": lambda h: h | {"format": "adagrad-diff checkpoint 3"}},
    "no format": {"header": lambda h: {k: v for k, v in h.items() if k != "format"}},
    "no header": {"header": lambda h: []},
    "more": {"header": lambda h: h | {"more": 1}},
    "time runs backwards": {"header": lambda h: h | {"seconds": -1.0}},
    "no time": {"header": lambda h: h | {"seconds": float("nan")}},
    "a time in words": {"header": lambda h: h | {"seconds": "long"}},
    "begun later": {"header": lambda h: h | {"begun": 10**6}},
    "no start": {"header": lambda h: h | {"start": 3}},
    "no call": {"header": lambda h: h | {"call": {}}},
    "budgets in words": {"header": lambda h: h | {"call": h["call"] | {"max_iter": "many"}}},
    "an end without arrays": {"header": lambda h: h | {"end": {"message": "", "finish": None}}},
    "an end that is none": {"header": lambda h: h | {"end": 3}},
    "a state that is none": {"header": lambda h: h | {"state": 3}},
    "no code": {"codes": np.array(99)},
    "codes": {"codes": np.zeros(3, np.int64)},
    "codes in words": {"codes": np.array("fine")},
    "missing codes": {"codes": None},
    "a shorter history": {"history.objective": np.zeros(3)},
    "a history of matrices": {"history.objective": np.zeros((5, 5))},
    "a history of single numbers": {"history.time": np.zeros(5, np.float32)},
    "no history": {"history.iteration": None},
    "x of another size": {"x": np.zeros(9)},
    "x of integers": {"x": np.zeros(4, np.int64)},
    "x that is not finite": {"x": np.full(4, np.nan)},
    "trajectories elsewhere": {"trajectories.x": np.full((4, 3), 0.25)},
    "no trajectories": {"trajectories.x": None},
    "a race of another size": {"notes.race.best": np.zeros(7)},
    "a certificate that is none": {"notes.certifier.value": np.array(1e9), "notes.certifier.bound": np.array(1e9)},
    "unknown": {"notes_.x": np.zeros(3)},
}


@looped("lie", LIES)
def test_lies(tmp_path, original, lie):
    """With a checksum that is right: what is not even possible does not reach a kernel."""
    assert_refused(tmp_path / "run.npz", rewritten(original, **LIES[lie]))


@looped("name", keeping.END)
def test_lies_about_the_end(tmp_path, ended, name):
    assert_refused(tmp_path / "run.npz", rewritten(ended, **{f"end.{name}": np.array("fine")}))
    if name in ("status", "success", "nfev", "eta"):
        assert_refused(tmp_path / "run.npz", rewritten(ended, **{f"end.{name}": None}))


def test_a_file_that_is_rewritten_as_it_was_is_good(tmp_path, original):
    """So the lies are refused for what they say."""
    path = tmp_path / "run.npz"
    path.write_bytes(rewritten(original))
    assert np.array_equal(run(path).x, EXPECTED.x)


def test_states_and_checkpoints_are_not_mixed_up(tmp_path, original):
    path = tmp_path / "run.npz"
    path.write_bytes(original)
    with pytest.raises(ValueError, match="is not a readable state file"):
        load_state(path)
    assert isinstance(EXPECTED.state, State)
    EXPECTED.state.save(path)
    assert_refused(path, path.read_bytes())
