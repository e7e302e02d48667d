"""How results show themselves: briefly as text, and as a table in a notebook."""

from __future__ import annotations

import dataclasses
import enum
import html
from typing import Any, Iterator, Tuple

from troupe._printable import printable

_LONGEST_TEXT = 60
_MOST_ROWS = 20  # of a table in a table


def _stated(message: Any) -> Iterator[Tuple[str, Any]]:
    """Yields the fields that are not absent, empty or 0."""
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if value != field.default:
            yield field.name, value


def _is_flat(message: Any) -> bool:
    return not any(isinstance(value, tuple) or dataclasses.is_dataclass(value)
                   for _, value in _stated(message))


def _brief(value: Any) -> str:
    """Returns a value in a few words, in which a message within a message is left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return repr(value) if _is_flat(value) else f"{type(value).__name__}(…)"
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, tuple):
        if len(value) <= 4 and not any(dataclasses.is_dataclass(each) for each in value):
            return f"({', '.join(map(_brief, value))})"
        return f"({len(value)} × {type(value[0]).__name__})"
    if isinstance(value, (str, bytes)) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]!r}…"
    return repr(value)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) and not isinstance(value, enum.Enum) else _brief(value)
    return html.escape(printable(text[:1000]))


def _rows(messages: Tuple[Any, ...]) -> str:
    """Returns a table of messages with a row each."""
    shown = [dict(_stated(message)) for message in messages[:_MOST_ROWS]]
    names = [field.name for field in dataclasses.fields(messages[0])
             if any(field.name in each for each in shown)]
    lines = ["<tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in names) + "</tr>"]
    for each in shown:
        cells = (_cell(each[name]) if name in each else "" for name in names)
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    if len(messages) > _MOST_ROWS:
        lines.append(f"<tr><td>… {len(messages) - _MOST_ROWS} more</td></tr>")
    return f"<table>{''.join(lines)}</table>"


class Shown:
    """The base of all results. Fields that are absent, empty or 0 are left out. Texts are escaped,
    whoever chose them."""

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_brief(value)}" for name, value in _stated(self))
        return f"{type(self).__name__}({fields})"

    def _repr_html_(self) -> str:
        """The table that notebooks show."""
        lines = []
        for name, value in _stated(self):
            is_table = isinstance(value, tuple) and dataclasses.is_dataclass(value[0])
            cell = _rows(value) if is_table else _cell(value)
            lines.append(f"<tr><th>{html.escape(name)}</th><td>{cell}</td></tr>")
        title = html.escape(type(self).__name__)
        return f"<table><caption>{title}</caption>{''.join(lines)}</table>"
