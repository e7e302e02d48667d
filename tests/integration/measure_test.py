"""What jobs measured: receipts and traces, from real ranks."""

import unittest

from harness import Cluster, ClusterCase, kill, wait_until


class Receipts(ClusterCase):
    def test_a_receipt_states_what_was_measured_and_outlives_the_coordinator(self):
        with Cluster(workers=2) as cluster:
            job = cluster.submit("pipe", steps=20, interval=10, parallelism="pipeline_parallel_degree: 2")
            other = cluster.submit("gpipe", steps=20, interval=10, parallelism=(
                "pipeline_parallel_degree: 2, pipeline_parallel_schedule: GPipe"))
            unlike = cluster.submit("tensor", steps=20, interval=10, parallelism="tensor_parallel_degree: 2")
            for name in (job, other, unlike):
                cluster.wait_for_state(name, "SUCCEEDED")
            receipt = cluster.json("receipt", job)
            self.assertEqual(receipt["job"], job)
            self.assertEqual(receipt["topology"]["pipe"], 2)
            self.assertEqual(receipt["model_mix"], {"pattern": "(AD)x2", "blocks": {"A": 2, "D": 2}})
            self.assertEqual(receipt["batch_geometry"], {"global_batch_size": 8, "micro_batch_size": 2,
                                                         "microbatches": 4, "data_ranks": 1})
            self.assertEqual(receipt["precision"], {"intended": "float32", "executed": "float32"})
            self.assertEqual(receipt["compile"]["count"], 2)
            self.assertGreater(receipt["compile"]["seconds"], 0)
            self.assertEqual(receipt["warm_up"]["steps"], 3)
            steady = receipt["steady"]
            self.assertEqual(steady["steps"] + receipt["steps_apart"], 17)
            self.assertAlmostEqual(steady["tokens_per_second"], steady["steps"] * 256 / steady["seconds"], delta=1)
            self.assertGreater(steady["exposed_communication_seconds"]["pipe"], 0)
            self.assertGreater(steady["bubble"]["measured"], 0)
            self.assertGreater(steady["bubble"]["planned"], 0)
            self.assertEqual(receipt["fallbacks"], {})
            self.assertTrue(receipt["target_shape"]["reached"])
            self.assertEqual(sum(receipt["write_method"].values()), 4)

            pid = cluster.info()["coordinator"]["pid"]
            kill(pid)
            wait_until(lambda: cluster.info()["coordinator"]["pid"] != pid, "a new coordinator in cluster.json")
            wait_until(lambda: cluster.troupe("list")[0] == 0, "the coordinator serving again")
            self.assertEqual(cluster.json("receipt", job), receipt)

            ranked = cluster.json("receipt", job, "--compare", other)["ranking"]
            self.assertEqual({entry["job"] for entry in ranked}, {job, other})
            self.assertGreaterEqual(ranked[0]["tokens_per_second"], ranked[1]["tokens_per_second"])
            code, out, err = cluster.troupe("receipt", job, "--compare", unlike)
            self.assertEqual((code, out), (1, ""))
            self.assertIn("topology.pipe: 2 here, 1 there", err)
            self.assertEqual(cluster.troupe("receipt", "none")[0], 4)


if __name__ == "__main__":
    unittest.main()
