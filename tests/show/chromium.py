"""Headless Chromium driven over a pipe, as its DevTools protocol allows: no network, no extra package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0  # s that one answer may take


def find_chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page in a browser that runs while the object is used in a ``with`` statement."""

    def __init__(self, program: str) -> None:
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        options = (
            "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
            "--disable-background-networking --remote-debugging-pipe"
        )
        # The browser reads commands from descriptor 3 and answers on descriptor 4.
        words = f'exec "$0" {options} --user-data-dir="$1" about:blank 3<&{to_read} 4>&{to_write}'
        self.process = subprocess.Popen(
            ["bash", "-c", words, program, self.folder.name],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.count = 0
        self.events: list[dict] = []
        self.session: str | None = None

    def __enter__(self) -> Browser:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(10)
        os.close(self.write_end)
        os.close(self.read_end)
        self.folder.cleanup()

    def call(self, method: str, **parameters: object) -> dict:
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def receive(self) -> dict:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0.0, end - time.monotonic()))
            assert ready, "The browser did not answer."
            self.buffer += os.read(self.read_end, 1 << 16)
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, file: Path, width: int = 1500, height: int = 1900, fragment: str = "") -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=file.resolve().as_uri() + fragment)
        end = time.monotonic() + PATIENCE
        while self.run("document.readyState + location.protocol") != "completefile:":
            assert time.monotonic() < end, "The page did not load."
            time.sleep(0.05)

    def run(self, script: str) -> object:
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def click(self, selector: str) -> None:
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def screenshot(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def complaints(self) -> list[str]:
        """Errors of scripts, messages of the console, and requests for anything but the page itself."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                found.append(json.dumps(parameters)[:500])
            if method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith(("file:", "about:")):
                    found.append(f"request for {url}")
        return found
