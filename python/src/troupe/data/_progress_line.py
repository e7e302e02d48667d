"""Shows the progress on standard error: on a terminal a line that is drawn again and again, else a
new one every half minute."""

from __future__ import annotations

import os
import sys
import time

from troupe.data._prepare import Progress

_REDRAW_SECONDS = 0.2
_NEW_LINE_SECONDS = 30.0


def _duration(seconds: float) -> str:
    whole = int(min(max(seconds, 0.0), 1e12) + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def progress_text(progress: Progress, seconds: float) -> str:
    """Returns the line `seconds` after the start. The time left is that of the bytes which
    are not read yet at the rate so far."""
    total = max(progress.bytes_total, 1)
    read = min(max(progress.bytes_read, 1), total)  # files may have grown
    rate = progress.tokens / max(seconds, 1e-3)
    return (f"{100 * read / total:.0f}% of {total / 1e6:.1f} MB  {progress.documents} documents  "
            f"{progress.tokens} tokens  {rate:.0f} tokens/s  "
            f"{_duration(seconds * (total - read) / read)} left")


class ProgressLine:
    def __init__(self) -> None:
        self._draws = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._began = self._shown = time.monotonic()

    def show(self, progress: Progress) -> None:
        """Shows the progress, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._shown < (_REDRAW_SECONDS if self._draws else _NEW_LINE_SECONDS):
            return
        self._shown = now
        text = progress_text(progress, now - self._began)
        if self._draws:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns
            text = "\r\033[K" + (text[:columns - 1] if columns > 1 else text)
        print(text, end="" if self._draws else "\n", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._draws and self._shown > self._began:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
