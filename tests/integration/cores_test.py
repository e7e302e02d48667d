"""The ranks of all jobs of a host with several daemons have their own cores if there are enough."""

import os
import pathlib
import tempfile
import unittest

from harness import Cluster, ClusterCase, wait_until

SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:50"}


def affinity(pid):
    """Returns the cores of the threads of a process, which must agree."""
    sets = {tuple(sorted(os.sched_getaffinity(int(thread))))
            for thread in os.listdir(f"/proc/{pid}/task")}
    if len(sets) != 1:
        raise AssertionError(f"threads of {pid} are on {sets}")
    return list(sets.pop())


def two_cores():
    """Returns hardware threads of two physical cores that this process may use; one if there are
    not two."""
    chosen, seen = [], set()
    for thread in sorted(os.sched_getaffinity(0)):
        siblings = pathlib.Path(
            f"/sys/devices/system/cpu/cpu{thread}/topology/thread_siblings_list")
        core = siblings.read_text().strip() if siblings.exists() else str(thread)
        if core not in seen:
            chosen.append(thread)
            seen.add(core)
    return chosen[:2]


class Cores(ClusterCase):
    def ranks(self, cluster, *jobs):
        """Returns (assigned cores, number of ranks that share them, cores of the process) of all
        ranks of the jobs."""
        ranks = [rank for job in jobs for rank in cluster.describe(job)["ranks"]]
        return [(rank["cores"], rank["cores_shared_by"], affinity(rank["pid"])) for rank in ranks]

    def wait_for_division(self, cluster, jobs, expected):
        """Waits until every rank of the jobs is assigned to, and runs on, the cores that make up
        `expected`, in any order."""
        def divided():
            ranks = self.ranks(cluster, *jobs)
            as_assigned = all(assigned == real for assigned, _, real in ranks)
            found = sorted((assigned, shared) for assigned, shared, _ in ranks)
            return as_assigned and found == sorted(expected)

        wait_until(divided, f"{jobs} on {expected}; now {self.ranks(cluster, *jobs)}", 20)

    def test_ranks_of_two_jobs_get_cores_of_their_own_and_share_them_evenly_where_there_are_too_few(
            self):
        cores = two_cores()
        if len(cores) < 2:
            self.skipTest("this machine has one core")
        former = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)  # limits the cores of the daemons
        self.addCleanup(os.sched_setaffinity, 0, former)
        # Other clusters of this machine must not take part.
        table = tempfile.TemporaryDirectory(prefix="troupe-cores-")
        self.addCleanup(table.cleanup)
        with Cluster(4, {**SLOW, "TROUPE_CORE_DIR": table.name}) as cluster:
            single = {"steps": 2000, "interval": 0, "parallelism": ""}
            first = cluster.submit("first", **single)
            cluster.wait_for_state(first, "RUNNING")
            self.wait_for_division(cluster, [first], [(cores, 1)])
            second = cluster.submit("second", **single)
            cluster.wait_for_state(second, "RUNNING")
            self.wait_for_division(cluster, [first, second], [(cores[:1], 1), (cores[1:], 1)])
            pair = cluster.submit("pair", steps=2000, interval=0,
                                  parallelism="data_parallel_replicate_degree: 2")
            cluster.wait_for_state(pair, "RUNNING")
            shared = [(cores[:1], 2), (cores[:1], 2), (cores[1:], 2), (cores[1:], 2)]
            self.wait_for_division(cluster, [first, second, pair], shared)
            workers = cluster.json("workers")["workers"]
            self.assertEqual(sorted(r["job"] for w in workers for r in w["ranks"]),
                             ["jobs/first", "jobs/pair", "jobs/pair", "jobs/second"])
            for job in (second, pair):
                cluster.troupe("cancel", job, "--now")
            self.wait_for_division(cluster, [first], [(cores, 1)])


if __name__ == "__main__":
    unittest.main()
