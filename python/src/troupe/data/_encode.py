"""Encodes documents, in one process or in several. What comes out does not depend on their
number."""

from __future__ import annotations

import array
import collections
import concurrent.futures
import concurrent.futures.process
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from typing import Deque, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from troupe.data._dataset_writer import type_code
from troupe.data._json_lines import decoded, text_of_line
from troupe.data._sources import LINE, PART, ROW, Item
from troupe.data._tokenizers import TextTokenizer, Tokenizer
from troupe.errors import InvalidArgument, ResourceExhausted

_CHUNK_BYTES = 256 << 10
_CHUNK_ITEMS = 4096
_MOST_BYTES_IN_FLIGHT = 64 << 20  # of texts; one chunk may have more


class Encoded(NamedTuple):
    """The tokens of a chunk, and counts of its documents."""

    tokens: "array.array[int]"
    ends: "array.array[int]"  # numbers of tokens after which documents end
    text_bytes: int
    replaced_parts: int
    replaced_documents: int
    skipped_empty: int
    bytes_read: int  # of all files, up to this chunk


class _Text(NamedTuple):
    data: bytes
    text: str  # empty with the byte tokenizer
    place: str
    ends_document: bool


class Encoder:
    """Encodes chunks of items, each by itself. It can be pickled."""

    def __init__(self, tokenizer: Tokenizer, json_key: str) -> None:
        self._tokenizer = tokenizer
        self._json_key = json_key
        self._code = type_code(tokenizer.vocab_size)

    def encode(self, items: List[Item]) -> Encoded:
        """Raises InvalidArgument for an item that has no text or cannot be encoded."""
        texts: List[_Text] = []
        replaced_parts = replaced_documents = skipped_empty = 0
        for item in items:
            text, replaced = self._text_of(item)
            replaced_parts += replaced
            replaced_documents += replaced > 0
            if text.data:
                texts.append(text)
            else:
                skipped_empty += 1
        tokens = array.array(self._code)
        ends = array.array("q")
        for text, ids in zip(texts, self._ids(texts)):
            tokens.extend(ids)
            if text.ends_document:
                tokens.append(self._tokenizer.end_of_document)
                ends.append(len(tokens))
        return Encoded(tokens, ends, sum(len(text.data) for text in texts), replaced_parts,
                       replaced_documents, skipped_empty, items[-1].bytes_read)

    def _text_of(self, item: Item) -> Tuple[_Text, int]:
        """Returns the text of an item, and how many parts of it have become U+FFFD."""
        if item.kind == LINE:
            text, replaced = text_of_line(item.data, self._json_key, item.place)
            return _Text(text.encode(), text, item.place, True), replaced
        if item.kind != ROW and not isinstance(self._tokenizer, TextTokenizer):
            return _Text(item.data, "", item.place, item.kind != PART), 0
        text, replaced = decoded(item.data)
        data = text.encode() if replaced else item.data
        return _Text(data, text, item.place, item.kind != PART), replaced

    def _ids(self, texts: List[_Text]) -> Iterator["array.array[int]"]:
        if not isinstance(self._tokenizer, TextTokenizer):
            for text in texts:
                yield _wide(text.data)
            return
        for text, ids in zip(texts, self._encoded(texts, self._tokenizer)):
            if ids and not 0 <= min(ids) <= max(ids) < self._tokenizer.vocab_size:
                raise InvalidArgument(
                    f"{text.place}: the tokenizer returned the token {max(ids)}, which is not in "
                    f"[0, {self._tokenizer.vocab_size}), its vocabulary")
            yield array.array(self._code, ids)

    def _encoded(self, texts: List[_Text], tokenizer: TextTokenizer) -> List[List[int]]:
        try:
            return tokenizer.encode([text.text for text in texts])
        except Exception as error:  # the packages raise no narrower class
            if len(texts) == 1:
                raise InvalidArgument(f"{texts[0].place}: the tokenizer cannot encode the text: "
                                      f"{error}") from None
            # One by one, so that the error names the text.
            return [ids for text in texts for ids in self._encoded([text], tokenizer)]


def _wide(data: bytes) -> "array.array[int]":
    """Returns each byte as a token of 16 bits."""
    wide = bytearray(2 * len(data))
    wide[::2] = data
    return array.array("H", bytes(wide))


class _Chunk(NamedTuple):
    items: List[Item]
    size: int


def _chunks(items: Iterable[Item]) -> Iterator[_Chunk]:
    chunk, size = [], 0
    for item in items:
        chunk.append(item)
        size += len(item.data)
        if size >= _CHUNK_BYTES or len(chunk) == _CHUNK_ITEMS:
            yield _Chunk(chunk, size)
            chunk, size = [], 0
    if chunk:
        yield _Chunk(chunk, size)


def encode(items: Iterable[Item], encoder: Encoder, processes: int) -> Iterator[Encoded]:
    """Yields the chunks of the items in their order, encoded by `processes`. Raises the errors of
    Encoder.encode in that order too."""
    if processes == 1:
        yield from (encoder.encode(chunk.items) for chunk in _chunks(items))
    else:
        yield from _encode_in_processes(items, encoder, processes)


_encoder: Optional[Encoder] = None  # of a process that encodes


def _begin(encoder: Encoder) -> None:
    global _encoder
    _encoder = encoder
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that reads ends this one
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    """Ends this process once the one that has started it is gone."""
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


def _run(items: List[Item]) -> Encoded:
    assert _encoder is not None
    return _encoder.encode(items)


def _encode_in_processes(items: Iterable[Item], encoder: Encoder,
                         processes: int) -> Iterator[Encoded]:
    others = set(multiprocessing.active_children())
    pool = concurrent.futures.ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), _begin, (encoder,))
    pending: Deque[Tuple[concurrent.futures.Future[Encoded], int]] = collections.deque()
    in_flight = 0
    try:
        for chunk in _chunks(items):
            while pending and (len(pending) == 2 * processes
                               or in_flight + chunk.size > _MOST_BYTES_IN_FLIGHT):
                done, size = pending.popleft()
                yield done.result()
                in_flight -= size
            pending.append((pool.submit(_run, chunk.items), chunk.size))
            in_flight += chunk.size
        while pending:
            yield pending.popleft()[0].result()
    except concurrent.futures.process.BrokenProcessPool:
        raise ResourceExhausted("a process that encodes has ended: the memory of this host may not "
                                "suffice; --processes N starts fewer") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
