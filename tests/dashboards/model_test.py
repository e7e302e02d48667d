"""Grafana knows every key of the boards: each file is read into the model of the PyPI package
grafana-foundation-sdk, which has a version for each Grafana, and written again. A key that this
model does not know is lost on the way.

Skipped where the package cannot be installed.
"""

import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from environment import VENV, environment
from expressions import DASHBOARDS, boards

# Runs in the environment: reads the names of files, prints the model of each as one line of JSON.
PEER = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
register_default_plugins()
for path in sys.argv[1:]:
    with open(path) as file:
        board = Dashboard.from_json(json.load(file))
    print(json.dumps(json.loads(JSONEncoder(sort_keys=True).encode(board))))
"""


# Keys of Prometheus's annotations in Grafana, which the package's model of annotations lacks.
UNKNOWN_TO_PACKAGE = {"tagKeys", "textFormat", "titleFormat"}


def lost(ours, theirs, path="$"):
    """Returns the paths of what `ours` has and `theirs` has not, or has with another value."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = []
        for key, value in ours.items():
            if key in theirs:
                found += lost(value, theirs[key], f"{path}.{key}")
            elif key not in UNKNOWN_TO_PACKAGE and value is not None:
                found.append(f"{path}.{key}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [one for index, (a, b) in enumerate(zip(ours, theirs))
                for one in lost(a, b, f"{path}[{index}]")]
    return [] if ours == theirs else [f"{path}: {ours!r} became {theirs!r}"]


class ModelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = environment()
        if cls.python is None:
            raise unittest.SkipTest("grafana-foundation-sdk cannot be installed from PyPI")

    def round_trip(self, *paths):
        run = subprocess.run([self.python, "-c", PEER, *paths], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def test_grafana_knows_every_key_of_the_boards(self):
        names = sorted(boards())
        models = self.round_trip(*(DASHBOARDS / f"grafana/{name}.json" for name in names))
        for name, model in zip(names, models):
            with self.subTest(board=name):
                self.assertEqual(lost(boards()[name], model), [])

    def test_a_key_that_grafana_does_not_know_is_found(self):
        board = boards()["training"]
        board["colour"] = "red"
        board["panels"][1]["fieldConfig"]["defaults"]["units"] = "s"
        path = VENV / "unknown.json"
        path.write_text(json.dumps(board))
        [model] = self.round_trip(path)
        self.assertEqual(lost(board, model), ["$.panels[1].fieldConfig.defaults.units",
                                              "$.colour"])


if __name__ == "__main__":
    unittest.main()
