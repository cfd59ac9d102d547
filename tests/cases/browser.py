"""A real browser for tests: Chromium without a window, spoken to in the DevTools protocol over a pipe. It needs no library."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from select import select

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)
FLAGS += (
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--no-default-browser-check",
    "--no-pings",
)
FLAGS += (
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
FLAGS += ("--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe")
# The browser reads its file 3 and writes its file 4. High numbers come first, lest one of the two overwrite the other.
WIRE = "import os, sys; a, b = (os.dup2(int(f), 100 + k) for k, f in enumerate(sys.argv[1:3])); "
WIRE += "os.dup2(a, 3); os.dup2(b, 4); os.closerange(5, 200); os.execv(sys.argv[3], sys.argv[3:])"
PATIENCE = 60


class Browser:
    """One tab. What the page logs, throws, asks the network for or offers for download is kept, and nothing is let through."""

    def __init__(self, directory):
        self.directory, self.number, self.news = directory, 0, deque()
        self.logged, self.requests, self.sent, self.dialogs, self.buffer = [], [], [], [], b""
        to_browser, self.writing = os.pipe()
        self.reading, from_browser = os.pipe()
        wired = [sys.executable, "-Ic", WIRE, str(to_browser), str(from_browser)]
        self.log = open(directory / "chromium.log", "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            [*wired, CHROMIUM, *FLAGS, f"--user-data-dir={directory / 'profile'}", "about:blank"],
            stdout=self.log,
            stderr=self.log,
            pass_fds=(to_browser, from_browser),
        )
        os.close(to_browser)
        os.close(from_browser)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Fetch.enable", patterns=[{"urlPattern": "*"}])
        self.call(
            "Browser.setDownloadBehavior",
            behavior="allow",
            downloadPath=str(directory),
            eventsEnabled=True,
        )

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.writing)
        os.close(self.reading)
        self.log.close()

    def call(self, method, **params):
        """Ask the browser for something, and wait for the answer. What else it says meanwhile is news."""
        number = self.send(method, params)
        end = time.monotonic() + PATIENCE
        while True:
            message = self.receive(end)
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']['message']}"
                return message["result"]

    def send(self, method, params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if hasattr(self, "session") and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        return self.number

    def receive(self, end):
        while b"\0" not in self.buffer:
            left = max(
                5, end - time.monotonic()
            )  # after a pause of the machine, the browser gets its turn
            ready, _, _ = select([self.reading], [], [], left)
            assert ready, f"the browser did not answer within {PATIENCE} seconds"
            piece = os.read(self.reading, 1 << 20)
            assert piece, "the browser is gone"
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(text)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, method, params):
        if method == "Fetch.requestPaused":
            address = params["request"]["url"]  # of what neither the page nor a policy has stopped
            self.sent.append(address)
            if address == getattr(self, "address", None):
                self.send("Fetch.continueRequest", {"requestId": params["requestId"]})
            else:
                self.send(
                    "Fetch.failRequest",
                    {"requestId": params["requestId"], "errorReason": "BlockedByClient"},
                )
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(
            ("data:", "blob:")
        ):
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.logged.append(
                " ".join(str(a.get("value", a.get("description"))) for a in params["args"])
            )
        elif method == "Runtime.exceptionThrown":
            self.logged.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.logged.append(params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
            self.send("Page.handleJavaScriptDialog", {"accept": True})
        elif method is not None:
            self.news.append((method, params))

    def wait(self, method, **expected):
        """Until this happens, if it has not since the last `open`."""
        end = time.monotonic() + PATIENCE
        while True:
            while self.news:
                found, params = self.news.popleft()
                if found == method and expected.items() <= params.items():
                    return params
            self.receive(end)

    def open(self, path, width=1000, height=900, dark=False, touch=False):
        """Show a file at a size, on a light or a dark screen."""
        for notes in (self.logged, self.requests, self.sent, self.dialogs, self.news):
            notes.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=touch,
        )
        self.dress(dark)
        self.address = path.resolve().as_uri()
        self.call("Page.navigate", url=self.address)
        self.wait("Page.loadEventFired")
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def dress(self, dark=False, media=""):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def run(self, code):
        """The value of an expression in the page, or of what it promises."""
        answer = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key, code=0, text=""):
        named = {"key": key, "code": {" ": "Space"}.get(key, key), "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def place(self, selector):
        """The middle of an element, scrolled into view."""
        find = f"const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}})"
        return self.run(
            f"{{{find}; const b = e.getBoundingClientRect(); [b.x + b.width / 2, b.y + b.height / 2]}}"
        )

    def point(self, x, y, click=False):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.call(
                    "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
                )

    def click(self, selector):
        self.point(*self.place(selector), click=True)

    def picture(self, path, whole=True):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def print(self, path):
        printed = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path.write_bytes(base64.b64decode(printed["data"]))
