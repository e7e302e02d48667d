"""Reads jobs, from YAML files or mappings, as `troupe submit` does: strictly, by the schema.

An unknown key, a wrong type or a number that does not fit is a violation with the key's path and,
from a file, its place.
"""

from __future__ import annotations

import difflib
import math
import numbers
import os
import re
from decimal import Decimal
from typing import (Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Sequence,
                    Tuple, Union)

import yaml
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from troupe._hf_model import inline_model
from troupe._key_places import KeyPlaces, placed_violations
from troupe._plain_file import read_plain_file
from troupe.errors import Violation, invalid_job
from troupe.v1 import job_pb2, key_pb2

# A job: the keys of a job file as a mapping, or the path of a job file.
JobInput = Union[Mapping[str, Any], str, "os.PathLike[str]"]

_MAX_BYTES = 1 << 20  # of a job file, as in `troupe submit`
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?\.?(nan|inf|infinity)", re.IGNORECASE)
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1, "int32"),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1, "int64"),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1, "uint64"),
}
_WORDS = {
    FieldDescriptor.CPPTYPE_BOOL: "true or false",
    FieldDescriptor.CPPTYPE_DOUBLE: "a number",
    FieldDescriptor.CPPTYPE_STRING: "text",
}


class _Scalar(NamedTuple):
    text: str
    is_text: bool  # not plain in YAML, or a str
    where: str     # "job.yaml:7:3", line and column; empty outside of a file


class _Empty(NamedTuple):
    where: str


class _List(NamedTuple):
    items: "List[Any]"
    where: str


class _Map(NamedTuple):
    entries: "List[Tuple[_Scalar, Any]]"
    where: str


# Descriptors have two types, of which the stubs of a runtime name one or both.
_Field = Any

_Node = Union[_Scalar, _Empty, _List, _Map]


