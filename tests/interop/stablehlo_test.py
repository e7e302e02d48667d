"""Programs of the XLA backend use only what every plugin since StableHLO 0.9.0 reads.

The tests of kernels, of small stages and of layouts write the text of every program that they
compile; the StableHLO library in the PyPI package `jaxlib` parses each and serializes it as a
portable artifact of version 0.9.0, which it refuses if an operation or attribute is newer.

Creates an environment (build/interop-stablehlo) with the pinned version. Run by ./run test interop.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

from peer_environment import peer_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build/release/bin"
# The tests that write programs, and the fewest programs of each.
WRITERS = (("kernels_xla_test", ("Xla/KernelTest.*", "Slices/*", "ProgramTexts.*"), 300),
           ("xla_layouts_test",
            ("Every/XlaSchedules.*/DualPipeVTensor2", "Alone/XlaLayouts.*/Zero32",
             "Alone/XlaLayouts.*/Ring2"), 50),
           ("xla_mixtures_test", ("OneAxis/XlaMixtures.*/Expert2",), 5),
           ("xla_slices_test",
            ("Pairs/XlaSlices.*/Tensor2Pipe2", "Pairs/XlaSlices.*/Replicate2Ring2",
             "Alone/XlaSlices.*/Exchange2", "Table/XlaWholeStepLayouts.*/Zero3Shard2Tensor2",
             "OneAxis/XlaMixtureSlices.*/Expert2"), 15))
VENV = ROOT / "build/interop-stablehlo"
PACKAGE = "jaxlib==0.10.2"
VERSION = "0.9.0"
LIMIT_SECONDS = 600

# Runs with the package: prints a line for each file that is refused, and at last the number of
# files. A program of several ranks is wrapped in Shardy's dialect, which has no versions: the
# StableHLO in it is serialized, and Shardy's part is parsed and verified.
PEER = """
import pathlib, sys
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import sdy, stablehlo
context, registry = ir.Context(), ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context.append_dialect_registry(registry)
stablehlo.register_dialect(context)
sdy.register_dialect(context)
texts = sorted(pathlib.Path(sys.argv[1]).glob("*.mlir"))
for path in texts:
    text = path.read_text()
    has_other_dialects = "sdy.mesh" in text
    try:
        with context:
            module = ir.Module.parse(text)
            module.operation.verify()
            stablehlo.serialize_portable_artifact(module, sys.argv[2], has_other_dialects)
    except Exception as error:
        print(f"{path.name}: {error}".replace("\\n", " "))
print(len(texts))
"""


class StableHloTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (BIN / WRITERS[0][0]).exists():
            raise unittest.SkipTest("XLA was left out of the build: no program is checked")
        try:
            cls.python = peer_python(VENV, [PACKAGE])
        except subprocess.CalledProcessError as error:
            raise unittest.SkipTest(f"{PACKAGE} cannot be installed here: {error}")

    def refused(self, folder):
        """Returns the lines of the files that the package refuses, and the number of files."""
        done = subprocess.run([self.python, "-c", PEER, folder, VERSION], capture_output=True,
                              text=True, timeout=LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        *refused, count = done.stdout.splitlines()
        return refused, int(count)

    def test_every_program_of_kernels_stages_and_layouts_is_portable(self):
        for writer, tests, least in WRITERS:
            with self.subTest(writer), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([BIN / writer, "--gtest_brief=1",
                                       "--gtest_filter=" + ":".join(tests)], cwd=ROOT,
                                      env={**os.environ, "TROUPE_XLA_TEXTS": folder},
                                      capture_output=True, text=True, timeout=LIMIT_SECONDS)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertNotIn("] 0 tests", done.stdout)
                if not list(pathlib.Path(folder).glob("*.mlir")):
                    self.skipTest("there is no plugin of XLA, so no program was written")
                refused, count = self.refused(folder)
                self.assertEqual(refused, [])
                self.assertGreater(count, least)

    def test_golden_programs_are_portable(self):
        refused, count = self.refused(ROOT / "kernels/xla/runtime/golden")
        self.assertEqual(refused, [])
        self.assertGreater(count, 1)

    def test_a_newer_operation_is_refused(self):
        newer = "tensor<4xf8E3M4>"
        one_rank = f"func.func @main(%x: {newer}) -> {newer} {{\n  return %x : {newer}\n}}\n"
        ranks = (f"sdy.mesh @ranks = <[\"r\"=2]>\n"
                 f"func.func @main(%x: tensor<8xf8E3M4>) -> tensor<8xf8E3M4> {{\n"
                 f"  %r = sdy.manual_computation(%x) in_shardings=[<@ranks, [{{\"r\"}}]>] "
                 f"out_shardings=[<@ranks, [{{\"r\"}}]>] manual_axes={{\"r\"}} (%y: {newer}) {{\n"
                 f"    %z = stablehlo.add %y, %y : {newer}\n    sdy.return %z : {newer}\n"
                 f"  }} : (tensor<8xf8E3M4>) -> tensor<8xf8E3M4>\n"
                 f"  return %r : tensor<8xf8E3M4>\n}}\n")
        # The same programs without the newer type are accepted.
        for texts, refused_count in ((("f8E3M4", "f8E3M4"), 2), (("f8E3M4", "f32"), 0)):
            with tempfile.TemporaryDirectory() as folder:
                for name, text in (("one_rank", one_rank), ("ranks", ranks)):
                    (pathlib.Path(folder) / f"{name}.mlir").write_text(text.replace(*texts))
                refused, count = self.refused(folder)
            self.assertEqual((len(refused), count), (refused_count, 2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
