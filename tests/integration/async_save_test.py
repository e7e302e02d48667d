"""Asynchronous saves: training continues bit-identically during them, whatever happens to the write
in flight."""

import pathlib
import unittest
import urllib.request

from harness import Cluster, ClusterCase, kill, wait_until

STEPS = 12


class AsyncSave(ClusterCase):
    def submit(self, cluster, name, interval=4, steps=STEPS, mode="async"):
        path = cluster.write_job(name, steps=steps, interval=interval)
        code, _, err = cluster.troupe("submit", path, "--set", f"checkpoint.async_mode={mode}")
        self.assertEqual(code, 0, err)
        return name

    def events(self, cluster, job, event):
        return [line for line in cluster.watched(job) if line["type"] == "event" and
                line["event"] == event]

    def metrics(self, cluster):
        with urllib.request.urlopen(cluster.info()["coordinator"]["metrics"],
                                    timeout=10) as response:
            return response.read().decode()

    def assert_like_the_undisturbed(self, job, losses):
        with Cluster(workers=2) as undisturbed:
            reference = self.submit(undisturbed, job, mode="disabled")
            undisturbed.wait_for_state(reference, "SUCCEEDED")
            self.assertEqual(losses, undisturbed.losses(reference))

    def shards(self, cluster, job):
        """Returns the bytes of each shard file, by step and name."""
        return {(c["step"], file.name): file.read_bytes() for c in cluster.checkpoints(job)
                for file in pathlib.Path(c["path"]).glob("*.safetensors")}

    def test_training_and_checkpoints_have_the_same_bits_in_both_modes(self):
        with Cluster(workers=2,
                     environment={"TROUPE_FAILPOINTS": "step.begin=delay:50"}) as cluster:
            for mode in ("async", "disabled"):
                self.submit(cluster, mode, mode=mode)
                done = cluster.wait_for_state(mode, "SUCCEEDED")
                self.assertEqual(done["restarts"], 0)
                self.assert_committed_checkpoints_verify(cluster, mode)
            self.assertEqual(cluster.losses("async"), cluster.losses("disabled"))
            ours, plain = (self.shards(cluster, mode) for mode in ("async", "disabled"))
            self.assertIn((STEPS, "rank-00000.safetensors"), ours)
            # A slow disk may cause a skipped checkpoint.
            for key, content in ours.items():
                self.assertEqual(content, plain[key], key)
            self.assertRegex(self.metrics(cluster),
                             r'troupe_checkpoint_writes_total\{[^}]*method="\w+"[^}]*\} \d')

    def test_a_due_checkpoint_that_meets_one_in_flight_is_skipped_and_counted(self):
        slow = {"TROUPE_FAILPOINTS": "checkpoint.shard.created=delay:1000;step.begin=delay:20"}
        with Cluster(workers=2, environment=slow) as cluster:
            job = self.submit(cluster, "skips", interval=2)
            done = cluster.wait_for_state(job, "SUCCEEDED")
            committed = [c["step"] for c in done["checkpoints"]]
            self.assertEqual(committed[-1], STEPS)
            skipped = self.events(cluster, job, "CHECKPOINT_SKIPPED")
            self.assertEqual(len(committed) + len(skipped), STEPS // 2, (committed, skipped))
            self.assertGreaterEqual(len(skipped), 1)
            self.assertIn(f'troupe_checkpoint_skipped_total{{job_name="skips"}} {len(skipped)}',
                          self.metrics(cluster))
            self.assertEqual(self.events(cluster, job, "CHECKPOINT_ABORTED"), [])
            self.assert_committed_checkpoints_verify(cluster, job)
            losses = cluster.losses(job)
        self.assert_like_the_undisturbed(job, losses)

    def test_a_checkpoint_asked_for_while_one_is_in_flight_is_taken_too(self):
        slow = {"TROUPE_FAILPOINTS": "checkpoint.shard.created=delay:500;step.begin=delay:20"}
        with Cluster(workers=2, environment=slow) as cluster:
            job = self.submit(cluster, "asked", interval=4, steps=100000)
            cluster.wait_for_step(job, 5)
            code, out, err = cluster.troupe("checkpoints", "create", job)
            self.assertEqual(code, 0, out + err)
            code, out, err = cluster.troupe("cancel", job, "--checkpoint")
            self.assertEqual(code, 0, out + err)
            done = cluster.wait_for_state(job, "CANCELLED")
            self.assertEqual(done["checkpoints"][-1]["step"], done["step"])
            self.assert_committed_checkpoints_verify(cluster, job)

    def test_an_epoch_that_ends_with_a_write_in_flight_recovers_and_leaves_nothing_over(self):
        slow = {"TROUPE_FAILPOINTS": "checkpoint.shard.written=delay:1500;step.begin=delay:100"}
        with Cluster(workers=2, environment=slow) as cluster:
            job = self.submit(cluster, "aborted")
            cluster.wait_for_step(job, 5)  # both ranks are writing the checkpoint of step 4
            kill(cluster.describe(job)["ranks"][1]["pid"])
            done = cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual(done["restarts"], 1, cluster.logs())
            self.assertEqual(sorted(cluster.losses(job)), list(range(1, STEPS + 1)))
            self.assert_committed_checkpoints_verify(cluster, job)
            folder = cluster.home / "checkpoints" / job
            listed = lambda: {c["path"] for c in cluster.checkpoints(job)}
            wait_until(lambda: {str(p) for p in folder.iterdir()} == listed(),
                       "the folder to hold the listed checkpoints alone", 20)
            losses = cluster.losses(job)
        self.assert_like_the_undisturbed(job, losses)


if __name__ == "__main__":
    unittest.main(verbosity=2)
