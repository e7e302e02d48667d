"""Files for people who look at a job: TensorBoard event files and pages of HTML."""

import html.parser
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

from harness import Cluster, ClusterCase, run

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    event_accumulator = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHROMIUM = next(filter(None, map(shutil.which, (
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None)
VOID = {"meta", "input", "line", "path"}


def fields(data):
    """Yields the (number, value) of a protobuf message; a value is an integer or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        if key & 7 == 2:
            size = varint()
        yield key >> 3, data[at:at + size]
        at += size


def scalars(path):
    """Returns {tag: {step: value}} of an event file."""
    data, found = pathlib.Path(path).read_bytes(), {}
    while data:
        size, = struct.unpack("<Q", data[:8])
        event = dict(fields(data[12:12 + size]))
        for _, value in fields(event.get(5, b"")):
            value = dict(fields(value))
            if 2 in value:
                tag = value[1].decode()
                found.setdefault(tag, {})[event[2]], = struct.unpack("<f", value[2])
        data = data[16 + size:]
    return found


class EventFiles(ClusterCase):
    def watch(self, cluster, job, folder, *flags):
        code, _, err = cluster.troupe("watch", job, "--tensorboard", folder, *flags)
        self.assertEqual(code, 0, err)
        return re.search("writing (.*)\n", err)[1]

    def test_the_history_of_a_job_is_in_its_event_file(self):
        with Cluster(workers=2) as cluster:
            job = cluster.submit("logged", steps=6)
            cluster.wait_for_state(job, "SUCCEEDED")
            folder = cluster.home / "logs/logged"
            found = scalars(self.watch(cluster, job, folder))
            steps = {line["step"]: line for line in cluster.watched(job) if line["type"] == "step"}
            self.assertEqual(list(steps), [1, 2, 3, 4, 5, 6])
            for tag in ("loss", "grad_norm", "learning_rate", "tokens_per_second"):
                self.assertEqual(found[tag], {number: struct.unpack("<f", struct.pack(
                    "<f", line[tag]))[0] for number, line in steps.items()})
            self.assertGreater(steps[6]["wall_time_ns"], steps[1]["wall_time_ns"])
            later = scalars(self.watch(cluster, job, folder, "--from-step", "5"))
            self.assertEqual(list(later["loss"]), [5, 6])
            self.assertEqual(len(list(folder.iterdir())), 2)
            code, _, err = cluster.troupe("watch", job, "--tensorboard", "/proc/none")
            self.assertNotEqual(code, 0)
            self.assertIn("/proc/none", err)
            code, _, err = cluster.troupe("watch", job, "--tensorboard", "")
            self.assertEqual((code, err), (2, "troupe: --tensorboard is empty\n"))

    @unittest.skipIf(event_accumulator is None, "TensorBoard is not installed")
    def test_tensorboard_shows_each_step_once(self):
        with Cluster(workers=2) as cluster:
            job = cluster.submit("shown", steps=6)
            cluster.wait_for_state(job, "SUCCEEDED")
            folder = cluster.home / "logs"
            self.watch(cluster, job, folder)
            self.watch(cluster, job, folder, "--from-step", "3")
            events = event_accumulator.EventAccumulator(str(folder))
            events.Reload()
            self.assertEqual([point.step for point in events.Scalars("loss")], [1, 2, 3, 4, 5, 6])
            self.assertIn("job", events.PluginTagToContent("text"))


class Elements(html.parser.HTMLParser):
    """Counts the elements of a page, and fails if they are not nested."""

    def __init__(self, text):
        super().__init__()
        self.open, self.counts = [], {}
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in VOID, tag
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


# A page within a frame, whose width the script of the page around it writes into the title.
FRAME = """<!DOCTYPE html><title>none</title>
<iframe style="border: 0; width: {width}px; height: 2000px" srcdoc="{page}"></iframe>
<script>
  const frame = document.querySelector("iframe");
  frame.onload = () => document.title = frame.contentDocument.documentElement.scrollWidth;
</script>"""


def width_of_page(page, width):
    """Returns the width in pixels that the page needs on a screen of `width`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "frame.html"
        path.write_text(FRAME.format(width=width, page=html.escape(page)))
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--user-data-dir={folder}/profile", "--virtual-time-budget=5000", "--dump-dom",
             path.as_uri()], check=True, capture_output=True, text=True, timeout=60)
        return int(re.search("<title>(.*)</title>", done.stdout)[1])


class Pages(ClusterCase):
    def test_a_job_that_ended_has_a_report(self):
        with Cluster(workers=2) as cluster:
            job = cluster.submit("drawn", steps=6, interval=2,
                                 parallelism="pipeline_parallel_degree: 2")
            cluster.wait_for_state(job, "SUCCEEDED")
            path = cluster.home / "report.html"
            written = cluster.json("report", job, "--output", path, "--trace-step", "5")
            self.assertEqual((written["output"], written["steps"]), (str(path), 6))
            text = path.read_text()
            for part in ("SUCCEEDED", "6 of 6", "Schedule as it ran: step 5",
                         "Schedule as planned: 1F1B", "<title>F1.0</title>",
                         "checkpoint committed", "STARTED 2 ranks", "steady.tokens_per_second",
                         "<dt>duration</dt>", "<dt>tokens trained</dt>",
                         '<details id="receipt-environment" open="">'):
                self.assertIn(part, text)
            # One entry of the timeline and of the phases stands for every receive.
            self.assertEqual(text.count('<span class="item" title="receive">'), 2)
            self.assertNotIn(" style=", text)
            counts = Elements(text).counts
            self.assertGreater(counts["svg"], 10)
            self.assertNotIn("script", counts)
            self.assertEqual(cluster.troupe("report", "none", "--output", path)[0], 4)
            self.assertEqual(path.read_text(), text)

    def test_a_job_that_runs_has_a_report(self):
        with Cluster(workers=2,
                     environment={"TROUPE_FAILPOINTS": "step.begin=delay:20"}) as cluster:
            job = cluster.submit("running", steps=2000, interval=0)
            cluster.wait_for_step(job, 3)
            path = cluster.home / "report.html"
            written = cluster.json("report", job, "--output", path)
            self.assertGreaterEqual(written["steps"], 3)
            self.assertIn("RUNNING", path.read_text())
            self.assertEqual(cluster.troupe("cancel", job, "--now")[0], 0)

    def test_a_plan_is_drawn_without_a_cluster(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan.html"
            code, out, err = run("plan", ROOT / "examples/llama-8b.yaml", "--html", path)
            self.assertEqual(code, 0, err)
            self.assertIn("mesh: 64 ranks", out)
            text = path.read_text()
            for fact in ("model</dt>\n<dd>(AD)x32", "parameters</dt>\n<dd>8.03 G",
                         "ranks</dt>\n<dd>64", "precision</dt>\n<dd>bfloat16",
                         "sequence length</dt>\n<dd>8192 tokens", "<dt>global batch</dt>",
                         "<dt>micro batch</dt>", "device</dt>\n<dd>cuda"):
                self.assertIn(fact, text)
            self.assertGreater(Elements(text).counts["rect"], 50)
            self.assertLess(path.stat().st_size, 4_000_000)
            missing = pathlib.Path(folder) / "none/plan.html"
            code, _, err = run("plan", ROOT / "examples/tiny.yaml", "--html", missing)
            self.assertEqual(code, 2)
            self.assertIn("none/plan.html", err)

    @unittest.skipIf(CHROMIUM is None, "there is no Chromium")
    def test_a_page_is_never_wider_than_the_screen(self):
        for name in ("report", "plan"):
            page = (ROOT / f"report/golden/{name}.html").read_text()
            for width in (360, 1280):
                with self.subTest(name=name, width=width):
                    self.assertLessEqual(width_of_page(page, width), width)
        wide = page.replace("<h1>", '<div style="width: 500px">a</div><h1>')
        self.assertGreater(width_of_page(wide, 360), 360)

    @unittest.skipIf(CHROMIUM is None, "there is no Chromium")
    def test_chromium_draws_the_pages_on_screens_of_all_sizes(self):
        for name in ("report", "plan"):
            page = ROOT / f"report/golden/{name}.html"
            for size in ("1280,2000", "360,2000"):
                with self.subTest(name=name, size=size), tempfile.TemporaryDirectory() as folder:
                    picture = pathlib.Path(folder) / "page.png"
                    done = subprocess.run(
                        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
                         f"--user-data-dir={folder}/profile", f"--window-size={size}",
                         f"--screenshot={picture}", page.as_uri()],
                        capture_output=True, text=True, timeout=60)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertGreater(picture.stat().st_size, 10_000)


if __name__ == "__main__":
    unittest.main()
