"""JSON lines, as data/json_lines.h: a text with one JSON object a line, of which the string at one
key is a document."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Iterable, Iterator, List, Optional, Tuple

from troupe.errors import InvalidArgument

DEFAULT_KEY = "text"
MOST_LINE_BYTES = 64 << 20  # bounds the memory of a file that decompresses to one endless line
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_SHOWN_KEYS = 8
_SHOWN_CHARACTERS = 40

_HALF_PAIR = re.compile(r"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
                        r"|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL)


class _Number(str):
    """A number as it is written."""


class _Object(List[Tuple[str, Any]]):
    """The keys of an object with their values, in order, and repeated as in the text."""


def _number(text: str) -> _Number:
    if math.isinf(float(text)):
        raise ValueError("a number that float64 cannot hold")
    return _Number(text)


def _whole_number(text: str) -> _Number:
    return _number(text) if len(text) > 300 else _Number(text)


def _no_json(word: str) -> None:
    raise ValueError(f"{word}, which is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_float=_number,
                            parse_int=_whole_number, parse_constant=_no_json)


def decoded(data: bytes) -> Tuple[str, int]:
    """Returns a text of which each ill-formed part has become U+FFFD, and how many there were."""
    try:
        return data.decode(), 0
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        return text, text.count("\ufffd") - data.count("\ufffd".encode())


def _replace_half_pairs(line: str) -> Tuple[str, int]:
    """Makes every escape of half a surrogate pair that of U+FFFD, and counts them."""
    if "\\ud" not in line and "\\uD" not in line:
        return line, 0
    replaced = 0

    def whole(found: re.Match[str]) -> str:
        nonlocal replaced
        if len(found[1]) != 5:
            return found[0]
        replaced += 1
        return "\\ufffd"

    return _HALF_PAIR.sub(whole, line), replaced


def _quoted(text: str) -> str:
    shown = json.dumps(text[:_SHOWN_CHARACTERS])
    return f"{shown}…" if len(text) > _SHOWN_CHARACTERS else shown


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _Number):
        return f"the number {value[:_SHOWN_CHARACTERS]}"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, _Object) else "an array"


def _parsed(line: str, place: str) -> Any:
    try:
        return _DECODER.decode(line)
    except json.JSONDecodeError as error:
        at = len(line[:error.pos].encode(errors="replace"))
        around = _quoted(line[max(0, error.pos - _SHOWN_CHARACTERS // 2):])
        raise InvalidArgument(f"{place}: the line is not one JSON object from byte {at} on: "
                              f"{around}") from None
    except ValueError as error:
        raise InvalidArgument(f"{place}: the line has {error}: {_quoted(line)}") from None
    except RecursionError:
        raise InvalidArgument(f"{place}: the line is nested too deep") from None


def text_of_line(data: bytes, key: str, place: str) -> Tuple[str, int]:
    """Returns the string at the key of the object in a line, and how many parts of the line became
    U+FFFD. Raises InvalidArgument, which names place and value."""
    line, ill_formed = decoded(data)
    line, half_pairs = _replace_half_pairs(line)
    parsed = _parsed(line, place)
    if not isinstance(parsed, _Object):
        raise InvalidArgument(f"{place}: the line is {_shown(parsed)}, not an object: "
                              f"{_quoted(line)}")
    texts = [value for name, value in parsed if name == key]
    if not texts:
        keys = [_quoted(name) for name, _ in parsed[:_SHOWN_KEYS]]
        keys += ["…"] if len(parsed) > _SHOWN_KEYS else []
        raise InvalidArgument(f"{place}: the line has no key {_quoted(key)}; its keys are "
                              f"[{', '.join(keys)}]; --json-key states the one of the text")
    for value in texts:
        if not isinstance(value, str) or isinstance(value, _Number):
            raise InvalidArgument(f"{place}: the line has {_shown(value)} at the key "
                                  f"{_quoted(key)}, not a string: {_quoted(line)}")
    if len(texts) > 1:
        raise InvalidArgument(f"{place}: the line has the key {_quoted(key)} twice: "
                              f"{_quoted(line)}")
    return str(texts[0]), ill_formed + half_pairs


def _lines(parts: Iterable[bytes], path: str) -> Iterator[Tuple[int, bytes]]:
    """Yields the number of each line, and the line without its end."""
    number, length = 1, 0
    begun: List[bytes] = []
    for part in parts:
        pieces = part.split(b"\n")
        for i, piece in enumerate(pieces):
            begun.append(piece)
            length += len(piece)
            if length > MOST_LINE_BYTES:
                raise InvalidArgument(f"{path}:{number}: the line has more than {MOST_LINE_BYTES} "
                                      "bytes; each line is one document")
            if i + 1 < len(pieces):
                yield number, b"".join(begun)
                number, length, begun = number + 1, 0, []
    if length > 0:
        yield number, b"".join(begun)


def documents(parts: Iterable[bytes], path: str) -> Iterator[Tuple[str, bytes]]:
    """Yields the place, "PATH:LINE", and the text of each line that is not empty. Raises
    InvalidArgument for a line beyond the limit."""
    for number, line in _lines(parts, path):
        if line.startswith(_BYTE_ORDER_MARK):
            line = line[len(_BYTE_ORDER_MARK):]
        if line.strip(_SPACE):
            yield f"{path}:{number}", line


def is_json_lines_name(path: str) -> bool:
    """Whether the name is one of JSON lines: *.jsonl, *.jsonl.gz or *.jsonl.zst."""
    for compression in (".gz", ".zst"):
        path = path[:-len(compression)] if path.endswith(compression) else path
    return path.endswith(".jsonl")


def _begins_with_key(line: str, key: str) -> bool:
    """Whether the object in a line has the key before the first fault of the line."""
    space = re.compile(r"[ \t\r\n]*")

    def skip(at: int) -> int:
        found = space.match(line, at)
        return at if found is None else found.end()

    at = 1
    while True:
        at = skip(at)
        if line[at:at + 1] != '"':
            return False
        try:
            name, at = _DECODER.raw_decode(line, at)
            if name == key:
                return True
            at = skip(at)
            if line[at:at + 1] != ":":
                return False
            _, at = _DECODER.raw_decode(line, skip(at + 1))
        except (ValueError, RecursionError):
            return False
        at = skip(at)
        if line[at:at + 1] != ",":
            return False
        at += 1


def looks_like_json_lines(head: bytes, is_whole: bool, stated_key: Optional[str]) -> bool:
    """Whether a text looks like JSON lines by its first bytes, which are all of it if `is_whole`:
    its first line looks like a whole object, and it has the key, or the second line begins like an
    object too, or there is no second line and the key is stated. A line that is longer than `head`
    must only begin like an object."""
    if head.startswith(_BYTE_ORDER_MARK):
        head = head[len(_BYTE_ORDER_MARK):]
    first, end, rest = head.lstrip(_SPACE).partition(b"\n")
    if not first.startswith(b"{"):
        return False
    begins_well = first[1:].lstrip(_SPACE)[:1] in (b'"', b"}")
    if not end and not is_whole:
        return begins_well
    line, _ = _replace_half_pairs(decoded(first)[0])
    has_key = _begins_with_key(line, DEFAULT_KEY if stated_key is None else stated_key)
    if not end and has_key:
        return True
    if not begins_well or not line.rstrip(_SPACE.decode()).endswith("}"):
        return False
    following = rest.lstrip(_SPACE)
    return has_key or (following.startswith(b"{") if following
                       else is_whole and stated_key is not None)
