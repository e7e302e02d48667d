"""A job continues under another layout, resumed or as a new one; changes to fixed settings are
refused by name."""

import unittest

from harness import Cluster, ClusterCase

LOSS_TOLERANCE, NORM_TOLERANCE = 1e-6, 1e-5  # relative
DEGREES = {"data": "data_parallel_replicate_degree", "tensor": "tensor_parallel_degree",
           "pipe": "pipeline_parallel_degree"}


def settings(data=1, tensor=1, pipe=1):
    degrees = {"data": data, "tensor": tensor, "pipe": pipe}
    return [f"--set=parallelism.{DEGREES[axis]}={degree}" for axis, degree in degrees.items()]


class Resume(ClusterCase):
    def submit(self, cluster, name, layout, steps, *more):
        """Submits a job with a learning rate that decays over 12 steps, however many steps it
        runs."""
        job = cluster.write_job(name, steps=steps, interval=0,
                                parallelism="tensor_parallel_degree: 1")
        return cluster.json("submit", job, "--set=lr_schedule.decay_steps=12", *settings(**layout),
                            *more)["name"]

    def train_half(self, cluster, name, layout):
        job = self.submit(cluster, name, layout, 6)
        return job, cluster.wait_for_state(job, "SUCCEEDED")["checkpoints"][-1]["path"]

    def expect_goes_on(self, cluster, job, whole, first=1):
        done = cluster.wait_for_state(job, "SUCCEEDED")
        self.assertEqual((done["step"], done["restarts"]), (12, 0))
        steps = {line["step"]: line for line in cluster.watched(job) if line["type"] == "step"}
        self.assertEqual(sorted(steps), list(range(first, 13)))
        for step, line in steps.items():
            expected = whole[step]
            self.assertAlmostEqual(line["loss"], expected["loss"],
                                   delta=LOSS_TOLERANCE * expected["loss"], msg=step)
            self.assertAlmostEqual(line["grad_norm"], expected["grad_norm"],
                                   delta=NORM_TOLERANCE * expected["grad_norm"], msg=step)
            self.assertEqual(line["learning_rate"], expected["learning_rate"])
        return done

    def test_six_pairs_of_layouts_resumed_or_loaded_go_on_like_the_uninterrupted_run(self):
        one, two_by_two, data, pipe = {}, {"tensor": 2, "pipe": 2}, {"data": 4}, {"pipe": 4}
        pairs = [(one, two_by_two), (two_by_two, data), (data, pipe),
                 (pipe, {"data": 2, "tensor": 2}), ({"data": 2, "tensor": 2}, one),
                 ({"data": 2, "pipe": 2}, {"tensor": 2})]
        with Cluster(workers=4) as cluster:
            job = self.submit(cluster, "whole", {}, 12)
            cluster.wait_for_state(job, "SUCCEEDED")
            whole = {line["step"]: line for line in cluster.watched(job) if line["type"] == "step"}
            for number, (source, target) in enumerate(pairs):
                with self.subTest(source=source, target=target):
                    job, checkpoint = self.train_half(cluster, f"pair-{number}", source)
                    if number % 2 == 0:
                        cluster.json("resume", job, "--set=training.steps=12", *settings(**target))
                        done = self.expect_goes_on(cluster, job, whole)
                        self.assertEqual([c["step"] for c in done["checkpoints"]], [6, 12])
                    else:
                        job = self.submit(cluster, f"loaded-{number}", target, 12,
                                          f"--set=checkpoint.initial_load={checkpoint}")
                        done = self.expect_goes_on(cluster, job, whole, first=7)
                    ranks = target.get("data", 1) * target.get("tensor", 1) * target.get("pipe", 1)
                    self.assertEqual(len(done["ranks"]), ranks)
                    self.assert_committed_checkpoints_verify(cluster, job)

    def test_what_training_must_keep_is_refused_by_name_and_changes_nothing(self):
        with Cluster(workers=2) as cluster:
            job, checkpoint = self.train_half(cluster, "kept", {"data": 2})
            for setting, field in [("training.seed=8", "training.seed"),
                                   ("training.global_batch_size=4", "training.global_batch_size"),
                                   ("training.sequence_length=16", "training.sequence_length"),
                                   ("model.hidden_size=32", "model.hidden_size"),
                                   ("data.validation_fraction=0.5", "data.validation_fraction"),
                                   ("parallelism.tensor_parallel_degree=3",
                                    "parallelism.tensor_parallel_degree")]:
                code, out, err = cluster.troupe("resume", job, "--set=training.steps=12",
                                                f"--set={setting}")
                self.assertEqual(code, 2, f"{setting}: {out}{err}")
                self.assertIn(field, err)
            self.assertEqual(cluster.describe(job)["state"], "SUCCEEDED")
            load = f"--set=checkpoint.initial_load={checkpoint}"
            for arguments, field in [(["--set=training.seed=8", load], "training.seed"),
                                     (["--set=training.global_batch_size=4", load],
                                      "training.global_batch_size"),
                                     (["--set=model.rope_theta=500", load], "model.rope_theta"),
                                     (["--set=training.steps=6", load], "training.steps"),
                                     ([f"{load}-missing"], "checkpoint.initial_load")]:
                path = cluster.write_job("refused", steps=12,
                                         parallelism="data_parallel_replicate_degree: 2")
                code, out, err = cluster.troupe("submit", path, *arguments)
                self.assertEqual(code, 2, f"{arguments}: {out}{err}")
                self.assertIn(field, err)
            self.assertEqual(len(cluster.json("list")["jobs"]), 1)


if __name__ == "__main__":
    unittest.main()
