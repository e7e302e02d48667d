"""Makes data/testdata/splits.json: the pieces into which the package `tokenizers` splits texts by
the published rules.

    python tests/interop/make_splits.py

It needs an environment with the version named in tokenizers_test.py.

The rules are those with which GPT-2 and Llama 3 were published. The pieces themselves are compared,
because ids reveal a cut only if the vocabulary has a merge across it.
"""

import hashlib
import json
import struct

import tokenizers
from tokenizers import Regex, pre_tokenizers

import make_tokenizers
import tokenizer_text

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
RULES = {"gpt2": GPT2, "llama3": make_tokenizers.LLAMA3}


def piece_bytes(pattern, text):
    """Returns the length in bytes of each piece, in order."""
    cut = pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text)
    return [len(piece.encode()) for piece, _ in cut]


def content():
    rules = {}
    for name, pattern in RULES.items():
        rules[name] = {"pattern": pattern}
        for kind, make in (("code", tokenizer_text.code_text),
                           ("unicode", tokenizer_text.unicode_text)):
            lengths = piece_bytes(pattern, make(make_tokenizers.SEED, make_tokenizers.SIZE))
            packed = struct.pack(f"<{len(lengths)}i", *lengths)
            rules[name][kind] = {"pieces": len(lengths),
                                 "bytes_sha256": hashlib.sha256(packed).hexdigest()}
    return {"tokenizers": tokenizers.__version__, "seed": make_tokenizers.SEED,
            "size": make_tokenizers.SIZE,
            "rules": rules}


if __name__ == "__main__":
    (make_tokenizers.OUT / "splits.json").write_text(json.dumps(content()) + "\n")
