"""A table of the killed process, the point of the protocol, and the resumed step: training
continues bit-identically every time."""

import re
import subprocess
import unittest

from harness import BIN, Cluster, ClusterCase, alive, kill, wait_until

STEPS = 12
# The first process of each rank waits before step 9 until the test has killed it; the next one
# begins at step 9 or later.
HELD = {"TROUPE_FAILPOINTS": "step.begin=delay:60000@9"}
SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:100"}
LAYOUTS = {"tensor": "tensor_parallel_degree: 2", "pipe": "pipeline_parallel_degree: 2",
           "data": "data_parallel_replicate_degree: 2"}
NOTHING = frozenset()  # for a row in which no step is repeated


def numbers(pattern, text):
    return int(re.search(pattern, text).group(1))


class KillTable(ClusterCase):
    def check_goes_on(self, cluster, job, layout, resumed, undisturbed=None):
        """`resumed`: the first steps from which the job may have resumed; NOTHING: no recovery at
        all. `undisturbed`: a cluster without faults; default: this cluster, if its faults have
        already happened."""
        done = cluster.wait_for_state(job, "SUCCEEDED")
        self.check_resumed(cluster, job, done, resumed)
        losses = cluster.losses(job)
        self.assertEqual(sorted(losses), list(range(1, STEPS + 1)))
        self.assert_committed_checkpoints_verify(cluster, job)
        self.check_nothing_is_left_over(cluster, job)
        # The same plan and seed without an interruption.
        elsewhere = undisturbed or cluster
        reference = elsewhere.submit("reference", steps=STEPS, parallelism=LAYOUTS[layout])
        self.assertEqual(elsewhere.wait_for_state(reference, "SUCCEEDED")["restarts"], 0)
        self.assertEqual(losses, elsewhere.losses(reference))

    def check_resumed(self, cluster, job, done, resumed):
        watched = cluster.watched(job)
        story = "\n".join(f"{e['event']} {e['message']}" for e in watched if e["type"] == "event")
        first_steps = []  # the first step after each recovery
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
        # Steps before the commit were not computed again, and steps after it were: a step belongs
        # to the last group that began at or before it.
        for step in (line for line in watched if line["type"] == "step"):
            self.assertEqual(step["group_epoch"], max(e for e, first in starts.items()
                                                      if first <= step["step"]),
                             f"step {step['step']}:\n{story}")

    def check_nothing_is_left_over(self, cluster, job):
        """Checks that uncommitted data are removed from the disk, and that every listed checkpoint
        exists."""
        folder = cluster.home / "checkpoints" / job.removeprefix("jobs/")

        def same():
            return {str(path) for path in folder.iterdir()} == {c["path"]
                                                                for c in cluster.checkpoints(job)}

        try:
            wait_until(same, "the folder to hold the listed checkpoints alone", 20)
        except AssertionError as error:
            listed = [c["path"] for c in cluster.checkpoints(job)]
            raise AssertionError(f"{error}: {sorted(map(str, folder.iterdir()))}, listed "
                                 f"{listed}") from None

    def at_failpoint(self, failpoint, mode="disabled"):
        """One process dies at `failpoint` (once in the whole cluster); the job is delayed but
        otherwise unaffected."""
        layout = "tensor"
        armed = f"{failpoint}=kill{HITS.get(failpoint, '')}"
        # Needs a restore, so another process must die before.
        if failpoint == "checkpoint.load.verified":
            armed += ";step.before_update=kill@8"
        # Steps are slow enough that the commit of one interval usually precedes the next.
        slowed = "step.begin" if failpoint != "step.begin" else "step.after_update"
        armed += f";{slowed}=delay:20"
        cluster = Cluster(workers=2)
        once = cluster.home / "once"
        once.mkdir()
        cluster.environment = {"TROUPE_FAILPOINTS": armed, "TROUPE_FAILPOINTS_ONCE_DIR": str(once)}
        with cluster:
            keep = int(any(word in failpoint for word in ("delete", "tombstone", "verify",
                                                          "catalog.verified")))
            path = cluster.write_job("killed", steps=STEPS, interval=2 if keep else 4,
                                     parallelism=LAYOUTS[layout])
            # A submit that met a dying coordinator is repeated with the same request id: one job,
            # not two.
            def submitted():
                code, _, _ = cluster.troupe("submit", path, "--request-id", "once", "--set",
                                            f"checkpoint.keep_latest_k={keep}", "--set",
                                            f"checkpoint.async_mode={mode}")
                return code == 0
            wait_until(submitted, "submit")
            self.assertEqual(len(cluster.json("list")["jobs"]), 1)
            self.check_goes_on(cluster, "killed", layout, FAILPOINTS[failpoint])
            reached = {p.name for p in once.iterdir()}
            self.assertIn(failpoint, reached, "the failpoint was not reached")

    def by_hand(self, layout, kill_some):
        with Cluster(workers=2, environment=HELD) as cluster:
            path = cluster.write_job("killed", steps=STEPS, parallelism=LAYOUTS[layout])
            # The wait must not count as a hang here.
            code, _, err = cluster.troupe("submit", path, "--set",
                                          "fault_tolerance.hang_seconds=120")
            self.assertEqual(code, 0, err)
            wait_until(lambda: any(c["step"] == 8 and c["state"] == "COMMITTED"
                                   for c in cluster.checkpoints("killed")),
                       "the commit of step 8")
            kill_some(cluster)
            with Cluster(workers=2) as undisturbed:
                self.check_goes_on(cluster, "killed", layout, {9}, undisturbed)

    def test_the_table_holds_every_failpoint_that_the_binaries_know(self):
        listed = subprocess.run([BIN / "troupe-worker", "--list-failpoints"], capture_output=True,
                                text=True, timeout=30)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertEqual(sorted(listed.stdout.split()), sorted([*FAILPOINTS, *OF_FILES]))

    def test_a_worker_killed_by_hand(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                self.by_hand(layout, lambda cluster: kill(cluster.worker("worker-1")["pid"]))

    def test_a_rank_process_killed_by_hand(self):
        workers = []

        def kill_rank(cluster):
            rank = cluster.describe("killed")["ranks"][1]
            workers.append(cluster.worker(rank["worker"])["pid"])
            kill(rank["pid"])
            wait_until(lambda: cluster.describe("killed")["restarts"] == 1, "the recovery")
            self.assertTrue(alive(workers[0]), "the daemon must outlive its rank")

        self.by_hand("tensor", kill_rank)
        self.assertEqual(len(workers), 1)

    def test_the_coordinator_killed_by_hand(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("killed", steps=STEPS, parallelism=LAYOUTS["tensor"])
            cluster.wait_for_step(job, 5)
            kill(cluster.info()["coordinator"]["pid"])
            wait_until(lambda: cluster.troupe("list")[0] == 0, "the coordinator serving again")
            self.check_goes_on(cluster, job, "tensor", NOTHING)

    def test_all_workers_killed_by_hand(self):
        def kill_workers(cluster):
            for worker in cluster.info()["workers"]:
                kill(worker["pid"])

        self.by_hand("tensor", kill_workers)

    def test_everything_killed_and_the_cluster_brought_up_again(self):
        def kill_everything(cluster):
            info = cluster.info()
            kill(info["supervisor"]["pid"])
            for pid in [info["coordinator"]["pid"], *(w["pid"] for w in info["workers"])]:
                kill(pid)
            wait_until(lambda: not alive(info["coordinator"]["pid"]), "the coordinator gone")
            cluster.up()

        self.by_hand("tensor", kill_everything)


# The hit of a failpoint that kills (the first if absent): in the middle of the job, after a commit
# of step 4.
HITS = {"step.begin": "@10", "step.device_fault": "@10", "step.before_update": "@10",
        "step.after_update": "@10",
        **{f"checkpoint.{point}": "@2" for point in (
            "snapshot", "shard.created", "shard.written", "shard.synced", "shard.renamed",
            "shard.durable", "vote.sent", "manifest.begin", "manifest.created",
            "manifest.written", "manifest.synced", "manifest.renamed", "manifest.durable")}}

# For a kill in the second checkpoint of a job, when the first may not be committed yet: nothing of
# step 8 is resumed.
SECOND = {1, 5}

# Each failpoint with the steps from which the job may resume. The check also requires the newest
# commit.
FAILPOINTS = {
    "checkpoint.snapshot": SECOND, "checkpoint.shard.created": SECOND,
    "checkpoint.shard.written": SECOND, "checkpoint.shard.synced": SECOND,
    "checkpoint.shard.renamed": SECOND, "checkpoint.shard.durable": SECOND,
    "checkpoint.vote.sent": SECOND | {9},  # the votes are sent: rank 0 may complete the attempt
    "checkpoint.manifest.begin": SECOND, "checkpoint.manifest.created": SECOND,
    "checkpoint.manifest.written": SECOND, "checkpoint.manifest.synced": SECOND,
    "checkpoint.manifest.renamed": SECOND, "checkpoint.manifest.durable": SECOND,
    # At least three commits (2, 4, 6) are needed before anything is deleted.
    "checkpoint.delete.begin": {7, 9, 11}, "checkpoint.delete.unlinked": {7, 9, 11},
    "checkpoint.verify.begin": {7, 9, 11},
    "checkpoint.load.verified": {5},
    # The coordinator dies: the ranks continue.
    "catalog.intent.recorded": NOTHING, "catalog.votes.complete": NOTHING,
    "catalog.commit.before": NOTHING, "catalog.commit.after": NOTHING,
    "catalog.job.recorded": NOTHING, "catalog.ticket.recorded": NOTHING,
    "catalog.epoch.recorded": NOTHING, "catalog.tombstone.recorded": NOTHING,
    "catalog.verified.recorded": NOTHING, "step.begin": {1, 5, 9}, "step.device_fault": {1, 5, 9},
    "step.before_update": {1, 5, 9}, "step.after_update": {1, 5, 9},
    # This point is reached before there is a job.
    "session.before_hello": NOTHING,
}

# Every durable write of a small file hits these. The first process to reach one is `troupe up`,
# without which there is no cluster: base/durable_write_test.cc kills a process at each.
OF_FILES = ("file.created", "file.written", "file.synced", "file.renamed", "file.durable")

# The failpoints that are reached while steps continue if saves are asynchronous.
ASYNC = ("checkpoint.snapshot", "checkpoint.shard.written", "checkpoint.shard.renamed",
         "checkpoint.vote.sent", "checkpoint.manifest.synced", "catalog.commit.before",
         "step.before_update")


def _case(failpoint, mode):
    def test(self):
        self.at_failpoint(failpoint, mode)

    return test


for _failpoint in FAILPOINTS:
    setattr(KillTable, "test_killed_at_" + _failpoint.replace(".", "_"),
            _case(_failpoint, "disabled"))
for _failpoint in ASYNC:
    setattr(KillTable, "test_killed_in_async_mode_at_" + _failpoint.replace(".", "_"),
            _case(_failpoint, "async"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
