"""The command `python -m troupe.data prepare`."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
import time
from typing import List, Optional

from troupe._printable import printable
from troupe.data import _tables
from troupe.data._prepare import Options, Result, prepare
from troupe.data._progress_line import ProgressLine
from troupe.data._sources import Reading
from troupe.errors import InvalidArgument, TroupeError

_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130


class _Number:
    """Reads a whole number of a range, as argparse calls it."""

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most

    def __call__(self, text: str) -> int:
        if text.isascii() and text.isdigit() and self._least <= int(text[:20]) <= self._most:
            return int(text)
        raise argparse.ArgumentTypeError(f"is {text!a}, not a whole number from {self._least} to "
                                         f"{self._most}")


def _cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m troupe.data")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    command = commands.add_parser(
        "prepare", help="tokenizes texts, JSON lines, Parquet files and folders into Megatron's "
        "indexed format", description="Writes PREFIX.bin, PREFIX.idx and PREFIX.troupe.json.")
    command.add_argument("paths", metavar="PATH", nargs="+",
                         help="files and folders, read in this order")
    command.add_argument("--output", metavar="PREFIX", required=True,
                         help="writes PREFIX.bin and PREFIX.idx")
    command.add_argument(
        "--tokenizer", metavar="NAME", default="bytes",
        help="bytes: ids 0-255, and 256 ends a document; PATH/tokenizer.json: any of the package "
        "tokenizers; else a folder or a name that transformers.AutoTokenizer loads (default: "
        "bytes)")
    command.add_argument("--eod-id", metavar="ID", type=_Number(0, (1 << 31) - 1),
                         help="token that ends a document (default: the tokenizer's eos_token, "
                         "<|endoftext|> or <|end_of_text|>)")
    command.add_argument(
        "--json-key", metavar="KEY",
        help="of JSON lines, the string at KEY of each line is a document (default: text, in files "
        "*.jsonl, *.jsonl.gz and *.jsonl.zst; if KEY is stated, in every file of JSON lines)")
    command.add_argument("--json-as-text", action="store_true",
                         help="makes each file one document as it is, JSON lines too")
    command.add_argument("--column", metavar="NAME", default=_tables.DEFAULT_COLUMN,
                         help="of *.parquet and of folders that datasets has saved, the string in "
                         "this column of each row is a document (default: text)")
    command.add_argument("--processes", metavar="N", type=_Number(1, 4096),
                         default=_cores(),
                         help="processes that encode (default: one for each core)")
    command.add_argument("-o", dest="format", choices=("text", "json"), default="text",
                         help="how the result is printed (default: text)")
    return parser


def _count(number: int, one: str) -> str:
    """Returns "1 token" or "2 tokens"."""
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def _scaled(size: int) -> str:
    """Returns a number of bytes with three digits, as `troupe` prints it: "1.23 MB"."""
    value, prefixes = float(size), ["", "k", "M", "G", "T", "P", "E"]
    # 999.5 would be shown as 1e+03.
    while value >= (999.5 if len(prefixes) < 7 else 1000) and len(prefixes) > 1:
        value /= 1000
        del prefixes[0]
    return f"{value:.3g} {prefixes[0]}B"


def _report(result: Result, seconds: float, wants_json: bool) -> None:
    """Prints what `troupe data prepare` prints."""
    skipped = result.skipped
    if skipped.binary + skipped.unreadable + skipped.empty + skipped.links + skipped.special > 0:
        print(f"skipped: {skipped.binary} binary, {skipped.unreadable} unreadable, {skipped.empty} "
              f"empty, {skipped.links} symbolic links, {skipped.special} special", file=sys.stderr)
    if result.replaced_parts > 0:
        print(f"not UTF-8: {result.replaced_parts} parts of {result.replaced_documents} documents "
              "became U+FFFD", file=sys.stderr)
    rate = result.tokens / max(seconds, 1e-9)
    if wants_json:
        print(json.dumps({
            "documents": result.documents, "tokens": result.tokens, "files": result.files,
            "text_bytes": result.text_bytes, "seconds": seconds, "tokens_per_second": rate,
            "vocab_size": result.vocab_size, "end_of_document": result.end_of_document,
            "replaced": result.replaced_parts}))
        return
    print(f"{_count(result.documents, 'document')}, {_count(result.tokens, 'token')} of "
          f"{_scaled(result.text_bytes)} of text, {seconds:.1f} s, {rate:.0f} tokens/s")
    print(f"token ids are below {result.vocab_size}, and {result.end_of_document} ends a document")
    for file in result.files:
        print(printable(file))


def _fail(error: Exception) -> int:
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{os.fsdecode(error.filename)}: {error.strerror}"
    print("troupe.data:", printable(text), file=sys.stderr)
    if isinstance(error, OSError):
        return _FAILED if error.errno in (errno.ENOSPC, errno.EDQUOT) else _USAGE
    return _USAGE if isinstance(error, InvalidArgument) else _FAILED


def main(arguments: Optional[List[str]] = None) -> int:
    """Returns the exit code: 0 done, 1 it cannot be done now, 2 usage or bad input, 130
    interrupted."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.json_key is not None and given.json_as_text:
        parser.error("--json-key and --json-as-text contradict each other: give one")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    options = Options(given.output, given.tokenizer, given.paths, given.eod_id,
                      Reading(given.json_key, given.json_as_text, given.column), given.processes)
    line = ProgressLine()
    began = time.monotonic()
    try:
        try:
            result = prepare(options, line.show)
        finally:
            line.clear()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (OSError, TroupeError) as error:
        return _fail(error)
    _report(result, time.monotonic() - began, given.format == "json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
