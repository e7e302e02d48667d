"""Indexed datasets of Megatron-core's own tools and of ours are interchangeable.

Creates an environment (build/interop-megatron) with the pinned packages, without PyTorch
(tests/interop/megatron.py). Run by ./run test interop.
"""

import json
import pathlib
import subprocess
import tempfile
import unittest

from peer_environment import peer_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
TROUPE = ROOT / "build/release/bin/troupe"
VENV = ROOT / "build/interop-megatron"
PACKAGES = ["megatron-core==0.16.1", "numpy==1.26.4"]

# Runs with the package: reads our dataset, writes the same tokens itself, and writes a dataset for
# us to read.
PEER = """
import json, random, sys
sys.path.insert(0, sys.argv[1])
import megatron, numpy
module = megatron.load()
folder = sys.argv[2]
answer = {}
for name in ("bytes", "words"):
    theirs = module.IndexedDataset(f"{folder}/{name}")
    indices = theirs.document_indices.tolist()
    documents = [[theirs.get(i).tolist() for i in range(a, b)]
                 for a, b in zip(indices, indices[1:])]
    megatron.write(module, f"{folder}/{name}_again", documents, theirs.index.dtype)
    answer[name] = documents
draw = random.Random(9)
documents = [[[draw.randrange(50_000) for _ in range(draw.randrange(1, 400))]
              for _ in range(draw.randrange(1, 5))]
             for _ in range(60)]
megatron.write(module, f"{folder}/made", documents, module.DType.optimal_dtype(50_000))
answer["made"] = documents
print(json.dumps(answer))
"""


class MegatronTest(unittest.TestCase):
    def troupe(self, *arguments):
        done = subprocess.run([TROUPE, *map(str, arguments), "-o", "json"], capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_each_reads_what_the_other_writes_and_writes_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            texts = sorted((ROOT / "data").glob("*.cc"))[:12]
            self.troupe("data", "prepare", "--output", folder / "bytes", *texts)
            tokenizer = ROOT / "data/testdata/gpt2_tokenizer.json"
            self.troupe("data", "prepare", "--output", folder / "words", "--tokenizer", tokenizer,
                        *texts)
            peer = subprocess.run([peer_python(VENV, PACKAGES, "--no-deps"), "-c", PEER,
                                   ROOT / "tests/interop", folder],
                                  capture_output=True,
                                  text=True, timeout=120)
            self.assertEqual(peer.returncode, 0, peer.stderr)
            answer = json.loads(peer.stdout)
            self.assertEqual(answer["bytes"], [[list(path.read_bytes()) + [256]] for path in texts])
            self.assertEqual(len(answer["words"]), len(texts))
            for made in ("bytes", "words"):
                for suffix in (".idx", ".bin"):
                    self.assertEqual((folder / (made + suffix)).read_bytes(),
                                     (folder / (made + "_again" + suffix)).read_bytes(),
                                     made + suffix)
            self.rows_are_those_of(folder, answer["made"])

    def rows_are_those_of(self, folder, documents):
        """One epoch of training rows contains every row of the concatenated tokens exactly once."""
        tokens = [token for document in documents for sequence in document for token in sequence]
        length, batch = 32, 8
        rows = (len(tokens) - 1) // length
        job = folder / "job.yaml"
        job.write_text(f"model: {{vocab_size: 50000}}\ndata: {{train: {folder}/made}}\n"
                       f"training: {{sequence_length: {length}, global_batch_size: {batch}}}\n")
        seen = {}
        for step in range(1, rows // batch + 2):
            for sample in self.troupe("data", "show", job, "--step", step)["samples"]:
                if sample["epoch"] == 0:
                    seen[sample["row"]] = (sample["tokens"], sample["targets"])
        self.assertEqual(seen, {r: (tokens[r * length:(r + 1) * length],
                                    tokens[r * length + 1:(r + 1) * length + 1])
                                for r in range(rows)})


if __name__ == "__main__":
    unittest.main(verbosity=2)
