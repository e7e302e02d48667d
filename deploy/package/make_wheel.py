"""Makes the wheel of python/, troupe-VERSION-py3-none-any.whl. Called by ./run package.

    /usr/bin/python3 deploy/package/make_wheel.py OUTPUT

pip takes what generates the protocol from PyPI. OUTPUT, a folder, has the wheel of this call alone
afterwards.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 600


def make(output):
    """Makes the wheel in `output`, and returns its path."""
    output.mkdir(parents=True, exist_ok=True)
    for former in output.glob("troupe-*.whl"):
        former.unlink()
    with tempfile.TemporaryDirectory(prefix="troupe-wheel-") as name:
        folder = pathlib.Path(name)
        # setuptools writes next to its sources, and takes the licence from there.
        for source in ("python", "proto"):
            shutil.copytree(ROOT / source, folder / source,
                            ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        shutil.copy(ROOT / "CMakeLists.txt", folder)
        shutil.copy(ROOT / "LICENSE", folder / "python")
        subprocess.run(["/usr/bin/python3", "-m", "venv", folder / "venv"], check=True,
                       timeout=LIMIT_SECONDS)
        done = subprocess.run([folder / "venv/bin/pip", "-q", "--disable-pip-version-check",
                               "wheel", "--no-deps", "-w", output, folder / "python"],
                              check=False, timeout=LIMIT_SECONDS)
    if done.returncode != 0:
        raise SystemExit("the wheel cannot be built: pip failed; it needs PyPI")
    wheel, = output.glob("troupe-*.whl")
    return wheel


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: make_wheel.py OUTPUT")
    print(make(pathlib.Path(sys.argv[1]).resolve()))


if __name__ == "__main__":
    main()
