"""The places where data are looked for, as the tests want them."""

import contextlib
import http.server
import threading
import urllib.request

import pytest

from adagrad_diff.datasets import _registry
from tiny_dataset import CONTENT, ENTRY


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """No test sees the user's data, cache or network. There is one more data set, a tiny one."""
    monkeypatch.delenv("ADAGRAD_DIFF_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setitem(_registry.REGISTRY, "tiny", ENTRY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_registry, "BASE_URL", "https://127.0.0.1:9/")  # nobody listens there


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "home" / "adagrad-diff"


@pytest.fixture
def folder(tmp_path):
    """A directory of the user's with the tiny file in it."""
    path = tmp_path / "data"
    path.mkdir()
    (path / "tiny").write_bytes(CONTENT)
    return path


class WithoutEncryption(urllib.request.HTTPSHandler):
    """Talk to the server of the tests, which has no certificate."""

    http_open = urllib.request.HTTPHandler.http_open


@pytest.fixture
def page(monkeypatch):
    """Replace the LIBSVM page, which sends `page.answer` and notes requests in `page.asked`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            page.asked.append(self.path)
            if page.silent:
                page.ended.wait()
            self.send_response(page.status)
            self.send_header("Location", "/elsewhere")  # for a status that redirects
            if page.length is not None:
                self.send_header("Content-Length", str(page.length))
            self.end_headers()
            with contextlib.suppress(OSError):  # the other side may not wait
                self.wfile.write(page.answer)
                while page.endless and not page.ended.is_set():
                    self.wfile.write(page.answer)
                    page.sent += len(page.answer)

        def log_message(self, *args):
            pass

    page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    page.answer, page.length, page.status, page.asked = CONTENT, len(CONTENT), 200, []
    page.endless, page.sent, page.silent, page.ended = False, 0, False, threading.Event()
    thread = threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(_registry, "BASE_URL", f"http://127.0.0.1:{page.server_port}/")
    monkeypatch.setattr(urllib.request, "HTTPSHandler", WithoutEncryption)
    yield page
    page.ended.set()
    page.shutdown()
    thread.join()
    page.server_close()
