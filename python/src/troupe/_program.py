"""Calls the program `troupe` for what only the command can do: it has the code that writes exports,
reports and traces."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
from typing import Any, Dict, Sequence, Type

from troupe import errors
from troupe._printable import printable

_log = logging.getLogger("troupe")

# By exit code of the command.
_ERRORS: Dict[int, Type[errors.TroupeError]] = {
    2: errors.InvalidArgument, 3: errors.Unavailable, 4: errors.NotFound}


def find_program() -> str:
    """Returns the path of `troupe`: TROUPE_BIN, which is the program or the directory that has it,
    else the one on PATH. Raises ProgramNotFound."""
    stated = os.environ.get("TROUPE_BIN")
    if stated:
        path = os.path.join(stated, "troupe") if os.path.isdir(stated) else stated
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
        raise errors.ProgramNotFound(f"TROUPE_BIN is {stated}, which neither is the program troupe "
                                     "nor has it")
    found = shutil.which("troupe")
    if found is None:
        raise errors.ProgramNotFound(
            "the program troupe is needed, and is not on PATH: install it, or set TROUPE_BIN to "
            "the directory that has it")
    return found


def run_program(arguments: Sequence[str], environment: Dict[str, str],
                timeout: float) -> Dict[str, Any]:
    """Runs `troupe ARGUMENTS -o json` with these additional variables, and returns what it has
    printed. Its messages go to the logger `troupe`. Raises ProgramNotFound, DeadlineExceeded, and
    the exception that fits its exit code."""
    command = [find_program(), *arguments, "-o", "json"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                              env={**os.environ, **environment}, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise errors.DeadlineExceeded(f"troupe {' '.join(arguments)} has not ended within "
                                      f"{timeout} s") from None
    except OSError as error:
        raise errors.ProgramNotFound(f"{command[0]} cannot be started: {error}") from None
    messages = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0:
        kind = _ERRORS.get(done.returncode, errors.TroupeError)
        raise kind(messages.removeprefix("troupe: ") or f"it ended with {done.returncode}")
    for line in messages.splitlines():
        _log.warning("%s", printable(line))
    result: Dict[str, Any] = json.loads(done.stdout)
    return result
