"""The wheel is typed: mypy --strict accepts the examples in an environment that has nothing but the
wheel, and the package itself."""

import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/python-client"
FOLDER = ROOT / "examples/python"
EXAMPLES = [FOLDER / name for name in ("notebook.py", "scheduler_task.py", "log_run.py")]


def mypy(*arguments):
    done = subprocess.run([BUILD / "tools/bin/python", "-m", "mypy", "--strict",
                           f"--cache-dir={BUILD}/mypy", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


class TypesTest(unittest.TestCase):
    def test_the_examples_are_strictly_typed(self):
        code, output = mypy("--python-executable", sys.executable, *EXAMPLES)
        self.assertEqual(code, 0, output)

    def test_the_notebook_for_jupyter_has_the_cells_of_the_script(self):
        script = (FOLDER / "notebook.py").read_text(encoding="utf-8")
        notebook = json.loads((FOLDER / "notebook.ipynb").read_text(encoding="utf-8"))
        self.assertEqual((notebook["nbformat"], notebook["nbformat_minor"]), (4, 5))
        ids = [cell["id"] for cell in notebook["cells"]]
        self.assertEqual(len(ids), len(set(ids)))
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertEqual(["".join(cell["source"]) for cell in code],
                         [f"# {part.strip()}" for part in script.split("# %% ")[1:]])
        for cell in code:
            self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None))

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
