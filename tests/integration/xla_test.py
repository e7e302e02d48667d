"""Jobs with `devices: xla` in real processes on XLA's plugin for processors: placed, trained,
recovered and resumed as on CPU devices. Without the plugin every test is skipped with the worker's
reason."""

import unittest

import harness
from harness import ClusterCase, kill, wait_until

# In float32: both sides add in another order.
MOST_DIFFERENCE = 1e-6
STEPS = 12
LAYOUTS = {"tensor": "tensor_parallel_degree: 2",
           "pipe": "pipeline_parallel_degree: 2, pipeline_parallel_schedule: ZBH1",
           "zero": "data_parallel_shard_degree: 2, zero_stage: 3",
           "ring": "context_parallel_degree: 2"}


class XlaCluster(harness.Cluster):
    """One worker with two devices of XLA."""

    def up(self):
        code, out, err = harness.run("up", "--devices", "xla:2", "--data-dir", self.directory,
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
        for step, (loss, _) in reference.items():
            self.assertLess(abs(float(ours[step][0]) / float(loss) - 1), MOST_DIFFERENCE,
                            f"step {step}: {ours[step]}, on the CPU {reference[step]}")

    def job(self, cluster, name, devices, *settings, layout="tensor"):
        path = cluster.write_job(name, steps=STEPS, interval=4, parallelism=LAYOUTS[layout],
                                 extra=f"devices: {devices}\n")
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
        with XlaCluster(1, {"TROUPE_FAILPOINTS": "step.begin=delay:50"}) as cluster, \
                harness.Cluster(2) as processors:
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

    def test_what_xla_cannot_compute_is_refused(self):
        with XlaCluster(1) as cluster:
            path = cluster.write_job("narrow", extra="devices: xla\n")
            code, _, err = cluster.troupe("submit", path, "--set=training.compute_dtype=bfloat16",
                                          "--set=training.float8.recipe=current")
            self.assertEqual(code, 2, err)
            self.assertIn('training.float8.recipe is "current", but devices is "xla"', err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
