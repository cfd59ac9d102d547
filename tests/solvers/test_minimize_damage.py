"""Checkpoints that are damaged, made up, or of another version: one sentence, nothing run, nothing changed."""

import hashlib
import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from adagrad_diff import L1, LAD, State, Status, load_state, minimize
from damage import attempt, damaged
from looping import looped
from pairwise import pairwise
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
OPTIMUM = minimize(LAD(A, REAL), penalty=L1(0.02), tol=1e-9).fun


def assert_refused(path, content, *, harmless=False):
    """One sentence, and the file stays as it is; or, if a change may be harmless, the right answer."""
    path.write_bytes(content)
    result, sentence = attempt(run, path)
    if sentence is None:
        assert harmless
        assert np.array_equal(result.x, EXPECTED.x)
        assert result.fun - OPTIMUM <= result.gap < np.inf
        return
    assert sentence.startswith(
        (f"{path} is no readable checkpoint: ", f"The checkpoint {path} cannot be")
    )
    assert sentence.endswith(
        ("another 'checkpoint'.", "another 'checkpoint'; nothing was changed in this one.")
    )
    assert len(sentence) < 500
    assert path.read_bytes() == content
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pairwise(
    fault=["flipped", "one bit", "zeroed", "cut out", "truncated", "doubled"],
    which=["original", "ended"],
)
def test_damage(tmp_path, request, fault, which):
    """Only what is never read of a ZIP file, such as dates, may change."""
    for content in damaged(request.getfixturevalue(which), fault, regions=6):
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


@pytest.mark.parametrize("options", [{}, {"eta": 0.1}], ids=["auto", "given eta"])
def test_a_whole_file_with_another_number(tmp_path, options):
    """The archive is in order, and each number may be one: only the checksum tells."""
    path = tmp_path / "run.npz"
    minimize(LAD(A, REAL), **RUN, **options, checkpoint=path)
    with np.load(path) as content:
        arrays = dict(content)
    path.write_bytes(npz(**arrays | {"history.time": arrays["history.time"] + 1.0}))
    with pytest.raises(ValueError, match="its checksum is not that of its content"):
        minimize(LAD(A, REAL), **RUN, **options, checkpoint=path)


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
    for name in ("x", "codes", "header"):
        assert_refused(path, npz(**arrays | {name: trap}))
    assert_refused(path, zipped(members(original), zipfile.ZIP_DEFLATED))
    assert_refused(path, zipped({"x.npy": bytes(1 << 24)}, zipfile.ZIP_DEFLATED))  # a bomb
    for content in (b"", b"garbage", b"PK\x05\x06" + bytes(18), npz(), npz(x=np.zeros(3))):
        assert_refused(path, content)
    assert "closed" not in capsys.readouterr().out


def rewritten(content, header=None, **changes):
    """Return the file with other arrays and the correct checksum."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: array for name, array in file.items() if name != "sha256"}
    text = str(arrays.pop("header"))
    if header is not None:
        text = json.dumps(header(json.loads(text)))
    arrays = {name: array for name, array in (arrays | changes).items() if array is not None}
    checksum = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        checksum.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    return npz(header=np.array(text), sha256=np.array(checksum.hexdigest()), **arrays)


LIES = {
    "another version": {"header": lambda h: h | {"format": "adagrad-diff checkpoint 2"}},
    "no format": {"header": lambda h: {k: v for k, v in h.items() if k != "format"}},
    "no header": {"header": lambda h: []},
    "no start": {"header": lambda h: h | {"start": 3}},
    "a state that is none": {"header": lambda h: h | {"state": 3}},
    "no code": {"codes": np.array(99)},
    "codes": {"codes": np.zeros(3, np.int64)},
    "a shorter history": {"history.objective": np.zeros(3)},
    "a history of single numbers": {"history.time": np.zeros(5, np.float32)},
    "x of another size": {"x": np.zeros(9)},
    "x that is not finite": {"x": np.full(4, np.nan)},
    "unknown": {"notes_.x": np.zeros(3)},
}


@looped("lie", LIES)
def test_lies(tmp_path, original, lie):
    """With a checksum that is right: what is not even possible does not reach a kernel."""
    assert_refused(tmp_path / "run.npz", rewritten(original, **LIES[lie]))


CLAIMS = {
    "converged": {"codes": np.array([int(Status.CONVERGED)])},
    "a small objective": {"fun_best": np.array(0.0), "f": np.array(0.0)},
    "another dual point": {"dual_point": np.ones(30)},
    "a dual point of another problem": {"dual_point": np.ones(3)},
}


@looped("claim", CLAIMS)
@looped("which", ["original", "ended"])
def test_claims_are_computed_again(tmp_path, original, ended, claim, which):
    """With a checksum that is right: a run is as good as its point, whatever the file says."""
    changes, path = CLAIMS[claim], tmp_path / "run.npz"
    path.write_bytes(rewritten({"original": original, "ended": ended}[which], **changes))
    result = run(path)
    assert not result.success
    assert not result.certified
    assert result.status == Status.MAX_ITER
    assert result.gap >= result.fun - OPTIMUM
    assert result.fun == pytest.approx(EXPECTED.fun, rel=1e-12)


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
