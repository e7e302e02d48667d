"""The memory of a rank's process equals the plan's estimate: nothing is allocated in addition to
it."""

import json
import pathlib
import unittest

from harness import Cluster, ClusterCase, run, training_data, wait_until

MIB = 1 << 20

# Parameters, gradients and moments take 330 MB, activations 60 MB.
JOB = """
name: {name}
model: {{pattern: "(AD)x4", hidden_size: 512, num_attention_heads: 8, num_key_value_heads: 8,
        intermediate_size: 1408, vocab_size: 8192}}
data: {{train: {train}}}
training: {{global_batch_size: 4, micro_batch_size: {samples}, sequence_length: 64,
           steps: 100000, compute_dtype: {dtype}}}
parallelism: {{{parallelism}}}
checkpoint: {{folder: {folder}, interval: 0, async_mode: {mode}}}
"""


def resident_bytes(pid):
    """Returns (name of the process, Pss_Anon + Pss_Shmem): queues that ranks share are counted in
    proportion."""
    name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    with open(f"/proc/{pid}/smaps_rollup") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    kib = sum(int(fields[field].split()[0]) for field in ("Pss_Anon", "Pss_Shmem"))
    return name, kib * 1024


class Memory(ClusterCase):
    def check(self, cluster, name, dtype, parallelism, mode="disabled"):
        path = cluster.home / f"{name}.yaml"
        path.write_text(JOB.format(name=name, train=training_data(), dtype=dtype,
                                   parallelism=parallelism, samples=1 if "shard" in parallelism
                                   else 4, mode=mode, folder=cluster.home / "checkpoints"))
        code, out, err = run("plan", path, "-o", "json")
        self.assertEqual(code, 0, err)
        planned = {}  # by pipe rank
        for stage in json.loads(out)["stages"]:
            others = planned.get(stage["pipe_rank"], 0)
            planned[stage["pipe_rank"]] = others + stage["memory"]["total_bytes"]
        self.assertEqual(cluster.troupe("submit", path)[0], 0)
        cluster.wait_for_step(name, 2)  # by then every buffer has been written
        ranks = cluster.describe(name)["ranks"]
        self.assertTrue(ranks)
        for rank in ranks:
            process, resident = resident_bytes(rank["pid"])
            self.assertEqual(process, "troupe-rank")
            plan = planned[rank["coordinates"]["pipe"]]
            self.assertGreater(plan, 150 * MIB, "too small a model to prove anything")
            self.assertLess(abs(resident - plan), 0.1 * plan + 64 * MIB,
                            f"rank {rank['rank']}: {resident / MIB:.0f} MiB, planned "
                            f"{plan / MIB:.0f} MiB")
        cluster.troupe("cancel", name, "--now")
        cluster.wait_for_state(name, "CANCELLED")
        wait_until(lambda: not any(w["jobs"] for w in cluster.json("workers")["workers"]),
                   "the devices free again")

    def test_a_rank_has_the_memory_that_its_plan_states(self):
        with Cluster(workers=2) as cluster:
            for dtype in ("float32", "bfloat16"):
                with self.subTest(dtype):
                    self.check(cluster, f"single-{dtype}", dtype, "tensor_parallel_degree: 1")
            with self.subTest("snapshot"):
                self.check(cluster, "snapshot", "float32", "tensor_parallel_degree: 1", "async")
            with self.subTest("tensor"):
                self.check(cluster, "tensor", "bfloat16", "tensor_parallel_degree: 2")
            with self.subTest("pipe"):
                self.check(cluster, "pipe", "float32", "pipeline_parallel_degree: 2")

    def test_sharded_over_four_ranks_too(self):
        with Cluster(workers=4) as cluster:
            for stage in (1, 3):
                with self.subTest(zero_stage=stage):
                    self.check(cluster, f"zero-{stage}", "float32",
                               f"data_parallel_shard_degree: 4, zero_stage: {stage}")
            with self.subTest("runs"):
                self.check(cluster, "runs", "float32",
                           "data_parallel_shard_degree: 4, zero_stage: 3, reshard_after_forward: 2")


if __name__ == "__main__":
    unittest.main(verbosity=2)
