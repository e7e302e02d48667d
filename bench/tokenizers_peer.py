"""The peer of troupe-bench-tokenizer: trains a tokenizer of 30,000 tokens and times the package
itself.

    tokenizers_peer.py RULE.json OUT.json < paths
"""

import json
import pathlib
import sys
import time

from tokenizers import Tokenizer, pre_tokenizers, trainers

REPETITIONS = 3


def main():
    rule, out = sys.argv[1:]
    texts = [pathlib.Path(line).read_bytes().decode(errors="replace")
             for line in sys.stdin.read().split("\n")]
    content = json.loads(pathlib.Path(rule).read_text())
    content["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(content))
    trainer = trainers.BpeTrainer(vocab_size=30000, special_tokens=["<|endoftext|>"],
                                  show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(out)
    for _ in range(REPETITIONS):
        tokenizer = Tokenizer.from_file(out)
        begin = time.process_time()
        encoded = [len(tokenizer.encode(text, add_special_tokens=False)) for text in texts]
        print(json.dumps({"tokens": sum(encoded), "cpu_seconds": time.process_time() - begin}))


if __name__ == "__main__":
    main()
