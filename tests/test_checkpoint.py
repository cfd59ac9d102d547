"""A sweep that is killed, interrupted or fails goes on from its checkpoint, and gives the same bits."""

import errno
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import L1, LAD, AdaGrad, AdaGradDiff, Box, Poisson, Squared, Status, load_state, sweep
from adagrad_diff import _checkpoint as files
from adagrad_diff import _sweep as module
from user_losses import Bowl, data

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl

HERE = Path(__file__).parent
A, REAL, LABELS, CLASSES = data(samples=60, features=8)
COUNTS = np.round(np.abs(REAL))
X0S = np.random.default_rng(1).standard_normal((8, 3))


def schedule(eta):
    return AdaGradDiff(lambda n: eta / np.sqrt(n))


def problem(n_iter=300):
    """Some of its trajectories fail, at different times; some rules are cut in several chunks."""
    rules = {"Diff": AdaGradDiff, "AdaGrad": AdaGrad, "schedule": schedule}
    return Poisson(A, COUNTS), L1(0.01), rules, [0.05, 3.0, 1e3, 0.2], X0S, n_iter


OPTIONS = {"record": 7, "memory": 60_000, "n_jobs": 2}


def digest(result):
    """Every bit of it."""
    content = {name: hashlib.sha256(result[name].values.tobytes()).hexdigest() for name in result.variables}
    return content | {"attrs": hashlib.sha256(json.dumps(result.attrs).encode()).hexdigest()}


