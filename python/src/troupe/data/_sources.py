"""Finds the documents of files and folders, as data/prepare.cc, in an order that depends on their
names alone."""

from __future__ import annotations

import dataclasses
import os
import stat
from typing import BinaryIO, Iterator, List, NamedTuple, Optional

from troupe.data import _json_lines, _tables
from troupe.data._decompressed import PART_BYTES, Damaged, compression_of, parts, position
from troupe.errors import InvalidArgument, ResourceExhausted

_PROBE_BYTES = 8192  # a zero byte among them makes a file binary
# The largest text that is encoded as a whole: for each of its bytes the libraries need some 200
# bytes of memory.
MOST_WHOLE_BYTES = 64 << 20
_GIT_LFS = b"version https://git-lfs.github.com/spec/"

# The kinds of items.
LINE = "line"  # of JSON lines
ROW = "row"    # the text of a row of a table
TEXT = "text"  # a text, or its last part
PART = "part"  # a part of a text, which another one follows


class Item(NamedTuple):
    kind: str
    data: bytes
    place: str       # "PATH", "PATH:LINE" or "PATH[ROW]"
    bytes_read: int  # of all files, compressed where they are


@dataclasses.dataclass
class Skipped:
    """Counts of what has no tokens, as PrepareResult in data/prepare.h."""

    binary: int = 0
    unreadable: int = 0
    empty: int = 0
    links: int = 0
    special: int = 0


@dataclasses.dataclass(frozen=True)
class Reading:
    """How files are read."""

    json_key: Optional[str] = None  # if stated, files of any name are JSON lines if they look so
    json_as_text: bool = False
    column: str = _tables.DEFAULT_COLUMN


def bytes_beneath(path: str) -> int:
    """Returns the bytes of a file, or of all regular files beneath a folder, as far as they can be
    seen."""
    total = 0 if os.path.isdir(path) else os.stat(path).st_size
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                found = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total


def _read(file: BinaryIO, wanted: int) -> bytes:
    """Returns `wanted` bytes, or all if there are fewer."""
    data = file.read(wanted)
    while len(data) < wanted:
        more = file.read(wanted - len(data))
        if not more:
            break
        data += more
    return data


class Documents:
    """Reads the documents of paths once. `skipped` has the counts so far."""

    def __init__(self, reading: Reading, splits_texts: bool) -> None:
        """`splits_texts`: texts come in parts of 1 MiB."""
        self.skipped = Skipped()
        self._reading = reading
        self._splits_texts = splits_texts
        self._bytes_before = 0  # the sizes of the files that were read to their end

    def of(self, paths: List[str]) -> Iterator[Item]:
        """Yields what the documents consist of. Raises OSError, and TroupeError."""
        for path in paths:
            yield from self._folder(path) if os.path.isdir(path) else self._file(path, True)

    def _folder(self, path: str) -> Iterator[Item]:
        try:
            with os.scandir(path) as found:
                entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
        except OSError:
            self.skipped.unreadable += 1
            return
        if _tables.is_datasets_folder(path, {entry.name for entry in entries}):
            yield from self._dataset(path)
            return
        for entry in entries:
            if entry.is_symlink():
                self.skipped.links += 1
            elif entry.is_dir(follow_symlinks=False):
                yield from self._folder(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield from self._file(entry.path, False)
            else:
                self.skipped.special += 1

    def _dataset(self, folder: str) -> Iterator[Item]:
        for path, size in _tables.dataset_files(folder):
            for row in _tables.arrow_rows(path, self._reading.column):
                yield Item(ROW, row.text, row.place, self._bytes_before + int(row.part * size))
            self._bytes_before += size

    def _file(self, path: str, follows_links: bool) -> Iterator[Item]:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags if follows_links else flags | os.O_NOFOLLOW)
        except OSError:
            self.skipped.unreadable += 1
            return
        with open(descriptor, "rb", buffering=0) as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                self.skipped.unreadable += 1
            elif found.st_size == 0:
                self.skipped.empty += 1
            else:
                yield from self._content(file, path, found.st_size)
                self._bytes_before += found.st_size

    def _content(self, file: BinaryIO, path: str, size: int) -> Iterator[Item]:
        try:
            head = _read(file, len(_GIT_LFS))
            file.seek(0)
        except OSError:
            self.skipped.unreadable += 1
            return
        if head == _GIT_LFS:
            raise InvalidArgument(f"{path}: is a Git LFS pointer and not the file that it stands "
                                  "for, which git lfs pull fetches")
        if _tables.is_parquet_name(path):
            for row in _tables.parquet_rows(file, path, self._reading.column):
                yield Item(ROW, row.text, row.place, self._bytes_before + int(row.part * size))
        elif not self._reading.json_as_text and self._has_json_lines(file, path):
            yield from self._lines(file, path)
        elif self._reading.json_as_text or not compression_of(head):
            yield from self._text(file, path, size)
        else:
            self.skipped.binary += 1

    def _has_json_lines(self, file: BinaryIO, path: str) -> bool:
        """Whether the file is read as JSON lines. Raises InvalidArgument for one that looks like
        them, unless its name or --json-key states it."""
        if _json_lines.is_json_lines_name(path):
            return True
        key = self._reading.json_key
        try:
            head = b""
            for part in parts(file, path):
                head += part
                if len(head) > PART_BYTES:
                    break
        except (OSError, Damaged):
            return False
        finally:
            file.seek(0)
        is_whole = len(head) <= PART_BYTES
        if not _json_lines.looks_like_json_lines(head[:PART_BYTES], is_whole, key):
            return False
        if key is None:
            raise InvalidArgument(
                f"{path} looks like JSON lines, but its name does not end in .jsonl, .jsonl.gz or "
                ".jsonl.zst: state --json-key KEY to make the string at that key of each line a "
                "document, or --json-as-text to make each file one document as it is")
        return True

    def _lines(self, file: BinaryIO, path: str) -> Iterator[Item]:
        is_empty = True
        for place, line in _json_lines.documents(parts(file, path), path):
            yield Item(LINE, line, place, self._bytes_before + position(file))
            is_empty = False
        self.skipped.empty += is_empty

    def _text(self, file: BinaryIO, path: str, size: int) -> Iterator[Item]:
        if not self._splits_texts and size > MOST_WHOLE_BYTES:
            raise ResourceExhausted(f"{path} has {size} bytes; with this tokenizer a document has "
                                    f"at most {MOST_WHOLE_BYTES} bytes: split it")
        part_bytes = PART_BYTES if self._splits_texts else size
        for at in range(0, size, part_bytes):
            wanted = min(part_bytes, size - at)
            try:
                data = _read(file, wanted)
                if len(data) < wanted:
                    raise OSError(f"{path}: ends at byte {at + len(data)} of {size}")
            except OSError:
                # A file that fails in the middle would become a truncated document, so it may be
                # skipped only before its first token.
                if at > 0:
                    raise
                self.skipped.unreadable += 1
                return
            if at == 0 and b"\0" in data[:_PROBE_BYTES]:
                self.skipped.binary += 1
                return
            kind = TEXT if at + wanted == size else PART
            yield Item(kind, data, path, self._bytes_before + at + wanted)
