"""Makes the committed tokenizers of data/testdata and the results of the package `tokenizers` for
them.

    python tests/interop/make_tokenizers.py

It needs an environment with the version named in tokenizers_test.py.

Each is trained on the generated texts of tokenizer_text.py, so the same version makes the same
files again.
"""

import hashlib
import json
import pathlib
import struct

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import tokenizer_text

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/testdata"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| "
          r"?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SEED, SIZE = 20240520, 1_000_000
SHORT = ("Hello, world!  We're 12345 and THEY'LL'S\r\n\r\n\tnaïve größe <|endoftext|>日本語 👩‍👩‍👧‍👦 "
         "e\u0301   x\n  \n"
         "<|pad|><|pad|>x \u00a0\u3000 'ſ ٣٤٥ \U00031350\U0001e030 \u180ea")


def trained(rule, merges):
    tokenizer = Tokenizer(models.BPE(ignore_merges=rule == "llama3"))
    if rule == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        special = ["<|endoftext|>"]
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        special = []
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=256 + len(special) + merges, special_tokens=special,
                                  show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([tokenizer_text.code_text(1, 400_000),
                                   tokenizer_text.unicode_text(2, 100_000)],
                                  trainer)
    if rule == "llama3":
        tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
        tokenizer.add_tokens([AddedToken("<|pad|>", normalized=False),
                              AddedToken("foo_bar", normalized=True),
                              AddedToken("foo_bar!", normalized=True)])
    return tokenizer


def written(tokenizer, path, legacy):
    """Writes the file as the package does, compact; for GPT-2 the merges have the form of older
    versions."""
    content = json.loads(tokenizer.to_str())
    if legacy:
        content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")


def ids(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def digest(numbers):
    return hashlib.sha256(struct.pack(f"<{len(numbers)}i", *numbers)).hexdigest()


def main():
    for rule, merges in (("gpt2", 1200), ("llama3", 1200)):
        path = OUT / f"{rule}_tokenizer.json"
        written(trained(rule, merges), path, legacy=rule == "gpt2")
        tokenizer = Tokenizer.from_file(str(path))
        expected = {"tokenizers": tokenizers.__version__, "vocab_size": tokenizer.get_vocab_size(),
                    "text": SHORT, "ids": ids(tokenizer, SHORT), "seed": SEED, "size": SIZE}
        for kind, make in (("code", tokenizer_text.code_text),
                           ("unicode", tokenizer_text.unicode_text)):
            text = make(SEED, SIZE)
            numbers = ids(tokenizer, text)
            expected[kind] = {"text_sha256": hashlib.sha256(text.encode()).hexdigest(),
                              "ids": len(numbers),
                              "ids_sha256": digest(numbers)}
        (OUT / f"{rule}_expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
