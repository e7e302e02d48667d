"""Measurements: receipts and traces of jobs from real ranks, and the rates of a host."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from harness import BIN, LIMIT_SECONDS, Cluster, ClusterCase, kill, wait_until

# A process that keeps a core busy until its parent ends.
SPIN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def counted_fallbacks(worker):
    """Returns {kind: count} of troupe_kernel_fallbacks_total as a worker of `info` serves it."""
    with urllib.request.urlopen(worker["metrics"], timeout=10) as page:
        found = re.findall(r'^troupe_kernel_fallbacks_total\{operation="([^"]+)"\} (\d+)$',
                           page.read().decode(), re.M)
    return {kind: int(count) for kind, count in found}


class Receipts(ClusterCase):
    def test_a_receipt_states_what_was_measured_and_outlives_the_coordinator(self):
        with Cluster(workers=2) as cluster:
            job = cluster.submit("pipe", steps=20, interval=10,
                                 parallelism="pipeline_parallel_degree: 2")
            other = cluster.submit("gpipe", steps=20, interval=10, parallelism=(
                "pipeline_parallel_degree: 2, pipeline_parallel_schedule: GPipe"))
            unlike = cluster.submit("tensor", steps=20, interval=10,
                                    parallelism="tensor_parallel_degree: 2")
            for name in (job, other, unlike):
                cluster.wait_for_state(name, "SUCCEEDED")
            receipt = cluster.json("receipt", job)
            self.assertEqual(receipt["job"], job)
            self.assertEqual(receipt["topology"]["pipe"], 2)
            self.assertEqual(receipt["model_mix"],
                             {"pattern": "(AD)x2", "blocks": {"A": 2, "D": 2}})
            self.assertEqual(receipt["batch_geometry"], {"global_batch_size": 8,
                                                         "micro_batch_size": 2, "microbatches": 4,
                                                         "data_ranks": 1})
            self.assertEqual(receipt["precision"], {"intended": "float32", "executed": "float32"})
            self.assertEqual(receipt["compile"]["count"], 2)
            self.assertGreater(receipt["compile"]["seconds"], 0)
            self.assertEqual(receipt["warm_up"]["steps"], 3)
            steady = receipt["steady"]
            self.assertEqual(steady["steps"] + receipt["steps_apart"], 17)
            self.assertAlmostEqual(steady["tokens_per_second"],
                                   steady["steps"] * 256 / steady["seconds"], delta=1)
            self.assertGreater(steady["exposed_communication_seconds"]["pipe"], 0)
            self.assertGreater(steady["bubble"]["measured"], 0)
            self.assertGreater(steady["bubble"]["planned"], 0)
            self.assertEqual(receipt["fallbacks"], {})
            for worker in cluster.info()["workers"]:
                self.assertEqual(counted_fallbacks(worker), {})
            transports = receipt["environment"]["transports"]
            self.assertTrue(transports)
            for transport in transports:
                self.assertRegex(transport, r"^ucx [0-9.]+: (shared memory|TCP) \([^()]+\)$")
            self.assertTrue(receipt["target_shape"]["reached"])
            self.assertEqual(sum(receipt["write_method"].values()), 4)

            pid = cluster.info()["coordinator"]["pid"]
            kill(pid)
            wait_until(lambda: cluster.info()["coordinator"]["pid"] != pid,
                       "a new coordinator in cluster.json")
            wait_until(lambda: cluster.troupe("list")[0] == 0, "the coordinator serving again")
            self.assertEqual(cluster.json("receipt", job), receipt)

            ranked = cluster.json("receipt", job, "--compare", other)["ranking"]
            self.assertEqual({entry["job"] for entry in ranked}, {job, other})
            self.assertGreaterEqual(ranked[0]["tokens_per_second"], ranked[1]["tokens_per_second"])
            code, out, err = cluster.troupe("receipt", job, "--compare", unlike)
            self.assertEqual((code, out), (1, ""))
            self.assertIn("topology.pipe: 2 in the first, 1 in the second", err)
            self.assertEqual(cluster.troupe("receipt", "none")[0], 4)

    def test_another_transport_and_a_core_table_that_cannot_be_opened_are_fallbacks(self):
        environment = {"UCX_TLS": "tcp,self", "TROUPE_CORE_DIR": "/proc/no-core-table"}
        with Cluster(2, environment) as cluster:
            job = cluster.submit("job", steps=3, interval=0)
            cluster.wait_for_state(job, "SUCCEEDED")
            receipt = cluster.json("receipt", job)
            self.assertEqual(receipt["fallbacks"], {"cores": 2, "transport": 2})
            for kind in ("cores", "transport"):
                self.assertIn(f"2 fallbacks of {kind} to a slower implementation",
                              receipt["suspect"])
            for transport in receipt["environment"]["transports"]:
                self.assertRegex(transport, r"^ucx [0-9.]+: TCP \([^()]+\)$")
            for worker in cluster.info()["workers"]:
                wait_until(lambda w=worker: counted_fallbacks(w) == {"cores": 1, "transport": 1},
                           "the fallbacks of the worker's rank in its metrics", 10)


class Rates(unittest.TestCase):
    def spin(self):
        process = subprocess.Popen([sys.executable, "-c", SPIN])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def test_the_rates_of_a_busy_host_are_not_kept(self):
        for _ in os.sched_getaffinity(0):
            self.spin()
        with tempfile.TemporaryDirectory(prefix="troupe-test-") as folder:
            done = subprocess.run([BIN / "troupe-worker", "--measure-peak", "--devices", "cpu:1",
                                   "--data-dir", folder], capture_output=True, text=True,
                                  timeout=LIMIT_SECONDS)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, r"other programs used [0-9.]+ of \d+ cores")
            self.assertIn("add --even-if-busy", done.stderr)
            self.assertEqual((done.stdout, os.listdir(folder)), ("", []))


class Traces(ClusterCase):
    def lanes(self, trace, rank):
        return {event["tid"]: event["args"]["name"] for event in trace["traceEvents"]
                if event["ph"] == "M" and event["name"] == "thread_name" and event["pid"] == rank}

    def complete(self, trace, rank):
        return [event for event in trace["traceEvents"] if event["ph"] == "X" and
                event["pid"] == rank]

    def read(self, cluster, job, steps):
        path = cluster.home / "trace.json"
        summary = cluster.json("trace", job, "--steps", steps, "--output", path)
        trace = json.loads(path.read_text())
        self.assertEqual(summary["events"], len(trace["traceEvents"]))
        return trace

    def test_steps_that_were_made_are_shown_with_their_actions_collectives_and_saves(self):
        with Cluster(workers=2) as cluster:
            job = cluster.submit("ended", steps=12, interval=4,
                                 parallelism="pipeline_parallel_degree: 2")
            cluster.wait_for_state(job, "SUCCEEDED")
            trace = self.read(cluster, job, "3:5")
            for rank in (0, 1):
                events = self.complete(trace, rank)
                names = {event["name"] for event in events}
                for step in (3, 4, 5):
                    self.assertIn(f"step {step}", names)
                    actions = {event["name"] for event in events if event["args"]["step"] == step}
                    for action in [f"{letter}{rank}.{m}" for letter in "FB" for m in range(4)]:
                        self.assertIn(action, actions)
                self.assertNotIn("step 6", names)
                self.assertIn("write checkpoint", names)  # after step 4
                self.assertLessEqual({"compute", "checkpoint", "pipe (pipe)"},
                                     set(self.lanes(trace, rank).values()))
                steps = {event["args"]["step"]: event
                         for event in events if event["name"].startswith("step ")}
                for event in events:
                    self.assertGreaterEqual(event["dur"], 0)
                    if event["tid"] != 0 or event["name"].startswith("step "):
                        continue
                    step = steps[event["args"]["step"]]  # an action is within its step
                    self.assertGreaterEqual(event["ts"], step["ts"] - 1)
                    self.assertLessEqual(event["ts"] + event["dur"], step["ts"] + step["dur"] + 1)
            self.assertEqual([clock["rank"] for clock in trace["otherData"]["clocks"]], [0, 1])
            # A stage's forward follows that of the previous stage, on the clock that both share.
            first, second = ({event["name"]: event for event in self.complete(trace, rank)
                              if event["args"]["step"] == 4} for rank in (0, 1))
            self.assertGreaterEqual(second["F1.0"]["ts"], first["F0.0"]["ts"])

            code, _, err = cluster.troupe("trace", job, "--steps", "12:13", "--output", "/dev/null")
            self.assertEqual(code, 2)
            self.assertIn("training.steps 12", err)
            self.assertEqual(cluster.troupe("trace", job, "--steps", "x", "--output",
                                            "/dev/null")[0], 2)

    def test_steps_to_come_are_waited_for_and_show_their_operations(self):
        with Cluster(workers=2,
                     environment={"TROUPE_FAILPOINTS": "step.begin=delay:20"}) as cluster:
            job = cluster.submit("running", steps=2000, interval=0)
            cluster.wait_for_step(job, 2)
            step = cluster.describe(job)["step"] + 20
            trace = self.read(cluster, job, f"{step}:{step + 1}")
            for rank in (0, 1):
                self.assertIn("tensor (tensor)", self.lanes(trace, rank).values())
                operations = [event for event in self.complete(trace, rank) if event["tid"] == 1]
                self.assertTrue(any(event["name"].startswith("matmul ") for event in operations))
                self.assertEqual({event["args"]["step"] for event in operations}, {step, step + 1})
                collectives = [event for event in self.complete(trace, rank) if event["tid"] >= 10]
                self.assertTrue(all(event["args"]["bytes"] > 0 for event in collectives))
            self.assertEqual(cluster.troupe("cancel", job, "--now")[0], 0)
            code, _, err = cluster.troupe("trace", job, "--steps", "1990:2000", "--output",
                                          "/dev/null")
            self.assertEqual(code, 1, err)
            self.assertIn("completed steps up to", err)


if __name__ == "__main__":
    unittest.main()
