"""Data files: where they are looked for, that a wrong one is never used, and the stand-ins."""

import contextlib
import doctest
import hashlib
import http.server
import logging
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from adagrad_diff import datasets
from adagrad_diff.datasets import DataError, Dataset, DataWarning, Unavailable, _download, _files, _registry, stand_ins

SHARED = Path(__file__).parents[2] / "shared" / "data"  # the real files, on machines that have them
CONTENT = b"+1 1:0.5 3:-1\n-1 2:0.25\n+1 1:1 2:2 3:3\n-1 3:4\n"
DENSE = [[0.5, 0, -1], [0, 0.25, 0], [1, 2, 3], [0, 0, 4]]
ENTRY = _registry.Entry(
    file="tiny",
    folder="binary",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    size=len(CONTENT),
    shape=(4, 3),
    nnz=7,
    labels={1: 2, -1: 2},
    kind="patients",
    dense=True,
)
WRONG = {
    "empty": b"",
    "truncated": CONTENT[:-10],
    "flipped": CONTENT.replace(b"0.25", b"0.26"),
    "longer": CONTENT + b"+1 1:1\n",
    "HTML": b"<html>Please log in</html>",
    "pointer": b"version https://git-lfs.github.com/spec/v1\n",
}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """No test sees the user's data, the user's cache or the real network. There is one more data set, a tiny one."""
    monkeypatch.delenv("ADAGRAD_DIFF_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setitem(_registry.REGISTRY, "tiny", ENTRY)
    monkeypatch.setattr(_files, "cache", lambda: tmp_path / "cache")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setattr(_registry, "BASE_URL", f"http://127.0.0.1:{port}/")  # nobody listens there


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path):
    """A directory of the user's with the tiny file in it."""
    path = tmp_path / "data"
    path.mkdir()
    (path / "tiny").write_bytes(CONTENT)
    return path


