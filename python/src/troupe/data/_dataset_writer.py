"""Writer of Megatron-LM's indexed datasets, as data/indexed_dataset_writer.h: after a crash
PREFIX.idx is either absent or complete and consistent with the files next to it."""

from __future__ import annotations

import array
import contextlib
import itertools
import json
import os
import stat
import struct
import types
from typing import BinaryIO, Iterable, Iterator, Optional, Type

_MAGIC = b"MMIDIDX\0\0"
_VERSION = 1
_TYPES = {"H": 8, "i": 4}  # by the code of the module array: that of the index
_MOST_SEQUENCE_TOKENS = (1 << 31) - 1  # the format's lengths are int32
_BUFFER_BYTES = 1 << 20
_ENTRIES = 1 << 16  # of the index that are converted at once


def type_code(vocab_size: int) -> str:
    """Returns Megatron's choice of type for a vocabulary, as a code of the module array."""
    return "H" if vocab_size < 65500 else "i"


def make_directories(path: str) -> None:
    """Durably creates a directory and its missing parents."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path.rstrip("/")) or "."
    if parent != path:
        make_directories(parent)
    os.mkdir(path, 0o755)
    _sync_directory(parent)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _create(path: str) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
                         | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileExistsError(f"{path}: is not a regular file")
    return open(descriptor, "wb", buffering=_BUFFER_BYTES)


def _close(file: BinaryIO) -> None:
    """Writes the file to the disk, and closes it."""
    file.flush()
    os.fsync(file.fileno())
    file.close()


def _blocks(values: Iterable[int]) -> Iterator[bytes]:
    """Yields numbers as int64."""
    rest = iter(values)
    while True:
        block = array.array("q", itertools.islice(rest, _ENTRIES))
        if not block:
            return
        yield block.tobytes()


class DatasetWriter:
    """Writes one dataset. Leaving its context removes the temporary files unless finish() has
    succeeded. Keeps 12 bytes a document in memory."""

    def __init__(self, prefix: str, code: str) -> None:
        """Creates PREFIX.bin.tmp for tokens of a type_code(). Raises OSError, as all methods."""
        self._prefix = prefix
        self._code = code
        self._lengths = array.array("i")
        self._documents = array.array("q", [0])
        self._open_tokens = 0  # of the open document's open sequence
        self.tokens = 0
        self._data = _create(f"{prefix}.bin.tmp")

    def __enter__(self) -> DatasetWriter:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[types.TracebackType]) -> None:
        with contextlib.suppress(OSError):
            self._data.close()
        for name in (".bin", ".idx", ".troupe.json"):
            with contextlib.suppress(OSError):
                os.unlink(f"{self._prefix}{name}.tmp")

    @property
    def documents(self) -> int:
        return len(self._documents) - 1

    def append(self, tokens: "array.array[int]", ends: "array.array[int]") -> None:
        """Appends tokens to the open document. It ends, and another one begins, after each of
        these numbers of them."""
        self._data.write(tokens.tobytes())
        begin = 0
        for end in ends:
            self._lengthen(end - begin)
            self._end_document()
            begin = end
        self._lengthen(len(tokens) - begin)
        self.tokens += len(tokens)

    def _lengthen(self, tokens: int) -> None:
        self._open_tokens += tokens
        while self._open_tokens >= _MOST_SEQUENCE_TOKENS:
            self._lengths.append(_MOST_SEQUENCE_TOKENS)
            self._open_tokens -= _MOST_SEQUENCE_TOKENS

    def _end_document(self) -> None:
        if self._open_tokens > 0:
            self._lengths.append(self._open_tokens)
            self._open_tokens = 0
        self._documents.append(len(self._lengths))

    def finish(self, description: str) -> None:
        """Completes the dataset and its description. REQUIRES: the last document has ended."""
        prefix = self._prefix
        folder = os.path.dirname(prefix) or "."
        _close(self._data)
        self._write_index()
        file = _create(f"{prefix}.troupe.json.tmp")
        with file:
            file.write(description.encode())
            _close(file)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{prefix}.idx")
        _sync_directory(folder)
        for name in (".bin", ".troupe.json", ".idx"):
            os.replace(f"{prefix}{name}.tmp", f"{prefix}{name}")
        _sync_directory(folder)

    def _write_index(self) -> None:
        token_bytes = array.array(self._code).itemsize
        with _create(f"{self._prefix}.idx.tmp") as file:
            file.write(struct.pack("<9sQBQQ", _MAGIC, _VERSION, _TYPES[self._code],
                                   len(self._lengths), len(self._documents)))
            file.write(self._lengths.tobytes())
            ends = itertools.accumulate(length * token_bytes for length in self._lengths)
            pointers = itertools.islice(itertools.chain((0,), ends), len(self._lengths))
            file.writelines(_blocks(pointers))
            file.write(self._documents.tobytes())
            _close(file)


def description(tokenizer: str, vocab_size: int, end_of_document: int, tokens: int,
                text_bytes: int) -> str:
    """Returns the text of PREFIX.troupe.json (data/dataset_description.h)."""
    # The name may be a path, whose bytes need not be UTF-8.
    name = os.fsencode(tokenizer).decode(errors="replace")
    return json.dumps({"tokenizer": name, "vocab_size": vocab_size,
                       "end_of_document": end_of_document, "tokens": tokens,
                       "text_bytes": text_bytes},
                      ensure_ascii=False, separators=(",", ":")) + "\n"
