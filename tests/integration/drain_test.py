"""Workers that drain: by SIGTERM, by a spot notice, and by `troupe workers drain`."""

import contextlib
import datetime
import http.server
import json
import os
import signal
import subprocess
import threading
import unittest

from harness import BIN, TROUPE, Cluster, ClusterCase, wait_until

STEPS = 1500


class DrainCluster(Cluster):
    """A local cluster with one worker, and more workers with a time to drain."""

    def __init__(self, names, drain_seconds=60, flags_of_first=()):
        super().__init__(workers=1)
        self.names = names
        self.drain_seconds = drain_seconds
        self.flags_of_first = flags_of_first
        self.processes = {}

    def __enter__(self):
        super().__enter__()
        for name in self.names:
            with open(self.home / f"{name}.log", "ab") as log:
                self.processes[name] = subprocess.Popen(
                    [BIN / "troupe-worker", "--coordinator",
                     self.info()["coordinator"]["address"], "--name", name, "--devices", "cpu:1",
                     "--host", "127.0.0.1", "--data-dir", self.home / name, "--log-dir",
                     self.directory / "logs", "--drain-seconds", str(self.drain_seconds),
                     *(self.flags_of_first if name == self.names[0] else ())],
                    stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        wait_until(lambda: list(self.states().values()).count("READY") == len(self.names) + 1,
                   "all workers")
        return self

    def __exit__(self, *arguments):
        for process in self.processes.values():
            process.kill()
            process.wait(timeout=20)
        super().__exit__(*arguments)

    def states(self):
        return {w["name"]: w["state"] for w in self.json("workers")["workers"]}

    def undisturbed_losses(self):
        whole = self.submit("whole", steps=STEPS, interval=0)
        self.wait_for_state(whole, "SUCCEEDED", limit_seconds=120)
        return self.losses(whole)

    def workers_of(self, job):
        return {rank["worker"] for rank in self.describe(job)["ranks"]}

    def watch(self, job):
        """Follows the job from its first step; communicate() returns what it printed."""
        return subprocess.Popen([TROUPE, "watch", job, "--data-dir", self.directory, "-o", "json"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


class MetadataOfAws(http.server.BaseHTTPRequestHandler):
    """The metadata service of AWS as far as spot notices need it; the server has `notice`, an
    event."""

    def answer(self, code, text):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        is_token = (self.path == "/latest/api/token" and
                    self.headers["X-aws-ec2-metadata-token-ttl-seconds"])
        self.answer(*(200, "secret") if is_token else (400, ""))

    def do_GET(self):
        if self.headers["X-aws-ec2-metadata-token"] != "secret":
            return self.answer(401, "")
        if self.path != "/latest/meta-data/spot/instance-action" or not self.server.notice.is_set():
            return self.answer(404, "")
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=2)
        return self.answer(200, json.dumps({"action": "terminate",
                                            "time": end.strftime("%Y-%m-%dT%H:%M:%SZ")}))

    def log_message(self, *_):
        """Prints nothing."""


@contextlib.contextmanager
def metadata_service():
    """Yields (URL, event that makes the service give notice)."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), MetadataOfAws) as server:
        server.notice = threading.Event()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", server.notice
        finally:
            server.shutdown()
            thread.join()


class Drain(ClusterCase):
    def assert_moved(self, cluster, job, watching, expected):
        """Asserts that the job ended after one move: no step was repeated, and each has the same
        numbers as in `expected`."""
        done = cluster.wait_for_state(job, "SUCCEEDED", limit_seconds=120)
        self.assertEqual((done["restarts"], done["moves"]), (0, 1))
        out, _ = watching.communicate(timeout=60)
        lines = [json.loads(line) for line in out.splitlines()]
        steps = [line["step"] for line in lines if line["type"] == "step"]
        self.assertEqual(steps, list(range(1, STEPS + 1)))
        self.assertEqual({line["group_epoch"] for line in lines if line["type"] == "step"}, {1, 2})
        self.assertEqual(cluster.losses(job), expected)
        self.assertIn("MOVED", [line.get("event") for line in lines])
        self.assert_committed_checkpoints_verify(cluster, job)

    def assert_moves_after(self, send_sigterm):
        """Sends SIGTERM to one of a job's workers, and asserts that the job moves."""
        with DrainCluster(["first", "second"]) as cluster:
            expected = cluster.undisturbed_losses()
            job = cluster.submit("moved", steps=STEPS, interval=0)
            with cluster.watch(job) as watching:
                cluster.wait_for_step(job, 20)
                before = cluster.workers_of(job)
                leaves = sorted(before & set(cluster.names))[0]
                send_sigterm(cluster.processes[leaves])
                self.assertEqual(cluster.processes[leaves].wait(timeout=60), 0)
                self.assertLess(cluster.describe(job)["step"], STEPS, "it had not ended before")
                self.assert_moved(cluster, job, watching, expected)
            self.assertEqual(len(cluster.workers_of(job) - {leaves}), 2)

    def test_a_job_moves_to_the_spare_worker_when_one_of_its_own_gets_sigterm(self):
        self.assert_moves_after(lambda worker: worker.send_signal(signal.SIGTERM))

    def test_a_job_moves_when_a_whole_process_group_gets_sigterm(self):
        # As from systemd without KillMode=mixed: the ranks get the signal too.
        self.assert_moves_after(lambda worker: os.killpg(worker.pid, signal.SIGTERM))

    def test_a_job_moves_at_a_spot_notice(self):
        with metadata_service() as (url, notice), \
                DrainCluster(["first"],
                             flags_of_first=("--spot-notice", "aws", "--metadata-url", url)) as c:
            job = c.submit("moved", steps=100000, interval=0,
                           parallelism="tensor_parallel_degree: 1")
            c.wait_for_step(job, 20)
            self.assertEqual(c.workers_of(job), {"first"}, "it is first by name")
            notice.set()
            self.assertEqual(c.processes["first"].wait(timeout=60), 0)
            wait_until(lambda: c.workers_of(job) == {"worker-0"}, "the job moves")
            described = c.wait_for_state(job, "RUNNING")
            self.assertEqual((described["restarts"], described["moves"]), (0, 1), c.logs())
            c.troupe("cancel", job, "--now")

    def test_wrong_flags_are_refused(self):
        for flags, error in (
                (["--spot-notice", "here"], '--spot-notice is "here", must be aws, gcp or azure'),
                (["--metadata-url", "http://h"], "--metadata-url has no effect without"),
                (["--spot-notice", "aws", "--metadata-url", "h:1"], "must begin with http://"),
                (["--spot-notice", "aws", "--metadata-url", "http://"], "such as http://HOST:PORT"),
                (["--spot-notice", "aws", "--metadata-url", "http://:80/latest"],
                 '--metadata-url is "http://:80/latest", must be a URL such as http://HOST:PORT'),
                (["--spot-notice", "aws", "--metadata-url", "http://h:99999"],
                 '--metadata-url is "http://h:99999", its port must be a number from 1 to 65535'),
                (["--spot-notice", "aws", "--metadata-url", "http://h/\r\nX: y"],
                 "has the control character U+000D"),
                (["--spot-notice", "aws", "--metadata-url", "http://user:hidden@h"],
                 "--metadata-url has an @, must be a URL without a user"),
                (["--drain-seconds", "-1"], "--drain-seconds")):
            done = subprocess.run(
                [BIN / "troupe-worker", "--coordinator", "127.0.0.1:1", "--name", "w", "--devices",
                 "cpu:1", *flags], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(error, done.stderr)
            self.assertNotIn("hidden", done.stderr)

    def test_an_operator_drains_a_worker_and_returns_it(self):
        with DrainCluster(["first", "second"]) as cluster:
            expected = cluster.undisturbed_losses()
            job = cluster.submit("moved", steps=STEPS, interval=0)
            with cluster.watch(job) as watching:
                cluster.wait_for_step(job, 20)
                leaves = sorted(cluster.workers_of(job))[0]
                drained = cluster.json("workers", "drain", leaves, "--reason", "a new kernel")
                self.assertEqual(drained["state"], "DRAINING")
                cluster.troupe("workers", "drain", leaves)
                self.assert_moved(cluster, job, watching, expected)
            self.assertNotIn(leaves, cluster.workers_of(job))
            self.assertEqual(cluster.states()[leaves], "DRAINING", "it stays")
            self.assertEqual(cluster.json("workers", "undrain", leaves)["state"], "READY")
            code, _, err = cluster.troupe("workers", "drain", "third")
            self.assertEqual((code, err), (4, 'troupe: name is "third": there is no such worker\n'))

    def test_a_cluster_with_a_drained_worker_starts_again(self):
        with Cluster(workers=1) as cluster:
            cluster.json("workers", "drain", "worker-0", "--reason", "a new disk")
            self.assertEqual(cluster.down()[0], 0)
            cluster.up()
            worker, = cluster.json("workers")["workers"]
            self.assertEqual((worker["state"], worker["drain"]["reason"]),
                             ("DRAINING", "a new disk"))

    def test_a_second_sigterm_ends_a_worker_whose_job_cannot_move(self):
        with DrainCluster(["first"], drain_seconds=3600) as cluster:
            path = cluster.write_job("stays", steps=1000000, interval=0,
                                     parallelism="tensor_parallel_degree: 1")
            code, _, err = cluster.troupe("submit", path, "--set", 'checkpoint.folder=""')
            self.assertEqual(code, 0, err)
            cluster.wait_for_step("stays", 5)
            self.assertEqual(cluster.workers_of("stays"), {"first"}, "it is first by name")
            worker = cluster.processes["first"]
            worker.send_signal(signal.SIGTERM)
            wait_until(lambda: cluster.states()["first"] == "DRAINING", "it drains")
            reached = cluster.describe("stays")["step"]
            cluster.wait_for_step("stays", reached + 5)
            self.assertIsNone(worker.poll(), "its job trains on")
            self.assertIn("jobs/stays stays: it has no checkpoint.folder",
                          cluster.troupe("workers")[1])
            worker.send_signal(signal.SIGTERM)
            self.assertEqual(worker.wait(timeout=20), 0)
            wait_until(lambda: cluster.workers_of("stays") == {"worker-0"}, "the job recovers")
            cluster.troupe("cancel", "stays")


if __name__ == "__main__":
    unittest.main()
