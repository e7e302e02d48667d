"""Prometheus accepts the rules and every expression of the boards, and the alerts' tests pass.

Skipped where promtool is not installed (Debian: the package prometheus).
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from expressions import DASHBOARDS, boards, expressions, substituted

PROMTOOL = shutil.which("promtool")


@unittest.skipUnless(PROMTOOL, "promtool is not installed (Debian: prometheus)")
class RulesTest(unittest.TestCase):
    def promtool(self, *arguments):
        return subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True)

    def expect_success(self, *arguments):
        run = self.promtool(*arguments)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_the_rules_are_valid(self):
        self.expect_success("check", "rules", DASHBOARDS / "prometheus/rules.yaml")

    def test_the_configuration_is_valid(self):
        self.expect_success("check", "config", DASHBOARDS / "prometheus/prometheus.yaml")

    def test_the_alerts_pass_their_tests(self):
        self.expect_success("test", "rules", DASHBOARDS / "prometheus/rules_test.yaml")

    def rules_of(self, found):
        """Writes expressions as recording rules, which promtool parses."""
        rules = [{"record": "parsed:expression:once", "expr": expression, "labels": {"n": str(n)}}
                 for n, expression in enumerate(found)]
        return json.dumps({"groups": [{"name": "parsed", "rules": rules}]})

    def test_every_expression_of_the_boards_is_promql(self):
        found = [substituted(expression) for board in boards().values()
                 for _, expression in expressions(board)]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rules.yaml"
            path.write_text(self.rules_of(found))
            self.expect_success("check", "rules", path)
            path.write_text(self.rules_of([*found, "rate(troupe_job_tokens_total)"]))
            self.assertNotEqual(self.promtool("check", "rules", path).returncode, 0)


if __name__ == "__main__":
    unittest.main()
