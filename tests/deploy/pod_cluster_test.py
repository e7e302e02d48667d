"""Losses of a job whose workers are in pods of their own, while pods are deleted, killed, drained
and moved. bench/pods.py measures how long that takes."""

import unittest

import harness
import pod_cluster
import pod_network

STEPS = 200
# Each step takes at least 10 ms, so that the job outlasts what happens to it.
SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:10"}
OBSTACLE = pod_network.obstacle()


@unittest.skipIf(OBSTACLE, OBSTACLE)
class PodClusterTest(harness.ClusterCase):
    undisturbed = None  # losses

    def train(self, cluster, disturb=None, interval=0):
        job = cluster.write_job("pods", steps=STEPS, interval=interval)
        return cluster.train(job, disturb)

    def disturbed(self, disturb, interval=0, drain_seconds=60):
        """Trains with a disturbance, and compares the losses with those of a job without."""
        if self.undisturbed is None:
            with pod_cluster.PodCluster(workers=2, environment=SLOW) as cluster:
                PodClusterTest.undisturbed = self.train(cluster).losses
        with pod_cluster.PodCluster(environment=SLOW, drain_seconds=drain_seconds) as cluster:
            outcome = self.train(cluster, disturb, interval)
            self.assertEqual(outcome.losses, self.undisturbed)
            self.assert_committed_checkpoints_verify(cluster, "pods")
        return outcome

    def assert_recovered(self, outcome):
        self.assertEqual(outcome.described["restarts"], 1)
        self.assertEqual({line["step"] for line in outcome.steps}, set(range(1, STEPS + 1)))

    def assert_moved(self, outcome):
        """Asserts that the job moved once, and that no step was repeated."""
        self.assertEqual((outcome.described["restarts"], outcome.described["moves"]), (0, 1))
        self.assertEqual([line["step"] for line in outcome.steps], list(range(1, STEPS + 1)))

    def test_a_worker_is_deleted_without_time_to_drain(self):
        self.assert_recovered(self.disturbed(pod_cluster.delete_worker, 20, drain_seconds=0))

    def test_a_worker_is_killed(self):
        self.assert_recovered(self.disturbed(pod_cluster.kill_worker, 20))

    def test_a_worker_is_lost_with_its_pod(self):
        self.assert_recovered(self.disturbed(pod_cluster.lose_worker, 20))

    def test_a_worker_with_time_to_drain_gets_sigterm(self):
        self.assert_moved(self.disturbed(pod_cluster.stop_worker))

    def test_an_operator_drains_a_worker(self):
        self.assert_moved(self.disturbed(pod_cluster.drain_worker))

    def test_the_coordinator_moves_to_another_address(self):
        outcome = self.disturbed(pod_cluster.move_coordinator, 20)
        described = outcome.described
        self.assertEqual((described["restarts"], described["group_epoch"]), (0, 1))
        self.assertEqual([line["step"] for line in outcome.steps], list(range(1, STEPS + 1)))


if __name__ == "__main__":
    unittest.main()
