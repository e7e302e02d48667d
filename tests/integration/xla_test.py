"""Jobs with `devices: xla` in real processes on XLA's plugin for processors: placed, trained,
recovered and resumed as on CPU devices. Without the plugin every test is skipped with the worker's
reason."""

import unittest

import harness
from harness import ClusterCase, kill, wait_until

# In float32: both sides add in another order.
MOST_DIFFERENCE = 1e-6
STEPS = 12


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

    def job(self, cluster, name, devices, *settings):
        path = cluster.write_job(name, steps=STEPS, interval=4,
                                 extra=f"devices: {devices}\n")
        return cluster.json("submit", path, *[f"--set={setting}" for setting in settings])["name"]

    def test_a_job_is_killed_recovers_and_moves_to_the_cpu_with_the_same_losses(self):
        with XlaCluster(1, {"TROUPE_FAILPOINTS": "step.begin=delay:50"}) as cluster, \
                harness.Cluster(2) as processors:
            kinds = [d["kind"] for d in cluster.json("workers")["workers"][0]["devices"]]
            self.assertEqual(kinds, ["xla", "xla"])
            job = self.job(cluster, "killed", "xla")
            wait_until(lambda: cluster.checkpoints(job), "the first commit")
            kill(cluster.describe(job)["ranks"][1]["pid"])
            self.assertEqual(cluster.wait_for_state(job, "SUCCEEDED")["restarts"], 1)
            self.assert_committed_checkpoints_verify(cluster, job)
            quiet = self.job(cluster, "quiet", "xla")
            cluster.wait_for_state(quiet, "SUCCEEDED")
            losses = cluster.losses(job)
            self.assertEqual(losses, cluster.losses(quiet))

            reference = self.job(processors, "reference", "cpu")
            processors.wait_for_state(reference, "SUCCEEDED")
            self.assert_near(losses, processors.losses(reference))
            path = next(c["path"] for c in cluster.checkpoints(job) if c["step"] == 8)
            moved = self.job(processors, "moved", "cpu", f"checkpoint.initial_load={path}")
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
