"""The ids equal those of the PyPI package `tokenizers`, on 1 MB of this machine's headers and 1 MB
from every plane of Unicode.

Creates an environment (build/interop-tokenizers) with the pinned version. Run by ./run test
interop.
"""

import json
import pathlib
import random
import struct
import subprocess
import tempfile
import unittest

import peer_environment
import tokenizer_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
TROUPE = ROOT / "build/release/bin/troupe"
VENV = ROOT / "build/interop-tokenizers"
PACKAGE = "tokenizers==0.23.3"
RULES = ("gpt2", "llama3")

# The script that runs the package in its environment: it returns the ids of each text with each
# tokenizer, without added tokens.
PEER = """
import json, pathlib, sys
from tokenizers import Tokenizer, pre_tokenizers, trainers
def train(rule, text, path):
    content = json.loads(pathlib.Path(rule).read_text())
    content["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(content))
    trainer = trainers.BpeTrainer(vocab_size=30000, special_tokens=["<|endoftext|>"],
                                  show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([pathlib.Path(text).read_text(errors="replace")], trainer)
    tokenizer.save(path)

for line in sys.stdin:
    request = json.loads(line)
    if not pathlib.Path(request["tokenizer"]).exists():
        train(request["rule"], request["train"], request["tokenizer"])
    text = pathlib.Path(request["text"]).read_bytes().decode("utf-8", errors="replace")
    tokenizer = Tokenizer.from_file(request["tokenizer"])
    print(json.dumps(tokenizer.encode(text, add_special_tokens=False).ids))
"""


def headers_text(size):
    """Returns at least `size` bytes of /usr/include, including ill-formed UTF-8, without zero
    bytes."""
    parts, made = [], 0
    for path in sorted(pathlib.Path("/usr/include").rglob("*.h")):
        if path.is_file() and made < size:
            parts.append(path.read_bytes().replace(b"\0", b""))
            made += len(parts[-1])
    return b"".join(parts)


def ill_formed_text(size):
    """Returns text with random bytes in between, so that every kind of ill-formed UTF-8 occurs."""
    draw = random.Random(7)
    parts, made = [], 0
    while made < size:
        parts.append(bytes(draw.choices(range(1, 256), k=draw.randrange(1, 9))))
        parts.append(draw.choice([b" word", b"\n", "größe".encode(), "👍🏽".encode(),
                                  "日本".encode()[:-1]]))
        made += len(parts[-1]) + len(parts[-2])
    return b"".join(parts)


class TokenizersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = peer_environment.peer_python(VENV, [PACKAGE])
        cls.folder = tempfile.TemporaryDirectory()
        cls.texts = {"headers": headers_text(1_000_000),
                     "code": tokenizer_text.code_text(11, 1_000_000).encode(),
                     "unicode": tokenizer_text.unicode_text(12, 1_000_000).encode(),
                     "ill_formed": ill_formed_text(200_000),
                     "letters": b"ab" * 20_000, "spaces": b" " * 100_000 + b"x",
                     "lines": b"\r\n" * 50_000}
        for name, text in cls.texts.items():
            (pathlib.Path(cls.folder.name) / name).write_bytes(text)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def ours(self, tokenizer, name, *more):
        prefix = self.path(f"{name}.data")
        done = subprocess.run([TROUPE, "data", "prepare", "--output", prefix, "--tokenizer",
                               tokenizer, "-o", "json", *more, self.path(name)],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        tokens = pathlib.Path(prefix + ".bin").read_bytes()
        self.assertEqual(len(tokens), 2 * answer["tokens"])
        ids = struct.unpack(f"<{answer['tokens']}H", tokens)
        self.assertEqual(ids[-1], answer["end_of_document"])
        return list(ids[:-1]), answer

    def test_the_committed_splits_are_those_of_the_package(self):
        """Checks data/testdata/splits.json, with which data/tokenizer_file_test.cc compares our
        pieces."""
        done = subprocess.run([self.python, "-c", "import json, make_splits; "
                                                  "print(json.dumps(make_splits.content()))"],
                              cwd=ROOT / "tests/interop", capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout),
                         json.loads((ROOT / "data/testdata/splits.json").read_text()))

    def test_every_text_has_the_ids_of_the_package(self):
        """Uses the committed tokenizers, and tokenizers of 30,000 tokens trained on the headers."""
        requests = []
        for rule in RULES:
            committed = str(ROOT / f"data/testdata/{rule}_tokenizer.json")
            for tokenizer in (committed, self.path(f"{rule}.json")):
                for name in self.texts:
                    requests.append({"tokenizer": tokenizer, "text": self.path(name),
                                     "rule": committed,
                                     "train": self.path("headers")})
        peer = subprocess.run([self.python, "-c", PEER],
                              input="".join(json.dumps(r) + "\n" for r in requests),
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(peer.returncode, 0, peer.stderr)
        for request, line in zip(requests, peer.stdout.splitlines(), strict=True):
            name = pathlib.Path(request["text"]).name
            with self.subTest(tokenizer=request["tokenizer"], text=name):
                expected = json.loads(line)
                got, answer = self.ours(request["tokenizer"], name)
                first = next((i for i, pair in enumerate(zip(got, expected)) if pair[0] != pair[1]),
                             None)
                self.assertIsNone(first, f"{len(got)} ids, the first other one at {first}")
                self.assertEqual(len(got), len(expected))
                self.assertEqual(answer["replaced"] > 0, name == "ill_formed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
