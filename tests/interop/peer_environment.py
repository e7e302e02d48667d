"""Environments with pinned packages of PyPI, in which a peer runs."""

import subprocess
import sys


def peer_python(folder, packages, *options):
    """Returns the interpreter of the environment `folder` with `packages`, creating it if it is
    absent or has others. `options` are those of pip install."""
    python, stamp = folder / "bin/python", folder / "packages"
    if not stamp.exists() or stamp.read_text().split() != packages:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                        *options, *packages], check=True)
        stamp.write_text("\n".join(packages))
    return python
