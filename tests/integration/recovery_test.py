"""Jobs that lose workers permanently, and a job that can never succeed."""

import os
import re
import signal
import subprocess
import unittest

from harness import BIN, Cluster, ClusterCase, kill, wait_until

# Each step takes at least 20 ms, so that a test's actions fall into the middle of a job.
SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:20"}
LONG = 100000  # steps of a job that is cancelled after the checks
SINGLE = "tensor_parallel_degree: 1"
DATA2 = "data_parallel_replicate_degree: 2"


class Recovery(ClusterCase):
    def lose_a_worker(self, cluster, name, allow_layout_change):
        """A job on both workers; one of them is killed and does not return while the supervisor is
        stopped."""
        path = cluster.write_job(name, steps=LONG, interval=10, parallelism=DATA2)
        allow = str(allow_layout_change).lower()
        code, _, err = cluster.troupe("submit", path, "--set",
                                      f"fault_tolerance.allow_layout_change={allow}")
        self.assertEqual(code, 0, err)
        wait_until(lambda: cluster.checkpoints(name), "a commit")
        os.kill(cluster.info()["supervisor"]["pid"], signal.SIGSTOP)
        kill(cluster.worker("worker-1")["pid"])

    def goes_on(self, cluster, job, ranks):
        """Waits until the job recovers with that many ranks and continues. Returns its last
        description and the watched events."""
        recovered = wait_until(lambda: (d := cluster.describe(job))["state"] == "RUNNING" and
                               d["restarts"] and d,
                               f"{job} running again")
        cluster.wait_for_step(job, recovered["step"] + 20)
        cluster.troupe("cancel", job, "--now")
        done = cluster.wait_for_state(job, "CANCELLED")
        self.assertEqual(done["restarts"], 1)
        watched = cluster.watched(job)
        events = [e["message"] for e in watched if e.get("event") == "RECOVERED"]
        self.assertEqual(len(events), 1)
        match = re.fullmatch(rf"{ranks} ranks? runs? from step (\d+)", events[0])
        self.assertTrue(match, events[0])
        self.assertGreater(int(match.group(1)), 10, "not from a commit")
        steps = [e["step"] for e in watched if e["type"] == "step"]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        return done

    def test_a_rank_whose_device_fails_is_replaced_by_another_process_and_the_cause_is_recorded(
            self):
        # The fault occurs in the sixth step of each process; the second process has only four
        # steps.
        faulty = {"TROUPE_FAILPOINTS": "step.device_fault=error@6;step.begin=delay:100"}
        with Cluster(workers=1, environment=faulty) as cluster:
            job = cluster.submit("faulty", steps=8, interval=4, parallelism=SINGLE)
            first = wait_until(lambda: (d := cluster.describe(job))["step"] >= 1 and d["ranks"][0],
                               "its first rank")
            worker = cluster.worker("worker-0")["pid"]
            done = cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual(done["restarts"], 1)
            self.assertNotEqual(done["ranks"][0]["pid"], first["pid"],
                                "the process that lost its device was used again")
            self.assertEqual(cluster.worker("worker-0")["pid"], worker,
                             "the daemon must outlive its rank")
            lost = [e["message"] for e in cluster.watched(job) if e.get("event") == "RANK_LOST"]
            self.assertEqual(len(lost), 1, lost)
            self.assertRegex(lost[0], "^DEVICE_FAULT: rank 0 on worker-0: .*step.device_fault")

    def test_with_allow_layout_change_a_job_goes_on_smaller(self):
        with Cluster(workers=2, environment=SLOW, detection_seconds=0.6) as cluster:
            try:
                self.lose_a_worker(cluster, "shrinks", True)
                done = self.goes_on(cluster, "shrinks", 1)
            finally:
                os.kill(cluster.info()["supervisor"]["pid"], signal.SIGCONT)
            self.assertEqual(done["layout"]["data_replicate"], 1)
            self.assertEqual([r["worker"] for r in done["ranks"]], ["worker-0"])
            # The same samples in the same order: the losses are those of a job that was small from
            # the start.
            losses = cluster.losses("shrinks")
            small = cluster.submit("small", steps=LONG, interval=0, parallelism=SINGLE)
            cluster.wait_for_step(small, len(losses))
            cluster.troupe("cancel", small, "--now")
            cluster.wait_for_state(small, "CANCELLED")
            expected = cluster.losses(small)
            for step, (loss, _) in losses.items():
                self.assertAlmostEqual(float(loss) / float(expected[step][0]), 1, delta=1e-5,
                                       msg=f"step {step}")

    def test_a_job_that_went_on_smaller_grows_back_at_a_step_boundary(self):
        with Cluster(workers=2, environment=SLOW, detection_seconds=0.5) as cluster:
            try:
                self.lose_a_worker(cluster, "grows", True)
                small = wait_until(lambda: (d := cluster.describe("grows"))["state"] == "RUNNING"
                                   and d["restarts"] and d,
                                   "the job running on one rank")
            finally:
                os.kill(cluster.info()["supervisor"]["pid"], signal.SIGCONT)
            self.assertEqual((small["layout"]["data_replicate"],
                              small["submitted_layout"]["data_replicate"]), (1, 2))
            self.assertFalse(cluster.json("receipt", "grows")["target_shape"]["reached"])
            # This happens forty detection times after worker-1 is back.
            grown = wait_until(lambda: (d := cluster.describe("grows"))
                               ["layout"]["data_replicate"] == 2 and
                               d["state"] == "RUNNING" and d, "the job on two ranks again")
            cluster.wait_for_step("grows", grown["step"] + 20)
            cluster.troupe("cancel", "grows", "--now")
            done = cluster.wait_for_state("grows", "CANCELLED")
            self.assertEqual(done["restarts"], 1)
            watched = cluster.watched("grows")
            epochs = {e["step"]: e["group_epoch"] for e in watched if e["type"] == "step"}
            self.assertEqual(sorted(epochs), list(range(1, len(epochs) + 1)))
            last_small = max(step for step, epoch in epochs.items() if epoch == 2)
            grew = [e["message"] for e in watched if e.get("event") == "GREW"]
            self.assertEqual(grew, [f"2 ranks run from step {last_small + 1}"],
                             "a step was repeated or left out")

    def test_without_it_the_job_waits_visibly_until_the_worker_is_back(self):
        with Cluster(workers=2, environment=SLOW, detection_seconds=0.6) as cluster:
            try:
                self.lose_a_worker(cluster, "waits", False)
                waiting = wait_until(
                    lambda: (d := cluster.describe("waits"))["waiting_for"] and
                    d["state"] == "RECOVERING" and d,
                    "the job waiting")
                self.assertRegex(waiting["waiting_for"],
                                 "2 ranks need 2 devices; (0 are|1 is) free")
                lost = lambda: {w["name"]: w["state"]
                                for w in cluster.json("workers")["workers"]}["worker-1"] == "LOST"
                wait_until(lost, "worker-1 LOST")
                # Another job uses the free device for longer than a job that may shrink would wait
                # (two detection times); this one still waits afterwards.
                between = cluster.submit("between", steps=80, interval=0, parallelism=SINGLE)
                cluster.wait_for_state(between, "SUCCEEDED")
                self.assertEqual(cluster.describe("waits")["state"], "RECOVERING")
            finally:
                os.kill(cluster.info()["supervisor"]["pid"], signal.SIGCONT)
            done = self.goes_on(cluster, "waits", 2)
            self.assertEqual(done["layout"]["data_replicate"], 2)

    def test_a_job_that_always_crashes_stops_after_its_budget_and_another_is_untouched(self):
        with Cluster(workers=1, environment=SLOW, detection_seconds=0.6) as cluster:
            steady = cluster.submit("steady", steps=200, interval=50, parallelism=SINGLE)
            cluster.wait_for_step(steady, 1)
            # All ranks of this worker die in their second step. The bad job needs two devices, so
            # any placement includes a rank there.
            log = (cluster.home / "odd.log").open("w")
            odd = subprocess.Popen(
                [BIN / "troupe-worker", "--coordinator", cluster.info()["coordinator"]["address"],
                 "--name", "odd",
                 "--devices", "cpu:2", "--data-dir", cluster.home / "odd",
                 "--allow-failpoints"],
                env={**os.environ, "TROUPE_FAILPOINTS": "step.begin=kill@2"}, stdout=log,
                stderr=log)
            try:
                path = cluster.write_job("crashes", steps=10, interval=0)
                code, _, err = cluster.troupe("submit", path, "--set",
                                              "fault_tolerance.max_restarts=2")
                self.assertEqual(code, 0, err)
                described = cluster.wait_for_state("crashes", "FAILED", limit_seconds=120)
                # A death may overtake the report of step 1. The next attempt's report then renews
                # the budget, because it is of a step beyond the highest one.
                self.assertIn(described["restarts"], (2, 3))
                self.assertEqual(described["failure"]["cause"], "RESTART_BUDGET")
                self.assertIn("RANK_CRASHED", described["failure"]["message"])
                ends = [e for e in cluster.watched("crashes") if e.get("event") == "FAILED"]
                self.assertEqual(len(ends), 1)
                self.assertEqual({w["name"]: w["state"]
                                  for w in cluster.json("workers")["workers"]},
                                 {"worker-0": "READY", "odd": "READY"})
                self.assertEqual(cluster.wait_for_state(steady, "SUCCEEDED")["restarts"], 0)
                self.assertEqual({e["group_epoch"] for e in cluster.watched(steady)
                                  if e["type"] == "step"}, {1})
            finally:
                odd.terminate()
                odd.wait(timeout=20)
                log.close()

    def test_a_host_whose_ranks_die_is_left_for_a_spare(self):
        with Cluster(workers=1, detection_seconds=0.6) as cluster:
            # This worker is first by name, and so the first choice; its ranks die in their second
            # step.
            log = (cluster.home / "bad.log").open("w")
            bad = subprocess.Popen(
                [BIN / "troupe-worker", "--coordinator", cluster.info()["coordinator"]["address"],
                 "--name", "bad",
                 "--devices", "cpu:1", "--data-dir", cluster.home / "bad",
                 "--allow-failpoints"],
                env={**os.environ, "TROUPE_FAILPOINTS": "step.begin=kill@2"}, stdout=log,
                stderr=log)
            try:
                ready = lambda: {w["name"] for w in cluster.json("workers")["workers"]
                                 if w["state"] == "READY"}
                wait_until(lambda: ready() == {"bad", "worker-0"}, "both workers")
                for name, restarts in (("first", 1), ("second", 0)):
                    cluster.submit(name, steps=6, interval=0, parallelism=SINGLE)
                    done = cluster.wait_for_state(name, "SUCCEEDED")
                    self.assertEqual([r["worker"] for r in done["ranks"]], ["worker-0"], name)
                    self.assertEqual(done["restarts"], restarts, name)
                lost = [e["message"] for e in cluster.watched("first")
                        if e.get("event") == "RANK_LOST"]
                self.assertEqual(len(lost), 1, lost)
                self.assertRegex(lost[0], "^RANK_CRASHED: rank 0 on bad")
            finally:
                bad.terminate()
                bad.wait(timeout=20)
                log.close()

    def submit_diverging(self, cluster, name, on_nonfinite):
        """The first update changes the weights so much that the second step's gradient is not
        finite."""
        path = cluster.write_job(name, steps=6, interval=0)
        code, _, err = cluster.troupe("submit", path, "--set", "optimizer.lr=1.0e30", "--set",
                                      "lr_schedule.warmup_steps=0", "--set",
                                      f"training.on_nonfinite={on_nonfinite}")
        self.assertEqual(code, 0, err)

    def test_a_gradient_that_is_not_finite_is_skipped_where_the_job_asks_for_it(self):
        with Cluster(workers=2) as cluster:
            self.submit_diverging(cluster, "skips", "skip_step")
            done = cluster.wait_for_state("skips", "SUCCEEDED")
            self.assertEqual((done["restarts"], done["step"]), (0, 6))
            steps = [e for e in cluster.watched("skips") if e["type"] == "step"]
            self.assertEqual([(s["step"], s.get("skipped", False)) for s in steps],
                             [(1, False), (2, True), (3, True), (4, True), (5, True), (6, True)])
            self.assertEqual(steps[1]["grad_norm"], "NaN")
            messages = [e["message"] for e in cluster.watched("skips")
                        if e.get("event") == "STEP_SKIPPED"]
            self.assertEqual(len(messages), 1)  # one message for five skips within ten seconds
            self.assertRegex(messages[0], r"^step 2: rank [01]: .* is not finite$")
            # The skipped updates were not applied: the weights are those after step 1, so every
            # loss is finite.
            for step in steps:
                self.assertLess(abs(step["loss"]), 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
