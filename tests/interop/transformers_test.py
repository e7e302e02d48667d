"""Models written by transformers from PyPI train here as in PyTorch, and transformers loads exports
with the same logits.

Creates an environment (build/interop-transformers) with the versions of requirements.txt, makes the
fixtures anew in it, runs fixtures_test on them, and lets transformers load exports: of imports in
every dtype, of a job that a cluster trained with tensor 2 × pipe 2, and with a tokenizer. Runs the
page docs/fine-tune.md, with the script that samples. Run by ./run test interop.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from peer_environment import peer_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import models  # noqa: E402  (the folder above)
import pages  # noqa: E402
from harness import Cluster  # noqa: E402

BIN = ROOT / "build/release/bin"
VENV = ROOT / "build/interop-transformers"
PINS = ROOT / "tests/interop/requirements.txt"
LOGIT_TOLERANCE = 1e-4  # absolute, float32
TRAINED_TOLERANCE = 1e-4  # after 20 steps of AdamW on both sides

# Runs in the environment: computes the logits of directories, and of a PyTorch loop's model if
# batches are given.
PEER = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch, transformers
import make_fixtures
torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
for line in sys.stdin:
    request = json.loads(line)
    model = make_fixtures.load(request["directory"])
    if "batches" in request:
        make_fixtures.train(model, request["batches"], request.get("sgd"),
                            request.get("trainable", ["*"]))
    print(json.dumps(make_fixtures.logits(model, request["tokens"]).tolist()))
"""


MISTRAL = """
import json, sys, torch, transformers
torch.set_num_threads(1)
torch.manual_seed(9)
model = transformers.MistralForCausalLM(transformers.MistralConfig(
    vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, sliding_window=None, tie_word_embeddings=False,
    attn_implementation="eager"))
with torch.no_grad():
    for parameter in model.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))
    tokens = list(range(60))
    model.save_pretrained(sys.argv[1])
    logits = model(torch.tensor([tokens])).logits[0].tolist()
    print(json.dumps({"tokens": tokens, "logits": logits}))
"""

# Prints what the tokenizers of two directories make of a text and of a chat, and the tokens that
# their models generate.
TOKENIZERS = """
import json, sys, torch, transformers
torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
chat = [{"role": "user", "content": "1 + 1?"}]
for directory in sys.argv[1:]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory)
    prompt = tokenizer("gr\u00f6\u00dfe <|user|>", return_tensors="pt")
    answer = model.generate(**prompt)[0].tolist()
    print(json.dumps({"ids": prompt["input_ids"][0].tolist(), "answer": answer,
                      "text": tokenizer.decode(answer), "end": tokenizer.eos_token_id,
                      "settings": model.generation_config.max_new_tokens,
                      "chat": tokenizer.apply_chat_template(chat, tokenize=False,
                                                            add_generation_prompt=True)}))
"""


class TransformersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = peer_python(VENV, PINS.read_text().split())
        cls.folder = tempfile.TemporaryDirectory()
        cls.fixtures = pathlib.Path(cls.folder.name) / "fixtures"
        subprocess.run([cls.python, "-B", ROOT / "tests/interop/make_fixtures.py", "--troupe",
                        BIN / "troupe", "--output", cls.fixtures], check=True, capture_output=True,
                       timeout=300)
        cls.variants = sorted(path.parent.name for path in cls.fixtures.glob("*/expected.json"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def troupe(self, *arguments):
        done = subprocess.run([BIN / "troupe", *map(str, arguments)], capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def expected(self, variant):
        return json.loads((self.fixtures / variant / "expected.json").read_text())

    def peer_logits(self, requests):
        lines = "".join(json.dumps({**r, "directory": str(r["directory"])}) + "\n"
                        for r in requests)
        done = subprocess.run([self.python, "-B", "-c", PEER, ROOT / "tests/interop"], input=lines,
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assert_near(self, got, want, tolerance, what):
        worst = max(abs(a - b) for rows in zip(got, want, strict=True)
                    for a, b in zip(*rows, strict=True))
        self.assertLessEqual(worst, tolerance, what)
        print(f"{what}: logits differ by at most {worst:.2g}")

    def test_fixtures_made_anew_train_here_as_in_pytorch(self):
        self.assertEqual(len(self.variants), 3)
        done = subprocess.run([BIN / "fixtures_test"], cwd=ROOT, capture_output=True, text=True,
                              timeout=300, env={**os.environ,
                                                "TROUPE_FIXTURES": str(self.fixtures)})
        self.assertEqual(done.returncode, 0, done.stdout[-5000:])

    def test_transformers_loads_exports_with_the_same_logits(self):
        requests, wanted = [], []
        for variant in self.variants:
            home = pathlib.Path(self.folder.name) / f"{variant}-out"
            self.troupe("checkpoints", "import", self.fixtures / variant, "--to", home / "import")
            for name, flags in {"same": [], "float32": ["--dtype", "float32"],
                                "parts": ["--max-shard-bytes", 50_000]}.items():
                self.troupe("checkpoints", "export", home / "import", "--to", home / name, *flags)
                requests.append({"directory": home / name,
                                 "tokens": self.expected(variant)["tokens"]})
                wanted.append((f"{variant}, {name}", self.expected(variant)["logits"]))
        for got, (what, want) in zip(self.peer_logits(requests), wanted, strict=True):
            with self.subTest(what):
                self.assert_near(got, want, LOGIT_TOLERANCE, what)

    def test_an_export_has_the_tokenizer_of_its_model_and_generates(self):
        home = pathlib.Path(self.folder.name) / "tokenizer"
        models.write_model(home / "hf")
        self.troupe("checkpoints", "import", home / "hf", "--to", home / "import")
        self.troupe("checkpoints", "export", home / "import", "--to", home / "export",
                    "--tokenizer", home / "hf")
        done = subprocess.run([self.python, "-B", "-c", TOKENIZERS, home / "hf", home / "export"],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        own, exported = (json.loads(line) for line in done.stdout.splitlines())
        self.assertEqual(exported, own)
        self.assertEqual(own["ids"], [*"größe ".encode(), 257])
        self.assertEqual((own["end"], own["settings"]), (256, 8))
        self.assertEqual(own["chat"], "<|user|>1 + 1?<|assistant|>")
        self.assertGreater(len(own["answer"]), len(own["ids"]))

    def test_the_page_about_fine_tuning_runs_with_transformers(self):
        page = pages.Page(self, "docs/fine-tune.md", models.SMALL_FINE_TUNE,
                          omitted=["hf download", "vllm serve"],
                          environment={"PATH": f"{VENV}/bin:{BIN}:{os.environ['PATH']}"})
        models.write_model(page.folder / "Llama-3.2-1B")
        models.write_notes(page.folder / "notes.jsonl")
        page.run()

    def test_mistral_without_its_window_is_exported_as_the_llama_that_it_is(self):
        home = pathlib.Path(self.folder.name) / "mistral"
        made = subprocess.run([self.python, "-B", "-c", MISTRAL, home / "hf"], capture_output=True,
                              text=True,
                              timeout=120)
        self.assertEqual(made.returncode, 0, made.stderr)
        answer = json.loads(made.stdout)
        self.troupe("checkpoints", "import", home / "hf", "--to", home / "import")
        self.troupe("checkpoints", "export", home / "import", "--to", home / "llama")
        got = self.peer_logits([{"directory": home / "llama", "tokens": answer["tokens"]}])[0]
        self.assert_near(got, answer["logits"], LOGIT_TOLERANCE, "mistral")

    def test_a_model_that_was_trained_here_is_the_one_that_pytorch_trained(self):
        self.check_trained("trained", [], {})

    def test_sgd_is_that_of_pytorch(self):
        sgd = {"lr": 0.05, "momentum": 0.9, "nesterov": True}
        # The keys of AdamW in the fixture's job are refused with SGD.
        ours = [f"--set=optimizer={json.dumps({**sgd, 'name': 'sgd', 'weight_decay': 0.1})}"]
        self.check_trained("sgd", ours, {"sgd": sgd}, without="optimizer: ")

    def test_a_part_that_is_trained_is_that_of_pytorch(self):
        globs = ["model.layers.1.*", "*.input_layernorm.weight"]
        self.check_trained("part", [f"--set=model.trainable={json.dumps(globs)}"],
                           {"trainable": globs})

    def check_trained(self, name, flags, peer, without=None):
        """Trains a fixture on four ranks with `flags`, and compares the export with PyTorch's own
        result for the settings `peer`. `without`: leaves out lines of the job that begin so."""
        variant = "tied-grouped-llama3"
        job_file = self.fixtures / variant / f"{name}.yaml"
        lines = (self.fixtures / variant / "job.yaml").read_text().splitlines()
        job_file.write_text("\n".join(line for line in lines
                                      if without is None or not line.startswith(without)) + "\n")
        with Cluster(workers=4) as cluster:
            job = cluster.json("submit", job_file, "--name", name,
                               f"--set=checkpoint.folder={cluster.home}/checkpoints",
                               "--set=parallelism.tensor_parallel_degree=2",
                               "--set=parallelism.pipeline_parallel_degree=2", *flags)["name"]
            done = cluster.wait_for_state(job, "SUCCEEDED")
            trained = pathlib.Path(self.folder.name) / name
            self.troupe("checkpoints", "export", done["checkpoints"][-1]["path"], "--to", trained)
        batches = [json.loads(self.troupe("data", "show", job_file, "--step", step, "-o",
                                          "json"))["samples"]
                   for step in range(1, 21)]
        tokens = self.expected(variant)["tokens"]
        ours, theirs = self.peer_logits([{"directory": trained, "tokens": tokens},
                                         {"directory": self.fixtures / variant, "tokens": tokens,
                                          "batches": batches, **peer}])
        self.assert_near(ours, theirs, TRAINED_TOLERANCE, f"{name}: trained for 20 steps")
        before = self.expected(variant)["logits"]
        self.assertGreater(max(abs(a - b) for a, b in zip(ours[0], before[0])),
                           1000 * TRAINED_TOLERANCE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