def snapshot(directory):
    """Every byte of it."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path(directory).rglob("*")}


@pytest.fixture(scope="module")
def expected():
    result = sweep(*problem(), **OPTIONS)
    assert set(np.unique(result.status)) >= {Status.MAX_ITER, Status.NOT_FINITE}
    return digest(result)


def test_what_is_written(tmp_path, expected):
    directory = tmp_path / "a" / "new one"
    assert digest(sweep(*problem(), **OPTIONS, checkpoint=directory)) == expected
    names = sorted(path.name for path in directory.iterdir())
    manifest = json.loads((directory / "manifest.json").read_text())
    assert names == ["manifest.json", *(f"part-{k:04d}.npz" for k in range(len(manifest["plan"])))]
    assert len(manifest["plan"]) > 6
    assert manifest["description"]["n_iter"] == 300


def test_what_is_finished_is_not_computed_again(tmp_path):
    counted = []

    def loss(x):
        counted.append(x.shape[1])
        return Bowl()(x)

    def run():
        return sweep(loss, None, [AdaGradDiff, AdaGrad], [0.1, 0.2], np.zeros((3, 2)), 20, checkpoint=str(tmp_path))

    first = run()
    counted.clear()
    before = snapshot(tmp_path)
    try:
        tmp_path.chmod(0o500)  # it can be read, and that is enough
        assert digest(run()) == digest(first)
    finally:
        tmp_path.chmod(0o700)
    assert counted == [2]  # the objective at the starts
    assert snapshot(tmp_path) == before


def test_the_plan_is_that_of_the_beginning(tmp_path, expected, monkeypatch):
    """Also with more memory or other threads, the chunks stay as they were: so do the bits."""
    interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        sweep(*problem(), **OPTIONS, checkpoint=tmp_path)
    monkeypatch.undo()
    options = {"record": 7, "memory": "1GB", "n_jobs": 3, "progress": False, "label": "another"}
    assert digest(sweep(*problem(), **options, checkpoint=tmp_path)) == expected


def test_fewer_threads_for_wide_chunks(tmp_path, monkeypatch):
    """A plan with wide chunks is continued with as many threads as the memory allows now."""
    active, most, lock = [0], [0], threading.Lock()

    def loss(x):
        with lock:
            active[0] += 1
            most[0] = max(most[0], active[0])
        time.sleep(1e-3)
        with lock:
            active[0] -= 1
        return Bowl()(x)

    arguments = loss, None, schedule, [0.1, 0.2, 0.3, 0.4], np.zeros((3, 20)), 30
    interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        sweep(*arguments, checkpoint=tmp_path, memory="1GB", n_jobs=1)
    monkeypatch.undo()
    most[0] = 0
    sweep(*arguments, checkpoint=tmp_path, memory=80_000, n_jobs=4)
    assert most[0] == 1
    sweep(*arguments, memory="1GB", n_jobs=4)
    assert most[0] > 1


def interrupt_after(monkeypatch, looks):
    """Ctrl-C arrives when the main thread has looked at the progress so many times."""
    count = [0]

    def interrupted(*args):
        count[0] += 1
        if count[0] > looks:
            raise KeyboardInterrupt
        return wait(*args)

    monkeypatch.setattr(module, "LOOK", 0.004)
    monkeypatch.setattr(module, "wait", interrupted)


@pytest.mark.parametrize(("save", "n_iter"), [(30.0, 300), (0.003, 100), (0.0, 31)])
def test_interrupted_again_and_again(tmp_path, monkeypatch, save, n_iter):
    rng, expected = np.random.default_rng(), digest(sweep(*problem(n_iter), **OPTIONS))
    monkeypatch.setattr(module, "SAVE", save)
    interruptions = 0
    while interruptions < 1000:
        interrupt_after(monkeypatch, rng.integers(0, 4))
        try:
            result = sweep(*problem(n_iter), **OPTIONS, checkpoint=tmp_path)
            break
        except KeyboardInterrupt:
            interruptions += 1
            assert not [thread for thread in threading.enumerate() if thread.name.startswith("adagrad_diff.sweep")]
    assert interruptions > 2
    assert digest(result) == expected
    assert not list(tmp_path.glob("*.state.npz")) + list(tmp_path.glob("*.record.npz"))


def test_an_interruption_loses_nothing(tmp_path, monkeypatch):
    """What runs is kept when it stops, although it is not time yet."""

    def slow(x):
        time.sleep(1e-3)
        return Bowl()(x)

    arguments = slow, None, [AdaGradDiff, AdaGrad], [0.1, 0.2], np.zeros((3, 2)), 10_000
    interrupt_after(monkeypatch, 20)
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        sweep(*arguments, n_jobs=2, checkpoint=tmp_path)
    assert time.perf_counter() - begin < 5.0
    states = [load_state(path) for path in sorted(tmp_path.glob("part-*.state.npz"))]
    assert len(states) == 2
    assert all(state.n.min() == state.n.max() > 3 for state in states)
    record = np.load(tmp_path / "part-0000.record.npz")["objective"]
    assert np.isfinite(record[: states[0].n[0]]).all()
    assert np.isnan(record[states[0].n[0] :]).all()


def test_interrupted_before_all_chunks_are_known(tmp_path, monkeypatch):
    calls, submit = [], ThreadPoolExecutor.submit

    def slow(x):
        calls.append(1)
        time.sleep(1e-3)
        return Bowl()(x)

    def interrupted(pool, *args):
        if len(calls) > 1:
            raise KeyboardInterrupt
        future = submit(pool, *args)
        while len(calls) <= 1:
            time.sleep(1e-3)
        return future

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(slow, None, [AdaGradDiff, AdaGrad], [0.1, 0.2], np.zeros((3, 2)), 2000, n_jobs=2, checkpoint=tmp_path)
    assert len(calls) < 1000


class Crash(BaseException):
    pass


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_file(tmp_path, monkeypatch, when):
    """Files appear one after another: a crash between any two of them leaves something that can be continued."""
    replace, crashes, expected = os.replace, 0, digest(sweep(*problem(31), **OPTIONS))
    monkeypatch.setattr(module, "SAVE", 0.0)
    for moment in [*range(1, 20), 50, 10**9]:
        moments = itertools.count(1)

        def crashing(source, target, moment=moment, moments=moments):
            now = next(moments) == moment
            if now and when == "before":
                raise Crash
            replace(source, target)
            if now:
                raise Crash

        monkeypatch.setattr(os, "replace", crashing)
        try:
            result = sweep(*problem(31), **OPTIONS, checkpoint=tmp_path)
        except Crash:
            crashes += 1
    assert crashes == 20
    assert digest(result) == expected


KILLED = """
import json, os, random, shutil, signal, sys, time
sys.path.insert(0, sys.argv[1])
import test_checkpoint as t
from adagrad_diff import _sweep as module

module.SAVE = 0.01
directory, seed = sys.argv[2], int(sys.argv[3])
random.seed(seed)

def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid

def sweep(checkpoint=None):
    return t.sweep(*t.problem(1000), **t.OPTIONS, checkpoint=checkpoint)

