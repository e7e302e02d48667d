"""TroupeJobs and marks of pods: a coordinator with --kubernetes-jobs or --kubernetes-pods, and a
stand-in for the API server, which answers as version 1.36 does. The coordinator is killed in
between, and no job is created twice."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from api_stand_in import ApiStandIn, Refused
from harness import BIN, LIMIT_SECONDS, run, training_data, wait_until


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class TroupeJobCase(unittest.TestCase):
    purpose = "--kubernetes-jobs"

    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-kubernetes-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        (self.home / "checkpoints").mkdir()
        self.address = f"127.0.0.1:{free_port()}"
        self.processes = {}
        self.addCleanup(self.stop_all)
        self.api = self.make_api()
        self.addCleanup(self.api.stop)

    def make_api(self):
        return ApiStandIn()

    def start(self, name, *words, environment=None):
        with open(self.home / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [BIN / words[0], *words[1:]], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})})

    def start_coordinator(self, *flags):
        self.start("coordinator", "troupe-coordinator", "--listen", self.address, "--data-dir",
                   self.home / "catalog", "--checkpoint-root", self.home / "checkpoints",
                   "--detection-seconds", "1", self.purpose, "--kubernetes-api",
                   self.api.url, "--kubernetes-namespace", "troupe", *flags)

    def start_worker(self, name="worker-0"):
        # Each step takes at least 20 ms, so that the jobs outlast what a test does to them.
        self.start(name, "troupe-worker", "--coordinator", self.address, "--name", name,
                   "--devices", "cpu:1", "--data-dir", self.home / name, "--allow-failpoints",
                   environment={"TROUPE_FAILPOINTS": "step.begin=delay:20"})

    def end(self, name, number):
        process = self.processes.pop(name)
        process.send_signal(number)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop_all(self):
        for name in list(self.processes):
            self.end(name, signal.SIGTERM)

    def log(self):
        return (self.home / "coordinator.log").read_text(errors="replace")

    def job(self, steps=20, **keys):
        return {"model": {"pattern": "(AD)x2", "hidden_size": 64, "num_attention_heads": 4,
                          "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 259},
                "data": {"train": training_data()},
                "training": {"global_batch_size": 8, "micro_batch_size": 2, "sequence_length": 32,
                             "steps": steps, "seed": 7},
                "checkpoint": {"interval": 5}, **keys}

    def jobs(self):
        """Returns the catalog's jobs as {name: description}."""
        code, out, err = run("list", "--coordinator", self.address, "-o", "json")
        self.assertEqual(code, 0, out + err)
        return {job["name"].removeprefix("jobs/"): job for job in json.loads(out)["jobs"]}

    def audited(self, rpc):
        """Returns the identities and jobs of the recorded calls."""
        lines = (self.home / "catalog/audit.log").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        return [(record["identity"], record["target"]) for record in records
                if record.get("rpc", "").endswith("/" + rpc)]

    def wait_for_state(self, name, *states):
        try:
            return wait_until(lambda: self.api.status(name).get("state") in states,
                              f"{name} in {states}", LIMIT_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.api.get(name)}\n{self.log()[-4000:]}") from None

    def wait_for_log(self, text):
        wait_until(lambda: text in self.log(), f"'{text}' in the log")


