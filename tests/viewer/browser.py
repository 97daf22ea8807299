# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Chromium through the DevTools protocol over two pipes: no driver, no package, no open port.

    with Browser() as browser:
        page = browser.open("/path/page.html", 1280, 800)
        page.evaluate("document.title")
        page.key("n"); page.click("#step-next"); page.screenshot("a.png")
"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--remote-debugging-pipe", "--force-device-scale-factor=1"]
KEY_CODES = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36,
             "End": 35, "PageUp": 33, "PageDown": 34, "Tab": 9, " ": 32}


def find_browser():
    """The path of Chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    def __init__(self, timeout_s=600):
        self.timeout_s = timeout_s
        self.folder = tempfile.mkdtemp(prefix="peal-viewer-")
        self.buffer = b""
        self.answers = {}
        self.events = []
        self.last_id = 0
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()

        def place_pipes():  # the protocol expects its pipes at descriptors 3 and 4
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen([find_browser(), *FLAGS, "--user-data-dir=" + self.folder, "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        close_fds=False, pass_fds=(), preexec_fn=place_pipes, start_new_session=True)
        os.close(to_read)
        os.close(to_write)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close", wait=False)
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, session=None, wait=True, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        return self.answer(self.last_id, method) if wait else None

    def answer(self, number, method):
        deadline = time.monotonic() + self.timeout_s
        while number not in self.answers:
            self.read(deadline, method)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(method + ": " + answer["error"].get("message", "?"))
        return answer["result"]

    def read(self, deadline, method):
        ready, _, _ = select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))
        chunk = os.read(self.from_browser, 1 << 20) if ready else b""
        if not chunk:
            raise TimeoutError("no answer from the browser to " + method)
        self.buffer += chunk
        *messages, self.buffer = self.buffer.split(b"\0")
        for text in messages:
            message = json.loads(text)
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.events.append(message)

    def wait_event(self, method, session):
        deadline = time.monotonic() + self.timeout_s
        while True:
            for i, event in enumerate(self.events):
                if event["method"] == method and event.get("sessionId") == session:
                    return self.events.pop(i)
            self.read(deadline, method)

    def open(self, path, width=1280, height=800, dark=False, ratio=1):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(domain + ".enable")
        page.resize(width, height, ratio)
        page.set_dark(dark)
        page.call("Page.navigate", url=path if "://" in path else "file://" + os.path.abspath(path))
        self.wait_event("Page.loadEventFired", session)
        page.settle()
        return page


class Page:
    def __init__(self, browser, session):
        self.browser = browser
        self.session = session

    def call(self, method, **params):
        return self.browser.call(method, session=self.session, **params)

    def resize(self, width, height, ratio=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False)

    def set_dark(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(expression + ": " + details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def settle(self):
        """Waits until two frames have been drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def text(self, selector):
        return self.evaluate("document.querySelector(%s).textContent" % json.dumps(selector))

    def box(self, selector):
        return self.evaluate("(() => { const b = document.querySelector(%s).getBoundingClientRect();"
                             " return [b.left, b.top, b.width, b.height]; })()" % json.dumps(selector))

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click_at(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1, buttons=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def click(self, selector):
        left, top, width, height = self.box(selector)
        self.click_at(left + width / 2, top + height / 2)

    def drag(self, x0, y0, x1, y1):
        self.mouse("mouseMoved", x0, y0)
        self.mouse("mousePressed", x0, y0, button="left", clickCount=1, buttons=1)
        for i in range(1, 6):
            self.mouse("mouseMoved", x0 + (x1 - x0) * i / 5, y0 + (y1 - y0) * i / 5, button="left", buttons=1)
        self.mouse("mouseReleased", x1, y1, button="left", clickCount=1)
        self.settle()

    def wheel(self, x, y, delta):
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta)
        self.settle()

    def key(self, key):
        code = KEY_CODES.get(key, ord(key.upper()) if len(key) == 1 and key.isalnum() else 0)
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """Exceptions of the page's script, errors and warnings of the browser, and requests other than for files."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif event["method"] == "Network.requestWillBeSent" and not params["request"]["url"].startswith("file:"):
                found.append("request for " + params["request"]["url"])
        return found
