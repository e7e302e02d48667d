"""Runs clang-tidy on the source files that changed: ./run test changed.

    python3 tests/clang_tidy.py BUILD [FILE …]

FILE: sources or headers to check. By default these are the files of the change (changes.py). A
header is checked through a source file that includes it. BUILD has compile_commands.json, and the
generated headers of proto/.

Checks at most MOST_FILES files and starts none after LIMIT_SECONDS; prints the names of those left
out. Prints the findings and, on the last line of stdout, "PASSED FAILED SKIPPED" in files. The
checks are those of .clang-tidy.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import changes

ROOT = changes.ROOT
TOOL = "clang-tidy-14"
MOST_FILES = 60
LIMIT_SECONDS = 120
FILE_LIMIT_SECONDS = 90
# Options of GCC that clang does not have, among them those of its precompiled headers.
UNKNOWN_TO_CLANG = ("-fpch-preprocess", "-Winvalid-pch", "-fopenmp", "-Wno-maybe-uninitialized",
                    "-Wno-subobject-linkage")
# omp.h, which is only in GCC's folder, and is looked for there last.
GCC_HEADERS = "/usr/lib/gcc/x86_64-linux-gnu/12/include"


def say(text):
    print(f"clang-tidy: {text}", file=sys.stderr, flush=True)


def files_of_change():
    base = changes.base_commit()
    if base is None:
        sys.exit("clang-tidy: there is no commit to compare with")
    say(f"files that differ from {base[:12]}")
    return [path for path in changes.changed_files(base) if (ROOT / path).exists()]


def clang_arguments(entry):
    """Returns the arguments of the compiler in a form that clang accepts."""
    words = shlex.split(entry["command"])
    source = words.index("-c")
    arguments = []
    skip = False
    for i, word in enumerate(words[1:source], start=1):
        if skip or word in ("-o", "-include"):
            skip = not skip  # the value of the option
        elif word not in UNKNOWN_TO_CLANG and not word.startswith("-fdebug-prefix-map"):
            arguments.append(word)
    return arguments + ["-idirafter", GCC_HEADERS, "-Wno-everything"]


def sources_of_batch(path):
    """Returns the sources that a file of a unity build includes; the path itself for others."""
    if not path.name.startswith("unity_"):
        return [path]
    return [pathlib.Path(source) for source in re.findall(r'#include "(.*)"', path.read_text())]


def sources_by_path(build):
    """Returns {path relative to the root: entry of compile_commands.json}."""
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        for path in sources_of_batch(pathlib.Path(entry["file"])):
            if path.is_relative_to(ROOT) and not path.is_relative_to(build):
                entries.setdefault(path.relative_to(ROOT).as_posix(), entry)
    return entries


def source_of(header, entries):
    """Returns a source file through which `header` is checked: that of its name, its test, or the
    first one that includes it; None if there is none."""
    stem = header.rsplit(".", 1)[0]
    for candidate in (stem + ".cc", stem + ".cu", stem + "_test.cc"):
        if candidate in entries:
            return candidate
    include = f'#include "{header}"'
    return next((path for path in entries if include in (ROOT / path).read_text()), None)


def to_check(paths, entries):
    """Returns {source file: paths that it is checked for}, and the paths that cannot be checked."""
    wanted, unknown = {}, []
    for path in paths:
        if not path.endswith((".cc", ".cu", ".h")):
            continue
        source = source_of(path, entries) if path.endswith(".h") else path
        if source in entries:
            wanted.setdefault(source, []).append(path)
        else:
            unknown.append(path)
    return wanted, unknown


def check(source, paths, entry):
    """Returns the findings in `paths` as text; empty if there are none."""
    headers = "|".join(re.escape(path) for path in paths if path.endswith(".h")) or "^$"
    command = [TOOL, "--quiet", "--warnings-as-errors=*", f"--header-filter={headers}", source,
               "--", *clang_arguments(entry)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True,
                              timeout=FILE_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"{source}: no result within {FILE_LIMIT_SECONDS} s"
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    entries = sources_by_path(build)
    wanted, unknown = to_check(sys.argv[2:] or files_of_change(), entries)
    chosen = dict(list(wanted.items())[:MOST_FILES])
    left_out = unknown + [path for source, paths in wanted.items() if source not in chosen
                          for path in paths]
    end = time.monotonic() + LIMIT_SECONDS

    def one(source):
        if time.monotonic() > end:
            return None
        return check(source, chosen[source], entries[source])

    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, findings in zip(chosen, pool.map(one, chosen)):
            if findings is None:
                left_out += chosen[source]
            elif findings:
                failed += 1
                print(findings, file=sys.stderr)
            else:
                passed += 1
    say(f"{passed} source files without findings, {failed} with findings")
    if left_out:
        say(f"{len(left_out)} files left out: {' '.join(left_out)}")
    print(passed, failed, len(left_out))


if __name__ == "__main__":
    main()
