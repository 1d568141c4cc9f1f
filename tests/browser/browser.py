"""Chromium without a window, driven over its debugging pipe: no driver and no package are needed."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


def chromium_for_tests(needs_charts=True):
    """The program; skips the test file, with the reason, if it or the chart library is missing."""
    import pytest
    from given import CHARTS

    if needs_charts and not CHARTS.exists():
        pytest.skip("built without the chart library (ci/packages installs it)", allow_module_level=True)
    if not (program := find_chromium()):
        pytest.skip("there is no Chromium (ci/packages --tests installs it)", allow_module_level=True)
    return program


class Browser:
    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="peakbench-browser-")
        to_read, self.commands = os.pipe()
        self.answers, to_write = os.pipe()

        def place_pipes():  # the browser reads commands from 3 and writes answers to 4
            os.dup2(to_read, 13)
            os.dup2(to_write, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             "--no-first-run", "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
             "--disable-background-timer-throttling", f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=place_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.number = 0
        self.events = []

    def close(self):
        try:
            self.send("Browser.close")
        except (RuntimeError, OSError):
            pass
        os.close(self.commands)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def send(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        wanted = self.number
        while True:
            answer = self.read()
            if answer.get("id") == wanted:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer.get("result", {})
            self.events.append(answer)

    def read(self, end=None):
        """The next message; AssertionError when there is none by `end` (time.monotonic(); a minute from now)."""
        end = end or time.monotonic() + 60
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("the browser said nothing in time")
            chunk = os.read(self.answers, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def page(self):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        return Page(self, self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        return self.browser.send(method, self.session, **parameters)

    def open(self, path, width=1440, height=1000, dark=False, script=True, media=""):
        self.browser.events.clear()
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        # Without motion: what is aimed at stays where it is.
        features = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[{"name": name, "value": value} for name, value in features.items()])
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.send("Page.navigate", url=path if str(path).startswith("http:") else f"file://{path}")
        self.wait_event("Page.loadEventFired")
        self.send("Page.bringToFront")

    def wait_event(self, name, seconds=30):
        end = time.monotonic() + seconds
        while not any(event.get("method") == name for event in self.browser.events):
            self.browser.events.append(self.browser.read(end))

    def leads_on(self, act):
        """Until another page has loaded: on a busy machine an input that comes before the page's first frame is lost."""
        self.browser.events.clear()
        for _ in range(3):
            act()
            try:
                return self.wait_event("Page.loadEventFired", seconds=8)
            except AssertionError:
                continue
        raise AssertionError("no page was loaded")

    def run(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait(self, expression, seconds=20):
        end = time.monotonic() + seconds
        while not self.run(f"!!({expression})"):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {expression}")
            time.sleep(0.02)

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def key(self, key, shift=False):
        held = 8 if shift else 0
        text = key if len(key) == 1 else {"Enter": "\r", " ": " "}.get(key, "")
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, text=text, modifiers=held,
                  windowsVirtualKeyCode={"Enter": 13, "Tab": 9}.get(key, 0))
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, modifiers=held)

    def accessible(self):
        """What a screen reader finds: (role, name) of every node that is not ignored."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]

    def complaints(self):
        """Exceptions, console errors, dialogs, and requests to anything but the page itself."""
        self.run("0")
        found = []
        for event in self.browser.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(parameters["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
                found.append(str(parameters["args"]))
            elif method == "Page.javascriptDialogOpening":
                found.append(f"a dialog: {parameters['message']}")
            elif method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith(("file:", "data:", "blob:")):
                    found.append(f"a request: {url}")
        return found

    def picture(self, path, whole=True):
        self.send("Page.bringToFront")
        data = self.send("Page.captureScreenshot", captureBeyondViewport=whole, format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
