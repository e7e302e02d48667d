"""A Hugging Face directory is imported, trained by real processes, and exported; unsupported input
is refused by name."""

import json
import pathlib
import shutil
import struct
import tempfile
import unittest

import models
from harness import ROOT, Cluster, ClusterCase, kill, run

FIXTURES = ROOT / "tests/interop/fixtures"
TOLERANCE = 1e-5  # relative, of losses and of the first gradient norm
TWO_BY_TWO = ["--set=parallelism.tensor_parallel_degree=2",
              "--set=parallelism.pipeline_parallel_degree=2"]


class HuggingFace(ClusterCase):
    def submit(self, cluster, variant, name, *more):
        return cluster.json("submit", FIXTURES / variant / "job.yaml", "--name", name,
                            f"--set=checkpoint.folder={cluster.home}/checkpoints", *more)["name"]

    def run_or_fail(self, *arguments):
        code, out, err = run(*arguments)
        self.assertEqual(code, 0, f"{arguments}: {out}{err}")
        return json.loads(out) if "json" in arguments else out

    def test_a_job_from_a_directory_trains_as_pytorch_and_its_checkpoint_comes_out(self):
        variant = "tied-grouped-llama3"
        expected = json.loads((FIXTURES / variant / "expected.json").read_text())
        with Cluster(workers=4) as cluster:
            job = self.submit(cluster, variant, "from", *TWO_BY_TWO)
            done = cluster.wait_for_state(job, "SUCCEEDED")
            steps = {line["step"]: line for line in cluster.watched(job) if line["type"] == "step"}
            self.assertEqual(sorted(steps), list(range(1, 21)))
            for step, line in steps.items():
                loss = expected["losses"][step - 1]
                self.assertAlmostEqual(line["loss"], loss, delta=TOLERANCE * loss, msg=step)
            self.assertAlmostEqual(steps[1]["grad_norm"], expected["grad_norm"],
                                   delta=TOLERANCE * expected["grad_norm"])

            # The same through an import: bit-identical, since the plan is the same.
            imported = cluster.home / "import"
            self.run_or_fail("checkpoints", "import", FIXTURES / variant, "--to", imported)
            self.run_or_fail("checkpoints", "verify", imported)
            loaded = self.submit(cluster, variant, "loaded", *TWO_BY_TWO,
                                 f"--set=checkpoint.initial_load={imported}")
            cluster.wait_for_state(loaded, "SUCCEEDED")
            self.assertEqual(cluster.losses(loaded), cluster.losses(job))

            # The model is exported in parts; a job from the export continues where the other one
            # ended.
            trained = cluster.home / "trained"
            exported = self.run_or_fail("checkpoints", "export", done["checkpoints"][-1]["path"],
                                        "--to", trained, "--max-shard-bytes", 100_000, "-o", "json")
            self.assertEqual(exported["dtype"], "float32")
            self.assertGreater(exported["files"], 1)
            self.assertEqual(len(list(trained.glob("model-*.safetensors"))), exported["files"])
            self.assertNotIn("lm_head.weight",
                             json.loads((trained / "model.safetensors.index.json").read_text())[
                                 "weight_map"])
            more = self.submit(cluster, variant, "more", f"--set=model.from={trained}",
                               "--set=training.steps=1")
            cluster.wait_for_state(more, "SUCCEEDED")
            self.assertLess(float(cluster.losses(more)[1][0]), expected["losses"][-1] + 0.2)

    def test_what_is_not_built_or_not_whole_is_refused_before_a_job_exists(self):
        with Cluster(workers=1) as cluster:
            broken = pathlib.Path(cluster.home) / "broken"

            def refused(words, config=None, edit=None, settings=()):
                shutil.rmtree(broken, ignore_errors=True)
                shutil.copytree(FIXTURES / "untied-older-keys", broken)
                text = json.loads((broken / "config.json").read_text())
                (broken / "config.json").write_text(json.dumps({**text, **(config or {})}))
                if edit:
                    edit()
                job = broken / "job.yaml"
                code, out, err = cluster.troupe("submit", job, f"--set=data.train={FIXTURES}/data",
                                                *settings)
                self.assertEqual(code, 2, f"{words}: {out}{err}")
                self.assertIn(words, err)

            refused("attention_bias is true", {"attention_bias": True})
            refused("\"yarn\"", {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}})
            refused("model_type is \"qwen2\"", {"model_type": "qwen2"})
            refused("the model has no model.layers.2.input_layernorm.weight",
                    {"num_hidden_layers": 3})
            refused("has neither model.safetensors", edit=(broken / "model.safetensors").unlink)
            refused("config.json", edit=(broken / "config.json").unlink)
            refused("model.hidden_size", settings=["--set=model.hidden_size=64"])
            refused("model.preset", settings=["--set=model.preset=tiny"])
            self.assertEqual(cluster.json("list")["jobs"], [])


