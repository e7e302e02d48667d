"""Jobs with `devices: xla` in real processes on XLA's plugin for processors: placed, trained,
recovered and resumed as on CPU devices. Without the plugin every test is skipped with the worker's
reason."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import harness
from harness import ClusterCase, alive, kill, wait_until

# Relative, in float32: both sides add in another order.
MOST_DIFFERENCE = {"loss": 1e-6, "gradient norm": 1e-5}
STEPS = 12
SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:50"}
LAYOUTS = {"tensor": "tensor_parallel_degree: 2",
           "pipe": "pipeline_parallel_degree: 2, pipeline_parallel_schedule: ZBH1",
           "zero": "data_parallel_shard_degree: 2, zero_stage: 3",
           "ring": "context_parallel_degree: 2"}


class XlaCluster(harness.Cluster):
    """Two devices of XLA, on one worker or on two."""

    def up(self):
        code, out, err = harness.run("up", "--workers", self.workers, "--devices",
                                     f"xla:{2 // self.workers}", "--data-dir", self.directory,
                                     "--detection-seconds", self.detection_seconds,
                                     *harness.failpoint_flags(self.environment),
                                     environment=self.environment)
        if code != 0 and "XLA" in self.logs():
            reason = next(line for line in self.logs().splitlines() if "XLA" in line)
            raise unittest.SkipTest(reason)
        if code != 0:
            raise AssertionError(f"up: exit {code}: {out}{err}\n{self.logs()}")
        return self


class XlaTest(ClusterCase):
    def assert_near(self, ours, reference):
        self.assertEqual(sorted(ours), sorted(reference))
        for step, figures in reference.items():
            for (figure, most), own, other in zip(MOST_DIFFERENCE.items(), ours[step], figures,
                                                  strict=True):
                self.assertLess(abs(float(own) / float(other) - 1), most,
                                f"{figure} of step {step}: {own}, on the other devices {other}")

    def job(self, cluster, name, devices, *settings, layout="tensor", steps=STEPS):
        path = cluster.write_job(name, steps=steps, interval=4, parallelism=LAYOUTS[layout],
                                 extra=f"devices: {devices}\n")
        # Two microbatches in a step; with two ranks that share the samples, one.
        settings = ["training.global_batch_size=4", *settings]
        return cluster.json("submit", path, *[f"--set={setting}" for setting in settings])["name"]

    def killed_job(self, cluster, layout):
        """Returns the name of a job that has lost a rank and has ended."""
        job = self.job(cluster, f"killed-{layout}", "xla", layout=layout)
        wait_until(lambda: cluster.checkpoints(job), "the first commit")
        kill(cluster.describe(job)["ranks"][1]["pid"])
        self.assertEqual(cluster.wait_for_state(job, "SUCCEEDED")["restarts"], 1)
        self.assert_committed_checkpoints_verify(cluster, job)
        return job

    def test_jobs_are_killed_and_recover_and_move_to_the_cpu_with_the_same_losses(self):
        with XlaCluster(1, SLOW) as cluster, harness.Cluster(2) as processors:
            kinds = [d["kind"] for d in cluster.json("workers")["workers"][0]["devices"]]
            self.assertEqual(kinds, ["xla", "xla"])
            reference = self.job(processors, "reference", "cpu")
            processors.wait_for_state(reference, "SUCCEEDED")
            for layout in LAYOUTS:
                with self.subTest(layout=layout):
                    killed = self.killed_job(cluster, layout)
                    losses = cluster.losses(killed)
                    self.assert_near(losses, processors.losses(reference))
                    quiet = self.job(cluster, f"quiet-{layout}", "xla", layout=layout)
                    cluster.wait_for_state(quiet, "SUCCEEDED")
                    self.assertEqual(losses, cluster.losses(quiet))

                    path = next(c["path"] for c in cluster.checkpoints(killed) if c["step"] == 8)
                    moved = self.job(processors, f"moved-{layout}", "cpu",
                                     f"checkpoint.initial_load={path}")
                    processors.wait_for_state(moved, "SUCCEEDED")
                    self.assert_near(processors.losses(moved),
                                     {step: loss for step, loss in losses.items() if step > 8})

    def job_of_two_workers(self, cluster, name, steps):
        """Returns the name of a job that has run some steps, and its ranks."""
        job = self.job(cluster, name, "xla", layout="zero", steps=steps)
        cluster.wait_for_step(job, 8)
        ranks = cluster.describe(job)["ranks"]
        self.assertEqual(len({rank["worker"] for rank in ranks}), 2)
        return job, ranks

    def rank_lost(self, cluster, job):
        """Returns the message about the one loss of a job, which has recovered from it."""
        self.assertEqual(cluster.wait_for_state(job, "SUCCEEDED")["restarts"], 1)
        self.assert_committed_checkpoints_verify(cluster, job)
        lost = [e["message"] for e in cluster.watched(job) if e["type"] == "event" and
                e["event"] == "RANK_LOST"]
        self.assertEqual(len(lost), 1, lost)
        return lost[0]

    def test_a_killed_worker_and_a_stopped_rank_cost_a_recovery_each_and_change_no_number(self):
        steps = 40
        with XlaCluster(2, SLOW) as cluster, harness.Cluster(2) as processors:
            reference = self.job(processors, "reference", "cpu", steps=steps)
            quiet = self.job(cluster, "quiet", "xla", layout="zero", steps=steps)
            cluster.wait_for_state(quiet, "SUCCEEDED")
            processors.wait_for_state(reference, "SUCCEEDED")
            losses = cluster.losses(quiet)
            self.assert_near(losses, processors.losses(reference))

            job, ranks = self.job_of_two_workers(cluster, "worker-killed", steps)
            kill(cluster.worker(ranks[1]["worker"])["pid"])
            self.assertIn(f"rank 1 on {ranks[1]['worker']}", self.rank_lost(cluster, job))
            self.assertEqual(cluster.losses(job), losses)

            job, ranks = self.job_of_two_workers(cluster, "rank-stopped", steps)
            start = time.monotonic()
            os.kill(ranks[1]["pid"], signal.SIGSTOP)
            wait_until(lambda: cluster.describe(job)["restarts"] == 1, "the hang is noticed")
            # Twice the detection time, and half of it for the reports of the ranks; a limit that
            # does not derive from it is a minute.
            self.assertLess(time.monotonic() - start, 20)
            wait_until(lambda: not alive(ranks[1]["pid"]), "the stopped process is killed")
            self.assertIn(f"HANG: rank 1 on {ranks[1]['worker']}", self.rank_lost(cluster, job))
            self.assertEqual(cluster.losses(job), losses)

    def compiler(self, cluster, name):
        """Runs the job `name`, whose step is one microbatch and one program but for the
        collectives, to its end. Returns its losses and its receipt's figures of the compiler."""
        job = self.job(cluster, name, "xla", "training.global_batch_size=2",
                       "data.validation_fraction=0.2", "training.validation_interval=5")
        cluster.wait_for_state(job, "SUCCEEDED")
        receipt = cluster.json("receipt", job)
        self.assertNotIn("compiled after", " ".join(receipt["suspect"]))
        self.assertNotIn("other options than the plan's", " ".join(receipt["suspect"]))
        self.assertIn("xla_allow_excess_precision=false", receipt["compiler_options"])
        return cluster.losses(job), receipt["compile"]["compiler"]

    def test_compiled_programs_are_kept_and_damaged_ones_replaced(self):
        with XlaCluster(1) as cluster:
            first_losses, first = self.compiler(cluster, "first")
            self.assertGreater(first["compiled"], 0)
            self.assertEqual(first["recompilations"], 0)
            self.assertIn("cpu, PJRT", first["plugins"][0])
            programs = first["compiled"] + first["cache_hits"]

            second_losses, second = self.compiler(cluster, "second")
            self.assertEqual((second["compiled"], second["cache_hits"]), (0, programs))
            self.assertEqual(second["cache_faults"], {})
            self.assertEqual(second_losses, first_losses)

            folders = list(pathlib.Path(cluster.directory).rglob("executables"))
            entries = [entry for folder in folders for entry in sorted(folder.glob("*.xla"))]
            self.assertGreater(len(entries), 3)
            whole = entries[0].read_bytes()
            entries[0].write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
            entries[1].write_bytes(entries[1].read_bytes()[:1000])
            entries[2].write_bytes(b"")
            third_losses, third = self.compiler(cluster, "third")
            # The two ranks may find the same damage.
            self.assertIn(third["compiled"], range(3, 7))
            self.assertEqual(set(third["cache_faults"]),
                             {"an entry is damaged", "an entry is truncated"})
            self.assertEqual(third_losses, first_losses)

            fourth_losses, fourth = self.compiler(cluster, "fourth")
            self.assertEqual((fourth["compiled"], fourth["cache_faults"]), (0, {}))
            self.assertEqual(fourth_losses, first_losses)
            self.assertNotIn("ended: exit code", cluster.logs(), "a process runs later ranks too")

    def test_options_of_the_compiler_are_resolved_and_unknown_ones_named(self):
        with XlaCluster(1) as cluster:
            job = self.job(cluster, "fast", "xla", "xla.option_groups=[fast_compile]")
            cluster.wait_for_state(job, "SUCCEEDED")
            options = cluster.json("receipt", job)["compiler_options"]
            self.assertIn("xla_backend_optimization_level=0", options)
            path = cluster.write_job("warp", extra="devices: xla\n")
            code, _, err = cluster.troupe("submit", path, "--set=xla.option_groups=[warp]")
            self.assertEqual(code, 2, err)
            self.assertIn('xla.option_groups[0] is "warp", not one of fast_compile, ', err)
            of_nobody = self.job(cluster, "nobody", "xla", "xla.options=[xla_of_nobody=true]")
            failed = cluster.wait_for_state(of_nobody, "FAILED")
            self.assertEqual(failed["restarts"], 0, "another try would meet the same error")
            self.assertIn("No such compile option: 'xla_of_nobody'",
                          json.dumps(cluster.describe(of_nobody)))
            of_tpus = self.job(cluster, "tpus", "xla", "xla.option_groups=[sdc_checker]")
            wait_until(lambda: 'devices of kind \\"cpu\\" lack; their groups are fast_compile'
                       in json.dumps(cluster.describe(of_tpus)), "the reason to wait")

    def test_a_burn_in_computes_on_the_plugins_device(self):
        with XlaCluster(1):  # skips where there is no plugin
            pass
        done = subprocess.run([str(harness.BIN / "troupe-worker"), "--burn-in", "0",
                               "--devices", "xla:2"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["device"], report["rounds"]), ("xla", 1))

    def test_what_xla_cannot_compute_is_refused(self):
        with XlaCluster(1) as cluster:
            path = cluster.write_job("narrow", extra="devices: xla\n")
            code, _, err = cluster.troupe("submit", path, "--set=training.compute_dtype=bfloat16",
                                          "--set=training.float8.recipe=current")
            self.assertEqual(code, 2, err)
            self.assertIn('training.float8.recipe is "current", but devices is "xla"', err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
