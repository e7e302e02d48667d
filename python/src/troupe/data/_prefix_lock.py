"""Keeps two processes from writing the dataset of one prefix, also if the other one is the command
`troupe data prepare`."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Iterator

from troupe.errors import FailedPrecondition


def _is_at(path: str, descriptor: int) -> bool:
    """Whether the path still leads to the open file: whoever held the lock before has removed it.
    """
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _acquire(prefix: str) -> int:
    path = f"{prefix}.lock"
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise FailedPrecondition(f"{prefix}: another process writes this dataset; it has "
                                     f"locked {path}") from None
        except OSError:  # a file system without such locks
            return descriptor
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)


@contextlib.contextmanager
def prefix_lock(prefix: str) -> Iterator[None]:
    """Holds the lock of the file PREFIX.lock, and removes the file at the end. Raises OSError, and
    FailedPrecondition if another process writes the prefix. Holds nothing on a file system without
    such locks."""
    descriptor = _acquire(prefix)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(f"{prefix}.lock")
        os.close(descriptor)
