"""Twelve layouts as real processes over UCX: the losses of 20 steps equal the single rank's."""

import math
import unittest

from harness import Cluster, ClusterCase

LOSS_TOLERANCE, NORM_TOLERANCE = 1e-6, 1e-5  # relative
DEGREES = {"pipe": "pipeline_parallel_degree", "replicate": "data_parallel_replicate_degree",
           "shard": "data_parallel_shard_degree", "context": "context_parallel_degree",
           "expert": "expert_parallel_degree", "tensor": "tensor_parallel_degree"}

DENSE = [{"tensor": 2, "sequence_parallel": True}, {"context": 2}, {"shard": 4},
         {"pipe": 2, "shard": 2, "tensor": 2},
         {"context": 2, "shard": 2, "tensor": 2, "sequence_parallel": True},
         {"pipe": 2, "replicate": 2, "context": 2, "pipeline_parallel_schedule": "ZBH1"},
         {"replicate": 2, "shard": 2, "context": 2, "context_parallel_method": "all_to_all"}]
MIXTURE = [{"expert": 4}, {"expert": 2, "shard": 2},
           {"expert": 2, "tensor": 2, "pipe": 2, "sequence_parallel": True},
           {"expert": 2, "context": 2, "shard": 2},
           {"expert": 2, "replicate": 2, "pipe": 2, "pipeline_parallel_schedule": "GPipe"}]
MIXTURE_MODEL = ["model.pattern=(AE)x2", "model.num_experts=4", "model.num_experts_per_tok=2",
                 "model.moe_intermediate_size=24", "model.router_aux_loss_coef=0.01"]


def ranks(layout):
    return math.prod(degree for axis, degree in layout.items() if axis in DEGREES)


class Layouts(ClusterCase):
    def steps(self, cluster, name, layout, model):
        job = cluster.write_job(name, steps=20, interval=0, parallelism="tensor_parallel_degree: 1")
        settings = [
            f"parallelism.{DEGREES.get(key, key)}={str(value).lower() if value is True else value}"
                    for key, value in layout.items()]
        settings += ["training.micro_batch_size=1", *model]
        job = cluster.json("submit", job, *[f"--set={setting}" for setting in settings])["name"]
        done = cluster.wait_for_state(job, "SUCCEEDED")
        self.assertEqual((len(done["ranks"]), done["restarts"]), (ranks(layout), 0), done)
        return [line for line in cluster.watched(job) if line["type"] == "step"]

    def expect_the_single_ranks_losses(self, layouts, model):
        with Cluster(workers=8) as cluster:
            expected = self.steps(cluster, "single", {}, model)
            self.assertEqual(len(expected), 20)
            for number, layout in enumerate(layouts):
                with self.subTest(layout=layout):
                    actual = self.steps(cluster, f"layout-{number}", layout, model)
                    self.assertEqual(len(actual), 20)
                    for mine, due in zip(actual, expected):
                        self.assertAlmostEqual(mine["loss"], due["loss"],
                                               delta=LOSS_TOLERANCE * due["loss"])
                        self.assertAlmostEqual(mine["grad_norm"], due["grad_norm"],
                                               delta=NORM_TOLERANCE * due["grad_norm"])

    def test_seven_layouts_of_a_dense_model(self):
        self.expect_the_single_ranks_losses(DENSE, [])

    def test_five_layouts_of_a_mixture(self):
        self.expect_the_single_ranks_losses(MIXTURE, MIXTURE_MODEL)


if __name__ == "__main__":
    unittest.main()