@pytest.fixture
def page(monkeypatch):
    """Stands for the LIBSVM page. `page.answer` is what it sends, `page.asked` what it was asked for."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            page.asked.append(self.path)
            time.sleep(page.delay)
            self.send_response(page.status)
            if page.length is not None:
                self.send_header("Content-Length", str(page.length))
            self.end_headers()
            with contextlib.suppress(OSError):  # the other side may not wait
                self.wfile.write(page.answer)

        def log_message(self, *args):
            pass

    page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    page.answer, page.length, page.status, page.delay, page.asked = CONTENT, len(CONTENT), 200, 0, []
    thread = threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(_registry, "BASE_URL", f"http://127.0.0.1:{page.server_port}/")
    yield page
    page.shutdown()
    thread.join()
    page.server_close()


def files(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()} if directory.exists() else {}


# Names and results


def test_names():
    assert datasets.names() == ["splice.t", "splice", "news20", "a9a", "mushrooms", "heart_scale", "tiny"]


FUNCTIONS = [datasets.load, datasets.where, datasets.fetch, datasets.shape, datasets.stand_in, stand_ins.generate]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", ["news20.binary", "", None, ["splice"]])
def test_unknown_names(function, name):
    with pytest.raises(ValueError, match=rf"'name' parameter of {function.__name__} must be one of 'splice\.t', 'splice'"):
        function(name)


def test_import_is_light():
    code = "import sys, adagrad_diff.datasets as d; d.names(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "adagrad_diff.datasets" in modules
    assert not {"sklearn", "pooch", "requests", "scipy", "pandas"} & set(modules)


def test_dataset_unpacks_and_prints():
    data = Dataset(np.ones((3, 2)), np.arange(3.0), "stand-in for x", "stand-in", None)
    A, b = data
    assert A is data.A
    assert b is data.b
    assert repr(data) == "Dataset('stand-in for x', 3 x 2, source='stand-in')"
    with pytest.raises(AttributeError):
        data.name = "x"


@pytest.mark.parametrize(("module", "least"), [(datasets, 6), (stand_ins, 4)])
def test_examples(module, least, monkeypatch):
    monkeypatch.delitem(_registry.REGISTRY, "tiny")
    done = doctest.testmod(module)
    assert done.failed == 0
    assert done.attempted >= least


def test_urls():
    """As they stand on the LIBSVM page, and no two entries are the same file."""
    urls = {name: entry.url.removeprefix(_registry.BASE_URL) for name, entry in _registry.REGISTRY.items()}
    assert urls["news20"] == "multiclass/news20.bz2"
    assert urls["splice.t"] == "binary/splice.t"
    assert len({entry.sha256 for entry in _registry.REGISTRY.values()}) == len(urls)
    for entry in _registry.REGISTRY.values():
        assert sum(entry.labels.values()) == entry.shape[0]


# The user's directory


@pytest.mark.peer
def test_directory_by_argument(folder, cache):
    data = datasets.load("tiny", folder, download=False)
    assert (data.name, data.source, data.sha256) == ("tiny", "directory", ENTRY.sha256)
    np.testing.assert_array_equal(data.A, DENSE)
    np.testing.assert_array_equal(data.b, [1, -1, 1, -1])
    assert data.A.dtype == data.b.dtype == np.float64
    assert datasets.where("tiny", str(folder)) == folder / "tiny"
    assert not cache.exists()


@pytest.mark.peer
def test_sparse_data(folder, monkeypatch):
    sparse = {**vars(ENTRY), "dense": False}
    monkeypatch.setitem(_registry.REGISTRY, "tiny", _registry.Entry(**sparse))
    A, _ = datasets.load("tiny", folder)
    assert A.format == "csr"
    assert A.indices.dtype == A.indptr.dtype == np.int32
    np.testing.assert_array_equal(A.toarray(), DENSE)


@pytest.mark.peer
def test_argument_before_variable_before_cache(folder, cache, tmp_path, monkeypatch):
    cache.mkdir()
    (cache / "tiny").write_bytes(CONTENT)
    assert datasets.load("tiny").source == "cache"
    assert datasets.where("tiny") == cache / "tiny"
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", str(folder))
    assert datasets.load("tiny").source == "directory"
    assert datasets.where("tiny") == folder / "tiny"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert datasets.load("tiny", empty).source == "cache"  # the argument replaces the variable
    assert datasets.where("tiny", empty) == cache / "tiny"
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", "")  # as if it were not set, not the current directory
    monkeypatch.chdir(folder)
    assert datasets.load("tiny").source == "cache"
    (cache / "tiny").unlink()
    assert datasets.where("tiny", empty) is None


@pytest.mark.peer
def test_home_is_expanded(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    assert datasets.load("tiny", "~/data").source == "directory"
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", "~/data")
    assert datasets.load("tiny").source == "directory"


@pytest.mark.parametrize("stand_in", [False, True])
def test_directories_that_do_not_exist(stand_in, tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"The 'directory' argument names '.*absent', which is not a directory"):
        datasets.load("tiny", tmp_path / "absent", stand_in=stand_in)
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"The environment variable ADAGRAD_DIFF_DATA names '.*gone', which is not a directory"):
        datasets.load("tiny", stand_in=stand_in)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="which is not a directory"):
        datasets.where("tiny", tmp_path / "file")


@pytest.mark.parametrize("stand_in", [False, True])
@pytest.mark.parametrize("fault", WRONG)
def test_wrong_files_of_the_user(fault, stand_in, folder, cache):
    """An error even if a stand-in or a download would do: the user said that the file is there. It stays as it is."""
    (folder / "tiny").write_bytes(WRONG[fault])
    with pytest.raises(DataError) as caught:
        datasets.load("tiny", folder, stand_in=stand_in)
    message = str(caught.value)
    assert f"{folder / 'tiny'} is damaged or is another file" in message
    assert f"expected sha256 {ENTRY.sha256} ({len(CONTENT)} bytes)" in message
    assert f"found {hashlib.sha256(WRONG[fault]).hexdigest()} ({len(WRONG[fault])} bytes)" in message
    assert f"Replace it by {ENTRY.url}" in message
    assert files(folder) == {"tiny": WRONG[fault]}
    assert not cache.exists()


def test_unreadable_files_of_the_user(folder):
    (folder / "tiny").unlink()
    (folder / "tiny").mkdir()
    with pytest.raises(DataError, match=r"tiny cannot be read: .+\. Replace it"):
        datasets.load("tiny", folder, stand_in=True)


@pytest.mark.peer
def test_read_only_directories(folder):
    (folder / "tiny").chmod(0o444)
    folder.chmod(0o555)
    try:
        before = folder.stat().st_mtime_ns
        assert datasets.load("tiny", folder).source == "directory"
        assert folder.stat().st_mtime_ns == before
        assert files(folder) == {"tiny": CONTENT}
    finally:
        folder.chmod(0o755)


@pytest.mark.peer
@pytest.mark.parametrize("change", [{"shape": (5, 3)}, {"nnz": 8}, {"shape": (4, 9)}])
def test_what_was_read_is_compared_with_the_registry(change, folder, monkeypatch):
    monkeypatch.setitem(_registry.REGISTRY, "tiny", _registry.Entry(**{**vars(ENTRY), **change}))
    if change.get("shape") == (4, 9):  # the number of features is given to the reader, not found by it
        assert datasets.load("tiny", folder).A.shape == (4, 9)
        return
    with pytest.raises(DataError, match="read as 4 x 3 with 7 nonzeros instead of"):
        datasets.load("tiny", folder)


# The cache and the LIBSVM page


@pytest.mark.peer
def test_the_cache_is_where_pooch_puts_it(monkeypatch):
    import pooch

    monkeypatch.undo()
    assert datasets.cache() == _files.cache() == Path(pooch.os_cache("adagrad-diff"))
    assert _registry.BASE_URL == "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"


@pytest.mark.peer
def test_download_once(page, cache, capfd):
    import pooch

    said = []
    listener = logging.Handler()
    listener.emit = said.append
    pooch.get_logger().addHandler(listener)
    level = pooch.get_logger().level
    try:
        first, second = datasets.load("tiny"), datasets.load("tiny")
    finally:
        pooch.get_logger().removeHandler(listener)
    assert (first.source, second.source) == ("download", "cache")
    assert page.asked == ["/binary/tiny"]
    for data in (first, second):
        np.testing.assert_array_equal(data.A, DENSE)
    assert files(cache) == {"tiny": CONTENT}
    assert said == []
    assert pooch.get_logger().level == level
    assert capfd.readouterr() == ("", "")


@pytest.mark.peer
def test_fetch(page, cache, folder, monkeypatch):
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", str(folder))
    assert datasets.fetch("tiny") == cache / "tiny"
    assert datasets.fetch("tiny") == cache / "tiny"
    assert len(page.asked) == 1


@pytest.mark.peer
def test_a_directory_without_the_file(page, tmp_path):
    assert datasets.load("tiny", tmp_path).source == "download"
    assert not (tmp_path / "tiny").exists()


@pytest.mark.peer
@pytest.mark.parametrize("fault", WRONG)
def test_wrong_files_in_the_cache(fault, page, cache):
    cache.mkdir()
    (cache / "tiny").write_bytes(WRONG[fault])
    with pytest.raises(DataError, match=r"tiny is damaged or is another file: expected sha256 .* delete it, or allow"):
        datasets.load("tiny", download=False)
    assert files(cache) == {"tiny": WRONG[fault]}
    with pytest.warns(DataWarning, match=r"damaged or is another file: expected .* fetched again") as caught:
        assert datasets.load("tiny").source == "download"
    assert caught[0].filename == __file__
    assert files(cache) == {"tiny": CONTENT}


@pytest.mark.peer
def test_a_wrong_file_in_the_cache_and_no_network(cache):
    cache.mkdir()
    (cache / "tiny").write_bytes(b"?")
    with pytest.warns(DataWarning, match="fetched again"), pytest.raises(Unavailable, match="no connection"):
        datasets.load("tiny")
    with pytest.warns(DataWarning, match="delete it.*A stand-in is used"):
        assert datasets.load("tiny", stand_in=True, download=False).source == "stand-in"
    assert files(cache) == {"tiny": b"?"}


@pytest.mark.peer
@pytest.mark.parametrize("fault", WRONG)
def test_wrong_files_on_the_page(fault, page, cache):
    page.answer, page.length = WRONG[fault], len(WRONG[fault])
    with pytest.raises(DataError) as caught:
        datasets.load("tiny")
    message = str(caught.value)
    assert f"{ENTRY.url} sent another file than expected" in message
    assert f"expected sha256 {ENTRY.sha256}" in message
    assert f"found {hashlib.sha256(page.answer).hexdigest()}" in message
    assert "directory=DIR" in message
    assert files(cache) == {}
    with pytest.warns(DataWarning, match="sent another file than expected.*A stand-in is used"):
        assert datasets.load("tiny", stand_in=True).name == "stand-in for tiny"
    assert files(cache) == {}


@pytest.mark.peer
def test_interrupted_downloads(page, cache):
    page.answer = CONTENT[:20]  # and then the server closes the connection
    with pytest.raises(Unavailable, match=r"the connection to 127\.0\.0\.1 broke off"):
        datasets.load("tiny")
    assert files(cache) == {}
    page.length = None  # so that only the checksum can tell
    with pytest.raises(DataError, match=r"sent another file than expected.*\(20 bytes\)"):
        datasets.load("tiny")
    assert files(cache) == {}
    page.answer = CONTENT
    assert datasets.load("tiny").source == "download"


@pytest.mark.peer
def test_ctrl_c_during_a_download(page, cache, monkeypatch):
    import pooch

    class Interrupted:
        def __init__(self, **settings):
            assert settings["timeout"] == _download.TIMEOUT

        def __call__(self, url, output, owner):
            Path(output).write_bytes(CONTENT[:20])
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pooch, "HTTPDownloader", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            datasets.load("tiny", stand_in=True)
    assert files(cache) == {}
    assert datasets.load("tiny").source == "download"


@pytest.mark.peer
@pytest.mark.parametrize("status", [404, 500, 503])
def test_answers_that_are_errors(status, page, cache):
    page.status = status
    with pytest.raises(Unavailable, match=f"127.0.0.1 answered {status}"):
        datasets.load("tiny")
    assert files(cache) == {}
    assert datasets.load("tiny", stand_in=True).source == "stand-in"


@pytest.mark.peer
def test_a_server_that_does_not_answer(page, monkeypatch):
    monkeypatch.setattr(_download, "TIMEOUT", (0.2, 0.1))
    page.delay = 0.5
    with pytest.raises(Unavailable, match="did not answer in time"):
        datasets.fetch("tiny")


@pytest.mark.peer
def test_no_network(cache):
    """One message, with the ways out, and no chain of exceptions below it."""
    with pytest.raises(Unavailable) as caught:
        datasets.load("tiny")
    message = str(caught.value)
    for way in ("no connection", ENTRY.url, "directory=DIR", "--data DIR", "ADAGRAD_DIFF_DATA", "stand_in=True"):
        assert way in message
    assert "\n" not in message
    assert caught.value.__suppress_context__
    assert files(cache) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = datasets.load("tiny", stand_in=True)
    assert (data.name, data.source, data.sha256) == ("stand-in for tiny", "stand-in", None)


def test_stand_in_whether_the_file_is_there_or_not(folder, monkeypatch):
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", str(folder))
    data = datasets.stand_in("tiny")
    assert (data.name, data.source, data.A.shape) == ("stand-in for tiny", "stand-in", datasets.shape("tiny"))


@pytest.mark.peer
def test_download_forbidden(page):
    with pytest.raises(Unavailable, match=r"download=False forbids it\. Ways out: .*stand_in=True"):
        datasets.load("tiny", download=False)
    assert datasets.load("tiny", download=False, stand_in=True).source == "stand-in"
    assert page.asked == []


@pytest.mark.peer
def test_a_cache_that_cannot_be_written(page, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setattr(_files, "cache", lambda: tmp_path / "file" / "cache")
    with pytest.raises(Unavailable, match=r"the cache .*file.cache cannot be written.*directory=DIR"):
        datasets.load("tiny")
    assert datasets.load("tiny", stand_in=True).source == "stand-in"


def test_without_pooch(monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv("ADAGRAD_DIFF_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'adagrad-diff\[paper\]'"):
        datasets.load("heart_scale")
    assert datasets.load("heart_scale", stand_in=True).source == "stand-in"


def test_without_scikit_learn(folder, monkeypatch):
    """The file is there: a stand-in is not what the user wants."""
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'adagrad-diff\[paper\]'"):
        datasets.load("tiny", folder, stand_in=True)


# The real files


@pytest.mark.peer
@pytest.mark.skipif(not SHARED.is_dir(), reason="the LIBSVM files are not here")
@pytest.mark.parametrize("name", ["splice.t", "splice", "news20", "a9a", "mushrooms", "heart_scale"])
def test_real_files(name):
    entry = _registry.REGISTRY[name]
    data = datasets.load(name, SHARED, download=False)
    assert data.source == "directory"
    assert datasets.where(name, SHARED).stat().st_size == entry.size
    labels, numbers = np.unique(data.b, return_counts=True)
    assert dict(zip(labels, numbers, strict=True)) == entry.labels
    assert isinstance(data.A, np.ndarray) == entry.dense
    assert data.A.shape == entry.shape
    assert data.A.dtype == np.float64


# The stand-ins


@pytest.fixture(scope="module")
def stand_in():
    """Each generated once."""
    return {name: stand_ins.generate(name) for name in datasets.names() if name != "tiny"}


def test_stand_ins_have_the_shape_and_labels_of_the_files(stand_in):
    for name, (A, b) in stand_in.items():
        entry = _registry.REGISTRY[name]
        assert A.shape == entry.shape
        assert isinstance(A, np.ndarray) == entry.dense
        assert A.dtype == b.dtype == np.float64
        labels, numbers = np.unique(b, return_counts=True)
        assert set(labels) == set(entry.labels)
        np.testing.assert_allclose(numbers, [entry.labels[label] for label in labels], rtol=0.03)
        if not entry.dense:
            A.check_format()
            assert A.has_canonical_format
            assert A.indices.dtype == A.indptr.dtype == np.int32
            np.testing.assert_allclose(A.nnz, entry.nnz, rtol=0.05)
            assert np.diff(A.indptr).min() >= 1


def test_splice_stand_ins_are_nucleotide_codes(stand_in):
    for name in ("splice", "splice.t"):
        codes, numbers = np.unique(stand_in[name][0], return_counts=True)
        np.testing.assert_array_equal(codes, [1, 2, 3, 4])
        assert (np.abs(numbers / numbers.sum() - 0.25) < 0.04).all()


def test_news20_stand_in_is_zipf(stand_in):
    A, _ = stand_in["news20"]
    values, numbers = np.unique(A.data, return_counts=True)
    assert (values == np.round(values)).all()
    assert values[0] == 1
    assert 50 < values[-1] <= 500
    np.testing.assert_allclose(numbers[:3] / A.nnz, [0.785, 0.135, 0.038], atol=0.01)  # as in the file
    texts = np.sort(np.bincount(A.indices, minlength=A.shape[1]))[::-1]  # that a word occurs in
    rank = np.arange(30, 3000)
    slope = np.polyfit(np.log(rank), np.log(texts[rank]), 1)[0]
    assert -1.2 < slope < -0.8
    assert 0.4 < texts[0] / A.shape[0] < 0.6  # the commonest word, as in the file
    words = np.diff(A.indptr)
    assert np.median(words) < words.mean() < 100 < words.max()


@pytest.mark.parametrize(("name", "fields"), [("a9a", stand_ins.CENSUS), ("mushrooms", stand_ins.MUSHROOMS)])
def test_one_hot_stand_ins(name, fields, stand_in):
    A, _ = stand_in[name]
    assert sum(fields) == A.shape[1]
    assert set(A.data) == {1.0}
    of_field = np.add.reduceat(A.toarray(), np.cumsum([0, *fields[:-1]]), axis=1)
    assert of_field.max() == 1  # at most one category of each
    assert (of_field.mean(axis=0) > 0.9).all()
    assert (A.sum(axis=0) > 0).all()


def test_heart_stand_in_is_scaled(stand_in):
    A, _ = stand_in["heart_scale"]
    assert A.min() == -1
    assert A.max() == 1
    assert sorted(len(np.unique(column)) for column in A.T)[:3] == [2, 2, 2]


@pytest.mark.peer
@pytest.mark.parametrize(
    ("name", "least"), [("splice.t", 0.8), ("news20", 0.8), ("a9a", 0.8), ("mushrooms", 0.9), ("heart_scale", 0.72)]
)
def test_stand_ins_can_be_learned(name, least, stand_in):
    """On rows that were not seen, and not without effort: the labels carry noise, as the real ones do."""
    from sklearn.linear_model import LogisticRegression

    A, b = stand_in[name]
    y = b <= 10 if name == "news20" else b == b[0]
    half = 4000 if name == "news20" else len(y) // 2
    model = LogisticRegression(solver="liblinear").fit(A[:half], y[:half])
    chance = max(y.mean(), 1 - y.mean())
    assert max(least, chance + 0.05) < model.score(A[half:], y[half:]) < 0.99


@pytest.mark.peer
def test_splice_stand_ins_share_their_rule(stand_in):
    from sklearn.linear_model import LogisticRegression

    (A, b), (A_test, b_test) = stand_in["splice"], stand_in["splice.t"]
    assert LogisticRegression().fit(A, b).score(A_test, b_test) > 0.8
    assert not np.array_equal(A, A_test[: len(A)])


def digest(A, b):
    parts = (A,) if isinstance(A, np.ndarray) else (A.data, A.indices, A.indptr)
    return hashlib.sha256(b"".join(part.tobytes() for part in (*parts, b))).hexdigest()


def test_stand_ins_are_the_same_everywhere(stand_in):
    """In another process, with another hash seed, in another order and whatever NumPy's global state is."""
    code = (
        "import numpy, hashlib; numpy.random.seed(7)\n"
        "from adagrad_diff.datasets import names, stand_ins\n"
        "for name in reversed(names()):\n"
        "    A, b = stand_ins.generate(name)\n"
        "    parts = (A,) if isinstance(A, numpy.ndarray) else (A.data, A.indices, A.indptr)\n"
        "    print(name, hashlib.sha256(b''.join(part.tobytes() for part in (*parts, b))).hexdigest())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "3"}
    )
    there = dict(line.split() for line in done.stdout.splitlines())
    assert there == {name: digest(*data) for name, data in stand_in.items()}


def test_stand_ins_are_made_quickly():
    start = time.process_time()
    stand_ins.generate("news20")
    assert time.process_time() - start < 5  # 0.8 s on two cores of 2024
