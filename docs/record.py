"""Runs a command and writes what its terminal showed as an animated SVG.

    python3 docs/record.py docs/quickstart.svg ./run quickstart

The command runs in a pseudo-terminal. Lines that it rewrites in place are animated; a viewer that
does not animate shows the last state of each line. Recorded time is compressed to PLAYED_SECONDS.
"""

import codecs
import html
import os
import pty
import sys
import time

COLUMNS = 110
ROWS = 48  # the last rows of a longer recording are drawn
PLAYED_SECONDS = 24.0
FRAME_SECONDS = 0.25  # in played time; the last state of a line within a frame is drawn
SHOWN_FOLDER = "~/troupe"  # in place of the folder in which the command runs
CHARACTER_PIXELS, LINE_PIXELS, MARGIN_PIXELS = 7.8, 18, 14


class Screen:
    """Lines of text, each with its states in time. It understands what Troupe's programs print:
    newlines, carriage returns, and ESC [ … sequences, which it ignores except for K, which erases
    the line."""

    def __init__(self):
        self.lines = [[(0.0, "")]]
        self.column = 0
        self.escape = None  # the characters of an unfinished escape sequence

    def text(self):
        return self.lines[-1][-1][1]

    def show(self, now, text):
        states = self.lines[-1]
        if states[-1][0] == now:
            states.pop()
        states.append((now, text))

    def write(self, now, characters):
        for character in characters:
            if self.escape is not None:
                self.escape += character
                if character.isalpha():
                    if self.escape == "[K":
                        self.show(now, self.text()[:self.column])
                    self.escape = None
            elif character == "\x1b":
                self.escape = ""
            elif character == "\r":
                self.column = 0
            elif character == "\n":
                self.lines.append([(now, "")])
                self.column = 0
            elif character.isprintable():
                text = self.text()
                self.show(now, text[:self.column] + character + text[self.column + 1:])
                self.column += 1


def record(command):
    """Returns (screen, seconds, exit code)."""
    screen, decoder = Screen(), codecs.getincrementaldecoder("utf-8")("replace")
    began = time.monotonic()

    def read(descriptor):
        data = os.read(descriptor, 65536)
        screen.write(time.monotonic() - began, decoder.decode(data))
        return data

    status = pty.spawn(command, read)
    return screen, time.monotonic() - began, os.waitstatus_to_exitcode(status)


def frames(states, speed, end):
    """Returns [(begin, end, text)] in played seconds, without states that a frame hides."""
    shown = []
    for recorded, text in states:
        begin = recorded / speed
        if shown and begin - shown[-1][0] < FRAME_SECONDS:
            begin = shown.pop()[0]
        shown.append((begin, text.replace(os.getcwd(), SHOWN_FOLDER)[:COLUMNS]))
    ends = [begin for begin, _ in shown[1:]] + [end]
    return [(begin, until, text) for (begin, text), until in zip(shown, ends) if text]


def line_svg(states, y, speed, end):
    drawn, last = [], frames(states, speed, end)
    for begin, until, text in last:
        is_final = until == end
        # Only the final state is visible where nothing is animated.
        hidden = '' if is_final else ' visibility="hidden"'
        switches = ""
        if is_final and begin > 0:
            switches = ('<set attributeName="visibility" to="hidden" begin="0s" '
                        f'end="{begin:.2f}s"/>')
        if not is_final:
            switches = f'<set attributeName="visibility" to="visible" begin="{begin:.2f}s"/>'
            switches += f'<set attributeName="visibility" to="hidden" begin="{until:.2f}s"/>'
        drawn.append(f'<text x="{MARGIN_PIXELS}" '
                     f'y="{y}"{hidden}>{html.escape(text)}{switches}</text>')
    return drawn


def to_svg(screen, seconds, title):
    while screen.lines and not screen.text():
        screen.lines.pop()
    speed = max(seconds / PLAYED_SECONDS, 1.0)
    lines = screen.lines[-ROWS:]
    width = int(2 * MARGIN_PIXELS + COLUMNS * CHARACTER_PIXELS)
    height = 2 * MARGIN_PIXELS + (len(lines) + 2) * LINE_PIXELS
    played = f"{seconds:.0f} s"
    if speed > 1:
        played = f"recorded in {played}, played {speed:.0f} times as fast"
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" role="img" xml:space="preserve">',
           f"<title>{html.escape(title)}</title>",
           "<style>text { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; "
           "font-size: 13px; fill: #d7dde5; white-space: pre } .dim { fill: #8a95a3 }</style>",
           f'<rect width="{width}" height="{height}" rx="8" fill="#12161c"/>',
           f'<text x="{MARGIN_PIXELS}" y="{MARGIN_PIXELS + 12}" class="dim">$ {html.escape(title)}'
           f"   # {played}</text>"]
    for row, states in enumerate(lines):
        svg += line_svg(states, MARGIN_PIXELS + (row + 2) * LINE_PIXELS + 12, speed,
                        PLAYED_SECONDS + 1)
    return "\n".join(svg + ["</svg>", ""])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    path, command = sys.argv[1], sys.argv[2:]
    screen, seconds, code = record(command)
    if code != 0:
        sys.exit(f"{' '.join(command)} ended with exit code {code}: nothing is written")
    with open(path, "w", encoding="utf-8") as file:
        file.write(to_svg(screen, seconds, " ".join(command)))


if __name__ == "__main__":
    main()
