"""The main job from a user's perspective: submit, watch, describe, cancel, resume, logs, second
jobs, restarts."""

import json
import os
import re
import signal
import subprocess
import time
import unittest
import urllib.request

from harness import ROOT, TROUPE, Cluster, ClusterCase, alive, kill, run, training_data, wait_until


# Each step takes at least 20 ms, so that a test's actions fall into the middle of a job.
SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:20"}


class MainJob(ClusterCase):
    def test_six_layouts_as_real_processes_agree_with_a_single_rank(self):
        with Cluster(workers=4) as cluster:
            single = cluster.submit("single", steps=20, parallelism="tensor_parallel_degree: 1")
            cluster.wait_for_state(single, "SUCCEEDED")
            expected = cluster.losses(single)
            layouts = [(1, 2, 1), (1, 1, 2), (2, 1, 1), (2, 2, 1), (1, 2, 2), (2, 1, 2)]
            for data, tensor, pipe in layouts:
                with self.subTest(data=data, tensor=tensor, pipe=pipe):
                    job = cluster.submit(f"layout-{data}-{tensor}-{pipe}", steps=20, parallelism=(
                        f"data_parallel_replicate_degree: {data}, tensor_parallel_degree: {tensor},"
                        f" pipeline_parallel_degree: {pipe}"))
                    cluster.wait_for_state(job, "SUCCEEDED")
                    losses = cluster.losses(job)
                    self.assertEqual(sorted(losses), list(range(1, 21)))
                    for step, (loss, norm) in losses.items():
                        want_loss, want_norm = map(float, expected[step])
                        self.assertAlmostEqual(float(loss) / want_loss, 1, delta=1e-6,
                                               msg=f"loss of step {step}")
                        self.assertAlmostEqual(float(norm) / want_norm, 1, delta=1e-5,
                                               msg=f"norm of step {step}")

    def test_history_stays_readable_after_the_end_and_after_a_coordinator_restart(self):
        with Cluster(workers=1) as cluster:
            job = cluster.submit("history", parallelism="tensor_parallel_degree: 1")
            cluster.wait_for_state(job, "SUCCEEDED")
            before = cluster.losses(job)
            self.assertEqual(sorted(before), list(range(1, 13)))
            pid = cluster.info()["coordinator"]["pid"]
            kill(pid)
            wait_until(lambda: cluster.info()["coordinator"]["pid"] != pid,
                       "a new coordinator in cluster.json")
            wait_until(lambda: cluster.troupe("list")[0] == 0, "the coordinator serving again")
            self.assertEqual(cluster.losses(job), before)

    def test_describe_names_ranks_layout_and_checkpoints(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("describe", steps=40, interval=10)
            cluster.wait_for_step(job, 1)
            described = cluster.describe(job)
            self.assertEqual(described["layout"]["tensor"], 2)
            self.assertEqual([r["rank"] for r in described["ranks"]], [0, 1])
            self.assertEqual({r["worker"] for r in described["ranks"]}, {"worker-0", "worker-1"})
            for rank in described["ranks"]:
                self.assertTrue(alive(rank["pid"]))
            self.assertEqual(described["steps"], 40)
            self.assertIsNone(described["failure"])
            done = cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual([c["step"] for c in done["checkpoints"]], [10, 20, 30, 40])
            self.assertEqual(done["step"], 40)
            code, out, err = cluster.troupe("describe", job)
            self.assertEqual(code, 0, err)
            summary, ranks, checkpoints = out.split("\n\n")
            self.assertIn(f"{job}: SUCCEEDED, step 40 of 40\n", summary)
            self.assertRegex(summary, r"layout +2 ranks, tensor 2\n")
            self.assertRegex(summary, r"speed +\d+ tokens/s, loss [\d.]+.* at step 40\n")
            self.assertRegex(summary, r"last checkpoint +step 40, /")
            self.assertRegex(ranks, r"\n +1 +worker-[01] +\d+ +(\d+ +)?tensor 1")
            self.assertEqual(re.findall(r"^ *(\d+) +COMMITTED ", checkpoints, re.MULTILINE),
                             ["10", "20", "30", "40"])
            code, out, err = cluster.troupe("list")
            self.assertEqual(code, 0, err)
            self.assertRegex(out, r"^NAME +STATE +STEP +DONE +LOSS +AGE\n"
                                  rf"{job} +SUCCEEDED +40/40 +100% +\d+\.\d{{4}} +\d+ \w+\n$")
            self.assertEqual(cluster.troupe("list", "--state", "QUEUED")[1:],
                             ("", "the only job is not QUEUED\n"))
            code, out, err = cluster.troupe("logs", job, "--tail", 1)
            self.assertEqual((code, out.count("\n")), (0, 1), err)
            code, out, err = cluster.troupe("logs", job, "-f")
            self.assertEqual(code, 0, err)
            times = re.findall(r"^(\S+Z) \w rank ", out, re.MULTILINE)
            self.assertTrue(times)
            self.assertEqual(times, sorted(times), "two ranks in the order of time")

    def test_cancel_with_checkpoint_then_resume_goes_on_from_there(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            whole = cluster.submit("whole", steps=2000, interval=0)
            cluster.wait_for_step(whole, 20)
            code, out, err = cluster.troupe("cancel", whole, "--checkpoint", "-o", "json")
            self.assertEqual(code, 0, err)
            stopped = cluster.wait_for_state(whole, "CANCELLED")
            step = stopped["checkpoints"][-1]["step"]
            self.assertGreaterEqual(step, 20)
            self.assertLess(step, 2000)
            code, out, err = cluster.troupe("resume", whole, "-o", "json")
            self.assertEqual(code, 0, err)
            cluster.wait_for_step(whole, step + 5)
            code, out, err = cluster.troupe("cancel", whole)
            self.assertEqual((code, out), (0, "jobs/whole CANCELLED\n"), err)
            ended = cluster.describe(whole)
            self.assertEqual(ended["checkpoints"][-1]["step"], ended["step"], "it has committed")
            self.assertEqual(sorted(cluster.losses(whole))[:step + 5], list(range(1, step + 6)))

    def test_checkpoints_create_takes_effect_inside_a_granted_window(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("asked", steps=3000, interval=0)
            cluster.wait_for_step(job, 3)
            cluster.json("checkpoints", "create", job)
            listed = cluster.checkpoints(job)
            self.assertEqual(len(listed), 1)
            self.assertEqual(listed[0]["state"], "COMMITTED")
            self.assertLess(listed[0]["step"], 3000)
            self.assertTrue(os.path.isabs(listed[0]["path"]))
            self.assert_committed_checkpoints_verify(cluster, job)
            cluster.troupe("cancel", job, "--now")

    def test_training_goes_on_while_the_coordinator_is_down(self):
        steps = 1200  # at 20 ms each: the outage ends before the job
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("outage", steps=steps, interval=0)
            with (cluster.home / "watched").open("w") as output:
                watching = subprocess.Popen([TROUPE, "watch", job, "-o", "json", "--data-dir",
                                             str(cluster.directory)],
                                            stdout=output, stderr=subprocess.DEVNULL)
            cluster.wait_for_step(job, 3)
            info = cluster.info()
            # It would restart the coordinator within a second.
            os.kill(info["supervisor"]["pid"], signal.SIGSTOP)
            try:
                before = cluster.describe(job)
                kill(info["coordinator"]["pid"])
                ranks = [r["pid"] for r in before["ranks"]]
                end = time.monotonic() + 20
                wait_until(lambda: time.monotonic() > end, "twenty seconds", 30)
                self.assertTrue(all(alive(pid) for pid in ranks))
                self.assertIsNone(watching.poll(), "the watcher gave up")
            finally:
                os.kill(info["supervisor"]["pid"], signal.SIGCONT)
            wait_until(lambda: cluster.troupe("list")[0] == 0, "the coordinator serving again")
            after = cluster.wait_for_state(job, "RUNNING", "SUCCEEDED")
            self.assertEqual(after["restarts"], 0)
            self.assertEqual(after["group_epoch"], before["group_epoch"])
            self.assertEqual([r["pid"] for r in after["ranks"]], ranks)
            # A step takes at least 20 ms: 250 steps are possible since then, 400 were made during
            # the outage.
            wait_until(lambda: cluster.describe(job)["step"] > before["step"] + 400,
                       "the outage's reports", 5)
            # The same watcher sees everything, each step once and in order.
            cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual(watching.wait(timeout=30), 0)
            watched = [json.loads(line)
                       for line in (cluster.home / "watched").read_text().splitlines()]
            self.assertEqual([line["step"] for line in watched if line["type"] == "step"],
                             list(range(1, steps + 1)))
            self.assertEqual(watched[-1], {"type": "end", "state": "SUCCEEDED"})

    def test_a_second_job_waits_visibly_and_then_runs(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            first = cluster.submit("first", steps=60, interval=0)
            second = cluster.submit("second", steps=4, interval=0)
            waiting = cluster.describe(second)
            self.assertEqual(waiting["state"], "QUEUED")
            self.assertIn("2", waiting["waiting_for"])
            cluster.wait_for_state(first, "SUCCEEDED")
            cluster.wait_for_state(second, "SUCCEEDED")

    def test_the_python_client_generated_from_proto_alone_submits_and_watches(self):
        python = ROOT / ".venv/bin/python"
        if not python.exists():
            self.skipTest("no .venv: ./run test installs grpcio-tools there")
        with Cluster(workers=2) as cluster:
            done = subprocess.run(
                [python, ROOT / "examples/python/submit_and_watch.py", "--coordinator",
                 cluster.info()["coordinator"]["address"], "--train", training_data(), "--steps",
                 "5"],
                capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(re.findall(r"^step (\d+)", done.stdout, re.M),
                             ["1", "2", "3", "4", "5"])
            self.assertIn("end SUCCEEDED", done.stdout)

    def test_metrics_of_coordinator_and_workers(self):
        with Cluster(workers=2) as cluster:
            job = cluster.submit("metrics", steps=10, interval=5)
            cluster.wait_for_state(job, "SUCCEEDED")

            def scrape(url):
                with urllib.request.urlopen(url, timeout=10) as response:
                    return response.read().decode()

            metrics = cluster.info()["coordinator"]["metrics"]
            wait_until(lambda: 'troupe_worker_up{worker="worker-1"} 1' in scrape(metrics),
                       "the fleet's series", 5)
            text = scrape(metrics)
            for line in ('troupe_job_step{job_name="metrics"} 10',
                         'troupe_job_restarts_total{job_name="metrics"} 0',
                         'troupe_job_state{job_name="metrics",state="SUCCEEDED"} 1',
                         'troupe_checkpoint_last_committed_step{job_name="metrics"} 10'):
                self.assertIn(line, text)
            for name in ("troupe_job_loss", "troupe_job_tokens_total",
                         "troupe_job_model_flops_total", "troupe_job_step_duration_seconds",
                         "troupe_job_data_wait_seconds_total", "troupe_pipeline_bubble_ratio",
                         "troupe_checkpoint_duration_seconds", "troupe_checkpoint_stall_seconds",
                         "troupe_checkpoint_bytes_total",
                         "troupe_checkpoint_last_commit_timestamp_seconds", "troupe_worker_up",
                         "troupe_worker_memory_bytes",
                         "troupe_build_info"):
                self.assertRegex(text, rf"(?m)^{name}(_bucket)?[{{ ]")
            # Each series has a single source, so that a sum over all targets counts nothing twice.
            self.assertNotIn("troupe_collective_", text)
            for worker in cluster.info()["workers"]:
                own = scrape(worker["metrics"])
                for name in ("troupe_collective_bytes_total", "troupe_collective_duration_seconds",
                             "troupe_build_info"):
                    self.assertRegex(own, rf"(?m)^{name}(_bucket)?[{{ ]")
                self.assertNotRegex(own, r"(?m)^troupe_(worker|job|checkpoint)_")

    def test_up_again_starts_only_what_is_missing_and_down_leaves_nothing(self):
        cluster = Cluster(workers=2)
        with cluster:
            first = cluster.info()
            cluster.up()
            self.assertEqual(cluster.info()["coordinator"]["pid"], first["coordinator"]["pid"])
            pids = [first["coordinator"]["pid"], first["supervisor"]["pid"],
                    *(w["pid"] for w in first["workers"])]
            code, out, err = run("down", "--data-dir", cluster.directory, "-o", "json")
            self.assertEqual((code, json.loads(out)),
                             (0, {"folder": str(cluster.directory), "stopped": True}), err)
            wait_until(lambda: not any(map(alive, pids)), "all processes gone", 15)
            code, out, err = run("down", "--data-dir", cluster.directory, "-o", "json")
            self.assertEqual((code, json.loads(out)),
                             (0, {"folder": str(cluster.directory), "stopped": False}), err)
            code, out, err = run("down", "--data-dir", cluster.directory)
            self.assertEqual((code, out), (0, ""), err)
            self.assertIn(f"no cluster is running in {cluster.directory}", err)

    def test_the_cluster_of_another_host_in_a_shared_folder_is_left_alone(self):
        with Cluster(workers=1) as cluster:
            file, settings = (cluster.directory / name
                              for name in ("cluster.json", "settings.json"))
            own, former = file.read_text(), settings.read_bytes()
            there = json.loads(own)
            there["supervisor"].update(host="node-a", boot_id="another run")
            file.write_text(json.dumps(there))
            try:
                for command in (("up", "--workers", 2), ("up",), ("down",), ("list",)):
                    with self.subTest(command):
                        begin = time.monotonic()
                        code, out, err = run(*command, "--data-dir", cluster.directory)
                        self.assertEqual((code, out), (1, ""), err)
                        self.assertIn("is that of a cluster of the host node-a, and this host is",
                                      err)
                        self.assertLess(time.monotonic() - begin, 10)
                        self.assertEqual(settings.read_bytes(), former)
                        self.assertEqual(json.loads(file.read_text()), there)
            finally:
                file.write_text(own)
            self.assertTrue(alive(there["supervisor"]["pid"]))

    def test_ctrl_c_detaches_from_a_watched_job(self):
        with Cluster(workers=1, environment=SLOW) as cluster:
            path = cluster.write_job("detached", steps=100000, interval=0,
                                     parallelism="tensor_parallel_degree: 1")
            watching = subprocess.Popen([TROUPE, "submit", str(path), "--wait", "--data-dir",
                                         str(cluster.directory)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            wait_until(lambda: cluster.troupe("describe", "detached")[0] == 0, "submitted")
            cluster.wait_for_step("detached", 3)
            watching.send_signal(signal.SIGINT)
            watching.communicate(timeout=20)
            self.assertEqual(watching.returncode, 130)
            self.assertEqual(cluster.describe("detached")["state"], "RUNNING")
            cluster.troupe("cancel", "detached", "--now")

    def test_a_full_disk_aborts_the_attempt_and_training_goes_on(self):
        for mode in ("disabled", "async"):
            with self.subTest(mode):
                self.check_full_disk(mode)

    def check_full_disk(self, mode):
        if os.geteuid() != 0:
            self.skipTest("mounting a small tmpfs needs root")
        cluster = Cluster(workers=2, environment=SLOW)
        folder = cluster.home / "small"
        folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs",
                           folder]).returncode != 0:
            self.skipTest("this machine does not allow mounting a tmpfs")
        try:
            with cluster:
                path = cluster.write_job("full", steps=2000, interval=5)
                code, _, err = cluster.troupe("submit", path, "--set",
                                              f"checkpoint.folder={folder}", "--set",
                                              f"checkpoint.async_mode={mode}")
                self.assertEqual(code, 0, err)
                cluster.wait_for_step("full", 32)  # six attempts
                self.assertNotIn("set aside", cluster.troupe("workers")[1])
                described = cluster.describe("full")
                self.assertEqual(described["restarts"], 0, cluster.logs())
                self.assertEqual([c for c in described["checkpoints"] if c["state"] == "COMMITTED"],
                                 [])
                code, _, err = cluster.troupe("cancel", "full")
                self.assertEqual(code, 0, err)
                self.assertRegex(err, r"cancelled without a commit: .*No space left.*; steps 1 to "
                                      r"\d+ are in no commit")
                self.assertEqual(cluster.describe("full")["state"], "CANCELLED")
                events = [json.loads(line)
                          for line in cluster.troupe("watch", "full", "-o", "json")[1].splitlines()]
                aborted = [e for e in events if e.get("event") == "CHECKPOINT_ABORTED"]
                self.assertTrue(aborted)
                self.assertIn("No space left", aborted[0]["message"])
        finally:
            subprocess.run(["umount", folder], check=False)


if __name__ == "__main__":
    unittest.main(verbosity=2)
