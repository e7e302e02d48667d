"""The client with a local cluster of real processes: the life of a job, a coordinator that is
killed in the middle of a watch, the examples, and TLS."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import troupe
from harness import BIN, TROUPE, Cluster, kill, run, training_data, wait_until
from tls_test import OpenCluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/python"
FIXTURES = ROOT / "tests/interop/fixtures"
LIMIT_SECONDS = 60
ONE_RANK = ""
ENDLESS = 1_000_000


def job_of(name, steps=12, **training):
    """Returns a job of one rank, as a mapping."""
    return {
        "name": name,
        "model": {"pattern": "AD", "hidden_size": 32, "num_attention_heads": 2},
        "data": {"train": training_data()},
        "training": {"steps": steps, "sequence_length": 16, "global_batch_size": 2, **training},
        "fault_tolerance": {"max_restarts": 5},
    }


class ClusterTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(workers=1))
        cls.address = cls.cluster.info()["coordinator"]["address"]
        cls.client = cls.enterClassContext(troupe.Client(cls.address))

    def steps(self, updates):
        return [update.step for update in updates if isinstance(update, troupe.StepEvent)]

    def is_deleted(self, name):
        try:
            self.client.delete(name, checkpoints=True)
        except troupe.FailedPrecondition:  # one of its ranks may still be running
            return False
        return True

    def test_a_job_file_is_planned_submitted_watched_and_measured(self):
        path = self.cluster.write_job("file", steps=8, parallelism=ONE_RANK)
        overrides = {"training.steps": 6}
        plan = self.client.plan(path, overrides=overrides)
        self.assertEqual([rank.worker for rank in plan.ranks], ["worker-0"])

        name = self.client.submit(path, request_id="r1", overrides=overrides)
        self.assertEqual(name, "jobs/file")
        self.assertEqual(self.client.submit(path, request_id="r1", overrides=overrides), name)
        with self.assertRaises(troupe.AlreadyExists):
            self.client.submit(path, request_id="r1")

        updates = list(self.client.watch(name))
        self.assertEqual(self.steps(updates), [1, 2, 3, 4, 5, 6])
        self.assertEqual(updates[-1], troupe.End(troupe.JobState.SUCCEEDED))
        self.assertEqual(self.steps(self.client.watch("file", from_step=5)), [5, 6])
        losses = [update.loss for update in updates if isinstance(update, troupe.StepEvent)]
        events = [update.event for update in updates if isinstance(update, troupe.JobEvent)]
        shown = self.cluster.watched(name)
        self.assertEqual(losses, [line["loss"] for line in shown if line["type"] == "step"])
        self.assertEqual(events, [line["event"] for line in shown if line["type"] == "event"])

        job, described = self.client.get(name), self.cluster.describe(name)
        self.assertEqual((job.state, job.step, job.steps), ("SUCCEEDED", 6, 6))
        self.assertEqual([each.path for each in job.checkpoints],
                         [each["path"] for each in described["checkpoints"]])
        self.assertEqual(job.spec.training.steps, 6)
        self.assertIsNone(job.failure)
        self.assertEqual(self.client.receipt(name), self.cluster.json("receipt", name))
        self.assertEqual(list(self.client.logs(name, rank=0)),
                         self.cluster.json("logs", name, "--rank", 0)["lines"])
        self.assertEqual([worker.name for worker in self.client.workers()], ["worker-0"])
        self.assertIn(name, [each.name for each in self.client.list(page_size=1)])

    def test_a_job_is_cancelled_with_a_checkpoint_resumed_and_deleted(self):
        name = self.client.submit(job_of("life", ENDLESS))
        for update in self.client.watch(name):
            if isinstance(update, troupe.StepEvent) and update.step >= 3:
                break
        with self.assertRaises(troupe.FailedPrecondition):
            self.client.delete(name)
        self.client.cancel(name, checkpoint=True)
        self.assertEqual(self.client.wait(name, LIMIT_SECONDS), troupe.JobState.CANCELLED)
        job = self.client.get(name)
        committed = job.checkpoints[-1]
        self.assertEqual((committed.state, committed.step), ("COMMITTED", job.step))

        self.client.resume(name, overrides={"training.steps": job.step + 3})
        self.assertEqual(self.client.wait(name, LIMIT_SECONDS), "SUCCEEDED")
        self.assertEqual(self.client.get(name).step, job.step + 3)
        wait_until(lambda: self.is_deleted(name), "the ranks have ended, and the job is deleted")
        self.assertFalse(pathlib.Path(committed.path).exists())
        with self.assertRaises(troupe.NotFound) as caught:
            self.client.get(name)
        self.assertEqual([each.field for each in caught.exception.violations], ["name"])

    def test_what_the_coordinator_refuses_is_named_by_field(self):
        job = job_of("refused", steps=5)
        job["model"]["num_attention_heads"] = 3
        job["optimizer"] = {"lr": -1}
        for refused in (self.client.submit, self.client.plan):
            with self.assertRaises(troupe.InvalidJob) as caught:
                refused(job)
            fields = [each.field for each in caught.exception.violations]
            self.assertIn("optimizer.lr", fields)
        with self.assertRaises(troupe.InvalidJob) as caught:
            self.client.submit({**job_of("a"), "name": "A b"})
        self.assertEqual([each.field for each in caught.exception.violations], ["name"])

    def test_a_watch_goes_on_when_the_coordinator_is_killed(self):
        name = self.client.submit(job_of("killed", steps=1500))
        updates, killed = [], None
        with self.assertLogs("troupe", "INFO") as logged:
            for update in self.client.watch(name):
                updates.append(update)
                if isinstance(update, troupe.StepEvent) and update.step == 5:
                    killed = self.cluster.info()["coordinator"]["pid"]
                    kill(killed)
        self.assertIn(f"the watch of {name} waits for the coordinator", logged.output[0])
        wait_until(lambda: self.cluster.info()["coordinator"]["pid"] != killed, "a new coordinator")
        self.assertEqual(updates[-1], troupe.End(troupe.JobState.SUCCEEDED))
        seen = [(update.group_epoch, update.step) for update in updates
                if isinstance(update, troupe.StepEvent)]
        self.assertEqual(len(seen), len(set(seen)), "an update came twice")
        self.assertEqual({step for _, step in seen}, set(range(1, 1501)))
        events = [update for update in updates if isinstance(update, troupe.JobEvent)]
        self.assertEqual(len(events), len(set(events)), "an event came twice")

    def test_calls_are_repeated_while_the_coordinator_restarts(self):
        kill(self.cluster.info()["coordinator"]["pid"])
        name = self.client.submit(job_of("restart", steps=2))
        kill(self.cluster.info()["coordinator"]["pid"])
        self.assertEqual(self.client.get(name).name, name)
        self.assertEqual(self.client.wait(name, LIMIT_SECONDS), "SUCCEEDED")

    def test_a_model_from_a_directory_is_that_of_the_command(self):
        folders = sorted(each.parent for each in FIXTURES.glob("*/config.json"))
        self.assertGreater(len(folders), 2)
        for folder in folders:
            name = f"from-{folder.name}"
            path = self.cluster.write_job(f"{name}-file", parallelism=ONE_RANK)
            text = path.read_text()
            path.write_text(re.sub(r"(?s)model: .*?\}", f"model: {{from: {folder}}}", text, 1))
            code, out, err = self.cluster.troupe("submit", path)
            self.assertEqual(code, 0, out + err)
            submitted = self.client.submit(path, overrides={"name": name})
            model = self.client.get(submitted).spec.model
            self.assertEqual(model, self.client.get(f"{name}-file").spec.model)
            self.assertEqual(getattr(model, "from_"), str(folder))
            self.assertGreater(self.client.plan(path).parameters, 0)
            for job in (name, f"{name}-file"):
                self.client.cancel(job)

    def test_checkpoints_exports_reports_and_traces_of_a_job_that_runs(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        # The steps are long enough that a trace still has those for which it waits.
        job = job_of("measured", ENDLESS, sequence_length=256, global_batch_size=16)
        name = self.client.submit({**job, "checkpoint": {"folder": str(home / "k")}})
        for update in self.client.watch(name):
            if isinstance(update, troupe.StepEvent) and update.step >= 2:
                break
        made = self.client.create_checkpoint(name)
        self.assertTrue(self.client.pin_checkpoint(name, made.step).pinned)
        self.assertEqual([(each.step, each.pinned) for each in self.client.checkpoints(name)],
                         [(made.step, True)])
        step = self.client.get(name).step + 20
        with unittest.mock.patch.dict(os.environ, TROUPE_BIN=str(BIN)):
            done = self.client.export(made, home / "export", dtype="bfloat16")
            page = self.client.report(name, home / "report.html")
            trace = self.client.trace(name, home / "trace.json", step, step + 1)
            with self.assertRaises(troupe.NotFound):
                self.client.report("none", home / "none.html")
        self.assertEqual(done["dtype"], "bfloat16")
        self.assertEqual(json.loads((home / "export/config.json").read_text())["hidden_size"], 32)
        self.assertIn("jobs/measured", pathlib.Path(page).read_text())
        self.assertIn("traceEvents", json.loads(pathlib.Path(trace).read_text()))
        self.client.cancel(name)

    def run_example(self, name, *arguments):
        done = subprocess.run([sys.executable, "-B", EXAMPLES / name, *map(str, arguments)],
                              env={**os.environ, "TROUPE_COORDINATOR": self.address,
                                   "TROUPE_DATA": str(training_data())}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_the_notebook_runs(self):
        output = self.run_example("notebook.py")
        self.assertIn("\n 20 ", output)
        self.assertIn("tokens/s on ['1 x ", output)

    def test_the_scheduler_task_follows_the_job_of_its_first_start(self):
        path = self.cluster.write_job("task", steps=4, parallelism=ONE_RANK)
        first = self.run_example("scheduler_task.py", path, "run-1")
        self.assertIn("Trained(job='jobs/task'", first)
        self.assertEqual(self.run_example("scheduler_task.py", path, "run-1"), first)


def has_tls():
    """Whether the programs of this build have TLS, and the command that issues certificates."""
    help_text = subprocess.run([BIN / "troupe-coordinator", "--help"], capture_output=True,
                               text=True, timeout=LIMIT_SECONDS).stdout
    return "--tls-dir" in help_text and run("certs", "--help")[0] == 0


@unittest.skipUnless(has_tls(), "the programs of this build have no TLS")
class InsecureClusterTest(unittest.TestCase):
    def test_a_coordinator_with_insecure_shows_it_to_the_client(self):
        cluster = OpenCluster()
        self.addCleanup(cluster.__exit__)
        cluster.start_coordinator()
        with troupe.Client(cluster.address) as client:
            with self.assertWarnsRegex(troupe.InsecureWarning, "every role"):
                self.assertEqual(list(client.list()), [])


class SecureClusterTest(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.certs("init", self.home / "authority")

    def certs(self, *arguments):
        code, out, err = run("certs", *arguments)
        self.assertEqual(code, 0, out + err)

    def issue(self, role, name):
        folder = self.home / f"{role}-{name}"
        self.certs("issue", self.home / "authority", "--role", role, "--name", name, "--output",
                   folder)
        return folder

    def start(self, *command, environment=None):
        log = self.home / "log"
        with open(log, "ab") as file:
            process = subprocess.Popen([str(part) for part in command], stdout=file, stderr=file,
                                       env={**os.environ, **(environment or {})})
        self.addCleanup(process.wait, 30)
        self.addCleanup(process.terminate)
        return process

    def start_coordinator(self, address):
        return self.start(BIN / "troupe-coordinator", "--listen", address, "--data-dir",
                          self.home / "c", "--detection-seconds", 10, "--tls-dir",
                          self.issue("coordinator", "main"))

    def start_cluster(self, failpoints=""):
        """Returns the address and the process of a coordinator; it has one worker, whose ranks
        have these failpoints."""
        with contextlib.closing(socket.socket()) as unused:
            unused.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{unused.getsockname()[1]}"
        coordinator = self.start_coordinator(address)
        self.start(BIN / "troupe-worker", "--coordinator", address, "--name", "w0", "--devices",
                   "cpu:1", "--data-dir", self.home / "w", "--host", "127.0.0.1", "--tls-dir",
                   self.issue("worker", "w0"), *(["--allow-failpoints"] if failpoints else []),
                   environment={"TROUPE_FAILPOINTS": failpoints} if failpoints else None)
        return address, coordinator

    def test_a_watch_and_a_submission_go_on_when_the_coordinator_is_killed(self):
        # Each step takes at least 20 ms, so that the job outlasts the restart.
        address, coordinator = self.start_cluster("step.begin=delay:20")
        job = {**job_of("killed", steps=100), "checkpoint": {"folder": str(self.home / "k")}}
        next_job = {**job_of("next", steps=2), "checkpoint": {"folder": str(self.home / "n")}}
        with troupe.Client(address, self.issue("submitter", "ann"), timeout=60) as client:
            name = client.submit(job)
            updates = client.watch(name)
            seen = []
            for update in updates:
                seen.append(update)
                if isinstance(update, troupe.StepEvent) and update.step == 5:
                    break
            kill(coordinator.pid)
            coordinator.wait(30)
            # The submission begins while there is no coordinator.
            back = threading.Timer(0.5, self.start_coordinator, (address,))
            back.start()
            submitted = client.submit(next_job)
            back.join()
            seen += updates
            self.assertEqual(seen[-1], troupe.End(troupe.JobState.SUCCEEDED))
            steps = [(update.group_epoch, update.step) for update in seen
                     if isinstance(update, troupe.StepEvent)]
            self.assertEqual(len(steps), len(set(steps)), "a step came twice")
            self.assertEqual({step for _, step in steps}, set(range(1, 101)))
            events = [update for update in seen if isinstance(update, troupe.JobEvent)]
            self.assertEqual(len(events), len(set(events)), "an event came twice")
            self.assertEqual(client.wait(submitted, LIMIT_SECONDS), "SUCCEEDED")
            self.assertEqual([each.name for each in client.list()].count(submitted), 1)

    def test_a_job_is_submitted_watched_and_cancelled_with_tls(self):
        address, _ = self.start_cluster()
        job = {**job_of("secure", steps=5), "checkpoint": {"folder": str(self.home / "k")}}
        with troupe.Client(address, self.issue("submitter", "ann"), timeout=60) as client:
            name = client.submit(job)
            updates = list(client.watch(name))
            self.assertEqual([update.step for update in updates
                              if isinstance(update, troupe.StepEvent)], [1, 2, 3, 4, 5])
            self.assertEqual(updates[-1], troupe.End(troupe.JobState.SUCCEEDED))
            self.assertEqual(client.wait(name, LIMIT_SECONDS), "SUCCEEDED")
            self.assertEqual(client.receipt(name)["job"], "jobs/secure")
            endless = client.submit({**job_of("endless", ENDLESS), "checkpoint":
                                     {"folder": str(self.home / "e")}})
            for update in client.watch(endless):
                if isinstance(update, troupe.StepEvent):
                    break
            client.cancel(endless)
            self.assertEqual(client.wait(endless, LIMIT_SECONDS), "CANCELLED")
        with troupe.Client(address, self.issue("viewer", "bob")) as client:
            self.assertEqual(client.get(name).state, "SUCCEEDED")
            with self.assertRaisesRegex(troupe.PermissionDenied, "DeleteJob"):
                client.delete(name)
        with troupe.Client(address, timeout=2) as client:
            with self.assertRaises(troupe.Unavailable):
                client.get(name)


if __name__ == "__main__":
    unittest.main()
