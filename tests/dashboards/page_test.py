"""The coordinator's web page in a headless Chromium: a real cluster with a job that trains, 500
jobs that wait, one of 64 ranks, and texts that would like to be markup.

Needs the built programs and Debian's package chromium; skipped by name without the latter. Run by
./run test monitoring.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import signal
import struct
import sys
import unittest
import urllib.request
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

from browser import CHROMIUM, Browser
from harness import JOB, Cluster, kill, run, training_data, wait_until
from tls_test import TlsCluster, issue_as

WAITING_JOBS = 500
SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:50"}  # leaves the cores to the browser
MARKUP = "<img src=x onerror='document.title=1'><i7>"  # a folder may have this name
POLL = "document.dispatchEvent(new Event('visibilitychange'))"  # the script asks at once
STATE = "document.getElementById('page-state')"
DESKTOP, PHONE = (1280, 900), (360, 740)
LEAST_CONTRAST = 4.5
# They are times of the page's main thread: the wall clock would count what else the machine does.
LONGEST_LOAD_SECONDS, LONGEST_UPDATE_SECONDS = 3, 0.5

# The words of a page with a contrast below `least`, as "class: words (contrast)", and how many
# words there are. A word's background is that of the elements that contain it, one over the other.
CONTRASTS = """
((least) => {
  function channels(colour) {
    const numbers = colour.match(/-?[0-9.]+(e-?[0-9]+)?/g).map(Number);
    const scale = colour.startsWith("color(") ? 255 : 1;
    return [...numbers.slice(0, 3).map((value) => value * scale), numbers[3] ?? 1];
  }
  function over(front, back) {
    return [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat(1);
  }
  function backgroundOf(element) {
    if (element === null) return channels("rgb(255, 255, 255)");
    return over(channels(getComputedStyle(element).backgroundColor),
                backgroundOf(element.parentElement));
  }
  function luminance([r, g, b]) {
    const linear = [r, g, b].map((value) => value / 255)
      .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  }
  const low = [];
  let count = 0;
  for (const element of document.body.querySelectorAll("*:not(script)")) {
    const words = Array.from(element.childNodes)
      .filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data.trim()).join(" ");
    const isDrawing = element instanceof SVGElement;
    // A word on a bar of a chart has no element behind it.
    if (words.trim() === "" || element.getClientRects().length === 0) continue;
    if (isDrawing && element.matches(".block")) continue;
    const style = getComputedStyle(element), back = backgroundOf(element);
    const front = luminance(over(channels(isDrawing ? style.fill : style.color), back));
    const [darker, lighter] = [front, luminance(back)].sort((a, b) => a - b);
    const contrast = (lighter + 0.05) / (darker + 0.05);
    count += 1;
    if (contrast < least) low.push(`${element.className}: ${words} (${contrast.toFixed(2)})`);
  }
  return [low, count];
})
"""

def ink(png):
    """Returns the share of bytes of a PNG file's filtered rows that differ from their neighbours:
    0 for a picture of one colour."""
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    rows = zlib.decompress(data)
    return 1 - rows.count(0) / len(rows)


@unittest.skipUnless(CHROMIUM, "chromium is not installed (Debian: chromium)")
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(workers=3, environment=SLOW)
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.up()
        cls.url = cls.cluster.info()["coordinator"]["page"]
        cls.browser = Browser()
        cls.browser.__enter__()
        cls.addClassCleanup(cls.browser.__exit__)
        cls.submit_jobs()

    @classmethod
    def submit_jobs(cls):
        """Submits a job that trains on two workers, one of strangers on the third, one that is too
        wide, and many that wait."""
        cls.curve = cls.cluster.submit("curve", steps=1_000_000, interval=50)
        folder = cls.cluster.home / MARKUP
        folder.mkdir()
        for end in (".idx", ".bin"):
            os.symlink(training_data() + end, folder / f"data{end}")
        cls.strangers = cls.submit("strangers", "tensor_parallel_degree: 1", train=folder / "data",
                                   steps=6, interval=3, folder=folder)
        cls.wide = cls.submit(
            "wide", "tensor_parallel_degree: 2, data_parallel_replicate_degree: 32")
        waits = cls.cluster.write_job("waits", steps=100)

        def submit_waiting(number):
            code, _, err = run("submit", waits, "--name", f"waits-{number}", "--data-dir",
                               cls.cluster.directory)
            if code != 0:
                raise AssertionError(f"waits-{number}: {code} {err}")

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(submit_waiting, range(WAITING_JOBS)))
        cls.cluster.wait_for_state(cls.strangers, "SUCCEEDED")
        used = {rank["worker"] for rank in cls.cluster.describe(cls.curve)["ranks"]}
        cls.idle = next(worker["name"] for worker in cls.cluster.info()["workers"]
                        if worker["name"] not in used)

    @classmethod
    def submit(cls, name, parallelism, train=None, steps=100, interval=0, folder=None):
        text = JOB.format(name=name, train=json.dumps(str(train or training_data())), steps=steps,
                          interval=interval, parallelism=parallelism,
                          folder=json.dumps(str(folder or cls.cluster.home / "checkpoints")))
        path = cls.cluster.home / f"{name}.yaml"
        path.write_text(text.replace("global_batch_size: 8,", "global_batch_size: 64,"))
        return cls.cluster.json("submit", path)["name"]

    def address(self, path):
        return self.url.rstrip("/") + path

    def drain_idle_worker(self, reason):
        code, _, err = self.cluster.troupe("workers", "drain", self.idle, "--reason", reason)
        self.assertEqual(code, 0, err)
        self.addCleanup(self.cluster.troupe, "workers", "undrain", self.idle)

    @contextlib.contextmanager
    def opened(self, path, size=DESKTOP, dark=False, complains=False):
        """Opens a page, and checks in the end that it asked only its own host and that the browser
        found no fault in it."""
        with self.browser.page(self.address(path), *size, dark=dark) as page:
            yield page
            strange = [url for url in page.requests() if not url.startswith(self.address("/"))]
            self.assertEqual(strange, [])
            if not complains:
                self.assertEqual(page.complaints(), [])

    def test_a_curve_grows_without_a_reload(self):
        with self.opened(f"/{self.curve}") as page:
            page.wait_for(f"{STATE}.textContent.startsWith('updated')")
            page.evaluate("window.isTheSame = true")
            curve = "document.querySelector('#steps path.series').getAttribute('d')"
            first = page.evaluate(curve)
            # No test asks for this: it is the script's own interval.
            page.wait_for(f"{curve} !== {json.dumps(first)}", 20)
            self.assertTrue(page.evaluate("window.isTheSame"))

    def test_what_is_open_chosen_and_focused_stays_so(self):
        with self.opened("/") as page:
            page.wait_for("document.querySelector('#workers details') !== null")
            folded = page.evaluate("document.querySelector('#workers details').id")
            details = f"document.getElementById({json.dumps(folded)})"
            page.evaluate(f"window.old = document.getElementById('workers'); {details}.open = true;"
                          f"{details}.querySelector('summary').focus()")
            self.drain_idle_worker("a new kernel")
            self.poll_until(page, "document.body.textContent.includes('a new kernel')")
            self.assertTrue(page.evaluate("window.old !== document.getElementById('workers')"))
            self.assertTrue(page.evaluate(f"{details}.open"))
            self.assertTrue(page.evaluate(
                f"document.activeElement === {details}.querySelector('summary')"))
        with self.opened(f"/{self.curve}") as page:
            page.evaluate("window.old = document.getElementById('steps');"
                          "document.getElementById('by-time').click()")
            self.poll_until(page, "window.old !== document.getElementById('steps')")
            self.assertTrue(page.evaluate("document.getElementById('by-time').checked"))

    def poll_until(self, page, expression, limit_seconds=20):
        """Lets the script ask again until the expression is true."""
        def asked():
            page.evaluate(POLL)
            return page.evaluate(expression)
        wait_until(asked, expression, limit_seconds)

    def test_pages_fit_on_screens_and_phones_and_can_be_read_in_both_themes(self):
        for path in ("/?state=RUNNING", f"/{self.curve}", f"/{self.curve}/logs?rank=0"):
            for size in (DESKTOP, PHONE):
                for dark in (False, True):
                    with (self.subTest(path=path, size=size, dark=dark),
                          self.opened(path, size, dark) as page):
                        self.check_looks(page, size)

    def check_looks(self, page, size):
        width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        self.assertEqual(width, [size[0], size[0]], "the body scrolls sideways")
        low, count = page.evaluate(f"{CONTRASTS}({LEAST_CONTRAST})")
        self.assertGreater(count, 10)
        self.assertEqual(low, [])
        self.assertGreater(ink(page.screenshot()), 0.005, "the picture is blank")

    def test_a_contrast_that_is_too_low_is_found(self):
        with self.opened("/?state=RUNNING") as page:
            page.evaluate("document.querySelector('h1').style.color = '#aaaaaa'")
            low, _ = page.evaluate(f"{CONTRASTS}({LEAST_CONTRAST})")
            self.assertEqual(low, [": Cluster (2.32)"])

    def test_hundreds_of_jobs_load_soon_and_are_updated_without_a_halt(self):
        with self.opened("/") as page:
            self.assertLess(page.busy_seconds(), LONGEST_LOAD_SECONDS)
            rows = page.evaluate("document.querySelectorAll('#jobs tbody tr').length")
            self.assertGreaterEqual(rows, WAITING_JOBS)
            self.assertIn("waits behind jobs/waits-",
                          page.evaluate("document.getElementById('queue').textContent"))
            page.evaluate("window.old = document.getElementById('jobs')")
            begin = page.busy_seconds()
            self.poll_until(page, "window.old !== document.getElementById('jobs')", 70)
            self.assertLess(page.busy_seconds() - begin, LONGEST_UPDATE_SECONDS)
        with self.opened("/", PHONE) as page:
            self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), PHONE[0])

    def test_a_page_that_computes_for_long_is_found(self):
        with self.opened("/?state=RUNNING") as page:
            begin = page.busy_seconds()
            page.evaluate("for (const end = Date.now() + 1000; Date.now() < end;);")
            self.assertGreater(page.busy_seconds() - begin, 0.1)

    def test_a_job_of_64_ranks_loads_soon(self):
        for size in (DESKTOP, PHONE):
            with self.opened(f"/{self.wide}", size) as page:
                self.assertLess(page.busy_seconds(), LONGEST_LOAD_SECONDS)
                self.assertIn("64 ranks",
                              page.evaluate("document.getElementById('layout').textContent"))
                self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), size[0])

    def test_texts_of_strangers_are_texts(self):
        reason = "<script>document.title=1</script>"
        self.drain_idle_worker(reason)
        for path, text in (("/", reason), (f"/{self.strangers}", MARKUP)):
            with self.opened(path) as page:
                self.assertIn(text, page.evaluate("document.body.textContent"))
                self.assertIn("Troupe", page.evaluate("document.title"))
                self.assertEqual(page.evaluate(
                    "document.querySelectorAll('i7, main script, main img').length"), 0)

    def test_a_page_states_a_policy_that_forbids_what_is_not_its_own(self):
        with urllib.request.urlopen(self.address("/"), timeout=10) as answer:
            self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
        # The policy works: what an attacker might add is refused, and the browser reports it.
        with self.browser.page(self.address("/?state=RUNNING")) as page:
            page.evaluate("""
                const script = document.createElement("script");
                script.textContent = "window.isAttacked = true";
                document.body.append(script);
                const image = document.createElement("img");
                image.src = "http://127.0.0.1:1/x.png";
                document.body.append(image);
                0""")
            wait_until(lambda: len(page.complaints()) >= 2, "two refusals")
            self.assertIsNone(page.evaluate("window.isAttacked"))

    def test_a_job_that_has_ended_is_asked_for_no_more(self):
        with self.opened(f"/{self.strangers}") as page:
            self.poll_until(page, f"{STATE}.textContent.includes('has ended')")
            requests = len(page.requests())
            page.evaluate(POLL)
            self.assertEqual(len(page.requests()), requests)

    def test_an_outage_of_the_coordinator_is_shown_in_red_until_it_ends(self):
        info = self.cluster.info()
        with self.opened(f"/{self.curve}", complains=True) as page:
            # It would restart the coordinator within a second.
            os.kill(info["supervisor"]["pid"], signal.SIGSTOP)
            try:
                kill(info["coordinator"]["pid"])
                self.poll_until(page, f"{STATE}.classList.contains('stale')")
                self.assertIn("the coordinator does not answer since ",
                              page.evaluate(f"{STATE}.textContent"))
                colour = page.evaluate(f"getComputedStyle({STATE}).color")
                red, green, blue = map(int, re.findall(r"\d+", colour))
                self.assertGreater(red, 2 * max(green, blue), colour)
                self.assertIn("curve", page.evaluate("document.querySelector('h1').textContent"))
            finally:
                os.kill(info["supervisor"]["pid"], signal.SIGCONT)
            wait_until(lambda: self.cluster.troupe("list")[0] == 0, "the coordinator serving again")
            self.poll_until(page, f"{STATE}.textContent.startsWith('updated')")
            self.assertFalse(page.evaluate(f"{STATE}.classList.contains('stale')"))


class PageCluster(TlsCluster):
    """A coordinator with TLS and the page, and two workers."""

    coordinator_flags = ("--page-listen", "127.0.0.1:0")


@unittest.skipUnless(CHROMIUM, "chromium is not installed (Debian: chromium)")
class SecurePageTest(unittest.TestCase):
    def test_a_page_over_https_asks_for_a_token_and_is_updated_with_it(self):
        with PageCluster(environment=SLOW) as cluster:
            wait_until(lambda: len(cluster.json("workers")["workers"]) == 2, "both workers")
            job = cluster.submit("curve", steps=1_000_000, interval=50)
            url = cluster.ready["page"]
            self.assertTrue(url.startswith("https://127.0.0.1:"), url)
            token = self.token_of_viewer(cluster)
            # No authority of the cluster is known to this browser.
            with Browser("--ignore-certificate-errors") as browser:
                # Nobody is there to answer the browser's question for a password.
                with self.assertRaisesRegex(AssertionError, "ERR_INVALID_AUTH_CREDENTIALS"):
                    browser.page(url + job)
                secret = url.replace("https://", f"https://anyone:{token}@")
                with browser.page(secret, lands_on=url) as page:
                    self.assertIn("worker-0", page.evaluate("document.body.textContent"))
                # The browser keeps the token, for the questions of the script too.
                with browser.page(url + job) as page:
                    curve = "document.querySelector('#steps path.series').getAttribute('d')"
                    page.wait_for(f"{STATE}.textContent.startsWith('updated')")
                    first = page.evaluate(curve)
                    page.wait_for(f"{curve} !== {json.dumps(first)}", 20)
                    self.assertEqual(page.complaints(), [])
                    self.assertEqual(set(page.codes()), {200})

    def token_of_viewer(self, cluster):
        issue_as(cluster.authority, "operator", "olga", cluster.tls("olga"))
        code, token, err = run("tokens", "create", "--name", "tom", "--role", "viewer", "--for",
                               "1h", *cluster.arguments("olga"))
        self.assertEqual(code, 0, err)
        return token.strip()


if __name__ == "__main__":
    unittest.main()
