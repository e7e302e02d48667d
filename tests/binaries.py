"""Runs tests one whole binary at a time: ./run test, ./run test asan, ./run test tsan.

A process for each case would pay for each start and repeat the work that the cases of a binary
share (the single rank's losses with which layouts are compared). If a binary ends early, by a crash
or the first report of a sanitizer, its remaining cases count as failed, because they did not run.

    python3 tests/binaries.py BUILD LABELS [PATTERN]

runs the binaries that ctest lists in BUILD under a label that matches LABELS and with a name that
matches PATTERN (regular expressions), as many at once as there are cores. Prints the output of
those that fail and, on the last line of stdout, "PASSED FAILED SKIPPED".
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

BINARY_LIMIT_SECONDS = 900
# OpenMP: another binary needs the cores. XLA compiles each program in one piece: a program of a
# test is so small that making the parts costs more than they save.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive",
               "XLA_FLAGS": "--xla_cpu_parallel_codegen_split_count=1"}
# The binaries that take longest, those first: they start first, so that no core waits at the end.
SLOWEST = (
    "kernels_xla_test", "xla_slices_test", "xla_mixtures_test", "cpu_losses_test",
    "xla_layouts_test", "simulation_test", "kernels_cuda_test", "cuda_layouts_test", "float8_test",
    "cuda_lane_test", "coordinator_service_test", "float8_gradients_test", "experts_test",
    "kernels_cpu_test", "run_ahead_test", "layouts_test", "axes_test")


def cases_of_binaries(build, labels, pattern):
    """Returns {binary: number of cases}."""
    listing = subprocess.run(
        ["ctest", "--test-dir", build, "-L", labels, "--show-only=json-v1"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    commands = [test["command"][0] for test in json.loads(listing)["tests"] if "command" in test]
    return collections.Counter(c for c in commands if re.fullmatch(pattern, pathlib.Path(c).name))


def place(binary):
    """Returns the binary's place among the slowest, or that after them."""
    name = pathlib.Path(binary).name
    return SLOWEST.index(name) if name in SLOWEST else len(SLOWEST)


def run(binary, cases):
    """Returns (passed, failed, skipped) of a binary with `cases` cases, its output if any failed,
    and for how many seconds it ran."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory) / "report.xml"
        log = pathlib.Path(directory) / "log"
        # A file, because a pipe would also wait for the processes that the binary leaves behind.
        with open(log, "wb") as file:
            process = subprocess.Popen(
                [binary, f"--gtest_output=xml:{report}", "--gtest_brief=1"],
                env=os.environ | ENVIRONMENT,
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
            try:
                code, end = process.wait(BINARY_LIMIT_SECONDS), ""
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code, end = 1, f"\n{binary} did not end within {BINARY_LIMIT_SECONDS} s"
        output = log.read_text(errors="replace") + end
        if not report.exists():
            return (0, cases, 0), output, time.monotonic() - started
        suites = ElementTree.parse(report).getroot()
    tests, failures = int(suites.get("tests")), int(suites.get("failures"))
    skipped = sum(int(suite.get("skipped", 0)) + int(suite.get("disabled", 0)) for suite in suites)
    failed = max(failures + int(suites.get("errors", 0)), 1 if code != 0 else 0)
    seconds = time.monotonic() - started
    return (tests - failed - skipped, failed, skipped), output if failed else "", seconds


SHOWN_CHARACTERS = 20_000


def shown(output):
    """Returns the end of `output`, after the names of failed cases that come earlier."""
    end = output[-SHOWN_CHARACTERS:]
    earlier = output[:-SHOWN_CHARACTERS].splitlines()
    return "\n".join([line for line in earlier if line.startswith("[  FAILED  ]")] + [end])


def main():
    build, labels = sys.argv[1:3]
    cases = cases_of_binaries(build, labels, sys.argv[3] if len(sys.argv) > 3 else ".*")
    if not cases:
        sys.exit(f"{build} has no tests under {labels}")
    totals = [0, 0, 0]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        order = sorted(cases, key=lambda binary: (place(binary), -cases[binary]))
        futures = {pool.submit(run, binary, cases[binary]): binary for binary in order}
        for future in concurrent.futures.as_completed(futures):
            counts, output, seconds = future.result()
            totals = [total + count for total, count in zip(totals, counts)]
            print("{}: {} passed, {} failed, {} skipped in {:.0f} s".format(
                pathlib.Path(futures[future]).name, *counts, seconds), file=sys.stderr)
            if output:
                print(shown(output), file=sys.stderr)
    print(*totals)


if __name__ == "__main__":
    main()
