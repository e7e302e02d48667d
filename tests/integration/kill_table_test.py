"""Who is killed, at which point of the protocol, what was resumed: training goes on bit-identically every time."""

import re
import unittest

from harness import Cluster, ClusterCase, alive, kill, wait_until

STEPS = 12
# Each step takes a tenth of a second, so that a hand can hit the middle of the job.
SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:100"}
LAYOUTS = {"tensor": "tensor_parallel_degree: 2", "pipe": "pipeline_parallel_degree: 2",
           "data": "data_parallel_replicate_degree: 2"}
NOTHING = frozenset()  # of a row in which no step is repeated


def numbers(pattern, text):
    return int(re.search(pattern, text).group(1))


class KillTable(ClusterCase):
    def check_goes_on(self, cluster, job, layout, resumed):
        """`resumed`: the first steps from which the job may have gone on; NOTHING: no recovery at all."""
        done = cluster.wait_for_state(job, "SUCCEEDED")
        self.check_resumed(cluster, job, done, resumed)
        losses = cluster.losses(job)
        self.assertEqual(sorted(losses), list(range(1, STEPS + 1)))
        self.assert_committed_checkpoints_verify(cluster, job)
        # The same plan and seed, uninterrupted: the faults are spent by now.
        reference = cluster.submit("reference", steps=STEPS, parallelism=LAYOUTS[layout])
        self.assertEqual(cluster.wait_for_state(reference, "SUCCEEDED")["restarts"], 0)
        self.assertEqual(losses, cluster.losses(reference))

    def check_resumed(self, cluster, job, done, resumed):
        watched = cluster.watched(job)
        story = "\n".join(f"{e['event']} {e['message']}" for e in watched if e["type"] == "event")
        first_steps = []  # of each recovery
        starts = {}  # group epoch: its first step
        newest = 0
        for event in watched:
            if event["type"] != "event":
                continue
            if event["event"] == "CHECKPOINT_COMMITTED":
                newest = numbers(r"^step (\d+),", event["message"])
            if event["event"] in ("STARTED", "RECOVERED"):
                first = numbers(r"^2 ranks run from step (\d+)$", event["message"])
                self.assertEqual(first, newest + 1, f"not from the newest commit:\n{story}")
                starts[event["group_epoch"]] = first
                if event["event"] == "RECOVERED":
                    first_steps.append(first)
        if resumed:
            self.assertGreaterEqual(done["restarts"], 1, story)
            self.assertEqual(len(first_steps), 1, story)
            self.assertIn(first_steps[0], resumed, story)
        else:
            self.assertEqual((done["restarts"], first_steps), (0, []), story)
        self.assertEqual(len(starts), 1 + len(first_steps), story)
        # What came before the commit was not computed again, what came after it was: a step is of the last group
        # that began at it or before it.
        for step in (line for line in watched if line["type"] == "step"):
            self.assertEqual(step["group_epoch"], max(e for e, first in starts.items() if first <= step["step"]),
                             f"step {step['step']}:\n{story}")

    def at_failpoint(self, failpoint):
        """One process dies at `failpoint` (once in the whole cluster); the job must not notice but in time."""
        layout = "tensor"
        armed = f"{failpoint}=kill{HITS.get(failpoint, '')}"
        if failpoint == "checkpoint.load.verified":  # needs a restore: something must die before
            armed += ";step.before_update=kill@8"
        # Steps slow enough that the commit of one interval mostly comes before the next.
        armed += ";step.begin=delay:20" if failpoint != "step.begin" else ";step.after_update=delay:20"
        cluster = Cluster(workers=2)
        once = cluster.home / "once"
        once.mkdir()
        cluster.environment = {"TROUPE_FAILPOINTS": armed, "TROUPE_FAILPOINTS_ONCE_DIR": str(once)}
        with cluster:
            keep = 1 if "delete" in failpoint or "tombstone" in failpoint else 0
            path = cluster.write_job("killed", steps=STEPS, interval=2 if keep else 4, parallelism=LAYOUTS[layout])
            # A submit that met a dying coordinator is repeated under the same request id: one job, not two.
            def submitted():
                code, _, _ = cluster.troupe("submit", path, "--request-id", "once", "--set",
                                            f"checkpoint.keep_latest_k={keep}")
                return code == 0
            wait_until(submitted, "submit")
            self.assertEqual(len(cluster.json("list")["jobs"]), 1)
            self.check_goes_on(cluster, "killed", layout, FAILPOINTS[failpoint])
            reached = {p.name for p in once.iterdir()}
            self.assertIn(failpoint, reached, "the failpoint was not reached")

    def wait_for_commit(self, cluster, job):
        """The job is in its middle, with the commit of step 4 and what follows it still to be lost."""
        wait_until(lambda: any(c["step"] == 4 and c["state"] == "COMMITTED" for c in cluster.checkpoints(job)),
                   "the commit of step 4")
        cluster.wait_for_step(job, 5)

    def test_a_worker_killed_by_hand(self):
        for layout in LAYOUTS:
            with self.subTest(layout), Cluster(workers=2, environment=SLOW) as cluster:
                job = cluster.submit("killed", steps=STEPS, parallelism=LAYOUTS[layout])
                self.wait_for_commit(cluster, job)
                kill(cluster.worker("worker-1")["pid"])
                self.check_goes_on(cluster, job, layout, BY_HAND)

    def test_a_rank_process_killed_by_hand(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("killed", steps=STEPS, parallelism=LAYOUTS["tensor"])
            self.wait_for_commit(cluster, job)
            rank = cluster.describe(job)["ranks"][1]
            worker = cluster.worker(rank["worker"])["pid"]
            kill(rank["pid"])
            self.check_goes_on(cluster, job, "tensor", BY_HAND)
            self.assertTrue(alive(worker), "the daemon must outlive its rank")

    def test_the_coordinator_killed_by_hand(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("killed", steps=STEPS, parallelism=LAYOUTS["tensor"])
            self.wait_for_commit(cluster, job)
            kill(cluster.info()["coordinator"]["pid"])
            wait_until(lambda: cluster.troupe("list")[0] == 0, "the coordinator serving again")
            self.check_goes_on(cluster, job, "tensor", NOTHING)

    def test_all_workers_killed_by_hand(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("killed", steps=STEPS, parallelism=LAYOUTS["tensor"])
            self.wait_for_commit(cluster, job)
            for worker in cluster.info()["workers"]:
                kill(worker["pid"])
            self.check_goes_on(cluster, job, "tensor", BY_HAND)

    def test_everything_killed_and_the_cluster_brought_up_again(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("killed", steps=STEPS, parallelism=LAYOUTS["tensor"])
            self.wait_for_commit(cluster, job)
            info = cluster.info()
            kill(info["supervisor"]["pid"])
            for pid in [info["coordinator"]["pid"], *(w["pid"] for w in info["workers"])]:
                kill(pid)
            wait_until(lambda: not alive(info["coordinator"]["pid"]), "the coordinator gone")
            cluster.up()
            self.check_goes_on(cluster, job, "tensor", BY_HAND)


# Which hit of a failpoint kills (the first where absent): in the middle of the job, with a commit of step 4 before.
HITS = {"step.begin": "@10", "step.before_update": "@10", "step.after_update": "@10",
        **{f"checkpoint.{point}": "@2" for point in (
            "snapshot", "shard.created", "shard.written", "shard.synced", "shard.renamed", "shard.durable",
            "vote.sent", "manifest.begin", "manifest.written", "manifest.durable")}}

# After the commit of step 4 and perhaps, on a slow machine, that of step 8.
BY_HAND = {5, 9}
# In the second checkpoint of a job whose first may just not be committed yet: nothing of step 8 is resumed.
SECOND = {1, 5}

# Each failpoint, and the step from which the job may go on. The check holds it to the newest commit in any case.
FAILPOINTS = {
    "checkpoint.snapshot": SECOND, "checkpoint.shard.created": SECOND, "checkpoint.shard.written": SECOND,
    "checkpoint.shard.synced": SECOND, "checkpoint.shard.renamed": SECOND, "checkpoint.shard.durable": SECOND,
    "checkpoint.vote.sent": SECOND | {9},  # the votes are out: rank 0 may finish the attempt
    "checkpoint.manifest.begin": SECOND, "checkpoint.manifest.written": SECOND, "checkpoint.manifest.durable": SECOND,
    # Three commits at least (2, 4, 6), or there is nothing to delete.
    "checkpoint.delete.begin": {7, 9, 11}, "checkpoint.delete.unlinked": {7, 9, 11},
    "checkpoint.load.verified": {5},
    # The coordinator dies: the ranks go on.
    "catalog.intent.recorded": NOTHING, "catalog.votes.complete": NOTHING, "catalog.commit.before": NOTHING,
    "catalog.commit.after": NOTHING, "catalog.job.recorded": NOTHING, "catalog.ticket.recorded": NOTHING,
    "catalog.epoch.recorded": NOTHING, "catalog.tombstone.recorded": NOTHING,
    "step.begin": {1, 5, 9}, "step.before_update": {1, 5, 9}, "step.after_update": {1, 5, 9},
    # Before there is a job.
    "session.before_hello": NOTHING,
}


def _case(failpoint):
    def test(self):
        self.at_failpoint(failpoint)

    return test


for _failpoint in FAILPOINTS:
    setattr(KillTable, "test_killed_at_" + _failpoint.replace(".", "_"), _case(_failpoint))


if __name__ == "__main__":
    unittest.main(verbosity=2)