class Lifecycle(TroupeJobCase):
    def test_a_job_is_created_suspended_resumed_and_deleted_across_kills_of_the_coordinator(self):
        self.start_coordinator()
        self.start_worker()
        self.api.apply("short", self.job(steps=6))
        self.wait_for_state("short", "SUCCEEDED")
        status = self.api.status("short")
        self.assertEqual((status["jobName"], status["step"], status["steps"]), ("short", 6, 6))
        self.assertGreater(float(status["loss"]), 0)
        self.assertEqual(self.api.condition("short", "Finished")["reason"], "Succeeded")
        self.assertIn(str(self.home / "checkpoints"), status["lastCheckpoint"])

        self.api.apply("long", self.job(steps=100_000))
        self.wait_for_state("long", "RUNNING", "CHECKPOINTING")
        self.end("coordinator", signal.SIGKILL)
        self.api.change("long", suspend=True)
        self.start_coordinator()
        self.wait_for_state("long", "SUSPENDED")
        self.assertEqual(self.jobs()["long"]["state"], "CANCELLED")
        stopped = self.api.status("long")
        self.assertIn("lastCheckpoint", stopped)
        self.assertEqual(self.api.condition("long", "Suspended")["reason"], "Stopped")

        self.end("coordinator", signal.SIGKILL)
        self.api.change("long", suspend=False)
        self.start_coordinator()
        self.wait_for_state("long", "RUNNING", "CHECKPOINTING")
        wait_until(lambda: self.jobs()["long"]["step"] > stopped["step"], "a further step")
        self.assertEqual(self.api.condition("long", "Suspended")["status"], "False")

        self.end("coordinator", signal.SIGKILL)
        self.api.delete("long")
        self.assertIsNotNone(self.api.get("long"))  # the finalizer keeps it
        self.start_coordinator()
        wait_until(lambda: self.api.get("long") is None, "the object is removed")
        self.assertEqual(set(self.jobs()), {"short"})
        self.assertEqual(self.audited("CreateJob"), [("submitters/kubernetes", "jobs/short"),
                                                     ("submitters/kubernetes", "jobs/long")])
        self.api.delete("short")
        self.assertIsNone(self.api.get("short"))  # it had ended, so nothing held it
        wait_until(lambda: not self.jobs(), "the ended job leaves the catalog")
        reasons = {event["reason"] for event in self.api.events}
        self.assertLessEqual({"Running", "Succeeded", "Suspended"}, reasons)

    def test_a_coordinator_killed_between_creation_and_record_creates_no_second_job(self):
        def refuse(method, path, body):
            if path.split("?")[0].endswith("/status") and body["status"].get("jobName"):
                raise Refused(503, "the server is currently unable to handle the request")

        self.api.refuse = refuse
        self.start_coordinator()
        self.api.apply("once", self.job())
        wait_until(lambda: self.processes["coordinator"].poll() is None and
                   self.api.count("PATCH", "/once/status") >= 2, "the job is created")
        self.end("coordinator", signal.SIGKILL)
        self.api.refuse = None
        self.start_coordinator()
        self.wait_for_state("once", "QUEUED")
        self.assertEqual(set(self.jobs()), {"once"})
        self.assertEqual(len(self.audited("CreateJob")), 1)


class Objects(TroupeJobCase):
    """Jobs that wait for a worker, which there is not."""

    def setUp(self):
        super().setUp()
        self.start_coordinator()

    def test_an_invalid_job_is_rejected_with_the_text_of_the_validation(self):
        self.api.apply("bad", {"trainig": {"steps": 3}})
        self.wait_for_state("bad", "REJECTED")
        message = self.api.condition("bad", "Accepted")["message"]
        self.assertIn("trainig", message)
        wait_until(lambda: any(event["type"] == "Warning" and event["reason"] == "Rejected"
                               for event in self.api.events), "an event")
        self.api.delete("bad")
        wait_until(lambda: self.api.get("bad") is None, "the object is removed")

    def test_a_job_that_is_suspended_from_the_start_is_created_when_it_is_resumed(self):
        self.api.apply("later", self.job(), suspend=True)
        self.wait_for_state("later", "SUSPENDED")
        self.assertEqual(self.jobs(), {})
        self.api.change("later", suspend=False)
        self.wait_for_state("later", "QUEUED")
        self.assertIn("waits for", self.api.condition("later", "Finished")["message"])

    def test_a_name_that_another_job_has_is_rejected_and_that_job_is_left_alone(self):
        self.api.apply("one", self.job(name="shared"))
        self.wait_for_state("one", "QUEUED")
        self.api.apply("two", self.job(name="shared"))
        self.wait_for_state("two", "REJECTED")
        self.api.delete("two")
        wait_until(lambda: self.api.get("two") is None, "the object is removed")
        self.assertEqual(self.jobs()["shared"]["state"], "QUEUED")

    def test_a_job_that_is_deleted_by_hand_is_not_created_again(self):
        self.api.apply("gone", self.job())
        self.wait_for_state("gone", "QUEUED")
        for words in (("cancel", "gone"), ("delete", "gone")):
            code, out, err = run(*words, "--coordinator", self.address)
            self.assertEqual(code, 0, out + err)
            if words[0] == "cancel":
                self.wait_for_state("gone", "CANCELLED")
        self.end("coordinator", signal.SIGKILL)
        self.start_coordinator()
        self.api.change("gone", cancelPolicy="Abort")
        wait_until(lambda: self.api.status("gone")["observedGeneration"] == 2, "it is observed")
        self.assertEqual(self.api.status("gone")["state"], "CANCELLED")
        self.assertEqual(self.jobs(), {})