def finish():
    with open(sys.argv[4], "w") as file:
        json.dump(t.digest(sweep(directory)), file)

begin = time.perf_counter()
uninterrupted = t.digest(sweep())
seconds = time.perf_counter() - begin
kills, unfinished = 0, []
for k in range(60):
    pid = child(lambda: sweep(directory))
    time.sleep(random.uniform(0.0, 0.3 * seconds))
    os.kill(pid, signal.SIGKILL)
    if os.waitpid(pid, 0)[1] != signal.SIGKILL:  # it was through before: begin again
        shutil.rmtree(directory)
        continue
    kills += 1
    names = os.listdir(directory) if os.path.isdir(directory) else []
    unfinished.append(sum(name.endswith(".state.npz") for name in names))
    if kills > 8 and max(unfinished) > 0:
        break
assert os.waitpid(child(finish), 0)[1] == 0
print(json.dumps({"uninterrupted": uninterrupted, "kills": kills, "unfinished": unfinished}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")
def test_killed_at_random_moments(tmp_path):
    seed = int.from_bytes(os.urandom(4))
    run = [sys.executable, "-c", KILLED, str(HERE), str(tmp_path / "checkpoint"), str(seed), str(tmp_path / "answer.json")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, (seed, done.stderr)
    report = json.loads(done.stdout)
    assert report["kills"] > 2, (seed, report)
    assert max(report["unfinished"]) > 0, (seed, report)
    assert json.loads((tmp_path / "answer.json").read_text()) == report["uninterrupted"], (seed, report)


INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv[1])
import test_checkpoint as t

t.sweep(*t.problem(4000), record=700, n_jobs=2, checkpoint=sys.argv[2])
print("finished")
"""


@pytest.mark.usefixtures("default_handler")
def test_ctrl_c(tmp_path):
    run = [sys.executable, "-c", INTERRUPTED, str(HERE), str(tmp_path)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(6000):  # until it has begun
            if (tmp_path / "manifest.json").exists() or process.poll() is not None:
                break
            time.sleep(0.01)
        time.sleep(0.15)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert out == ""
    assert process.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert list(tmp_path.glob("part-*.state.npz"))
    assert not list(tmp_path.glob("*.partial"))
    continued = sweep(*problem(4000), record=700, n_jobs=2, checkpoint=tmp_path)
    assert digest(continued) == digest(sweep(*problem(4000), record=700, n_jobs=2))


def quadratic(c):
    return lambda x: (0.5 * np.sum(c * x**2, axis=0), c * x)


BASE = {
    "loss": lambda: Squared(A, REAL),
    "penalty": lambda: Box(-1.0, 1.0),
    "rules": lambda: [AdaGradDiff, AdaGrad],
    "etas": lambda: [0.1, 0.2],
    "x0s": lambda: X0S,
    "n_iter": lambda: 20,
}
X0S_CHANGED = X0S + np.eye(8)[:, :3] * 1e-15
A_CHANGED = A.copy()
A_CHANGED[-1, -1] = np.nextafter(A[-1, -1], 10.0)
OTHER = {
    "A": ({"loss": Squared(A_CHANGED, REAL)}, "loss.A.array.sha256"),
    "b": ({"loss": Squared(A, -REAL)}, "loss.b.sha256"),
    "l2": ({"loss": Squared(A, REAL, l2=1e-9)}, "loss.l2"),
    "weights": ({"loss": Squared(A, REAL, sample_weight=np.arange(1, 61))}, "loss.weight.sha256"),
    "class": ({"loss": LAD(A, REAL)}, "loss.class"),
    "format": ({"loss": Squared(sparse.csr_array(A), REAL)}, "loss.A.class"),
    "precision": ({"loss": Squared(A.astype(np.float32), REAL)}, "loss.A.array.dtype"),
    "samples": ({"loss": Squared(A[:-1], REAL[:-1])}, "loss.A.array.shape[0]"),
    "penalty": ({"penalty": L1(0.1)}, "penalty.class"),
    "no penalty": ({"penalty": None}, "penalty.class"),
    "bound": ({"penalty": Box(-1.0, 1.5)}, "penalty.upper"),
    "infinite bound": ({"penalty": Box(-np.inf, 1.0)}, "penalty.lower"),
    "eta": ({"etas": [0.1, 0.3]}, "etas[1]"),
    "more etas": ({"etas": [0.1, 0.2, 0.3]}, "etas"),
    "order of etas": ({"etas": [0.2, 0.1]}, "etas[0]"),
    "starts": ({"x0s": X0S_CHANGED}, "x0s.sha256"),
    "fewer starts": ({"x0s": X0S[:, :2]}, "x0s.shape[1]"),
    "precision of the starts": ({"x0s": X0S.astype(np.float32)}, "x0s.dtype"),
    "n_iter": ({"n_iter": 21}, "n_iter"),
    "record": ({"record": 2}, "record"),
    "keep_x": ({"keep_x": False}, "keep_x"),
    "eps": ({"rules": {"AdaGradDiff": lambda eta: AdaGradDiff(eta, eps=1e-7), "AdaGrad": AdaGrad}}, "rules.AdaGradDiff.eps"),
    "eta of a rule": (
        {"rules": {"AdaGradDiff": AdaGradDiff, "AdaGrad": lambda eta: AdaGrad(min(eta, 0.15))}},
        "rules.AdaGrad.eta",
    ),
    "one rule": ({"rules": AdaGradDiff}, "rules.AdaGrad"),
    "another name": ({"rules": {"AdaGradDiff": AdaGradDiff, "Ada": AdaGrad}}, "rules.AdaGrad"),
    "a schedule": ({"rules": {"AdaGradDiff": schedule, "AdaGrad": AdaGrad}}, "rules.AdaGradDiff"),
    "a function": ({"loss": quadratic(1.0)}, "loss.class"),
}


def run(directory, **changes):
    return sweep(**{name: make() for name, make in BASE.items()} | changes, checkpoint=directory)


def assert_refused(directory, where, **changes):
    before = snapshot(directory)
    with pytest.raises(ValueError, match="belongs to another sweep") as caught:
        run(directory, **changes)
    sentence = str(caught.value)
    assert f"another sweep: {where}" in sentence
    assert f"The checkpoint in {directory} belongs" in sentence
    assert sentence.endswith("is not the same. Choose another directory; nothing was changed in this one.")
    assert snapshot(directory) == before


@pytest.fixture(scope="module")
def of_another(tmp_path_factory):
    directory = tmp_path_factory.mktemp("another")
    run(directory)
    return directory


@pytest.mark.parametrize("case", OTHER)
def test_the_checkpoint_of_another_problem(case, of_another):
    changes, where = OTHER[case]
    assert_refused(of_another, where, **changes)
    run(of_another)  # and it is still that of the first


def test_the_checkpoint_of_another_function(tmp_path):
    class Loss:
        def __init__(self, c):
            self._c = c

        def value_and_grad(self, x):
            return quadratic(self._c)(x)

    for k, (one, other, where) in enumerate(
        (
            (quadratic(1.0), quadratic(2.0), "loss.function.uses[0]"),
            (quadratic(REAL[:8, None]), quadratic(REAL[1:9, None]), "loss.function.uses[0]"),
            (Loss(1.0), Loss(2.0), "loss.function.of._c"),
            (Bowl(np.ones(8)), Bowl(2 * np.ones(8)), "loss.function.curvature"),
        )
    ):
        directory = tmp_path / str(k)
        run(directory, loss=one)
        assert_refused(directory, where, loss=other)


def test_an_unfinished_checkpoint_of_another_problem(tmp_path, monkeypatch):
    interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    monkeypatch.undo()
    assert_refused(tmp_path, "penalty.upper", penalty=Box(-1.0, 2.0))


def test_a_directory_of_something_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match=r"'checkpoint' must be an empty or new directory.* holds 'thesis\.tex'"):
        run(tmp_path)
    assert snapshot(tmp_path) == before


def test_what_a_kill_leaves_behind_is_no_obstacle(tmp_path, expected):
    (tmp_path / "manifest.json.123.partial").write_text("{")
    assert digest(sweep(*problem(), **OPTIONS, checkpoint=tmp_path)) == expected
    (tmp_path / "part-0000.npz").rename(tmp_path / "part-0000.npz.123.partial")
    assert digest(sweep(*problem(), **OPTIONS, checkpoint=tmp_path)) == expected


@pytest.mark.parametrize("inside", ["", "below"])
def test_a_file_where_the_directory_should_be(tmp_path, inside):
    path = tmp_path / "file"
    path.write_text("precious")
    with pytest.raises(OSError, match=r"'checkpoint' cannot be written: .*file.*: (File exists|Not a directory)\.$"):
        run(path / inside)
    assert path.read_text() == "precious"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_directory(tmp_path):
    tmp_path.chmod(0o500)
    try:
        for directory in (tmp_path, tmp_path / "inside"):
            with pytest.raises(OSError, match=r"'checkpoint' cannot be written: .*: Permission denied\.$"):
                run(directory)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("target", ["manifest.json", "part-0000.npz", "part-0000.record.npz", "part-0000.state.npz"])
@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_nothing_can_be_written(tmp_path, monkeypatch, target, code):
    """A disk that is full, or a directory that is not ours: a sentence, and what was there stays."""
    replace = os.replace

    def failing(source, destination):
        if Path(destination).name == target:
            raise OSError(code, os.strerror(code))
        replace(source, destination)

    monkeypatch.setattr(os, "replace", failing)
    monkeypatch.setattr(module, "SAVE", 0.0)
    with pytest.raises(OSError, match=rf"'checkpoint' cannot be written: .*: {os.strerror(code)}\.$"):
        run(tmp_path)
    assert not list(tmp_path.glob("*.partial"))
    monkeypatch.undo()
    assert digest(run(tmp_path)) == digest(run(None))


GARBAGE = {
    "empty": b"",
    "not text": b"\xff\xfe\x00\x01",
    "not JSON": b"hello",
    "a list": b"[]",
    "a number": b"3",
    "nothing": b"null",
    "no entries": b"{}",
    "another format": b'{"format": "adagrad-diff sweep 0", "description": {}, "plan": []}',
    "of other software": b'{"name": "my extension", "manifest_version": 3}',
}


@pytest.mark.parametrize("case", GARBAGE)
def test_a_manifest_that_is_none(case, tmp_path):
    (tmp_path / "manifest.json").write_bytes(GARBAGE[case])
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match=r"manifest\.json is not the manifest of a sweep: .*\. Choose another 'checkpoint'\."):
        run(tmp_path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("plan", [None, 3, [3], [["AdaGrad", 0]], [["AdaGrad", 0, "x"]], {}, []])
def test_a_manifest_with_another_plan(plan, tmp_path):
    run(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"plan": plan}))
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match=r"manifest\.json is not the manifest of a sweep: .*Choose another 'checkpoint'"):
        run(tmp_path)
    path.write_text(json.dumps(manifest)[:-20])
    with pytest.raises(ValueError, match=r"manifest\.json is not the manifest of a sweep: .*Choose another 'checkpoint'"):
        run(tmp_path)
    assert {name: before[name] for name in before if name != path.name}.items() <= snapshot(tmp_path).items()


@pytest.mark.parametrize("suffix", ["", ".record", ".state"])
@pytest.mark.parametrize(
    "damage", [lambda content: content[: len(content) // 2], lambda content: b"", lambda content: b"garbage"]
)
def test_a_damaged_part(tmp_path, monkeypatch, suffix, damage, expected):
    if suffix:
        monkeypatch.setattr(module, "SAVE", 0.0)
        interrupt_after(monkeypatch, 1)
        monkeypatch.setattr(module, "LOOK", 0.02)
        with pytest.raises(KeyboardInterrupt):
            sweep(*problem(), **OPTIONS, checkpoint=tmp_path)
        monkeypatch.undo()
    else:
        sweep(*problem(), **OPTIONS, checkpoint=tmp_path)
    path = sorted(tmp_path.glob(f"part-????{suffix}.npz"))[-1]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        ValueError, match=r"cannot be read: .*Delete it and run again: only that part is computed anew"
    ) as caught:
        sweep(*problem(), **OPTIONS, checkpoint=tmp_path)
    assert str(path) in str(caught.value)
    path.unlink()
    assert digest(sweep(*problem(), **OPTIONS, checkpoint=tmp_path)) == expected


def test_files_appear_complete_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fill(file):
        file.write(b"half")
        file.flush()
        assert path.read_bytes() == b"old"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        files.write(path, fill)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"
    files.write(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"
