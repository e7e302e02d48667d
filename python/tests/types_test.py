"""The wheel is typed: mypy --strict accepts the examples in an environment that has nothing but the
wheel, and the package itself."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/python-client"
EXAMPLES = [ROOT / "examples/python/notebook.py", ROOT / "examples/python/scheduler_task.py"]


def mypy(*arguments):
    done = subprocess.run([BUILD / "tools/bin/python", "-m", "mypy", "--strict",
                           f"--cache-dir={BUILD}/mypy", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


class TypesTest(unittest.TestCase):
    def test_the_examples_are_strictly_typed(self):
        code, output = mypy("--python-executable", sys.executable, *EXAMPLES)
        self.assertEqual(code, 0, output)

    def test_a_wrong_use_is_found(self):
        code, output = mypy("--python-executable", sys.executable, "-c",
                            "import troupe\n"
                            "step = troupe.StepEvent()\n"
                            "print(step.mfu + 1, step.los)\n"
                            "troupe.Client(timeout='30')\n")
        self.assertEqual(code, 1, output)
        self.assertIn('"StepEvent" has no attribute "los"', output)
        self.assertIn('Unsupported operand types for + ("None" and "int")', output)
        self.assertIn('Argument "timeout" to "Client" has incompatible type "str"', output)

    def test_the_package_is_strictly_typed(self):
        code, output = mypy("--config-file", str(ROOT / "python/pyproject.toml"),
                            "-p", "troupe")
        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()
