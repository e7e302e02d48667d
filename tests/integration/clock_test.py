"""The wall clock is set back by two hours while a job trains. Daemons, ranks and coordinators that
start later continue from the earlier state, and the losses are bit-identical to those of an
undisturbed run."""

import glob
import os
import pathlib
import shutil
import tempfile
import unittest

from harness import Cluster, ClusterCase, alive, kill, wait_until

STEPS = 40
BACK_SECONDS = 7200


class Clock:
    """libfaketime in every process of a cluster; `back` sets back only their wall clocks."""

    def __init__(self, case, home):
        found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        if not found:
            case.skipTest("libfaketime is not installed: the clock cannot be set back")
        self.file = home / "clock"
        self.set("+0")
        self.environment = {"LD_PRELOAD": found[0], "FAKETIME_TIMESTAMP_FILE": str(self.file),
                            "FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                            "NO_FAKE_STAT": "1"}

    def set(self, offset):
        # Replaced atomically: a process must not read a partial file.
        part = self.file.with_suffix(".part")
        part.write_text(offset + "\n")
        os.replace(part, self.file)

    def back(self):
        self.set(f"-{BACK_SECONDS}")


class ClockTest(ClusterCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.clock = Clock(self, self.home)
        self.environment = {"TROUPE_FAILPOINTS": "step.begin=delay:30", **self.clock.environment}

    def restart(self, cluster, name):
        """Kills a daemon or the coordinator and waits until the supervisor has restarted it."""
        find = cluster.worker if name != "coordinator" else lambda _: cluster.info()["coordinator"]
        first = find(name)["pid"]
        kill(first)
        wait_until(lambda: find(name)["pid"] != first and alive(find(name)["pid"]),
                   f"another life of {name}")

    def test_whoever_starts_after_the_clock_was_set_back_is_taken_on(self):
        with Cluster(2, self.environment, directory=self.home) as cluster:
            job = cluster.submit("set-back", steps=STEPS, interval=4)
            wait_until(lambda: cluster.checkpoints(job), "the first commit")
            before = cluster.checkpoints(job)[0]
            self.clock.back()
            rank = cluster.describe(job)["ranks"][0]
            self.restart(cluster, rank["worker"])
            wait_until(lambda: cluster.describe(job)["restarts"] == 1,
                       "the job recovers from the daemon's death")
            cluster.wait_for_step(job, before["step"] + 2)
            self.restart(cluster, "coordinator")
            done = cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual(done["restarts"], 1)
            self.assert_committed_checkpoints_verify(cluster, job)
            # The wall clock was really set back: the last commit has an earlier date than the
            # start. (The recovery may happen while a process still has the old clock in its cache.)
            dates = {e["event"]: e["wall_time_ns"] for e in cluster.watched(job)
                     if e["type"] == "event"}
            self.assertLess(dates["CHECKPOINT_COMMITTED"], dates["STARTED"])
            reference = cluster.submit("reference", steps=STEPS)
            cluster.wait_for_state(reference, "SUCCEEDED")
            self.assertEqual(cluster.losses(job), cluster.losses(reference))


if __name__ == "__main__":
    unittest.main(verbosity=2)