def tensors_of(folder):
    """Returns the bytes of each tensor of a Hugging Face directory, by name."""
    tensors = {}
    for path in folder.glob("*.safetensors"):
        data = path.read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        for name, entry in json.loads(data[8:8 + size]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                tensors[name] = data[8 + size + begin:8 + size + end]
    return tensors


class Frozen(ClusterCase):
    def test_a_part_is_trained_through_a_kill_and_the_whole_model_comes_out(self):
        # Steps are long enough that the kill meets the job while it trains.
        with Cluster(workers=4,
                     environment={"TROUPE_FAILPOINTS": "step.begin=delay:50"}) as cluster:
            base = cluster.home / "base"
            shutil.copytree(FIXTURES / "tied-grouped-llama3", base)
            weights = base / "model.safetensors"

            def submit(name, *more):
                return cluster.json(
                    "submit", base / "job.yaml", "--name", name,
                    f"--set=data.train={FIXTURES}/data", "--set=checkpoint.interval=5",
                    f"--set=checkpoint.folder={cluster.home}/checkpoints",
                    "--set=model.trainable=['model.layers.1.*', model.norm.weight]", *more)["name"]

            alone = submit("alone")
            job = submit("part", *TWO_BY_TWO)
            cluster.wait_for_step(job, 7)
            kill(cluster.describe(job)["ranks"][3]["pid"])
            done = cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual(done["restarts"], 1)
            cluster.wait_for_state(alone, "SUCCEEDED")
            losses = cluster.losses(job)
            for step, (loss, *_) in cluster.losses(alone).items():
                self.assertAlmostEqual(float(losses[step][0]), float(loss),
                                       delta=TOLERANCE * float(loss), msg=step)

            # The checkpoint has what was trained; the export is the whole model.
            path = done["checkpoints"][-1]["path"]
            code, out, _ = cluster.troupe("checkpoints", "show", path)
            self.assertEqual(code, 0)
            self.assertIn(f"its frozen parameters are those of model.from {base}",
                          " ".join(out.split()))
            self.assertNotIn("embed_tokens", out)
            exported = cluster.home / "exported"
            code, _, err = cluster.troupe("checkpoints", "export", path, "--to", exported)
            self.assertEqual(code, 0, err)
            before, after = tensors_of(base), tensors_of(exported)
            self.assertEqual(before.keys(), after.keys())
            changed = {name for name in after if after[name] != before[name]}
            self.assertEqual(changed, {name for name in before
                                       if ".layers.1." in name or name == "model.norm.weight"})

            # Another base is refused, until the former one is back.
            whole = weights.read_bytes()
            weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
            code, _, err = cluster.troupe("checkpoints", "verify", path)
            self.assertEqual(code, 1)
            self.assertIn("is not the same model", err)
            code, _, err = cluster.troupe("checkpoints", "export", path, "--to",
                                          cluster.home / "never")
            self.assertEqual(code, 1)
            self.assertIn("is not the same model", err)
            more = "--set=training.steps=24"
            cluster.json("resume", job, more)
            failure = cluster.wait_for_state(job, "FAILED")["failure"]
            self.assertEqual(failure["cause"], "DATA")
            self.assertIn("put the former files back and resume the job", failure["message"])
            weights.write_bytes(whole)
            cluster.json("resume", job, more)
            cluster.wait_for_state(job, "SUCCEEDED")
            code, _, err = cluster.troupe("resume", job, "--set=training.steps=26",
                                          "--set=model.trainable=['*']")
            self.assertEqual(code, 2)
            self.assertIn("model.trainable", err)


class Tokenizer(unittest.TestCase):
    def test_an_export_copies_the_tokenizer_that_is_asked_for_or_states_that_there_is_none(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, home)
        models.write_model(home / "hf")
        code, _, err = run("checkpoints", "import", home / "hf", "--to", home / "import")
        self.assertEqual(code, 0, err)
        export = ("checkpoints", "export", home / "import", "-o", "json", "--to")
        code, out, err = run(*export, home / "without")
        self.assertEqual((code, json.loads(out)["tokenizer_files"]), (0, []), err)
        self.assertIsNone(json.loads(out)["tokenizer_from"])
        self.assertIn(f"{home}/without has no tokenizer: ", err)
        self.assertIn("--tokenizer DIR copies one", err)
        code, out, err = run(*export, home / "with", "--tokenizer", home / "hf")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(out)["tokenizer_files"], list(models.TOKENIZER_FILES))
        self.assertEqual(json.loads(out)["tokenizer_from"], f"{home}/hf")
        code, _, err = run(*export, home / "none", "--tokenizer", home / "import")
        self.assertEqual(code, 2)
        self.assertIn(f"{home}/import has none of tokenizer.json", err)
        self.assertFalse((home / "none").exists())


if __name__ == "__main__":
    unittest.main()
