"""Jobs with `devices: cuda` in real processes on this machine's first GPU, compared with the same
jobs on its processor. For a machine with a GPU and a build with CUDA (docs/cuda.md):

  TROUPE_BIN=build/cuda/bin python3 tests/gpu/jobs_test.py

Without a GPU that can be used, every test is skipped with the worker's reason.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402  (the folder above)
from harness import ClusterCase, kill, wait_until  # noqa: E402

ONE_RANK = "data_parallel_replicate_degree: 1"
# In float32: both sides add in another order.
MOST_DIFFERENCE = 1e-6
MIXTURE = ["model.pattern=(AE)x2", "model.num_experts=4", "model.num_experts_per_tok=2",
           "model.moe_intermediate_size=24", "model.router_aux_loss_coef=0.01"]
MODELS = {"dense": [], "dropout": ["model.hidden_dropout=0.1"], "mixture": MIXTURE,
          "mixture-with-capacity": [*MIXTURE, "model.capacity_factor=1.0"]}


def reason_for_no_gpu():
    """Returns the reason why a worker finds no GPU, or None."""
    done = subprocess.run([str(harness.BIN / "troupe-worker"), "--burn-in", "1", "--devices",
                           "cuda:1"], capture_output=True, text=True,
                          timeout=harness.LIMIT_SECONDS)
    return None if done.returncode == 0 else done.stderr.strip()


class Gpu(harness.Cluster):
    """One worker with the first GPU."""

    def up(self):
        code, out, err = harness.run("up", "--devices", "cuda:1", "--data-dir", self.directory,
                                     "--detection-seconds", self.detection_seconds)
        if code != 0:
            raise AssertionError(f"up: exit {code}: {out}{err}\n{self.logs()}")
        return self


class JobsOnAGpu(ClusterCase):
    @classmethod
    def setUpClass(cls):
        reason = reason_for_no_gpu()
        if reason is not None:
            raise unittest.SkipTest(reason)
        cls.homes = [pathlib.Path(tempfile.mkdtemp(prefix="troupe-gpu-")) for _ in range(2)]
        for home in cls.homes:
            cls.addClassCleanup(shutil.rmtree, home, ignore_errors=True)
        cls.gpu = cls.enterClassContext(Gpu(1, directory=cls.homes[0]))
        cls.cpu = cls.enterClassContext(harness.Cluster(1, directory=cls.homes[1]))

    def run_job(self, cluster, name, settings=(), **options):
        path = cluster.write_job(name, parallelism=ONE_RANK, **options)
        devices = "cuda" if cluster is self.gpu else "cpu"
        job = cluster.json("submit", path, f"--set=devices={devices}",
                           *[f"--set={setting}" for setting in settings])["name"]
        return job

    def losses_of(self, cluster, name, settings=(), **options):
        job = self.run_job(cluster, name, settings, **options)
        self.assertEqual(cluster.wait_for_state(job, "SUCCEEDED")["restarts"], 0)
        return cluster.losses(job)

    def assert_near(self, ours, reference):
        self.assertEqual(sorted(ours), sorted(reference))
        for step, (loss, _) in reference.items():
            self.assertLess(abs(float(ours[step][0]) / float(loss) - 1), MOST_DIFFERENCE,
                            f"step {step}: {ours[step]}, on a processor {reference[step]}")

    def test_losses_are_those_of_the_processor_and_no_step_falls_back(self):
        for name, settings in MODELS.items():
            with self.subTest(name):
                ours = self.losses_of(self.gpu, name, settings, steps=40, interval=10)
                self.assert_near(ours, self.losses_of(self.cpu, name, settings, steps=40,
                                                      interval=10))
                receipt = self.gpu.json("receipt", name)
                self.assertEqual(receipt["fallbacks"], {})
                self.assertEqual(receipt["steady"]["graph_launches_per_step"], 2)

    def test_a_job_whose_rank_was_killed_has_the_bits_of_a_quiet_one(self):
        options = {"steps": 1200, "interval": 400}
        job = self.run_job(self.gpu, "killed", **options)
        wait_until(lambda: self.gpu.checkpoints(job), "the first commit")
        kill(self.gpu.describe(job)["ranks"][0]["pid"])
        self.assertEqual(self.gpu.wait_for_state(job, "SUCCEEDED")["restarts"], 1)
        self.assert_committed_checkpoints_verify(self.gpu, job)
        self.assertEqual(self.gpu.losses(job), self.losses_of(self.gpu, "quiet", **options))

    def test_a_checkpoint_of_the_gpu_continues_on_the_processor_and_back(self):
        for first, then in ((self.gpu, self.cpu), (self.cpu, self.gpu)):
            whole = self.losses_of(first, "whole", steps=40, interval=20)
            path = next(c["path"] for c in first.checkpoints("whole") if c["step"] == 20)
            rest = self.losses_of(then, "rest", [f"checkpoint.initial_load={path}"], steps=40,
                                  interval=20)
            self.assert_near(rest, {step: loss for step, loss in whole.items() if step > 20})

    def test_a_cancelled_job_leaves_a_checkpoint_of_its_last_step(self):
        job = self.run_job(self.gpu, "cancelled", steps=100000, interval=50000)
        self.gpu.wait_for_step(job, 20)
        code, out, err = self.gpu.troupe("cancel", job, "--checkpoint")
        self.assertEqual(code, 0, f"{out}{err}")
        cancelled = self.gpu.wait_for_state(job, "CANCELLED")
        self.assertEqual(self.gpu.checkpoints(job)[-1]["step"], cancelled["step"])
        self.assert_committed_checkpoints_verify(self.gpu, job)


if __name__ == "__main__":
    unittest.main(verbosity=2)
