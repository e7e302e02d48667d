"""Writes dictionaries, lists, texts, numbers and truth values as YAML, for readers of the files."""

import json
import re

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def _scalar(value):
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        return "'" + value.replace("'", "''") + "'"
    return json.dumps(value)


def _lines(value, indent):
    pad = " " * indent
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _entry(f"{pad}{_scalar(key)}:", item, indent)
    else:
        for item in value:
            if isinstance(item, (dict, list)) and item:
                first, *rest = list(_lines(item, indent + 2))
                yield f"{pad}- {first.lstrip()}"
                yield from rest
            else:
                yield f"{pad}- {_scalar(item)}"


def _entry(head, item, indent):
    if isinstance(item, (dict, list)):
        if not item:
            yield f"{head} {'{}' if isinstance(item, dict) else '[]'}"
            return
        yield head
        yield from _lines(item, indent + 2)
    elif isinstance(item, str) and "\n" in item:
        yield f"{head} |"
        for line in item.rstrip("\n").split("\n"):
            yield " " * (indent + 2) + line if line else ""
    else:
        yield f"{head} {_scalar(item)}"


def to_yaml(value):
    return "\n".join(_lines(value, 0)) + "\n"
