"""Converts messages of the protocol, by reflection: to the dataclasses of messages.py, and to the
dictionaries that `troupe -o json` prints."""

from __future__ import annotations

import keyword
from typing import Any, Dict, Iterable, Optional, Type, TypeVar

from google.protobuf.message import Message

from troupe import messages

T = TypeVar("T")

# Descriptors have two types, of which the stubs of a runtime name one or both.
_Field = Any
_Enum = Any


def _member(enum: str, number: int) -> Any:
    """A member of the enum with this full name."""
    members = messages.NUMBERS[enum]
    return members.get(number, members[0])  # a newer coordinator may have more


def state_of(number: int) -> messages.JobState:
    """Returns the state that the protocol writes as `number`."""
    state = _member("troupe.v1.JobState", number)
    assert isinstance(state, messages.JobState)
    return state


def _value(field: _Field, value: Any) -> Any:
    if field.message_type is not None:
        return _dataclass(value)
    return _member(field.enum_type.full_name, value) if field.enum_type is not None else value


def _dataclass(message: Message) -> Any:
    values: Dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        name = f"{field.name}_" if keyword.iskeyword(field.name) else field.name
        value = getattr(message, field.name)
        if field.is_repeated:
            values[name] = tuple(_value(field, each) for each in value)
        elif field.has_presence and not message.HasField(field.name):
            values[name] = None
        else:
            values[name] = _value(field, value)
    return messages.CLASSES[message.DESCRIPTOR.full_name](**values)


def to_dataclass(message: Message, kind: Type[T]) -> T:
    """Returns `message` as the dataclass `kind`, which is generated from its type."""
    converted = _dataclass(message)
    assert isinstance(converted, kind)
    return converted


def _word(enum: _Enum, number: int) -> str:
    prefix = str(enum.values[0].name)[: -len("UNSPECIFIED")]
    named = enum.values_by_number.get(number)
    return "" if named is None else str(named.name)[len(prefix):]


def _json(field: _Field, value: Any) -> Any:
    if field.message_type is not None:
        return to_dict(value)
    return _word(field.enum_type, value) if field.enum_type is not None else value


def to_dict(message: Message, fields: Optional[Iterable[str]] = None) -> Dict[str, Any]:
    """Returns these fields of a message, or all: absent numbers and texts are None, and absent
    messages are written out with their defaults."""
    result: Dict[str, Any] = {}
    for name in [each.name for each in message.DESCRIPTOR.fields] if fields is None else fields:
        field = message.DESCRIPTOR.fields_by_name[name]
        value = getattr(message, name)
        if field.is_repeated:
            result[name] = [_json(field, each) for each in value]
        elif field.message_type is None and field.has_presence and not message.HasField(name):
            result[name] = None
        else:
            result[name] = _json(field, value)
    return result