class Faults(TroupeJobCase):
    def reconciles(self, name):
        """Whether a new object is followed: the proof that the controller lives."""
        self.api.apply(name, self.job())
        self.wait_for_state(name, "QUEUED")

    def test_watches_that_end_are_cut_or_are_too_old_lose_nothing(self):
        self.start_coordinator()
        self.reconciles("first")
        self.api.wait_for_watch()
        self.api.end_watches()
        self.reconciles("second")
        self.api.wait_for_watch()
        self.api.end_watches(cut=True)
        self.reconciles("third")
        lists = self.api.count("GET", "troupejobs$")
        self.api.forget_history()
        self.reconciles("fourth")
        self.assertGreater(self.api.count("GET", "troupejobs$"), lists)
        self.assertEqual(set(self.jobs()), {"first", "second", "third", "fourth"})

    def test_errors_of_the_server_are_waited_out(self):
        answers = [Refused(429, "too many requests", {"Retry-After": "1"}),
                   Refused(500, "etcdserver: leader changed"), Refused(503, "unavailable"),
                   Refused(413, "etcdserver: request is too large"),
                   Refused(409, "the object has been modified")]

        def refuse(method, path, body):
            if method == "PATCH" and answers:
                raise answers.pop()

        self.api.refuse = refuse
        self.start_coordinator()
        self.reconciles("patient")
        self.assertEqual(answers, [])
        self.assertIn("the object is too large for the API server", self.log())
        self.assertEqual(len(self.audited("CreateJob")), 1)

    def test_a_definition_that_is_absent_or_older_is_named_and_awaited(self):
        self.api.is_defined = False
        self.start_coordinator()
        self.wait_for_log("the API server has no resource troupejobs of troupe.dev/v1alpha1")
        self.api.is_defined = True
        self.api.status_fields.discard("conditions")
        self.api.apply("early", self.job())
        self.wait_for_log("the definition is of another version")
        self.assertEqual(self.jobs(), {})  # nothing is created whose name cannot be recorded
        self.api.status_fields.add("conditions")
        self.wait_for_state("early", "QUEUED")

    def test_a_status_that_is_dropped_is_named(self):
        self.api.drops_status = True
        self.start_coordinator()
        self.api.apply("mute", self.job())
        self.wait_for_log("the API server drops the status of TroupeJobs")
        self.assertEqual(self.jobs(), {})
        self.api.drops_status = False
        self.wait_for_state("mute", "QUEUED")

    def test_a_server_that_is_away_costs_the_coordinator_nothing(self):
        self.start_coordinator()
        self.reconciles("kept")
        self.api.stop()
        self.wait_for_log("the API server refuses or does not answer")
        self.assertEqual(set(self.jobs()), {"kept"})

    def test_flags_that_do_not_fit_end_with_the_reason(self):
        coordinator = [BIN / "troupe-coordinator", "--listen", "127.0.0.1:0", "--data-dir",
                       self.home / "other"]
        for flags, text in (
                (["--kubernetes-jobs"], "--kubernetes-jobs needs --kubernetes-api outside a pod"),
                (["--kubernetes-pods"], "--kubernetes-pods needs --kubernetes-api outside a pod"),
                (["--kubernetes-api", "https://127.0.0.1:1"],
                 "require --kubernetes-jobs or --kubernetes-pods"),
                (["--kubernetes-jobs", "--kubernetes-api", "http://10.0.0.1:80"],
                 "http is for the loopback only"),
                (["--kubernetes-jobs", "--kubernetes-api", "http://127.0.0.1:80@10.0.0.1:80"],
                 "is not a URL such as"),
                (["--kubernetes-jobs", "--kubernetes-api", "https://127.0.0.1:1",
                  "--kubernetes-account", self.home], "ca.crt"),
                (["--kubernetes-jobs", "--kubernetes-api", self.api.url,
                  "--kubernetes-namespace", "../../x"], "must be the name of a namespace"),
                (["--kubernetes-jobs", "--kubernetes-api", self.api.url,
                  "--kubernetes-account", self.home], "needs --kubernetes-namespace")):
            with self.subTest(flags):
                environment = {key: value for key, value in os.environ.items()
                               if not key.startswith("KUBERNETES_")}
                done = subprocess.run([*coordinator, *flags], capture_output=True, text=True,
                                      timeout=LIMIT_SECONDS, env=environment)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(text, done.stderr)


