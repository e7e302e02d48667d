"""Full disks, a second coordinator, a worker that wakes up too late: no commit is lost, and
training continues bit-identically."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import BIN, Cluster, ClusterCase, alive, run, wait_until

SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:30"}
STEPS = 40


class SmallDisk:
    """A tmpfs that can be filled; the test is skipped if none can be mounted."""

    def __init__(self, case, path, size):
        path.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            case.skipTest("this machine does not allow mounting a tmpfs")
        self.path = path

    def fill(self):
        with open(self.path / "filler", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def free(self):
        (self.path / "filler").unlink()

    def used(self):
        status = os.statvfs(self.path)
        return (status.f_blocks - status.f_bfree) * status.f_bsize

    def grow(self, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", self.path], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=False)


class Faults(ClusterCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)

    def reference(self, cluster):
        """Returns the losses of the same job without faults."""
        job = cluster.submit("reference", steps=STEPS)
        cluster.wait_for_state(job, "SUCCEEDED")
        return cluster.losses(job)

    def finish(self, cluster, job, restarts=0):
        done = cluster.wait_for_state(job, "SUCCEEDED")
        self.assertEqual(done["restarts"], restarts)
        self.assert_committed_checkpoints_verify(cluster, job)
        self.assertEqual(cluster.checkpoints(job)[-1]["step"], STEPS)
        self.assertEqual(cluster.losses(job), self.reference(cluster))
        return done

    def events(self, cluster, job, kind):
        return [e["message"] for e in cluster.watched(job) if e["type"] == "event" and
                e["event"] == kind]

    def test_a_disk_that_is_full_when_the_manifest_is_written(self):
        with (SmallDisk(self, self.home / "disk", "16m") as disk,
              Cluster(2, SLOW, directory=self.home) as cluster):
            path = cluster.write_job("full", steps=STEPS, interval=0)
            folder = f"--set=checkpoint.folder={disk.path}"
            cluster.json("submit", path, folder, "--set=checkpoint.interval=4", "--name=sizes",
                         "--set=training.steps=4")
            sizes = cluster.wait_for_state("sizes", "SUCCEEDED")["checkpoints"][0]
            shards = sum(f.stat().st_size
                         for f in pathlib.Path(sizes["path"]).glob("*.safetensors"))
            # Room for the shards of one more checkpoint, but not for its manifest.
            disk.grow(disk.used() + shards + 4096)
            job = cluster.json("submit", path, folder, "--set=checkpoint.interval=4")["name"]
            wait_until(lambda: cluster.describe(job)["step"] >= 10, "two due checkpoints")
            self.assertEqual(cluster.checkpoints(job), [])
            disk.grow("64m")
            self.finish(cluster, job)
            messages = self.events(cluster, job, "CHECKPOINT_ABORTED")
            self.assertTrue(any("manifest" in message and "No space" in message
                                for message in messages), messages)

    def test_a_disk_that_is_full_when_the_catalog_is_written(self):
        # Less than a log reserves.
        with SmallDisk(self, self.home / "cluster" / "coordinator", "3m") as disk:
            with Cluster(2, SLOW, directory=self.home) as cluster:
                job = cluster.submit("catalog", steps=STEPS, interval=4)
                wait_until(lambda: cluster.checkpoints(job), "the first commit")
                first = cluster.info()["coordinator"]["pid"]
                disk.fill()
                wait_until(lambda: not alive(first),
                           "the coordinator ends: what is durable is not known")
                disk.free()
                wait_until(lambda: cluster.troupe("list")[0] == 0, "a coordinator serves again")
                self.finish(cluster, job)

    def test_a_second_coordinator_on_the_directory_is_refused_and_the_first_serves_on(self):
        with Cluster(2, SLOW, directory=self.home) as cluster:
            job = cluster.submit("served", steps=STEPS, interval=4)
            cluster.wait_for_step(job, 3)
            first = cluster.info()["coordinator"]["pid"]
            second = subprocess.run([BIN / "troupe-coordinator", "--listen", "127.0.0.1:0",
                                     "--data-dir", cluster.directory / "coordinator"],
                                    capture_output=True, text=True, timeout=30)
            self.assertNotEqual(second.returncode, 0)
            self.assertIn("another coordinator has it open", second.stdout + second.stderr)
            self.finish(cluster, job)
            self.assertEqual(cluster.info()["coordinator"]["pid"], first)

    def test_a_worker_and_its_rank_that_sleep_through_their_epoch_change_nothing_when_they_wake(
            self):
        with Cluster(3, SLOW, directory=self.home) as cluster:
            job = cluster.submit("slept", steps=STEPS, interval=2)
            cluster.wait_for_step(job, 5)
            rank = cluster.describe(job)["ranks"][1]
            sleepers = [cluster.worker(rank["worker"])["pid"], rank["pid"]]
            for pid in sleepers:
                os.kill(pid, signal.SIGSTOP)
            recovered = wait_until(lambda: (d := cluster.describe(job))["restarts"] == 1 and
                                   d["state"] == "RUNNING"
                                   and d, "the job goes on without the sleeper")
            self.assertNotIn(rank["worker"], [r["worker"] for r in recovered["ranks"]])
            committed = {c["path"]: c["digest"] for c in cluster.checkpoints(job)}
            for pid in sleepers:
                os.kill(pid, signal.SIGCONT)
            self.finish(cluster, job, restarts=1)
            for path, digest in committed.items():
                self.assertEqual(run("checkpoints", "verify", path, "--digest", digest)[0], 0, path)

    def test_a_damaged_catalog_is_refused_and_rebuilt_from_the_directories(self):
        with Cluster(2, directory=self.home) as cluster:
            job = cluster.json("submit", cluster.write_job("damaged", steps=STEPS // 2, interval=4),
                               f"--set=lr_schedule.decay_steps={STEPS}")["name"]
            before = cluster.wait_for_state(job, "SUCCEEDED")["checkpoints"]
        logs = [f for f in (self.home / "cluster" / "coordinator").glob("[0-9]*.log")
                if f.stat().st_size > 0]
        self.assertEqual(len(logs), 1)
        logs[0].write_bytes(logs[0].read_bytes()[:-30])
        started = subprocess.run([BIN / "troupe-coordinator", "--listen", "127.0.0.1:0",
                                  "--data-dir", self.home / "cluster" / "coordinator"],
                                 capture_output=True, text=True, timeout=30)
        self.assertNotEqual(started.returncode, 0)
        self.assertIn("rebuild-catalog", started.stdout + started.stderr)
        shutil.rmtree(self.home / "cluster")
        with Cluster(2, directory=self.home) as cluster:
            cluster.json("checkpoints", "rebuild-catalog", self.home / "checkpoints")
            self.assertEqual([c["digest"] for c in cluster.checkpoints(job)],
                             [c["digest"] for c in before])
            cluster.json("resume", job, f"--set=training.steps={STEPS}")
            cluster.wait_for_state(job, "SUCCEEDED")
            whole = self.reference(cluster)
            self.assertEqual(cluster.losses(job),
                             {s: v for s, v in whole.items() if s > STEPS // 2})


if __name__ == "__main__":
    unittest.main()
