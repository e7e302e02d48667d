"""Chooses the test binaries that a sanitizer runs in CI: those that the change can reach, and a
third of the others.

    python3 tests/sanitized.py BUILD [NAME …]

BUILD is a configured build folder whose model of targets CMake was asked for
(.cmake/api/v1/query/codemodel-v2). NAME: the binaries to choose from, by default those that
troupe_unit_tests builds. A change reaches a binary if the binary, or a library that it is linked
with, has sources in a folder of a changed file (changes.py). The third follows from the names and
the number of commits: three commits in a row run every binary, and a run can be repeated. Prints
the chosen names in batches, one a line, and the reasons on stderr. Where time ends before the last
batch, the caller leaves out the rest; so the batches begin with what the change reaches, and with
another binary after each commit.
"""

import json
import pathlib
import sys
import zlib

import changes

# Files of these kinds change no binary. The others are sources, or tests read them.
NO_SOURCE = (".md", ".svg", ".png", ".py", ".sh")
# Binaries that are built and run together: a build in small steps keeps the cores less busy.
BATCH = 6
# Files that change how every binary is built or run.
ALL_BINARIES = ("CMakeLists.txt", "CMakePresets.json", "tests/tsan.supp")


def targets_of(build):
    """Returns {name: (folders of its sources, names of the targets that it depends on)}."""
    reply = build / ".cmake/api/v1/reply"
    index = json.loads(max(reply.glob("index-*.json")).read_text())
    model = json.loads((reply / index["reply"]["codemodel-v2"]["jsonFile"]).read_text())
    names, targets = {}, {}
    for entry in model["configurations"][0]["targets"]:
        names[entry["id"]] = entry["name"]
    for entry in model["configurations"][0]["targets"]:
        target = json.loads((reply / entry["jsonFile"]).read_text())
        folders = {pathlib.PurePosixPath(source["path"]).parent.as_posix()
                   for source in target.get("sources", ())
                   if not pathlib.PurePosixPath(source["path"]).is_absolute()}
        folders = {folder for folder in folders if not folder.startswith("build/")}
        folders.add(target["paths"]["source"])
        targets[entry["name"]] = (
            folders, {names[needed["id"]] for needed in target.get("dependencies", ())})
    return targets


def with_dependencies(name, targets):
    """Returns the names of the targets that `name` is made of."""
    found, open_names = set(), [name]
    while open_names:
        current = open_names.pop()
        if current not in found:
            found.add(current)
            open_names += targets[current][1]
    return found


def folders_of(paths, known):
    """Returns the folders of `known` that have the paths, or the nearest above them. A path that
    changes every binary gives the folder "."."""
    folders = set()
    for path in map(pathlib.PurePosixPath, paths):
        if path.as_posix() in ALL_BINARIES:
            folders.add(".")
        elif path.suffix not in NO_SOURCE:
            folder = next((parent.as_posix() for parent in path.parents
                           if parent.as_posix() in known), ".")
            if folder != ".":
                folders.add(folder)
    return folders


def choose(names, targets, paths, count):
    """Returns (the names that the changed paths reach, the chosen third of the others), sorted."""
    known = set().union(*(folders for folders, _ in targets.values())) - {"."}
    touched = folders_of(paths, known)
    reached = set()
    for name in names:
        parts = with_dependencies(name, targets)
        if "." in touched or any(touched & targets[part][0] for part in parts):
            reached.add(name)
    third = {name for name in names if zlib.crc32(name.encode()) % 3 == count % 3}
    return sorted(reached), sorted(third - reached)


def rotated(names, count):
    """Returns the names, beginning with another one for each count."""
    start = count * BATCH % max(len(names), 1)
    return names[start:] + names[:start]


def batches(reached, third, count):
    """Returns lists of at most BATCH names: of those reached first, then of the third."""
    order = rotated(reached, count) + rotated(third, count)
    return [order[i:i + BATCH] for i in range(0, len(order), BATCH)]


def main():
    build = pathlib.Path(sys.argv[1])
    targets = targets_of(build)
    names = sys.argv[2:] or sorted(targets["troupe_unit_tests"][1])
    base, count = changes.base_commit(), changes.commit_count()
    reached, third = names, []
    if base is not None:
        reached, third = choose(names, targets, changes.changed_files(base), count)
    print(f"sanitizer: the change since {str(base)[:12]} reaches {len(reached)} of {len(names)} "
          f"binaries; commit {count} adds {len(third)} of the others: {' '.join(third)}",
          file=sys.stderr)
    for batch in batches(reached, third, count):
        print(*batch)


if __name__ == "__main__":
    main()
