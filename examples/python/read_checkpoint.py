#!/usr/bin/env python3
"""Reads a Troupe checkpoint with the standard library alone, in the format of docs/checkpoints.md:
checks every file and assembles the global tensors from the ranks' slices.

usage: read_checkpoint.py DIR [NAME …]     one line per tensor, with the first values of those named
"""

import array
import json
import math
import pathlib
import struct
import sys

TABLE = list(range(256))  # for CRC-32C
for _ in range(8):
    TABLE = [(crc >> 1) ^ (crc & 1) * 0x82F63B78 for crc in TABLE]
BLOCK = 4 << 20
CODES = {"F64": "d", "F32": "f", "F16": "e", "BF16": "H", "I64": "q", "I32": "i", "I16": "h",
         "U8": "B"}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def slices(directory, shard):
    """Yields (name, dtype, global shape, global offset, shape, bytes) of each slice of a file.
    Raises ValueError if its checksums are not the manifest's."""
    data = (directory / shard["name"]).read_bytes()
    if [crc32c(data[at:at + BLOCK]) for at in range(0, len(data), BLOCK)] != shard["block_crc32c"]:
        raise ValueError(f"{shard['name']}: the content differs from what was written")
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    places = header.pop("__metadata__")
    for key, entry in header.items():
        place = json.loads(places[key])
        begin, end = entry["data_offsets"]
        yield (place["name"], entry["dtype"], place["global_shape"], place["global_offset"],
               entry["shape"],
               data[start + begin:start + end])


def read(path):
    """Returns (manifest, {name: (dtype, shape, row-major little-endian bytes)})."""
    directory = pathlib.Path(path)
    manifest = json.loads((directory / "manifest.json").read_text())
    tensors = {}
    for shard in manifest["shards"]:
        for name, dtype, global_shape, offset, shape, data in slices(directory, shard):
            size = struct.calcsize("<" + CODES[dtype])
            _, _, whole = tensors.setdefault(name, (dtype, global_shape,
                                                    bytearray(size * math.prod(global_shape))))
            # elements that are contiguous in both: a row of the last dim
            run = size * (shape[-1] if shape else 1)
            for i in range(len(data) // run if run else 0):
                index = [math.prod(shape[d + 1:-1]) for d in range(len(shape) - 1)]
                index = [i // stride % extent
                         for stride, extent in zip(index, shape)] + [0] * bool(shape)
                at = 0
                for extent, begin, within in zip(global_shape, offset, index):
                    at = at * extent + begin + within
                whole[at * size:at * size + run] = data[i * run:(i + 1) * run]
    return manifest, tensors


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__[__doc__.index("usage:"):].rstrip())
    if not (pathlib.Path(sys.argv[1]) / "manifest.json").is_file():
        sys.exit(f"{sys.argv[1]}: is not the folder of a checkpoint: it has no manifest.json")
    state, found = read(sys.argv[1])
    print(f"job {state['job']}, step {state['state']['step']}, "
          f"{state['state']['consumed_samples']} samples")
    for tensor, (kind, extents, content) in sorted(found.items()):
        shown = tensor in sys.argv[2:] and kind in ("F32", "F64")
        values = array.array(CODES[kind], content[:64]) if shown else ""
        print(tensor, kind, extents, *values)
