"""The cache and the LIBSVM page: what is downloaded, once, and what is said if that fails."""

import hashlib
import shutil
import ssl
import subprocess
import urllib.request
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from adagrad_diff import datasets
from adagrad_diff.datasets import DataError, DataWarning, Unavailable, _files, _registry
from looping import looped
from tiny_dataset import CONTENT, DENSE, ENTRY, WRONG, files


def test_the_page_and_the_cache(monkeypatch, tmp_path):
    monkeypatch.undo()
    assert _registry.BASE_URL == "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert datasets.cache() == tmp_path / ".cache" / "adagrad-diff"


@pytest.mark.peer
def test_download_once(page, cache, folder, monkeypatch, capfd):
    assert datasets.where("tiny") is None
    first, second = datasets.load("tiny", folder.parent), datasets.load("tiny")
    assert (first.source, second.source) == ("download", "cache")
    for data in (first, second):
        np.testing.assert_array_equal(data.A, DENSE)
    monkeypatch.setenv("ADAGRAD_DIFF_DATA", str(folder))
    assert datasets.fetch("tiny") == cache / "tiny"
    assert page.asked == ["/binary/tiny"]
    assert files(cache) == {"tiny": CONTENT}
    assert not (folder.parent / "tiny").exists()
    assert capfd.readouterr() == ("", "")


def test_only_https(page, monkeypatch):
    """Another address is not even asked."""
    monkeypatch.undo()
    monkeypatch.setitem(_registry.REGISTRY, "tiny", ENTRY)
    for address in (f"http://127.0.0.1:{page.server_port}/", "file:///", "ftp://127.0.0.1/"):
        monkeypatch.setattr(_registry, "BASE_URL", address)
        with pytest.raises(Unavailable, match="unknown url type"):
            _files._download(ENTRY)
    assert page.asked == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="it makes a certificate")
def test_certificates_are_verified(page, tmp_path, monkeypatch):
    """A page with a certificate that nobody has signed is not read, unless the user trusts it."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    command += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
    subprocess.run(command.split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    page.socket = context.wrap_socket(page.socket, server_side=True)
    monkeypatch.setattr(urllib.request, "HTTPSHandler", urllib.request.HTTPSHandler.__base__)
    monkeypatch.setattr(_registry, "BASE_URL", f"https://127.0.0.1:{page.server_port}/")
    with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
        _files._download(ENTRY)
    assert page.asked == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert _files._download(ENTRY) == CONTENT


@looped("status", [301, 302, 307, 404, 503])
def test_answers_that_are_errors(status, page, cache):
    """A redirect is one: it is not followed."""
    page.status = status
    page.asked.clear()
    with pytest.raises(Unavailable, match=f"HTTP Error {status}"):
        datasets.fetch("tiny")
    assert page.asked == ["/binary/tiny"]
    assert files(cache) == {}
    assert datasets.load("tiny", stand_in=True).source == "stand-in"


@pytest.mark.parametrize("declared", [True, False])
def test_more_than_expected(page, cache, declared):
    """It is not read further, whether or not the page says how long it is."""
    page.answer, page.length, page.endless = bytes(1 << 16), 1 << 40 if declared else None, True
    with pytest.raises(
        DataError, match=rf"{ENTRY.url} sent another file .*\({ENTRY.size + 1} bytes"
    ):
        datasets.load("tiny")
    assert page.sent < 1 << 24
    assert files(cache) == {}


@looped("answer", [WRONG["empty"], WRONG["flipped"], WRONG["HTML"], CONTENT[:20]])
def test_wrong_files_on_the_page(answer, page, cache):
    """Another file, or a connection that ends too early, with or without a length that says so."""
    page.answer = answer
    for page.length in (len(answer), None, len(CONTENT)):
        with pytest.raises(DataError) as caught:
            datasets.load("tiny")
        for part in (
            f"{ENTRY.url} sent another file than expected",
            f"expected sha256 {ENTRY.sha256}",
            f"found {hashlib.sha256(answer).hexdigest()}",
            "directory=DIR",
        ):
            assert part in str(caught.value)
    with pytest.warns(DataWarning, match="sent another file.*A stand-in is used") as warned:
        assert datasets.load("tiny", stand_in=True).name == "stand-in for tiny"
    assert warned[0].filename == __file__
    assert files(cache) == {}


@looped("fault", ["empty", "flipped", "longer"])
def test_wrong_files_in_the_cache(fault, page, cache):
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "tiny").write_bytes(WRONG[fault])
    for use in (datasets.load, datasets.fetch):
        with pytest.raises(
            DataError, match=r"tiny is damaged or .* expected sha256 .* or delete it"
        ):
            use("tiny")
    assert files(cache) == {"tiny": WRONG[fault]}
    assert page.asked == []


def test_a_server_that_does_not_answer(page, monkeypatch):
    """Each wait is as long as SECURITY.md says."""
    security = Path(__file__).parents[2] / "SECURITY.md"
    assert f"limited to {_files.WAIT_SECONDS} seconds" in security.read_text(encoding="utf-8")
    monkeypatch.setattr(_files, "WAIT_SECONDS", 0.1)
    page.silent, begin = True, perf_counter()
    with pytest.raises(Unavailable, match="timed out"):
        datasets.fetch("tiny")
    assert perf_counter() - begin < 10


def test_no_network(cache):
    """One message, with the ways out, and no chain of exceptions below it."""
    with pytest.raises(Unavailable) as caught:
        datasets.load("tiny")
    message = str(caught.value)
    ways = ("directory=DIR", "--data DIR", "ADAGRAD_DIFF_DATA", "stand_in=True")
    for part in ("Connection refused", ENTRY.url, *ways):
        assert part in message
    assert "\n" not in message
    assert caught.value.__suppress_context__
    assert files(cache) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = datasets.load("tiny", stand_in=True)
    assert (data.name, data.source, data.sha256) == ("stand-in for tiny", "stand-in", None)


def test_download_forbidden(page):
    with pytest.raises(Unavailable, match=r"download=False forbids it\. Ways out: .*stand_in=True"):
        datasets.load("tiny", download=False)
    assert datasets.load("tiny", download=False, stand_in=True).source == "stand-in"
    assert page.asked == []


def test_a_cache_that_cannot_be_written(page, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(Unavailable, match=r"the directory .*file.adagrad-diff cannot be written"):
        datasets.load("tiny")
    assert datasets.load("tiny", stand_in=True).source == "stand-in"
