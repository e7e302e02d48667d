"""Tokenizers: bytes, the tokenizer.json of the package `tokenizers`, and whatever the package
`transformers` loads. They can be pickled, so that all processes use the same one."""

from __future__ import annotations

import abc
import json
import os
import re
from typing import Any, Dict, List, Optional

from troupe._plain_file import read_plain_file
from troupe.data._libraries import need
from troupe.errors import InvalidArgument

_MOST_FILE_BYTES = 256 << 20
_USUAL_ENDS = ("<|endoftext|>", "<|end_of_text|>")
_BYTES_END = 256
_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


class Tokenizer:
    """`vocab_size` is above every id."""

    def __init__(self, vocab_size: int, end_of_document: int) -> None:
        self.vocab_size = vocab_size
        self.end_of_document = end_of_document


class ByteTokenizer(Tokenizer):
    """Ids 0–255 are the bytes, and 256 ends a document. The parts of a text may be encoded one by
    one."""

    def __init__(self) -> None:
        super().__init__(_BYTES_END + 1, _BYTES_END)


class TextTokenizer(Tokenizer, abc.ABC):
    """Encodes whole texts."""

    @abc.abstractmethod
    def encode(self, texts: List[str]) -> List[List[int]]:
        """Returns the ids of each text, without special tokens around it."""


class FastTokenizer(TextTokenizer):
    """A tokenizer of the package `tokenizers`."""

    def __init__(self, backend: Any, vocab_size: int, end_of_document: int) -> None:
        super().__init__(vocab_size, end_of_document)
        self._backend = backend

    def encode(self, texts: List[str]) -> List[List[int]]:
        encode = getattr(self._backend, "encode_batch_fast", self._backend.encode_batch)
        return [each.ids for each in encode(texts, add_special_tokens=False)]


class SlowTokenizer(TextTokenizer):
    """A tokenizer of the package `transformers` that is written in Python."""

    def __init__(self, backend: Any, vocab_size: int, end_of_document: int) -> None:
        super().__init__(vocab_size, end_of_document)
        self._backend = backend

    def encode(self, texts: List[str]) -> List[List[int]]:
        encoded = self._backend(texts, add_special_tokens=False, return_attention_mask=False,
                                return_token_type_ids=False, verbose=False)
        return [list(ids) for ids in encoded["input_ids"]]


def load(name: str, end_of_document: Optional[int]) -> Tokenizer:
    """Loads a tokenizer: "bytes", the path of a tokenizer.json, or a folder or name for
    transformers' AutoTokenizer. Raises OSError, and InvalidArgument."""
    if name == "bytes":
        if end_of_document is not None:
            raise InvalidArgument(f"end of document {end_of_document}: the tokenizer bytes has a "
                                  f"fixed one, {_BYTES_END}")
        return ByteTokenizer()
    if name.endswith(".json"):
        return _load_file(name, end_of_document)
    if not os.path.isdir(name) and (os.path.exists(name) or _HUB_NAME.fullmatch(name) is None):
        raise InvalidArgument(
            f"tokenizer \"{name}\" is unknown; it must be bytes, PATH/tokenizer.json, or a folder "
            "or a name that transformers.AutoTokenizer loads")
    return _load_pretrained(name, end_of_document)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _read_json(path: str) -> Dict[str, Any]:
    content = read_plain_file(path, _MOST_FILE_BYTES)[0]
    if content.startswith(b"version https://git-lfs.github.com/spec/"):
        raise InvalidArgument(f"{path}: is a Git LFS pointer and not the file that it stands for, "
                              "which git lfs pull fetches")
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise InvalidArgument(f"{path}: is not a JSON object")
    return parsed


def _vocabulary(backend: Any, is_fast: bool) -> Dict[str, int]:
    found = backend.get_vocab(True) if is_fast else backend.get_vocab()
    return {token: int(number) for token, number in found.items()}


def _fast(backend: Any, name: str) -> Any:
    """Returns a tokenizer of the package `tokenizers` that returns all tokens of a text, and
    always the same."""
    dropout = getattr(backend.model, "dropout", None)
    if dropout:
        raise InvalidArgument(f"{name}: model.dropout is {dropout}, with which the same text has "
                              "other tokens each time")
    backend.no_truncation()
    backend.no_padding()
    return backend


def _load_file(path: str, end_of_document: Optional[int]) -> Tokenizer:
    library = need("tokenizers", f"{path} is a tokenizer of the package tokenizers")
    _read_json(path)
    try:
        backend = library.Tokenizer.from_file(path)
    except Exception as error:  # the package raises no narrower class
        raise InvalidArgument(f"{path}: the package tokenizers cannot read it: "
                              f"{_one_line(error)}") from None
    vocabulary = _vocabulary(_fast(backend, path), True)
    configured = None
    if end_of_document is None:
        configured = _configured_end(os.path.join(os.path.dirname(path), "tokenizer_config.json"))
        if configured is not None and configured not in vocabulary:
            raise InvalidArgument(f"{path}: has no token {json.dumps(configured)}, the eos_token "
                                  "of tokenizer_config.json")
    stated = end_of_document if configured is None else vocabulary[configured]
    return FastTokenizer(backend, *_range(vocabulary, stated, path))


def _configured_end(path: str) -> Optional[str]:
    """Returns the eos_token of a tokenizer_config.json, if there is one."""
    try:
        token = _read_json(path).get("eos_token")
    except FileNotFoundError:
        return None
    text = token.get("content", token) if isinstance(token, dict) else token
    if text is None or isinstance(text, str):
        return text or None
    raise InvalidArgument(f"{path}: eos_token is {json.dumps(token)[:80]}, not the text of a token")


def _load_pretrained(name: str, end_of_document: Optional[int]) -> Tokenizer:
    library = need("transformers", f"{name} is a tokenizer of the package transformers")
    try:
        backend = library.AutoTokenizer.from_pretrained(
            name, trust_remote_code=False, local_files_only=os.path.isdir(name))
    except Exception as error:  # the package raises classes of many others
        raise InvalidArgument(f"tokenizer {name}: the package transformers cannot load it: "
                              f"{_one_line(error)}") from None
    if end_of_document is None:
        end_of_document = backend.eos_token_id
    if backend.is_fast:
        fast = _fast(backend.backend_tokenizer, name)
        return FastTokenizer(fast, *_range(_vocabulary(fast, True), end_of_document, name))
    return SlowTokenizer(backend, *_range(_vocabulary(backend, False), end_of_document, name))


def _range(vocabulary: Dict[str, int], end: Optional[int], name: str) -> "tuple[int, int]":
    """Returns a bound above every id, and the end of a document: `end`, else the usual token."""
    bound = max(vocabulary.values(), default=-1) + 1
    if end is None:
        end = next((vocabulary[token] for token in _USUAL_ENDS if token in vocabulary), None)
    if end is None:
        raise InvalidArgument(f"{name}: the token that ends a document is unknown: there is no "
                              "eos_token and no token <|endoftext|> or <|end_of_text|>; state its "
                              "id with --eod-id")
    if not 0 <= end < bound:
        raise InvalidArgument(f"end of document {end} is not in [0, {bound}), the vocabulary of "
                              f"{name}")
    return bound, end
