"""A real Prometheus scrapes a real cluster, a worker of which is killed: every expression of every
panel, annotation and rule is evaluated, and no panel that should have data is empty.

Needs the built programs and Debian's package prometheus; skipped by name without the latter. Run by
./run test monitoring. The boards are also drawn: into the folder that TROUPE_DRAW_BOARDS names, if
it is set. TROUPE_DRAW_SECONDS is the least time for which the jobs then train, so that the curves
show more than a start. The pictures of docs/ are made with both.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

from environment import environment
from expressions import DASHBOARDS, boards, declared_metrics, panels
from harness import BIN, Cluster, training_data, wait_until

PROMETHEUS = shutil.which("prometheus")

# The job has pipeline stages, experts and validation, so that all panels of a CPU have data.
JOB = """
name: {name}
model: {{pattern: "(AE)x2", hidden_size: 64, num_attention_heads: 4, num_key_value_heads: 2,
        intermediate_size: 96, vocab_size: 259, num_experts: 4, num_experts_per_tok: 2,
        moe_intermediate_size: 32, capacity_factor: 1.0}}
data: {{train: {train}, validation_fraction: 0.1}}
training: {{global_batch_size: 8, micro_batch_size: 2, sequence_length: 32, steps: 1000000,
           seed: 7, validation_interval: 50}}
