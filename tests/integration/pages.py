"""Runs the commands of a page and compares what they print with what the page shows.

A block of a page that begins with `$ ` has commands, each with the lines that it prints below it. A
command goes on in the next line after a backslash, and up to the end word of a here-document. A
command without lines below it may print anything. In the lines, `…` is any text, a line `…` any
number of lines, and numbers, digests and units of time may be others.

All commands of a page run in one bash and in one new folder, and each has to succeed. A page that
starts a cluster names its folder `cluster`.

With TROUPE_UPDATE_GOLDEN=1 the page gets what a command printed where it shows something else.
"""

import contextlib
import dataclasses
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import BIN, ROOT

LIMIT_SECONDS = 150
SHOWN_FOLDER = "/home/ada"  # in place of the folder in which a page's commands run
HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?")
NUMBER = r"\d[\d.,]*(?:e[-+]?\d+)?"
TIME_UNIT = r" (?:ns|µs|ms|s|min|h)\b"
VARYING = re.compile(rf"(?P<digest>\b[0-9a-f]{{8,}}\b)|{NUMBER}(?P<time>{TIME_UNIT})|"
                     rf"(?P<number>{NUMBER})|(?P<any>…)|(?P<space>\s+)")
PATTERNS = {"digest": r"[0-9a-f]+", "time": NUMBER + TIME_UNIT, "number": NUMBER, "any": ".*",
            "space": r"\s+"}

# Commands without an address call the newest cluster of this machine, which may be another test's:
# they get the address that `troupe up` prints.
PRELUDE = r"""
set -o pipefail
troupe() {
  [[ $1 == up ]] || { command troupe "$@"; return; }
  local printed
  printed=$(command troupe "$@") || return
  printf '%s\n' "$printed"
  eval "$(grep '^export TROUPE_COORDINATOR=' <<<"$printed")"
}
"""


@dataclasses.dataclass
class Command:
    text: str  # as bash reads it
    line: int  # number of lines of the page before the first one that it prints
    shown: list[str]


def commands_of(lines):
    """Returns the commands of the blocks of a page that begin with `$ `."""
    found, at = [], 0
    while at < len(lines):
        end = at + 1
        if lines[at].startswith("```"):
            while not lines[end].startswith("```"):
                end += 1
            if lines[at + 1].startswith("$ "):
                found += commands_of_block(lines, at + 1, end)
            end += 1
        at = end
    return found


def commands_of_block(lines, at, end):
    found = []
    while at < end:
        text = [lines[at].removeprefix("$ ")]
        at += 1
        while text[-1].endswith("\\"):
            text.append(lines[at])
            at += 1
        if here := HERE_DOCUMENT.search(text[-1]):
            while text[-1] != here[1]:
                text.append(lines[at])
                at += 1
        line = at
        while at < end and not lines[at].startswith("$ "):
            at += 1
        found.append(Command("\n".join(text), line, lines[line:at]))
    return found


def pattern(line):
    """Returns a regular expression for a line that a page shows."""
    parts, at = [], 0
    for varying in VARYING.finditer(line):
        parts += [re.escape(line[at:varying.start()]), PATTERNS[varying.lastgroup]]
        at = varying.end()
    return "".join(parts) + re.escape(line[at:])


def shows(shown, printed):
    """Returns whether a page that shows the lines `shown` describes the lines `printed`."""
    whole = "".join("(?:.*\n)*?" if line.strip() == "…" else pattern(line) + "[ \t]*\n"
                    for line in shown)
    return re.fullmatch(whole, "".join(f"{line}\n" for line in printed)) is not None


class Page:
    """A page of the tree, which a test runs in a folder with the files that the page takes for
    granted.

    `replaced` has texts of the page with those that stand for them in the test, such as a smaller
    number of steps. `omitted` has the beginnings of commands that the test does not run. Each of
    both has to occur in the page.
    """

    def __init__(self, case, path, replaced=None, omitted=(), environment=None):
        self.case, self.path = case, ROOT / path
        self.lines = self.path.read_text().split("\n")
        self.replaced, self.environment = replaced or {}, environment or {}
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-page-")).resolve()
        case.addCleanup(self.remove)
        for name in ("examples", "tests"):
            (self.folder / name).symlink_to(ROOT / name)
        every = commands_of(self.lines)
        self.commands = [command for command in every
                         if not command.text.startswith(tuple(omitted))]
        for begin in omitted:
            case.assertTrue(any(command.text.startswith(begin) for command in every), begin)
        texts = "\n".join(command.text for command in self.commands)
        for text in self.replaced:
            case.assertIn(text, texts, path)

    def remove(self):
        if (self.folder / "cluster").exists():
            subprocess.run([BIN / "troupe", "down", "--data-dir", self.folder / "cluster"],
                           capture_output=True, timeout=60, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def in_test(self, text):
        for shown, real in self.replaced.items():
            text = text.replace(shown, real)
        return text

    def in_page(self, text):
        for shown, real in self.replaced.items():
            text = text.replace(real, shown)
        return text.replace(str(self.folder), SHOWN_FOLDER)

    def run(self):
        """Runs the commands and compares their output, or updates the page."""
        self.case.assertTrue(self.commands, self.path)
        record = pathlib.Path(tempfile.mkdtemp(prefix="troupe-page-record-"))
        self.case.addCleanup(shutil.rmtree, record)
        script = [PRELUDE]
        for number, command in enumerate(self.commands):
            script.append(f"{{\n{self.in_test(command.text)}\n}} >{record}/{number} 2>&1 || exit\n")
        (record / "script").write_text("".join(script))
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("TROUPE_")}
        environment |= {"HOME": str(self.folder), "NO_COLOR": "1",
                        "PATH": f"{BIN}:{os.environ['PATH']}"} | self.environment
        try:
            code = subprocess.run(["bash", record / "script"], cwd=self.folder, env=environment,
                                  stdin=subprocess.DEVNULL, timeout=LIMIT_SECONDS,
                                  check=False).returncode
        except subprocess.TimeoutExpired:
            code = f"no end within {LIMIT_SECONDS} s"
        printed = []
        with contextlib.suppress(FileNotFoundError):
            for number in range(len(self.commands)):
                printed.append((record / str(number)).read_text(errors="replace"))
        if code != 0:
            last = self.commands[len(printed) - 1].text if printed else "the page"
            self.case.fail(f"{self.path}: {last}: {code}: {printed[-1] if printed else ''}"
                           f"\n{self.logs()}")
        self.compare([self.in_page(text).splitlines() for text in printed])

    def logs(self):
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}"
                         for path in sorted(self.folder.glob("cluster/logs/**/*.log")))

    def compare(self, printed):
        differences = []
        for command, lines in reversed(list(zip(self.commands, printed, strict=True))):
            if not command.shown or shows(command.shown, lines):
                continue
            differences.append("\n".join([f"$ {command.text}",
                                          *difflib.ndiff(command.shown, lines)]))
            self.lines[command.line:command.line + len(command.shown)] = lines
        if differences and os.environ.get("TROUPE_UPDATE_GOLDEN"):
            self.path.write_text("\n".join(self.lines))
            return
        self.case.assertEqual(differences, [], f"{self.path} shows something else; "
                                               "TROUPE_UPDATE_GOLDEN=1 updates it")


if __name__ == "__main__":
    raise SystemExit("a module of the tests, not a test")