class Pods(TroupeJobCase):
    purpose = "--kubernetes-pods"
    BUSY = {"other": "kept", "controller.kubernetes.io/pod-deletion-cost": "1000",
            "karpenter.sh/do-not-disrupt": "true",
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    IDLE = {"other": "kept", "controller.kubernetes.io/pod-deletion-cost": "0"}

    def wait_for_marks(self, name, marks):
        wait_until(lambda: self.api.annotations(name) == marks, f"{name} has {marks}")

    def submit(self, name):
        path = self.home / f"{name}.json"
        path.write_text(json.dumps(self.job(steps=100_000, name=name)))
        code, out, err = run("submit", path, "--coordinator", self.address)
        self.assertEqual(code, 0, out + err)

    def test_pods_of_busy_workers_are_kept_and_those_of_idle_ones_are_not(self):
        answers = [Refused(503, "unavailable"), Refused(403, "pods is forbidden")]

        def refuse(method, path, body):
            if answers:
                raise answers.pop()

        self.api.refuse = refuse
        self.api.add_pod("worker-0")
        self.start_coordinator()
        self.start_worker("worker-0")
        self.wait_for_marks("worker-0", self.IDLE)
        self.assertEqual(answers, [])
        self.assertIn("pods cannot be marked as busy or idle: HTTP 403: pods is forbidden",
                      self.log())
        self.submit("first")
        self.wait_for_marks("worker-0", self.BUSY)

        self.start_worker("elsewhere-0")
        self.wait_for_log("worker elsewhere-0 has no pod in namespace troupe")
        self.end("coordinator", signal.SIGKILL)
        self.start_coordinator()
        code, out, err = run("cancel", "first", "--coordinator", self.address, "--now")
        self.assertEqual(code, 0, out + err)
        self.wait_for_marks("worker-0", self.IDLE)

        # Nothing is sent but what has changed: each coordinator asks once for the worker without
        # a pod, the first one writes two marks after two refusals, the second one two at most.
        self.assertLessEqual(self.api.count("PATCH", "/pods/elsewhere-0"), 2)
        self.assertLessEqual(self.api.count("PATCH", "/pods/worker-0"), 6)
        self.assertEqual(self.api.count("GET", ""), 0)


class Identities(TroupeJobCase):
    def test_namespaces_and_the_audit_log_know_the_submitter_kubernetes(self):
        authority, tls = self.home / "authority", self.home / "main"
        for words in (("init", authority, "--cluster", "lab"),
                      ("issue", authority, "--role", "coordinator", "--name", "main", "--output",
                       tls)):
            code, out, err = run("certs", *words)
            self.assertEqual(code, 0, out + err)
        namespaces = self.home / "namespaces.yaml"
        namespaces.write_text("""
namespaces:
  - {name: open, members: [submitter/kubernetes]}
  - {name: closed, members: [submitter/ann]}
""")
        self.start_coordinator("--tls-dir", tls, "--namespaces", namespaces)
        self.api.apply("open.run1", self.job())
        self.api.apply("closed.run1", self.job())
        self.wait_for_state("open.run1", "QUEUED")
        self.wait_for_state("closed.run1", "REJECTED")
        self.assertIn("closed", self.api.condition("closed.run1", "Accepted")["message"])
        caller = "spiffe://lab/submitter/kubernetes"
        self.assertIn((caller, "jobs/open.run1"), self.audited("CreateJob"))


class Tls(TroupeJobCase):
    """The API server has a certificate, and asks for a token."""

    def make_api(self):
        self.account = self.home / "account"
        self.account.mkdir()
        authority, server = self.home / "authority", self.home / "server"
        for words in (("init", authority, "--cluster", "lab"),
                      ("issue", authority, "--role", "coordinator", "--name", "api", "--host",
                       "127.0.0.1", "--output", server)):
            code, out, err = run("certs", *words)
            self.assertEqual(code, 0, out + err)
        shutil.copy(server / "ca.pem", self.account / "ca.crt")
        (self.account / "token").write_text("first\n")
        (self.account / "namespace").write_text("troupe")
        return ApiStandIn(tls=server, token="first")

    def test_the_server_is_verified_and_a_new_token_is_read(self):
        self.start_coordinator("--kubernetes-account", self.account)
        self.api.apply("safe", self.job())
        self.wait_for_state("safe", "QUEUED")
        self.api.token = "second"
        self.api.end_watches()
        self.wait_for_log("HTTP 401")
        (self.account / "token").write_text("second\n")
        self.api.apply("renewed", self.job())
        self.wait_for_state("renewed", "QUEUED")

    def test_a_server_with_a_foreign_certificate_is_refused(self):
        self.assertEqual(run("certs", "init", self.home / "foreign", "--cluster", "lab")[0], 0)
        shutil.copy(self.home / "foreign" / "ca.pem", self.account / "ca.crt")
        self.start_coordinator("--kubernetes-account", self.account)
        self.wait_for_log("SSL certificate problem")
        self.assertEqual(self.api.requests, [])


if __name__ == "__main__":
    unittest.main()
