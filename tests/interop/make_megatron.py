"""Makes the committed files of data/testdata/megatron with Megatron-core's own builder.

    python tests/interop/make_megatron.py

It needs an environment with the packages named in megatron_test.py.
"""

import json
import pathlib
import random

import numpy

import megatron

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/testdata/megatron"
DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float64", "float32", "uint16")


def main():
    module = megatron.load()
    OUT.mkdir(parents=True, exist_ok=True)
    draw = random.Random(4)
    expected = {}

    def make(name, documents, dtype, modes=None):
        megatron.write(module, str(OUT / name), documents, getattr(numpy, dtype), modes)
        expected[name] = {"dtype": module.DType.code_from_dtype(getattr(numpy, dtype)),
                          "documents": documents}

    def sequences(count, most, vocabulary):
        return [[draw.randrange(vocabulary) for _ in range(draw.randrange(most))]
                for _ in range(count)]

    for dtype in DTYPES:  # several sequences per document, some sequences and documents empty
        make(dtype, [sequences(draw.randrange(4), 7, 128) for _ in range(6)], dtype)
    documents = [sequences(3, 5, 100_000) for _ in range(3)]
    make("modes", documents, "int32", [[0, 1, 0]] * 3)
    # One sequence per document, as `data prepare` writes text.
    make("text_uint16", [[[draw.randrange(65_500) for _ in range(draw.randrange(1, 9))]]
                         for _ in range(5)], "uint16")
    make("text_int32", [[[draw.randrange(128_000) for _ in range(draw.randrange(1, 9))]]
                        for _ in range(5)], "int32")
    # Two merged datasets.
    builder = module.IndexedDatasetBuilder(str(OUT / "merged.bin"), dtype=numpy.uint16)
    for part in ("uint16", "text_uint16"):
        builder.add_index(str(OUT / part))
    builder.finalize(str(OUT / "merged.idx"))
    expected["merged"] = {"dtype": 8,
                          "documents":
                          expected["uint16"]["documents"] + expected["text_uint16"]["documents"]}
    (OUT / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
