"""The wall clock is set back by two hours while a job trains. Daemons, ranks and coordinators that
start later continue from the earlier state, and the losses are bit-identical to those of an
undisturbed run.

In another job the clock is ahead while a worker renews its certificate, and then right again."""

import calendar
import glob
import os
import pathlib
import re
import shutil
import tempfile
import time
import unittest

from harness import Cluster, ClusterCase, alive, kill, wait_until
from join_test import WORKER, JoinedCluster
from tls_test import SLOW, ready_workers

STEPS = 40
BACK_SECONDS = 7200
# A certificate of this life is still valid, and due to be renewed, once the clock is ahead. The one
# that is signed then is valid 300 s before the wrong time, so it is not once the clock is right.
LIFE_HOURS = 3
AHEAD_SECONDS = 8100
AGAIN_SECONDS = 30  # limit for what a right clock repairs
MORE_THREADS = 32
MOST_GRPC_LINES = 50


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


class RenewalTest(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.clock = Clock(self, self.home)
        self.most_threads = 0

    def threads(self, cluster):
        """Returns the number of threads of the worker's daemon."""
        return len(os.listdir(f"/proc/{cluster.processes[WORKER].pid}/task"))

    def renewed_until(self, cluster):
        """Returns the time until which the newest renewed certificate is valid; 0 if there is
        none."""
        self.most_threads = max(self.most_threads, self.threads(cluster))
        times = re.findall(" is renewed: it is valid until ([^ \n]+)",
                           cluster.log(WORKER).read_text())
        return calendar.timegm(time.strptime(times[-1], "%Y-%m-%dT%H:%M:%SZ")) if times else 0

    def test_a_worker_whose_certificate_was_renewed_while_the_clock_was_ahead_goes_on(self):
        environment = {**SLOW, **self.clock.environment}
        with JoinedCluster(environment, LIFE_HOURS) as cluster:
            job = cluster.submit("ahead", steps=100000, interval=0,
                                 parallelism="tensor_parallel_degree: 1")
            cluster.wait_for_step(job, 3)
            before = cluster.describe(job)
            threads = self.threads(cluster)
            # Certificates that are signed at the wrong time end after this time, others before it.
            bound = cluster.joined["not_after"] + AHEAD_SECONDS / 2
            self.clock.set(f"+{AHEAD_SECONDS}")
            wait_until(lambda: self.renewed_until(cluster) > bound, "a renewal of a clock ahead")
            self.clock.set("+0")
            wait_until(lambda: self.renewed_until(cluster) < bound,
                       f"a renewal of the right clock\n{cluster.logs()}", AGAIN_SECONDS)
            wait_until(lambda: ready_workers(cluster.troupe("workers", "-o", "json")) == (WORKER,),
                       f"a worker that is ready\n{cluster.logs()}", AGAIN_SECONDS)
            cluster.wait_for_step(job, cluster.describe(job)["step"] + 20)
            after = cluster.describe(job)
            self.assertEqual((after["group_epoch"], after["restarts"]), (1, 0), cluster.logs())
            self.assertEqual([rank["pid"] for rank in after["ranks"]],
                             [rank["pid"] for rank in before["ranks"]])
            most = max(self.most_threads, self.threads(cluster))
            self.assertLessEqual(most, threads + MORE_THREADS)
            of_grpc = [line for line in cluster.log(WORKER).read_text().splitlines()
                       if "grpc" in line.lower()]
            self.assertLessEqual(len(of_grpc), MOST_GRPC_LINES, of_grpc[:5])


if __name__ == "__main__":
    unittest.main(verbosity=2)
