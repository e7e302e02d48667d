"""Builds the wheel of python/, installs it into a clean environment, build/python-client, and runs
the tests of this folder there. Called by ./run test python.

    /usr/bin/python3 python/tests/run.py [TEST …]     such as client_test.WatchTest

The packages that python -m troupe.data uses are in a folder of their own, which only the tests of
that command look into; those that are large are installed by ./run test full. Without them, the
tests that need them are skipped by name. The last line of stdout is "PASSED FAILED SKIPPED".
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENV = ROOT / "build/python-client"
TOOLS = VENV / "tools"  # an environment that has mypy and stubs too
PINS = HERE / "requirements.txt"
LIBRARIES = ROOT / "build/python-libraries"
IS_FULL = os.environ.get("TROUPE_TEST_FULL") == "1"


def sources():
    """Returns the files that the wheel is made of."""
    found = [ROOT / "CMakeLists.txt", PINS]
    for folder, pattern in (("proto", "**/*.proto"), ("python", "*.*"), ("python/src", "**/*.py")):
        found += sorted((ROOT / folder).glob(pattern))
    return [path for path in found if path.is_file()]


def digest():
    state = hashlib.sha256()
    for path in sources():
        state.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return state.hexdigest()


def pip(environment, *arguments):
    subprocess.run([environment / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check",
                    *arguments], check=True)


def make_environments():
    stamp = VENV / "digest"
    if stamp.exists() and stamp.read_text() == digest():
        return
    shutil.rmtree(VENV, ignore_errors=True)
    for environment in (VENV, TOOLS):
        subprocess.run(["/usr/bin/python3", "-m", "venv", environment], check=True)
    with tempfile.TemporaryDirectory() as folder:
        # setuptools writes next to its sources.
        for name in ("python", "proto"):
            shutil.copytree(ROOT / name, pathlib.Path(folder) / name)
        shutil.copy(ROOT / "CMakeLists.txt", folder)
        pip(VENV, "wheel", "--no-deps", "-w", VENV / "wheel", pathlib.Path(folder) / "python")
    wheels = list((VENV / "wheel").glob("*.whl"))
    pip(VENV, "install", *wheels)
    pip(TOOLS, "install", *wheels, "-r", PINS)
    stamp.write_text(digest())


def install_libraries():
    """Installs the packages that `python -m troupe.data` uses, unless they are there."""
    pins = [HERE / "data-requirements.txt"] + IS_FULL * [HERE / "full-requirements.txt"]
    wanted = "".join(path.read_text() for path in pins)
    stamp = LIBRARIES / "packages"
    if stamp.exists() and stamp.read_text().startswith(wanted):
        return
    shutil.rmtree(LIBRARIES, ignore_errors=True)
    # Those that are always installed import none of the packages that they require.
    flags = [] if IS_FULL else ["--no-deps"]
    try:
        pip(VENV, "install", "--no-compile", *flags, "--target", LIBRARIES,
            *(word for path in pins for word in ("-r", path)))
    except subprocess.CalledProcessError:
        print("the packages of python -m troupe.data cannot be installed: the tests that need them "
              "are skipped", file=sys.stderr)
        return
    stamp.write_text(wanted)


def main():
    if sys.prefix != str(VENV):
        make_environments()
        install_libraries()
        python = VENV / "bin/python"
        os.environ["GRPC_VERBOSITY"] = "NONE"  # refused handshakes are expected
        os.execv(python, [python, "-B", __file__, *sys.argv[1:]])
    sys.path[:0] = [str(HERE), str(ROOT / "tests/integration")]
    sys.path.append(str(LIBRARIES))
    names = sys.argv[1:] or sorted(path.stem for path in HERE.glob("*_test.py"))
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
