"""A headless Chromium, driven over its DevTools protocol through two pipes, so that neither a
driver nor a package is needed. Every wait has a limit.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = next(filter(None, map(shutil.which, (
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None)
LIMIT_SECONDS = 30

# Chromium reads the protocol from descriptor 3 and writes it to descriptor 4. No name is resolved,
# so that only 127.0.0.1 can be reached.
LAUNCH = 'exec "${@:3}" 3<&"$1" 4>&"$2"'
FLAGS = ["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--hide-scrollbars", "--disable-dev-shm-usage", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-extensions",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


class Browser:
    """A process of Chromium with a profile of its own. `flags`: further ones."""

    def __init__(self, *flags):
        self.flags = flags

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="troupe-chromium-")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", LAUNCH, "launch", str(to_read), str(to_write), CHROMIUM, *FLAGS,
             *self.flags, f"--user-data-dir={self.profile}"],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.calls, self.events = b"", 0, {}
        return self

    def __exit__(self, *_):
        for end in (self.write_end, self.read_end):
            os.close(end)
        try:
            self.process.wait(timeout=5)  # it ends with its pipes
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=10)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, end):
        """Returns the next message; raises an error when `end` of the monotonic clock passes."""
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise AssertionError("Chromium does not answer")
            read = os.read(self.read_end, 1 << 20)
            if not read:
                raise AssertionError("Chromium has ended")
            self.buffer += read
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        """Returns the result of a method of the protocol. Events that arrive meanwhile are kept, by
        session."""
        self.calls += 1
        number, end = self.calls, time.monotonic() + LIMIT_SECONDS
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.setdefault(answer.get("sessionId"), []).append(answer)

    def page(self, url, width=1280, height=900, dark=False, lands_on=None):
        """Opens `url` in a window of this size, and returns it once it is loaded. `lands_on`: the
        address that it then has, by default the same."""
        return Page(self, url, width, height, dark, lands_on or url)


class Page:
    """A tab. It keeps all requests and messages of its console."""

    def __init__(self, browser, url, width, height, dark, lands_on):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target,
                                    flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        # The time of its thread, which other processes on the machine do not lengthen.
        self.call("Performance.enable", timeDomain="threadTicks")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.open(url, lands_on)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def open(self, url, lands_on):
        answer = self.call("Page.navigate", url=url)
        if "errorText" in answer:
            raise AssertionError(f"{url}: {answer['errorText']}")
        self.wait_for(f"location.href === {json.dumps(lands_on)} && "
                      "document.readyState === 'complete'")

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression, which may be a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression, limit_seconds=LIMIT_SECONDS):
        """Waits until the expression is true."""
        end = time.monotonic() + limit_seconds
        while not self.evaluate(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise AssertionError(f"not within {limit_seconds} s: {expression}")
            # The page gets time, and its events are read.
            self.evaluate("new Promise((done) => setTimeout(done, 50))")

    def busy_seconds(self):
        """Returns the processor time that the tasks of the page's main thread have taken."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def screenshot(self):
        """Returns the PNG file of what the window shows."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def seen(self, method):
        """Returns the parameters of the events with this name, in order."""
        self.evaluate("0")  # reads what has arrived
        return [event["params"] for event in self.browser.events.get(self.session, [])
                if event["method"] == method]

    def requests(self):
        """Returns the addresses that the page has asked for."""
        return [event["request"]["url"] for event in self.seen("Network.requestWillBeSent")]

    def codes(self):
        """Returns the codes of the answers that the page has got."""
        return [event["response"]["status"] for event in self.seen("Network.responseReceived")]

    def complaints(self):
        """Returns the errors and warnings of the console: exceptions, refusals by the content
        security policy, and what cannot be loaded."""
        found = [str(event["exceptionDetails"]) for event in self.seen("Runtime.exceptionThrown")]
        found += [f"{entry['text']} {entry.get('url', '')}" for entry in
                  (event["entry"] for event in self.seen("Log.entryAdded"))
                  if entry["level"] in ("error", "warning")]
        return found + [str(event["args"]) for event in self.seen("Runtime.consoleAPICalled")
                        if event["type"] in ("error", "warning", "assert")]
