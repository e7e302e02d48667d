"""Who is killed, at which point of the protocol, what was resumed: training goes on bit-identically every time."""

import unittest

from harness import Cluster, ClusterCase, alive, kill, wait_until

STEPS = 12
# Each step takes a tenth of a second, so that a hand can hit the middle of the job.
SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:100"}
LAYOUTS = {"tensor": "tensor_parallel_degree: 2", "pipe": "pipeline_parallel_degree: 2",
           "data": "data_parallel_replicate_degree: 2"}


class KillTable(ClusterCase):
    def check_goes_on(self, cluster, job, layout):
        cluster.wait_for_state(job, "SUCCEEDED")
        losses = cluster.losses(job)
        self.assertEqual(sorted(losses), list(range(1, STEPS + 1)))
        self.assert_committed_checkpoints_verify(cluster, job)
        # The same plan and seed, uninterrupted: the faults are spent by now.
        reference = cluster.submit("reference", steps=STEPS, parallelism=LAYOUTS[layout])
        self.assertEqual(cluster.wait_for_state(reference, "SUCCEEDED")["restarts"], 0)
        self.assertEqual(losses, cluster.losses(reference))

    def at_failpoint(self, failpoint):
        """One process dies at `failpoint` (once in the whole cluster); the job must not notice but in time."""
        layout = "tensor"
        armed = f"{failpoint}=kill{HITS.get(failpoint, '')}"
        if failpoint == "checkpoint.load.verified":  # needs a restore: something must die before
            armed += ";step.before_update=kill@6"
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
            self.check_goes_on(cluster, "killed", layout)
            reached = {p.name for p in once.iterdir()}
            self.assertIn(failpoint, reached, "the failpoint was not reached")

    def test_a_worker_killed_by_hand(self):
        for layout in LAYOUTS:
            with self.subTest(layout), Cluster(workers=2, environment=SLOW) as cluster:
                job = cluster.submit("killed", steps=STEPS, parallelism=LAYOUTS[layout])
                cluster.wait_for_step(job, 5)
                kill(cluster.worker("worker-1")["pid"])
                self.check_goes_on(cluster, job, layout)

    def test_a_rank_process_killed_by_hand(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("killed", steps=STEPS, parallelism=LAYOUTS["tensor"])
            cluster.wait_for_step(job, 5)
            rank = cluster.describe(job)["ranks"][1]
            worker = cluster.worker(rank["worker"])["pid"]
            kill(rank["pid"])
            self.check_goes_on(cluster, job, "tensor")
            self.assertTrue(alive(worker), "the daemon must outlive its rank")

    def test_all_workers_killed_by_hand(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("killed", steps=STEPS, parallelism=LAYOUTS["tensor"])
            cluster.wait_for_step(job, 5)
            for worker in cluster.info()["workers"]:
                kill(worker["pid"])
            self.check_goes_on(cluster, job, "tensor")

    def test_everything_killed_and_the_cluster_brought_up_again(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            job = cluster.submit("killed", steps=STEPS, parallelism=LAYOUTS["tensor"])
            cluster.wait_for_step(job, 5)
            info = cluster.info()
            kill(info["supervisor"]["pid"])
            for pid in [info["coordinator"]["pid"], *(w["pid"] for w in info["workers"])]:
                kill(pid)
            wait_until(lambda: not alive(info["coordinator"]["pid"]), "the coordinator gone")
            cluster.up()
            self.check_goes_on(cluster, job, "tensor")


# Which hit of a failpoint kills (the first where absent): in the middle of the job.
HITS = {"step.begin": "@6", "step.before_update": "@6", "step.after_update": "@6", "catalog.ticket.recorded": "@1"}

FAILPOINTS = [
    "checkpoint.snapshot", "checkpoint.shard.created", "checkpoint.shard.written", "checkpoint.shard.synced",
    "checkpoint.shard.renamed", "checkpoint.shard.durable", "checkpoint.vote.sent", "checkpoint.manifest.begin",
    "checkpoint.manifest.written", "checkpoint.manifest.durable", "checkpoint.delete.begin",
    "checkpoint.delete.unlinked", "checkpoint.load.verified", "catalog.intent.recorded", "catalog.votes.complete",
    "catalog.commit.before", "catalog.commit.after", "catalog.job.recorded", "catalog.ticket.recorded",
    "catalog.epoch.recorded", "catalog.tombstone.recorded", "step.begin", "step.before_update", "step.after_update",
    "session.before_hello",
]


def _case(failpoint):
    def test(self):
        self.at_failpoint(failpoint)

    return test


for _failpoint in FAILPOINTS:
    setattr(KillTable, "test_killed_at_" + _failpoint.replace(".", "_"), _case(_failpoint))


if __name__ == "__main__":
    unittest.main(verbosity=2)
