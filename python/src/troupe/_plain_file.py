"""Reads small files whose paths users state: job files, tokens and certificates."""

from __future__ import annotations

import os
import stat
from typing import Tuple, Union


def read_plain_file(path: "Union[str, os.PathLike[str]]", most_bytes: int) -> Tuple[bytes, int]:
    """Returns the content and the permissions of a regular file. Opening a FIFO or a device waits
    for nobody. Raises OSError, and ValueError for another kind of file and for a longer one."""
    name = os.fspath(path)
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"{name}: is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(most_bytes + 1)
    finally:
        os.close(descriptor)
    if len(content) > most_bytes:
        raise ValueError(f"{name}: has more than {most_bytes} bytes")
    return content, stat.S_IMODE(mode)
