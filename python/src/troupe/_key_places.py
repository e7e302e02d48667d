"""Where the keys of a job are stated, so that an error about a key names the place, as one of
`troupe submit` does (plan/job/key_places.h)."""

from __future__ import annotations

import re
from typing import Dict, Iterable, Tuple, TypeVar

from troupe.errors import TroupeError, Violation
from troupe.v1 import job_pb2

# By path, such as "data.blend[0].weight": "job.yaml:3:5", line and column; empty for a key that is
# stated outside of a file. The empty path is that of the whole file: "job.yaml".
KeyPlaces = Dict[str, str]

E = TypeVar("E", bound=TroupeError)


def placed_violations(violations: Iterable[Violation],
                      places: KeyPlaces) -> Tuple[Violation, ...]:
    """Adds a place to each violation: that of its key; if the key is not stated, that of the first
    stated key that the violation names, else of the innermost list or section around the key, else
    of the whole file. A violation of a field that is no key of a job gets none."""
    placed = []
    for each in violations:
        place = _place_of(each, places)
        placed.append(Violation(each.field, f"{each.description} ({place})") if place else each)
    return tuple(placed)


def with_places(error: E, places: KeyPlaces) -> E:
    """Returns the error with places in its violations and in its message."""
    placed = placed_violations(error.violations, places)
    message, begin = error.message, 0
    for plain, each in zip(error.violations, placed):
        line, longer = (f"{one.field} {one.description}" for one in (plain, each))
        at = message.find(line, begin)
        if at < 0:  # the message was cut
            continue
        begin = at + len(longer)
        message = message[:at] + longer + message[at + len(line):]
    placed_error = type(error)(message, placed)
    placed_error.code = error.code
    return placed_error


def _place_of(violation: Violation, places: KeyPlaces) -> str:
    path = violation.field
    if re.split(r"[.\[]", path, maxsplit=1)[0] not in job_pb2.JobSpec.DESCRIPTOR.fields_by_name:
        return ""
    if path in places:
        return places[path]
    # The key of a list's entry belongs to the list, whatever else the text names.
    named = "" if "[" in path else _named_key(violation.description, places)
    if named:
        return places[named]
    while path and path not in places:
        path = path[:max(path.rfind("."), path.rfind("["), 0)]
    return places.get(path, "")


def _named_key(text: str, places: KeyPlaces) -> str:
    """Returns the stated key that `text` names first, by its path or by the last part of it, which
    in some keys is a common word and then no name; empty if it names none."""
    named, first = "", len(text)
    for path in sorted(places):
        last = path.rpartition(".")[2]
        if last == path or "[" in path:
            continue
        for name in (path, last) if "_" in last else (path,):
            found = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text, re.ASCII)
            if found and found.start() < first:
                named, first = path, found.start()
    return named
