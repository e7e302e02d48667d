"""Tests what deploy/ has: manifests, image, units and scripts. Called by ./run test deploy.

    /usr/bin/python3 tests/deploy/run.py [TEST …]     such as manifests_test.ArgumentsTest

Validators of PyPI are installed into an environment, build/deploy-tests. Without it, the tests that
need them or PyYAML are skipped by name. The last line of stdout is "PASSED FAILED SKIPPED".
"""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENV = ROOT / "build/deploy-tests"
PINS = HERE / "requirements.txt"
# They build an image and packages, and have words of their own: ./run test image, package.
OTHERS = ("image_test", "package_test")


def make_environment():
    """Returns the Python of the environment, or this one if PyPI cannot be reached."""
    stamp = VENV / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != PINS.read_text():
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            subprocess.run(["/usr/bin/python3", "-m", "venv", VENV], check=True)
            subprocess.run([VENV / "bin/pip", "install", "-q", "--disable-pip-version-check",
                            "--retries", "1", "--timeout", "15", "-r", PINS], check=True)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"the validators cannot be installed: {error}", file=sys.stderr)
            shutil.rmtree(VENV, ignore_errors=True)
            return sys.executable
        shutil.copy(PINS, stamp)
    return str(VENV / "bin/python")


def main():
    if "TROUPE_DEPLOY_TESTS" not in os.environ:
        os.environ["TROUPE_DEPLOY_TESTS"] = "1"
        python = make_environment()
        os.execv(python, [python, "-B", __file__, *sys.argv[1:]])
    sys.path[:0] = [str(HERE), str(ROOT / "tests/integration")]
    found = sorted(path.stem for path in HERE.glob("*_test.py"))
    names = sys.argv[1:] or [name for name in found if name not in OTHERS]
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    # A failure of setUpClass is listed for a class, one of a subtest next to others of its test.
    ended = [test for test, _ in [*result.failures, *result.errors, *result.skipped]]
    ended = {getattr(test, "test_case", test).id() for test in [*ended, *result.unexpectedSuccesses]
             if isinstance(test, unittest.TestCase)}
    print(result.testsRun - len(ended), failed, len(result.skipped))
    return 0 if failed == 0 and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