def _is_utf8(text: str) -> bool:
    """Python has the other bytes of a path as surrogates, which no message can have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _place(mark: Any, source: str) -> str:
    """Returns "job.yaml:7:3", as the command has it: a column is a byte of its line."""
    before = (mark.buffer or "")[mark.pointer - mark.column:mark.pointer]
    column = len(before.encode()) if len(before) == mark.column else mark.column
    return f"{source}:{mark.line + 1}:{column + 1}"


def _from_yaml(node: Optional[yaml.Node], source: str) -> _Node:
    if node is None:
        return _Empty("")
    where = _place(node.start_mark, source)
    if isinstance(node, yaml.MappingNode):
        return _Map([(_key_scalar(key, source), _from_yaml(value, source))
                     for key, value in node.value], where)
    if isinstance(node, yaml.SequenceNode):
        return _List([_from_yaml(each, source) for each in node.value], where)
    assert isinstance(node, yaml.ScalarNode)
    if node.style is None and node.tag == "tag:yaml.org,2002:null":
        return _Empty(where)
    return _Scalar(node.value, node.style is not None, where)


def _key_scalar(node: yaml.Node, source: str) -> _Scalar:
    return _Scalar(node.value if isinstance(node, yaml.ScalarNode) else "?", True,
                   _place(node.start_mark, source))


def _from_python(value: Any) -> _Node:
    if value is None:
        return _Empty("")
    if isinstance(value, Mapping):
        return _Map([(_Scalar(str(key), True, ""), _from_python(each))
                     for key, each in value.items()], "")
    if isinstance(value, (str, os.PathLike)):
        return _Scalar(os.fspath(value), True, "")
    if isinstance(value, Sequence):
        return _List([_from_python(each) for each in value], "")
    if isinstance(value, bool):
        return _Scalar("true" if value else "false", False, "")
    if isinstance(value, numbers.Integral):
        return _Scalar(str(int(value)), False, "")
    if isinstance(value, numbers.Real):
        return _Scalar(repr(float(value)), False, "")
    raise TypeError(f"a job has mappings, lists, texts and numbers, not {type(value).__name__}")


def _node_text(node: _Node) -> str:
    if isinstance(node, _Scalar):
        return f'the text "{node.text[:80]}"' if node.is_text else node.text[:80]
    if isinstance(node, _List):
        return "a list"
    return "a mapping" if isinstance(node, _Map) else "empty"


def _keys(descriptor: Any, prefix: str = "") -> Iterator[str]:
    for field in descriptor.fields:
        yield prefix + field.name
        if field.message_type is not None:
            yield from _keys(field.message_type, f"{prefix}{field.name}.")


def _nearest(path: str) -> str:
    """Returns "; the nearest known key is KEY", or "" if none is near."""
    keys = list(_keys(job_pb2.JobSpec.DESCRIPTOR))
    word = path.rpartition(".")[2]
    words = difflib.get_close_matches(word, [key.rpartition(".")[2] for key in keys], 1, 0.7)
    if not words:
        return ""
    named = [key for key in keys if key.rpartition(".")[2] == words[0]]
    best = max(named, key=lambda key: difflib.SequenceMatcher(None, path, key).ratio())
    return f"; the nearest known key is {best}"


class _Reader:
    """Writes nodes into messages and collects violations, and the places of the keys that were
    read."""

    def __init__(self, places: Optional[KeyPlaces] = None) -> None:
        self.violations: List[Violation] = []
        self.places: KeyPlaces = {} if places is None else places

    def add(self, path: str, description: str, where: str) -> None:
        """Adds a violation at the place of the key, or at `where` if that is no key."""
        self.add_at(path, description, self.places.get(path) or where)

    def add_at(self, path: str, description: str, where: str) -> None:
        self.violations.append(
            Violation(path or "job", description + (f" ({where})" if where else "")))

    def forget_entries(self, path: str) -> None:
        """Removes the places of the keys in the entries of a list."""
        for key in [key for key in self.places if key.startswith(f"{path}[")]:
            del self.places[key]

    def mapping(self, node: _Node, path: str, message: Message) -> None:
        if isinstance(node, _Empty):
            return
        if not isinstance(node, _Map):
            self.add(path, f"is {_node_text(node)}, not a mapping of keys", node.where)
            return
        seen = set()
        for key, value in node.entries:
            inner = f"{path}.{key.text}" if path else key.text
            field = message.DESCRIPTOR.fields_by_name.get(key.text)
            if field is None:
                self.add_at(inner, f"is an unknown key{_nearest(inner)}", key.where)
            elif key.text in seen:
                self.add_at(inner, "is a duplicate key", key.where)
            else:
                seen.add(key.text)
                self.places[inner] = key.where
                self.field(value, inner, field, message)

    def field(self, node: _Node, path: str, field: _Field, message: Message) -> None:
        if not field.is_repeated:
            if field.message_type is not None:
                inner = getattr(message, field.name)
                inner.SetInParent()
                self.mapping(node, path, inner)
            else:
                value = self.scalar(node, path, field)
                if value is not None:
                    setattr(message, field.name, value)
            return
        if not isinstance(node, _List):
            self.add(path, f"is {_node_text(node)}, not a list", node.where)
            return
        is_text = field.cpp_type == FieldDescriptor.CPPTYPE_STRING
        # An override may clear the list of a file.
        if not node.items and (is_text or not len(getattr(message, field.name))):
            absent = field.GetOptions().Extensions[key_pb2.key].absent
            has_default = is_text and absent not in ("", "none")
            self.add(path, "is an empty list" + (
                ', which means its default; for a list that names nothing, state [""]'
                if has_default else "; leave the key out"), node.where)
            return
        message.ClearField(field.name)
        if not node.where:
            self.forget_entries(path)
        target = getattr(message, field.name)
        for i, item in enumerate(node.items):
            if field.message_type is not None:
                self.mapping(item, f"{path}[{i}]", target.add())
            else:
                value = self.scalar(item, f"{path}[{i}]", field)
                if value is not None:
                    target.append(value)

    def scalar(self, node: _Node, path: str, field: _Field) -> Any:
        """Returns the value, or None after adding a violation."""
        word = _WORDS.get(field.cpp_type, "a whole number")
        is_text = field.cpp_type == FieldDescriptor.CPPTYPE_STRING
        if not isinstance(node, _Scalar) or (node.is_text and not is_text):
            self.add(path, f"is {_node_text(node)}, not {word}", node.where)
            return None
        text = node.text
        if is_text:
            if _is_utf8(text):
                return text
            self.add(path, f"is {text[:80]!a}, not UTF-8", node.where)
            return None
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL and text in ("true", "false"):
            return text == "true"
        if _NOT_FINITE.fullmatch(text):
            self.add(path, f"is {text}, not a finite number", node.where)
            return None
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL or not _NUMBER.fullmatch(text):
            self.add(path, f"is {_node_text(node)}, not {word}", node.where)
            return None
        return self.number(text, path, field, node.where)

    def number(self, text: str, path: str, field: _Field, where: str) -> Any:
        if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
            value = float(text)
            if math.isinf(value):
                self.add(path, f"is {text[:80]}, out of the range of double", where)
                return None
            return value
        is_plain = re.fullmatch("[+-]?[0-9]+", text) is not None
        exact = Decimal(text)
        if not is_plain and (not re.search("[eE]", text) or exact != exact.to_integral_value()):
            self.add(path, f"is {text[:80]}, not a whole number", where)
            return None
        low, high, name = _RANGES[field.cpp_type]
        # A number with an exponent is a double in the command, which is exact up to 2^53.
        if not is_plain:
            low, high = max(low, -(1 << 53)), min(high, 1 << 53)
        if not low <= exact <= high:
            self.add(path, f"is {text[:80]}, out of the range of {name}", where)
            return None
        return int(exact)

    def override(self, path: str, value: Any, spec: job_pb2.JobSpec) -> None:
        message: Message = spec
        *sections, last = path.split(".")
        for section in sections:
            field = message.DESCRIPTOR.fields_by_name.get(section)
            if field is None or field.message_type is None or field.is_repeated:
                self.add(path, f"is an unknown key{_nearest(path)}", "")
                return
            message = getattr(message, section)
            message.SetInParent()
        field = message.DESCRIPTOR.fields_by_name.get(last)
        if field is None:
            self.add(path, f"is an unknown key{_nearest(path)}", "")
        else:
            self.places[path] = ""
            self.field(_from_python(value), path, field, message)


def _paths(message: Message, prefix: str, visit: Callable[[str, str], str]) -> None:
    """Replaces every path below `message` by `visit(key, path)`."""
    for field, value in message.ListFields():
        key = f"{prefix}{field.name}"
        if field.message_type is not None:
            inner = value if field.is_repeated else [value]
            for i, each in enumerate(inner):
                _paths(each, f"{key}[{i}]." if field.is_repeated else f"{key}.", visit)
        elif field.GetOptions().Extensions[key_pb2.key].path:
            setattr(message, field.name, visit(key, value))


def _resolve(spec: job_pb2.JobSpec, folder: str) -> None:
    if not _is_utf8(folder):
        raise invalid_job((Violation("job", f"has the folder {folder!a}, which is not UTF-8"),))
    _paths(spec, "", lambda _, path: os.path.normpath(os.path.join(folder, path))
           if path and not os.path.isabs(path) else path)


def _load(path: "Union[str, os.PathLike[str]]") -> _Node:
    name = os.fspath(path)
    try:
        text = read_plain_file(name, _MAX_BYTES)[0].decode()
    except UnicodeDecodeError as error:
        raise invalid_job((Violation("job", f"is {name}: {error}"),)) from None
    except (OSError, ValueError) as error:
        raise invalid_job((Violation("job", f"cannot be read: {error}"),)) from None
    try:
        return _from_yaml(yaml.compose(text, Loader=yaml.SafeLoader), name)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = name if mark is None else _place(mark, name)
        problem = getattr(error, "problem", None) or "is nested too deep"
        raise invalid_job((Violation("job", f"is no YAML: {problem} ({where})"),)) from None


def read_job(job: JobInput, overrides: Mapping[str, Any],
             places: Optional[KeyPlaces] = None) -> job_pb2.JobSpec:
    """Returns the job with absolute paths, and with `overrides`, {"training.steps": 20}.

    Relative paths are relative to the folder of the job file, or for a mapping to the working
    directory. The configuration of model.from is copied into the other keys of the model. `places`
    receives where the keys are stated. Raises InvalidJob.
    """
    spec = job_pb2.JobSpec()
    reader = _Reader(places)
    file = None if isinstance(job, Mapping) else os.fspath(job)
    reader.mapping(_from_python(job) if isinstance(job, Mapping) else _load(job), "", spec)
    for path, value in overrides.items():
        reader.override(path, value, spec)
    if reader.violations:
        raise invalid_job(tuple(reader.violations))
    folder = os.getcwd()
    if file is not None:
        folder = os.path.dirname(os.path.abspath(file))
        reader.places[""] = file
        if not spec.checkpoint.HasField("folder"):
            spec.checkpoint.folder = "checkpoints"
    _resolve(spec, folder)
    if spec.model.HasField("from"):
        violations = inline_model(spec.model)
        if violations:
            raise invalid_job(placed_violations(violations, reader.places))
    return spec


def read_overrides(overrides: Mapping[str, Any]) -> job_pb2.JobSpec:
    """Returns a job that has only these keys; relative paths are relative to the working directory.
    Raises InvalidJob."""
    spec = job_pb2.JobSpec()
    reader = _Reader()
    for path, value in overrides.items():
        reader.override(path, value, spec)
    if reader.violations:
        raise invalid_job(tuple(reader.violations))
    _resolve(spec, os.getcwd())
    return spec
