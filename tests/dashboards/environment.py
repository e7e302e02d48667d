"""The environment build/dashboards, which has the packages that the tests of dashboards/ need."""

import subprocess

from expressions import ROOT

VENV = ROOT / "build/dashboards"
PINS = ROOT / "tests/dashboards/requirements.txt"


def environment():
    """Returns the environment's interpreter, or None if the package cannot be installed."""
    python, stamp = VENV / "bin/python", VENV / "requirements.txt"
    if stamp.exists() and stamp.read_text() == PINS.read_text():
        return python
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries",
               "1", "--timeout", "15", "-r", PINS]
    made = subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", VENV],
                          capture_output=True)
    if made.returncode != 0 or subprocess.run(install, capture_output=True).returncode != 0:
        return None
    stamp.write_text(PINS.read_text())
    return python
