"""The texts on which tokenizers are compared: TextMaker in data/tokenizer_file_test.cc generates
the same bytes in C++.

One stream of splitmix64 makes every choice, so that a seed and a size determine the text.
"""

import json
import pathlib

MASK = (1 << 64) - 1

# The parts of the texts; `ranges` has the first and last of the ranges of single characters, in
# every plane.
ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = json.loads((ROOT / "data/testdata/text_parts.json").read_text())
WORDS, PUNCTUATION, SPACES, EMOJI, RANGES = (
    PARTS[key] for key in ("words", "punctuation", "spaces", "emoji", "ranges"))


class Stream:
    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % bound

    def of(self, things):
        return things[self.below(len(things))]


def code_text(seed, size):
    """Returns text like source code and prose, at least `size` bytes of UTF-8."""
    stream, parts, made = Stream(seed), [], 0
    while made < size:
        draw = stream.below(16)
        if draw < 8:
            part = stream.of(WORDS) + " "
        elif draw < 11:
            part = stream.of(PUNCTUATION)
        elif draw < 13:
            part = stream.of(SPACES)
        elif draw < 14:
            part = str(stream.below(10 ** (1 + stream.below(12))))
        else:
            part = "".join(chr(0x61 + stream.below(26)) for _ in range(1 + stream.below(10)))
        parts.append(part)
        made += len(part.encode())
    return "".join(parts)


def unicode_text(seed, size):
    """Returns text from every plane of Unicode, at least `size` bytes of UTF-8."""
    stream, parts, made = Stream(seed), [], 0
    while made < size:
        draw = stream.below(16)
        if draw < 9:
            first, last = stream.of(RANGES)
            part = "".join(chr(first + stream.below(last - first + 1))
                           for _ in range(1 + stream.below(6)))
        elif draw < 11:
            part = stream.of(EMOJI)
        elif draw < 13:
            part = stream.of(SPACES)
        elif draw < 14:
            part = stream.of(WORDS)
        elif draw < 15:
            part = stream.of(PUNCTUATION)
        else:
            part = stream.of(SPACES) * (1 + stream.below(30))
        parts.append(part)
        made += len(part.encode())
    return "".join(parts)
