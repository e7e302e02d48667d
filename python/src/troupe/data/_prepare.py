"""Converts texts, JSON lines, Parquet files and folders of the package `datasets` into one dataset,
as `troupe data prepare` does."""

from __future__ import annotations

import dataclasses
import os
import stat
from typing import Callable, List, Optional

from troupe.data import _json_lines
from troupe.data._dataset_writer import DatasetWriter, description, make_directories, type_code
from troupe.data._encode import Encoded, Encoder, encode
from troupe.data._prefix_lock import prefix_lock
from troupe.data._sources import Documents, Reading, Skipped, bytes_beneath
from troupe.data._tokenizers import ByteTokenizer, load
from troupe.errors import InvalidArgument

_SMALL_BYTES = 1 << 20  # which one process has encoded before others have started


@dataclasses.dataclass(frozen=True)
class Options:
    output_prefix: str
    tokenizer: str
    paths: List[str]
    end_of_document: Optional[int] = None
    reading: Reading = Reading()
    processes: int = 1


@dataclasses.dataclass
class Progress:
    bytes_total: int  # of all files, before the first was read
    bytes_read: int = 0
    documents: int = 0
    tokens: int = 0


@dataclasses.dataclass
class Result:
    """As PrepareResult in data/prepare.h."""

    vocab_size: int
    end_of_document: int
    skipped: Skipped
    files: List[str]
    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    replaced_parts: int = 0
    replaced_documents: int = 0

    def add(self, encoded: Encoded) -> None:
        self.documents += len(encoded.ends)
        self.tokens += len(encoded.tokens)
        self.text_bytes += encoded.text_bytes
        self.replaced_parts += encoded.replaced_parts
        self.replaced_documents += encoded.replaced_documents
        self.skipped.empty += encoded.skipped_empty


def _check_paths(paths: List[str]) -> int:
    """Returns the bytes of all paths. They are checked before any work."""
    for path in paths:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise InvalidArgument(f"{path} is neither a regular file nor a directory")
    return sum(bytes_beneath(path) for path in paths)


def prepare(options: Options, show: Callable[[Progress], None] = lambda _: None) -> Result:
    """Writes PREFIX.bin, PREFIX.idx and PREFIX.troupe.json, and calls `show` now and then. Raises
    OSError and TroupeError; then no temporary file is left."""
    prefix = options.output_prefix
    if prefix.endswith(".bin"):
        raise InvalidArgument(f"output prefix {prefix} ends in .bin, as the names of llm.c's token "
                              "files do")
    tokenizer = load(options.tokenizer, options.end_of_document)
    progress = Progress(_check_paths(options.paths))
    documents = Documents(options.reading, isinstance(tokenizer, ByteTokenizer))
    result = Result(tokenizer.vocab_size, tokenizer.end_of_document, documents.skipped,
                    [f"{prefix}.bin", f"{prefix}.idx"])
    encoder = Encoder(tokenizer, options.reading.json_key or _json_lines.DEFAULT_KEY)
    is_light = isinstance(tokenizer, ByteTokenizer) or progress.bytes_total < _SMALL_BYTES
    make_directories(os.path.dirname(prefix) or ".")
    with prefix_lock(prefix), DatasetWriter(prefix, type_code(tokenizer.vocab_size)) as writer:
        for encoded in encode(documents.of(options.paths), encoder,
                              1 if is_light else options.processes):
            writer.append(encoded.tokens, encoded.ends)
            result.add(encoded)
            progress.bytes_read, progress.documents = encoded.bytes_read, result.documents
            progress.tokens = result.tokens
            show(progress)
        if result.documents == 0:
            skipped = result.skipped
            raise InvalidArgument(
                f"no document found in {len(options.paths)} "
                f"path{'' if len(options.paths) == 1 else 's'}: {skipped.binary} binary, "
                f"{skipped.unreadable} unreadable, {skipped.empty} empty files, {skipped.links} "
                "links")
        writer.finish(description(options.tokenizer, result.vocab_size, result.end_of_document,
                                  result.tokens, result.text_bytes))
    return result
