"""The cache and the LIBSVM page: what is fetched, once, and what is said if that fails."""

import hashlib
import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from adagrad_diff import datasets
from adagrad_diff.datasets import DataError, DataWarning, Unavailable, _download, _registry
from tiny_dataset import CONTENT, DENSE, ENTRY, WRONG, files


@pytest.mark.peer
def test_the_cache_is_where_pooch_puts_it(monkeypatch):
    import pooch

    monkeypatch.undo()
    assert datasets.cache() == Path(pooch.os_cache("adagrad-diff"))
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
@pytest.mark.parametrize("fault", ["empty", "flipped", "longer"])
def test_wrong_files_in_the_cache(fault, page, cache):
    cache.mkdir(parents=True)
    (cache / "tiny").write_bytes(WRONG[fault])
    with pytest.raises(
        DataError,
        match=r"tiny is damaged or is another file: expected sha256 .* delete it, or allow",
    ):
        datasets.load("tiny", download=False)
    assert files(cache) == {"tiny": WRONG[fault]}
    with pytest.warns(
        DataWarning, match=r"damaged or is another file: expected .* fetched again"
    ) as caught:
        assert datasets.load("tiny").source == "download"
    assert caught[0].filename == __file__
    assert files(cache) == {"tiny": CONTENT}


@pytest.mark.peer
def test_a_wrong_file_in_the_cache_and_no_network(cache):
    cache.mkdir(parents=True)
    (cache / "tiny").write_bytes(b"?")
    with (
        pytest.warns(DataWarning, match="fetched again"),
        pytest.raises(Unavailable, match="no connection"),
    ):
        datasets.load("tiny")
    with pytest.warns(DataWarning, match="delete it.*A stand-in is used"):
        assert datasets.load("tiny", stand_in=True, download=False).source == "stand-in"
    assert files(cache) == {"tiny": b"?"}


@pytest.mark.peer
@pytest.mark.parametrize("said", [True, False])
def test_more_than_expected(page, cache, said):
    """It is not read on: neither when the page says how long it is, nor when it goes on for ever."""
    page.answer, page.length, page.again = bytes(1 << 16), 1 << 40 if said else None, 0.0
    with pytest.raises(
        DataError,
        match=rf"{ENTRY.url} sent another file than expected.*more than the {ENTRY.size} bytes",
    ) as caught:
        datasets.load("tiny")
    assert "directory=DIR" in str(caught.value)
    assert page.sent < 1 << 24
    assert files(cache) == {}


@pytest.mark.peer
@pytest.mark.parametrize("length", [None, len(CONTENT)])
def test_a_page_that_takes_for_ever(page, cache, monkeypatch, length):
    """Each byte comes in time, and all together would take hours."""
    monkeypatch.setattr(_download, "LONGEST", 0.3)
    page.answer, page.length, page.again = b"+", length, 0.02
    with pytest.raises(
        Unavailable, match=r"127\.0\.0\.1 had not sent all of it after 0\.3 seconds\. Ways out"
    ):
        datasets.load("tiny")
    assert files(cache) == {}
    assert datasets.load("tiny", stand_in=True).source == "stand-in"


@pytest.mark.peer
def test_leftovers_of_killed_downloads(page, cache):
    cache.mkdir(parents=True)
    (cache / "tiny.0123456789abcdef.partial").write_bytes(CONTENT[:20])
    assert datasets.load("tiny").source == "download"
    assert files(cache) == {"tiny": CONTENT}


@pytest.mark.peer
@pytest.mark.parametrize("fault", ["empty", "flipped", "HTML"])
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
    import requests

    def interrupted(response, *args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(requests.Response, "raise_for_status", interrupted)
        with pytest.raises(KeyboardInterrupt):
            datasets.load("tiny", stand_in=True)
    assert files(cache) == {}
    assert datasets.load("tiny").source == "download"


@pytest.mark.peer
@pytest.mark.parametrize("status", [404, 503])
def test_answers_that_are_errors(status, page, cache):
    page.status = status
    with pytest.raises(Unavailable, match=f"127.0.0.1 answered {status}"):
        datasets.load("tiny")
    assert files(cache) == {}
    assert datasets.load("tiny", stand_in=True).source == "stand-in"


@pytest.mark.peer
def test_a_server_that_does_not_answer(page, monkeypatch):
    monkeypatch.setattr(_download, "TIMEOUT", (0.2, 0.1))
    page.silent = True
    with pytest.raises(Unavailable, match="did not answer in time"):
        datasets.fetch("tiny")


@pytest.mark.peer
def test_no_network(cache):
    """One message, with the ways out, and no chain of exceptions below it."""
    with pytest.raises(Unavailable) as caught:
        datasets.load("tiny")
    message = str(caught.value)
    for way in (
        "no connection",
        ENTRY.url,
        "directory=DIR",
        "--data DIR",
        "ADAGRAD_DIFF_DATA",
        "stand_in=True",
    ):
        assert way in message
    assert "\n" not in message
    assert caught.value.__suppress_context__
    assert files(cache) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = datasets.load("tiny", stand_in=True)
    assert (data.name, data.source, data.sha256) == ("stand-in for tiny", "stand-in", None)


@pytest.mark.peer
def test_download_forbidden(page):
    with pytest.raises(Unavailable, match=r"download=False forbids it\. Ways out: .*stand_in=True"):
        datasets.load("tiny", download=False)
    assert datasets.load("tiny", download=False, stand_in=True).source == "stand-in"
    assert page.asked == []


@pytest.mark.peer
def test_a_cache_that_cannot_be_written(page, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(
        Unavailable, match=r"the directory .*file.adagrad-diff cannot be written.*directory=DIR"
    ):
        datasets.load("tiny")
    assert datasets.load("tiny", stand_in=True).source == "stand-in"


def test_without_pooch(monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv("ADAGRAD_DIFF_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'adagrad-diff\[paper\]'"):
        datasets.load("heart_scale")
    assert datasets.load("heart_scale", stand_in=True).source == "stand-in"
