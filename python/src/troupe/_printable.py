"""Shows texts that other people chose: a terminal obeys control characters, and a log has one
record in a line."""

from __future__ import annotations

import re

# As base/text/printable.h: C0 but the tab, DEL and C1, the line separators, and the controls that
# reorder a line.
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str, keeps_newlines: bool = False) -> str:
    """Returns `text` with its control characters as \\n, \\r or \\uNNNN. Tabs stay, and newlines
    in a text of several lines."""

    def shown(found: re.Match[str]) -> str:
        control = found[0]
        if control == "\n":
            return control if keeps_newlines else "\\n"
        return "\\r" if control == "\r" else f"\\u{ord(control):04x}"

    return _CONTROLS.sub(shown, text)
