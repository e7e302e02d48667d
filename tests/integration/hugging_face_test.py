"""A Hugging Face directory is imported, trained by real processes, and exported; unsupported input
is refused by name."""

import json
import pathlib
import shutil
import tempfile
import unittest

import models
from harness import ROOT, Cluster, ClusterCase, run

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
