"""Jobs with `devices: cuda` in real processes on emulated GPUs: placed, trained, recovered and
resumed as on CPU devices. The worker is bin/troupe-worker-emulated (emulated_rank_backend.cc)."""

import os
import pathlib
import shutil
import tempfile
import unittest
from unittest import mock

import harness
from harness import BIN, ClusterCase, kill, wait_until

STEPS = 8


class EmulatedCluster(harness.Cluster):
    """One worker with two emulated GPUs."""

    def up(self):
        code, out, err = harness.run("up", "--devices", "cuda:2", "--data-dir", self.directory,
                                     "--detection-seconds", self.detection_seconds,
                                     *harness.failpoint_flags(self.environment),
                                     environment=self.environment)
        if code != 0:
            raise AssertionError(f"up: exit {code}: {out}{err}\n{self.logs()}")
        return self


class CudaTest(ClusterCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        # `troupe up` starts the programs in its own folder.
        folder = pathlib.Path(tempfile.mkdtemp(prefix="emulated-", dir=BIN))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for name, program in (("troupe", "troupe"), ("troupe-coordinator", "troupe-coordinator"),
                              ("troupe-worker", "troupe-worker-emulated")):
            os.link(BIN / program, folder / name)
        patch = mock.patch.object(harness, "TROUPE", str(folder / "troupe"))
        patch.start()
        self.addCleanup(patch.stop)

    def job(self, cluster, name):
        path = cluster.write_job(name, steps=STEPS, interval=2,
                                 parallelism="data_parallel_replicate_degree: 2",
                                 extra="devices: cuda\n")
        return cluster.json("submit", path)["name"]

    def test_a_job_on_two_gpus_trains_recovers_and_has_the_same_losses(self):
        with EmulatedCluster(1, {"TROUPE_FAILPOINTS": "step.begin=delay:200"},
                             directory=self.home) as cluster:
            devices = cluster.json("workers")["workers"][0]["devices"]
            self.assertEqual([device["kind"] for device in devices], ["cuda", "cuda"])
            job = self.job(cluster, "killed")
            wait_until(lambda: cluster.checkpoints(job), "the first commit")
            described = cluster.describe(job)
            self.assertEqual(sorted(rank["device"] for rank in described["ranks"]), [0, 1])
            kill(described["ranks"][1]["pid"])
            done = cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual(done["restarts"], 1)
            self.assert_committed_checkpoints_verify(cluster, job)
            quiet = self.job(cluster, "quiet")
            cluster.wait_for_state(quiet, "SUCCEEDED")
            self.assertEqual(cluster.losses(job), cluster.losses(quiet))

    def test_a_cluster_of_gpus_reports_it_and_keeps_to_it(self):
        with EmulatedCluster(1, directory=self.home) as cluster:
            code, _, err = cluster.troupe("up", "--devices-per-worker", "2")
            self.assertEqual(code, 1, err)
            self.assertIn("--devices cuda:2", err)
            for flags, text in ((("--devices", "gpu:2"), 'must be cpu:N or cuda:N or xla:N'),
                                (("--devices", "cuda:1", "--workers", "2"),
                                 "all workers would have the same GPUs"),
                                (("--devices", "cuda:1", "--devices-per-worker", "1"),
                                 "which means cpu:1")):
                code, _, err = harness.run("up", *flags, "--data-dir", self.home / "other")
                self.assertEqual(code, 2, err)
                self.assertIn(text, err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
