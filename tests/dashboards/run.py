"""Runs the tests of dashboards/. Called by ./run test dashboards, and by ./run test monitoring for
monitoring_test and page_test.

    /usr/bin/python3 tests/dashboards/run.py [TEST …]     such as boards_test.BoardsTest

The last line of stdout is "PASSED FAILED SKIPPED".
"""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def main():
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(HERE))
    names = sys.argv[1:] or ["boards_test", "model_test", "rules_test"]
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    tests = suite.countTestCases()
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    # A skipped class counts as one skip, and none of its tests as run.
    skipped = tests - result.testsRun + sum(
        1 for test, _ in result.skipped if isinstance(test, unittest.TestCase))
    print(tests - failed - skipped, failed, skipped)
    return 0 if failed == 0 and tests > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
