"""Generates troupe/messages.py: a frozen dataclass for each message that the client returns, and an
enum for each enum of theirs. A new field of the API is then a new attribute without further code.
"""

import collections
import keyword

from google.protobuf import descriptor_pb2

Field = descriptor_pb2.FieldDescriptorProto

# The messages that the client returns; those that they contain follow.
ROOTS = (".troupe.v1.StepEvent", ".troupe.v1.JobEvent", ".troupe.v1.Job",
         ".troupe.v1.WorkerStatus", ".troupe.v1.Plan")

SCALARS = {
    Field.TYPE_DOUBLE: ("float", "0.0"),
    Field.TYPE_BOOL: ("bool", "False"),
    Field.TYPE_STRING: ("str", '""'),
    Field.TYPE_BYTES: ("bytes", 'b""'),
    **{kind: ("int", "0") for kind in (Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT32,
                                       Field.TYPE_UINT64, Field.TYPE_FIXED32, Field.TYPE_FIXED64)},
}

HEADER = '''"""The values that the client returns. Generated from proto/.

An attribute is None where its field is absent in the reply.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, Dict, Optional, Tuple, Type

from troupe._shown import Shown

'''


def files_of(descriptors, folder):
    """Returns the names of the files in the descriptor set that are in `folder`."""
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
    return [file.name for file in files if file.name.startswith(folder)]


class Schema:
    """The messages, enums and comments of a descriptor set, by full name (".troupe.v1.Job")."""

    def __init__(self, descriptors):
        self.messages, self.enums, self.comments = {}, {}, {}
        for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
            comments = {tuple(location.path):
                        location.leading_comments.strip() or location.trailing_comments.strip()
                        for location in file.source_code_info.location}
            package = f".{file.package}"
            for i, message in enumerate(file.message_type):
                self.add(f"{package}.{message.name}", message, (4, i), comments)
            for enum in file.enum_type:
                self.enums[f"{package}.{enum.name}"] = enum

    def add(self, name, message, path, comments):
        self.messages[name] = message
        self.comments[name] = comments.get(path, "")
        for i, field in enumerate(message.field):
            self.comments[f"{name}.{field.name}"] = comments.get((*path, 2, i), "")
        for i, nested in enumerate(message.nested_type):
            self.add(f"{name}.{nested.name}", nested, (*path, 3, i), comments)
        for enum in message.enum_type:
            self.enums[f"{name}.{enum.name}"] = enum

    def reachable(self):
        """Returns the full names of the messages and enums in ROOTS and below, in order."""
        found = collections.OrderedDict()
        names = list(ROOTS)
        while names:
            name = names.pop(0)
            if name not in found:
                found[name] = None
                if name in self.messages:
                    names += [f.type_name for f in self.messages[name].field if f.type_name]
        return list(found)


def class_name(full_name):
    return "".join(full_name.split(".")[3:])


def members(enum):
    """Returns the (Python name, number) of an enum's values, without the common prefix."""
    prefix = enum.value[0].name[:-len("UNSPECIFIED")]
    return [(value.name[len(prefix):], value.number) for value in enum.value]


def annotation(schema, field):
    """Returns the type of an attribute, and its default."""
    if field.type in SCALARS:
        kind, default = SCALARS[field.type]
    else:
        kind = class_name(field.type_name)
        is_enum = field.type_name in schema.enums
        default = f"{kind}.UNSPECIFIED" if is_enum else "None"
    if field.label == Field.LABEL_REPEATED:
        return f"Tuple[{kind}, ...]", "()"
    if field.proto3_optional or default == "None":
        return f"Optional[{kind}]", "None"
    return kind, default


def comment_lines(text, indent):
    return [f"{indent}# {line.strip()}".rstrip() for line in text.splitlines()]


def attribute_name(name):
    return f"{name}_" if keyword.iskeyword(name) else name


def enum_source(name, enum):
    lines = [f"class {class_name(name)}(str, enum.Enum):"]
    lines += [f'    {member} = "{member}"' for member, _ in members(enum)]
    return [*lines, "", "    def __str__(self) -> str:", "        return self.value", "", ""]


def message_source(schema, name):
    lines = comment_lines(schema.comments[name], "")
    lines += ["@dataclasses.dataclass(frozen=True, repr=False)",
              f"class {class_name(name)}(Shown):"]
    for field in schema.messages[name].field:
        lines += comment_lines(schema.comments[f"{name}.{field.name}"], "    ")
        kind, default = annotation(schema, field)
        lines.append(f"    {attribute_name(field.name)}: {kind} = {default}")
    return [*lines, "", ""]


def source(descriptors):
    """Returns the text of messages.py."""
    schema = Schema(descriptors)
    names = schema.reachable()
    enums = [name for name in names if name in schema.enums]
    messages = [name for name in names if name in schema.messages]
    lines = []
    for name in enums:
        lines += enum_source(name, schema.enums[name])
    for name in messages:
        lines += message_source(schema, name)
    lines += ["# By the full names of the protocol.", "CLASSES: Dict[str, Type[Any]] = {"]
    lines += [f'    "{name[1:]}": {class_name(name)},' for name in messages]
    lines += ["}", "NUMBERS: Dict[str, Dict[int, Any]] = {"]
    for name in enums:
        entries = ", ".join(f"{number}: {class_name(name)}.{member}"
                            for member, number in members(schema.enums[name]))
        lines.append(f'    "{name[1:]}": {{{entries}}},')
    return HEADER + "\n".join([*lines, "}", ""])
