"""What the tests of `python -m troupe.data prepare` share."""

import array
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from harness import TROUPE
from troupe.data.__main__ import main

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = (".bin", ".idx", ".troupe.json")
LIMIT_SECONDS = 60


def needs(package):
    """Skips a test where a package is not installed."""
    return unittest.skipUnless(importlib.util.find_spec(package),
                               f"the package {package} is not installed")


needs_program = unittest.skipUnless(os.access(TROUPE, os.X_OK), "the program troupe is not built")


class Prepared:
    """What a command did: its exit code, its outputs and the dataset at the prefix."""

    def __init__(self, code, out, err, prefix):
        self.code, self.out, self.err, self.prefix = code, out, err, prefix
        self.files = {name: pathlib.Path(prefix + name).read_bytes() for name in FILES
                      if pathlib.Path(prefix + name).exists()}

    @property
    def result(self):
        return json.loads(self.out)

    @property
    def tokens(self):
        code = "H" if self.files[".idx"][17] == 8 else "i"
        return list(array.array(code, self.files[".bin"]))

    @property
    def text(self):
        """The tokens of bytes as text, with | for an end of document."""
        return bytes(ord("|") if token == 256 else token for token in self.tokens).decode()


class DataCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.folder = self.home / "in"
        self.folder.mkdir()

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def prepare(self, *flags, paths=None, prefix="out/data"):
        out, err = io.StringIO(), io.StringIO()
        prefix = str(self.home / prefix)
        arguments = ["prepare", "-o", "json", "--output", prefix, *map(str, flags),
                     *map(str, paths or [self.folder])]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(arguments)
            except SystemExit as ended:
                code = ended.code
        return Prepared(code, out.getvalue(), err.getvalue(), prefix)

    def refused(self, *flags, **options):
        """Returns the error of flags or data that are bad input, which leaves no new file."""
        before = set(self.home.glob("*/data.*"))
        done = self.prepare(*flags, **options)
        self.assertEqual((done.code, done.out), (2, ""), done.err)
        self.assertEqual(set(self.home.glob("*/data.*")), before)
        return done.err.replace(f"{self.home}/", "").removeprefix("troupe.data: ").strip()

    def by_the_command(self, *flags, paths=None):
        prefix = str(self.home / "command/data")
        done = subprocess.run([TROUPE, "data", "prepare", "-o", "json", "--output", prefix,
                               *map(str, flags), *map(str, paths or [self.folder])],
                              capture_output=True, text=True, timeout=LIMIT_SECONDS)
        return Prepared(done.returncode, done.stdout, done.stderr, prefix)

    def assert_equal_to_the_command(self, *flags):
        ours, theirs = self.prepare(*flags), self.by_the_command(*flags)
        self.assertEqual((ours.code, theirs.code), (0, 0), ours.err + theirs.err)
        self.assertEqual(ours.files, theirs.files)
        self.assertEqual(set(ours.files), set(FILES))
        self.assertEqual(ours.err, theirs.err)
        times = {"seconds", "tokens_per_second", "files"}
        self.assertEqual({key: value for key, value in ours.result.items() if key not in times},
                         {key: value for key, value in theirs.result.items() if key not in times})
        return ours
