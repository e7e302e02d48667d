"""Programs of the XLA backend use only what every plugin since StableHLO 0.9.0 reads.

The tests of kernels and of small stages write the text of every program that they compile; the
StableHLO library in the PyPI package `jaxlib` parses each and serializes it as a portable artifact
of version 0.9.0, which it refuses if an operation or attribute is newer.

Creates an environment (build/interop-stablehlo) with the pinned version. Run by ./run test interop.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

from peer_environment import peer_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRITER = ROOT / "build/release/bin/kernels_xla_test"
VENV = ROOT / "build/interop-stablehlo"
PACKAGE = "jaxlib==0.10.2"
VERSION = "0.9.0"
LIMIT_SECONDS = 600

# Runs with the package: prints a line for each file that is refused, and at last the number of
# files. The package does not read Shardy's dialect, in which a program of several ranks is wrapped:
# of such a program the body is checked, which is one rank's own.
PEER = """
import pathlib, re, sys
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
def body_of(text):
    found = re.search(
        r'manual_axes=[{]"r"[}] [(](.*?)[)] [{]\\n(.*)    sdy.return (.*?) : (.*?)\\n',
        text, re.S)
    if not found:
        return text
    arguments, lines, names, types = found.groups()
    return (f"module {{ func.func @main({arguments}) -> ({types}) {{\\n{lines}"
            f"    return {names} : {types}\\n}} }}")
texts = sorted(pathlib.Path(sys.argv[1]).glob("*.mlir"))
for path in texts:
    try:
        stablehlo.serialize_portable_artifact_str(body_of(path.read_text()), sys.argv[2])
    except Exception as error:
        print(f"{path.name}: {error}".replace("\\n", " "))
print(len(texts))
"""


class StableHloTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not WRITER.exists():
            raise unittest.SkipTest("XLA was left out of the build: no program is checked")
        try:
            cls.python = peer_python(VENV, [PACKAGE])
        except subprocess.CalledProcessError as error:
            raise unittest.SkipTest(f"{PACKAGE} cannot be installed here: {error}")
        cls.folder = tempfile.TemporaryDirectory()
        cls.texts = pathlib.Path(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def refused(self, folder):
        """Returns the lines of the files that the package refuses, and the number of files."""
        done = subprocess.run([self.python, "-c", PEER, folder, VERSION], capture_output=True,
                              text=True, timeout=LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        *refused, count = done.stdout.splitlines()
        return refused, int(count)

    def test_every_program_of_kernels_and_stages_is_portable(self):
        done = subprocess.run([WRITER, "--gtest_brief=1",
                               "--gtest_filter=Xla/KernelTest.*:Slices/*:ProgramTexts.*"], cwd=ROOT,
                              env={**os.environ, "TROUPE_XLA_TEXTS": str(self.texts)},
                              capture_output=True, text=True, timeout=LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout)
        if not list(self.texts.glob("*.mlir")):
            self.skipTest("there is no plugin of XLA, so no program was written")
        refused, count = self.refused(self.texts)
        self.assertEqual(refused, [])
        self.assertGreater(count, 300)
        golden = ROOT / "kernels/xla/runtime/golden"
        self.assertEqual(self.refused(golden)[0], [])

    def test_a_newer_operation_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "newer.mlir").write_text(
                "func.func @main(%x: tensor<4xf8E3M4>) -> tensor<4xf8E3M4> {\n"
                "  return %x : tensor<4xf8E3M4>\n}\n")
            refused, count = self.refused(folder)
        self.assertEqual((len(refused), count), (1, 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
