"""A headless Chromium, driven through its DevTools protocol over a pipe: no package is needed for that.

It is looked for on the PATH, or is what the variable CHROMIUM names: where that is set, as it should be in
continuous integration, no test is left out for want of a browser.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "no Chromium: none of "
    + ", ".join(NAMES)
    + " is on the PATH. Install it (Debian: apt-get install chromium), or name it in the variable CHROMIUM"
)


def find_chromium() -> str | None:
    """The browser's path; None if there is none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a browser without a network."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self._commands, self._answers = commands, answers
        self._count = 0
        self._session: str | None = None
        self.problems: list[str] = []
        """What the page's console said, and what its scripts did not catch."""
        self.requests: list[str] = []
        """The URLs that the page asked for."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Call a method of the protocol, and wait for its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": arguments}
        if self._session is not None:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, path: Path, *, width: int, height: int = 900) -> None:
        """Open a file in a window of that size, in CSS pixels, and wait until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Page.navigate", url=path.as_uri())
        while self.run("document.readyState + location.protocol") != "completefile:":
            self._next()

    def run(self, script: str) -> Any:
        """What an expression of JavaScript is; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def prefer(self, scheme: str) -> None:
        """Be a reader who prefers light or dark pages."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def print(self) -> bytes:
        """The page as a PDF, with its headings as an outline."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, generateDocumentOutline=True)
        return base64.b64decode(answer["data"])

    def _next(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            if not byte:
                raise RuntimeError(f"the browser ended; it said so far: {data[:200]!r}")
            data += byte
        message: dict[str, Any] = json.loads(data)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        if message.get("method") in {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}:
            self.problems.append(json.dumps(message["params"])[:500])
        return message


@contextmanager
def browser() -> Iterator[Browser]:
    """Start the browser, and end it with all of its processes."""
    program = find_chromium()
    if program is None:
        raise RuntimeError(MISSING)
    if shutil.which(program) is None:
        raise RuntimeError(
            f"CHROMIUM is {program!r}, and there is no such program; Debian: apt-get install chromium"
        )
    commands_out, commands_in = os.pipe()
    answers_out, answers_in = os.pipe()
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        # The protocol's pipes are the files 3 and 4.
        redirected = f'exec "$@" 3<&{commands_out} 4>&{answers_in}'
        arguments = [
            program,
            "--headless",
            "--no-sandbox",  # Chromium refuses to run as root with one
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
        ]
        process = subprocess.Popen(
            ["/bin/bash", "-c", redirected, "bash", *arguments],
            pass_fds=(commands_out, answers_in),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(commands_out)
        os.close(answers_in)
        with os.fdopen(commands_in, "wb") as commands, os.fdopen(answers_out, "rb") as answers:
            try:
                yield Browser(commands, answers)
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
