"""Files that are read from their start to their end, decompressed where they are compressed, as
data/decompressed_file.h: the content decides, not the name. However much a file decompresses to,
the memory is bounded."""

from __future__ import annotations

import os
import zlib
from typing import Any, BinaryIO, Iterator

from troupe.data._libraries import need
from troupe.errors import InvalidArgument

PART_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class Damaged(InvalidArgument):
    """The compressed data are damaged or end early."""


def compression_of(head: bytes) -> str:
    """Returns by what a file that begins so is compressed: "gzip", "zstd" or ""."""
    if head.startswith(_GZIP):
        return "gzip"
    # A file of zstd may begin with a frame to skip, whose magic number ends in any half byte.
    is_skipped = len(head) >= 4 and head[0] & 0xF0 == 0x50 and head[1:4] == b"\x2a\x4d\x18"
    return "zstd" if head.startswith(_ZSTD) or is_skipped else ""


def position(file: Any) -> int:
    """Returns the number of bytes before the next read."""
    return int(file.seek(0, os.SEEK_CUR))


def parts(file: BinaryIO, path: str) -> Iterator[bytes]:
    """Yields the bytes of a file from its start, decompressed, at most 1 MiB at a time. Raises
    OSError, and Damaged. REQUIRES: `file` has no buffer."""
    file.seek(0)
    head = file.read(4)
    file.seek(0)
    kind = compression_of(head)
    if kind == "gzip":
        return _gzip_parts(file, path)
    if kind == "zstd":
        return _zstd_parts(file, path)
    return _plain_parts(file)


def _plain_parts(file: BinaryIO) -> Iterator[bytes]:
    while True:
        part = file.read(PART_BYTES)
        if not part:
            return
        yield part


def _damaged(file: BinaryIO, path: str, kind: str, why: object) -> Damaged:
    return Damaged(f"{path}: its {kind} data cannot be decompressed beyond byte {position(file)}: "
                   f"{why}")


def _gzip_parts(file: BinaryIO, path: str) -> Iterator[bytes]:
    """A file of gzip may have several members, and be padded with zeros."""
    member: Any = None
    had_member = False
    for part in _plain_parts(file):
        while part:
            if member is None:
                part = part.lstrip(b"\0") if had_member else part
                if not part:
                    break
                member, had_member = zlib.decompressobj(16 + zlib.MAX_WBITS), True
            try:
                decompressed = member.decompress(part, PART_BYTES)
            except zlib.error as error:
                raise _damaged(file, path, "gzip", error) from None
            if decompressed:
                yield decompressed
            part = member.unused_data if member.eof else member.unconsumed_tail
            member = None if member.eof else member
    if member is not None:
        yield from _gzip_rest(member)
        if not member.eof:
            raise _damaged(file, path, "gzip", "they end early")


def _gzip_rest(member: Any) -> Iterator[bytes]:
    """Yields what a member has decompressed without returning it."""
    while not member.eof:
        decompressed = member.decompress(member.unconsumed_tail, PART_BYTES)
        if not decompressed:
            return
        yield decompressed


def _zstd_parts(file: BinaryIO, path: str) -> Iterator[bytes]:
    pyarrow = need("pyarrow", f"{path} is compressed by zstd")
    # The stream closes its file, so it gets one of its own, which has the same position.
    own = open(os.dup(file.fileno()), "rb")
    stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(own, mode="r"), "zstd")
    while True:
        try:
            part: bytes = stream.read(PART_BYTES)
        except OSError as error:
            raise _damaged(file, path, "zstd", error) from None
        if not part:
            return
        yield part