optimizer: {{lr: 1.0e-3}}
parallelism: {{pipeline_parallel_degree: 2}}
checkpoint: {{folder: {folder}, {interval}}}
fault_tolerance: {{max_restarts: 5}}
"""

# Panels that stay empty on such a cluster, by their board.
NEEDS_GPU = "needs a GPU"
EMPTY = {
    "collectives": {"Bus bandwidth": NEEDS_GPU, "Time of device collectives": NEEDS_GPU,
                    "Time in device collectives": NEEDS_GPU,
                    "Bytes of device collectives": NEEDS_GPU},
    "stragglers": {"Reduced clocks": NEEDS_GPU, "Devices with errors": NEEDS_GPU,
                   "Slower implementations": "needs a fall-back"},
    "devices": {title: NEEDS_GPU for title in (
        "Health", "Age of the newest sample", "Errors reported by the driver", "Memory errors",
        "Replaced rank processes", "Utilisation", "Clock", "Memory", "Temperature", "Power",
        "Reduced clocks")},
    "checkpoints": {"Verified": "needs more checkpoints than are kept"},
}
# Expressions of panels that have others with data.
EMPTY_TARGETS = ("troupe_worker_messages_denied_total", "troupe_connections_refused_total")

# Metrics of jobs that the job "boards" may lack: its interval counts steps, and it may make too few
# checkpoints to verify one.
ABSENT_OF_JOB = {"troupe_checkpoint_interval_seconds", "troupe_checkpoint_verifications_total"}

DRAW_SECONDS = float(os.environ.get("TROUPE_DRAW_SECONDS", "0"))
# Steps between the checkpoints of the first job. In a long run, marks of many commits would hide
# the curves.
CHECKPOINT_INTERVAL = 5000 if DRAW_SECONDS else 50

SCRAPE_SECONDS = 1
WINDOW_SECONDS = 8  # of $__rate_interval


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    """A Prometheus in a folder of its own, which scrapes the processes of a cluster."""

    def __init__(self, cluster):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-prometheus-"))
        # A run is shorter than the interval of the rules.
        rules = (DASHBOARDS / "prometheus/rules.yaml").read_text()
        (self.folder / "rules.yaml").write_text(rules.replace("interval: '30s'", "interval: '1s'"))
        self.targets = cluster.directory / "prometheus_targets.json"
        self.port = free_port()

    def __enter__(self):
        configuration = {
            "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{"job_name": "troupe",
                                "file_sd_configs": [{"files": [str(self.targets)]}]}]}
        (self.folder / "prometheus.yaml").write_text(json.dumps(configuration))
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(
            [PROMETHEUS, f"--config.file={self.folder}/prometheus.yaml",
             f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            stdout=self.log, stderr=subprocess.STDOUT)
        wait_until(self.is_ready, "Prometheus is ready")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def get(self, path, **parameters):
        """Returns (data, error) of a call of the HTTP API; one of them is None."""
        query = urllib.parse.urlencode(parameters)
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"], None
        except urllib.error.HTTPError as error:
            return None, json.load(error)["error"]

    def samples(self, expression, begin):
        """Returns the number of values that the expression had since `begin`."""
        data, error = self.get("query_range", query=expression, start=begin, end=time.time(),
                               step=SCRAPE_SECONDS)
        if error:
            raise AssertionError(f"{expression}: {error}")
        return sum(1 for series in data["result"] for _, value in series["values"]
                   if value != "NaN")


@unittest.skipUnless(PROMETHEUS, "prometheus is not installed (Debian: prometheus)")
class MonitoringTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(workers=3)
        cls.addClassCleanup(cls.cluster.__exit__)
        # MFU needs the peak of the processor, which the table of known ones may lack.
        subprocess.run([BIN / "troupe-worker", "--measure-peak", "--even-if-busy", "--devices",
                        "cpu:1", "--data-dir", cls.cluster.directory], check=True,
                       capture_output=True, timeout=300)
        cls.cluster.up()
        cls.prometheus = Prometheus(cls.cluster)
        cls.addClassCleanup(cls.prometheus.__exit__)
        cls.prometheus.__enter__()
        cls.begin = time.time()
        cls.run_jobs()

    @classmethod
    def submit(cls, name, interval):
        path = cls.cluster.home / f"{name}.yaml"
        path.write_text(JOB.format(name=name, train=training_data(), interval=interval,
                                   folder=cls.cluster.home / name))
        return cls.cluster.json("submit", path)["name"]

    @classmethod
    def run_jobs(cls):
        """Lets a job train, lose a worker and train on, while another waits for devices."""
        job = cls.submit("boards", f"interval: {CHECKPOINT_INTERVAL}")
        waiting = cls.submit("waiting", "interval_seconds: 600")
        cls.wait_for_scrapes(job, 120)
        cls.wait_for_share(0.4)
        ranks = cls.cluster.describe(job)["ranks"]
        os.kill(cls.cluster.worker(ranks[0]["worker"])["pid"], signal.SIGKILL)
        restarts = 'troupe_job_restarts_total{job_name="boards"} > 0'
        wait_until(lambda: cls.prometheus.samples(restarts, cls.begin), "the recovery")
        recovered = cls.cluster.describe(job)["step"]
        cls.wait_for_scrapes(job, recovered + 200)
        cls.wait_for_share(0.65)
        cls.cluster.troupe("cancel", job, "--now")
        cls.wait_for_scrapes(waiting, 60)
        cls.wait_for_share(1)

    @classmethod
    def wait_for_share(cls, share):
        """Waits until this share of DRAW_SECONDS has passed since the begin."""
        end = cls.begin + share * DRAW_SECONDS
        wait_until(lambda: time.time() >= end, f"{share:.0%} of the run", DRAW_SECONDS + 1)

    @classmethod
    def wait_for_scrapes(cls, job, step):
        """Waits until Prometheus has seen the job at this step for the window of a rate."""
        cls.cluster.wait_for_step(job, step)
        name = job.removeprefix("jobs/")
        seen = f'min_over_time(troupe_job_step{{job_name="{name}"}}[{WINDOW_SECONDS}s]) >= {step}'
        wait_until(lambda: cls.prometheus.samples(seen, cls.begin), f"scrapes of {job} at {step}")

    def substituted(self, expression):
        window = int(time.time() - self.begin) + 1
        for name, value in (("$__rate_interval", f"{WINDOW_SECONDS}s"),
                            ("$__range", f"{window}s")):
            expression = expression.replace(name, value)
        return re.sub(r"\$(job_name|instance|gpu)\b", ".*", expression)

    def test_no_panel_that_should_have_data_is_empty(self):
        for name, board in boards().items():
            for panel in panels(board):
                expected_empty = EMPTY.get(name, {}).get(panel["title"])
                for target in panel["targets"]:
                    with self.subTest(board=name, panel=panel["title"], expr=target["expr"]):
                        found = self.prometheus.samples(self.substituted(target["expr"]),
                                                        self.begin)
                        if expected_empty is None and not any(metric in target["expr"]
                                                              for metric in EMPTY_TARGETS):
                            self.assertGreater(found, 0)

    def test_recoveries_and_commits_are_marked(self):
        for board in boards().values():
            for mark in board["annotations"]["list"]:
                with self.subTest(board=board["title"], mark=mark["name"]):
                    self.assertGreater(self.prometheus.samples(self.substituted(mark["expr"]),
                                                               self.begin), 0)

    def test_every_rule_is_evaluated(self):
        data, error = self.prometheus.get("rules")
        self.assertIsNone(error)
        rules = [rule for group in data["groups"] for rule in group["rules"]]
        self.assertGreater(len(rules), 15)
        for rule in rules:
            self.assertEqual((rule["health"], rule.get("lastError")), ("ok", None), rule["name"])
        for rule in rules:
            if rule["type"] == "recording" and not rule["name"].startswith("collective:bus"):
                with self.subTest(rule=rule["name"]):
                    self.assertGreater(self.prometheus.samples(rule["name"], self.begin), 0)

    def test_the_boards_are_drawn(self):
        python = environment()
        if python is None:
            self.skipTest("matplotlib cannot be installed from PyPI")
        with tempfile.TemporaryDirectory() as folder:
            output = os.environ.get("TROUPE_DRAW_BOARDS", folder)
            minutes = (time.time() - self.begin) / 60
            drawn = subprocess.run(
                [python, DASHBOARDS / "draw.py", "--prometheus",
                 f"http://127.0.0.1:{self.prometheus.port}", "--output", output, "--minutes",
                 str(minutes), "--window", str(WINDOW_SECONDS)],
                capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual((drawn.returncode, drawn.stderr), (0, ""))
            for name in boards():
                size = (pathlib.Path(output) / f"board-{name}.png").stat().st_size
                self.assertTrue(10_000 < size < 250_000, f"board-{name}.png has {size} bytes")

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_the_pages_keep_the_conventions_of_prometheus(self):
        info = self.cluster.info()
        for process in (info["coordinator"], info["workers"][0]):
            with urllib.request.urlopen(process["metrics"], timeout=10) as page:
                found = subprocess.run(["promtool", "check", "metrics"], input=page.read(),
                                       capture_output=True, check=False)
            self.assertEqual((found.returncode, found.stdout + found.stderr), (0, b""))

    def page(self, process):
        """Returns the lines of series on the page of a process."""
        with urllib.request.urlopen(process["metrics"], timeout=10) as page:
            return [line for line in page.read().decode().splitlines() if line[:1] != "#"]

    def test_a_job_has_all_its_series_and_not_too_many(self):
        of_job = [line for line in self.page(self.cluster.info()["coordinator"])
                  if 'job_name="boards"' in line]
        self.assertLessEqual(len(of_job), 400)
        found = {line.split("{")[0] for line in of_job}
        # Collectives are counted by workers.
        declared = {name for name, (_, labels) in declared_metrics().items()
                    if "job_name" in labels and "collective" not in name}
        self.assertEqual(declared - found - ABSENT_OF_JOB, set())

    def test_a_worker_has_not_too_many_series(self):
        for worker in self.cluster.info()["workers"]:
            series = self.page(worker)
            self.assertLessEqual(len(series), 300)
            names = {line.split("{")[0].split(" ")[0] for line in series}
            self.assertLessEqual({"troupe_build_info", "process_cpu_seconds_total"}, names)

    def test_the_phases_of_a_job_are_its_wall_time(self):
        spent = 'sum(increase(troupe_job_seconds_total{job_name="boards"}[10s]))'
        data, _ = self.prometheus.get("query_range", query=spent, start=self.begin,
                                      end=time.time(), step=1)
        values = [float(value) for series in data["result"] for _, value in series["values"]]
        self.assertGreater(max(values), 8)
        self.assertLess(max(values), 12)


if __name__ == "__main__":
    unittest.main()
