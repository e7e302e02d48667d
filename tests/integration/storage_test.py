"""Checkpoints when the storage fails or contains files of another cluster."""

import concurrent.futures
import pathlib
import shutil
import tempfile
import unittest

from harness import Cluster, ClusterCase, run, wait_until

SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:20"}


class Storage(ClusterCase):
    def block(self, cluster, job):
        """Creates a file in place of the job's directory, so that nothing can be written there.
        Returns its path."""
        blocker = cluster.home / "checkpoints" / job
        blocker.parent.mkdir(exist_ok=True)
        blocker.write_text("in the way")
        return blocker

    def events(self, cluster, job):
        return [line["event"] for line in cluster.watched(job) if line["type"] == "event"]

    def test_a_final_checkpoint_that_cannot_be_written_is_written_once_it_can(self):
        with Cluster(workers=2) as cluster:
            blocker = self.block(cluster, "blocked")
            job = cluster.submit("blocked", steps=10, interval=0)
            wait_until(lambda: "CHECKPOINT_ABORTED" in cluster.logs(), "the first attempt aborted")
            self.assertEqual(cluster.checkpoints(job), [])
            blocker.unlink()
            done = cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual(done["restarts"], 0)
            self.assertEqual([c["step"] for c in done["checkpoints"]], [10])
            self.assert_committed_checkpoints_verify(cluster, job)
            self.assertEqual(sorted(cluster.losses(job)), list(range(1, 11)))
            self.assertIn("CHECKPOINT_ABORTED", self.events(cluster, job))

    def test_a_cancel_with_checkpoint_that_cannot_be_written_fails_and_is_saved_later(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            blocker = self.block(cluster, "kept")
            job = cluster.submit("kept", steps=3000, interval=0)
            cluster.wait_for_step(job, 5)
            code, out, err = cluster.troupe("cancel", job, "--checkpoint")
            self.assertNotEqual(code, 0, out)
            self.assertIn("retried", err)
            self.assertEqual(cluster.checkpoints(job), [])
            blocker.unlink()
            done = cluster.wait_for_state(job, "CANCELLED")
            self.assertEqual(len(done["checkpoints"]), 1)
            self.assertEqual(done["checkpoints"][0]["step"], done["step"])
            self.assert_committed_checkpoints_verify(cluster, job)

    def test_a_final_checkpoint_that_cannot_be_written_ends_at_its_limit_and_resumes_from_images(
            self):
        with Cluster(workers=2) as cluster:
            whole = cluster.submit("whole", steps=10, interval=0)
            cluster.wait_for_state(whole, "SUCCEEDED")
            blocker = self.block(cluster, "imaged")
            path = cluster.write_job("imaged", steps=10, interval=0)
            job = cluster.json("submit", path, "--set=checkpoint.final_save_seconds=2")["name"]
            wait_until(lambda: cluster.describe(job)["state"] == "FAILED", "the limit")
            failure = cluster.describe(job)["failure"]
            self.assertEqual(failure["cause"], "FINAL_CHECKPOINT_UNWRITABLE")
            images = sorted((cluster.directory).rglob("images/imaged/step-00000010-*/image.json"))
            self.assertEqual(len(images), 2, failure)
            for image in images:
                self.assertIn(str(image.parent), failure["message"])
            code, _, err = cluster.troupe("resume", job,
                                          "--set=parallelism.tensor_parallel_degree=1")
            self.assertEqual(code, 2 if "INVALID" in err else 1, err)
            self.assertIn("same layout", err)
            blocker.unlink()
            cluster.json("resume", job)
            done = cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual([c["step"] for c in done["checkpoints"]], [10])
            self.assert_committed_checkpoints_verify(cluster, job)
            a, b = (cluster.checkpoints(name)[0]["path"] for name in (whole, job))
            self.assertEqual(run("checkpoints", "diff", a, b)[0], 0,
                             "another state than the undisturbed one's")
            wait_until(lambda: not any(image.exists() for image in images), "the images to go")

    def test_a_checkpoint_by_time_is_taken_and_announced(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            path = cluster.write_job("timed", steps=3000, interval=0)
            code, out, err = cluster.troupe("submit", path, "--set=checkpoint.interval_seconds=2")
            self.assertEqual(code, 0, err)
            self.assertIn("a checkpoint every 2 s: a fault costs at most 2 s of training", err)
            first = wait_until(lambda: cluster.checkpoints("timed"), "the first commit")[0]
            wait_until(lambda: len(cluster.checkpoints("timed")) > 1, "the second commit")
            self.assertLess(first["step"], 3000)
            cluster.troupe("cancel", "timed", "--now")

    def test_checkpoints_asked_for_at_once_are_all_answered(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("asked", steps=3000, interval=0)
            cluster.wait_for_step(job, 3)
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                results = list(pool.map(lambda _: cluster.troupe("checkpoints", "create", job),
                                        range(6)))
            self.assertEqual([code for code, _, _ in results], [0] * 6, results)
            self.assert_committed_checkpoints_verify(cluster, job)
            cluster.troupe("cancel", job, "--now")

    def test_a_new_cluster_over_an_old_folder_leaves_its_checkpoints_alone(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        try:
            with Cluster(workers=2, directory=home) as cluster:
                job = cluster.submit("same", steps=12)
                cluster.wait_for_state(job, "SUCCEEDED")
                old = [c["path"] for c in cluster.checkpoints(job)]
            self.assertEqual(len(old), 3)
            shutil.rmtree(home / "cluster")
            with Cluster(workers=2, directory=home) as cluster:
                job = cluster.submit("same", steps=12)
                done = cluster.wait_for_state(job, "SUCCEEDED")
                self.assertEqual([c["step"] for c in done["checkpoints"]], [4, 8, 12])
                self.assert_committed_checkpoints_verify(cluster, job)
            for path in old:
                code, out, err = run("checkpoints", "verify", path)
                self.assertEqual(code, 0, f"{path}: {out}{err}")
        finally:
            shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    unittest.main()
