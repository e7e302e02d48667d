"""The files that a change touches, for the parts of ./run test that check only what changed."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


# On main itself, the commits of the last hours before the newest one count as one change.
HOURS_OF_A_CHANGE = 4


def base_commit():
    """Returns the commit that changes are counted from, or None if there is none: the commit in
    $TROUPE_CHANGED_SINCE; else the last commit that the branch shares with origin/main; else, on
    main itself, the newest commit that is HOURS_OF_A_CHANGE older than HEAD, or the previous one
    if none is. The clock plays no part, so that a run can be repeated."""
    if os.environ.get("TROUPE_CHANGED_SINCE"):
        return git("rev-parse", "--verify", os.environ["TROUPE_CHANGED_SINCE"] + "^{commit}")
    shared = git("merge-base", "HEAD", "origin/main")
    if shared and shared != git("rev-parse", "HEAD"):
        return shared
    newest = git("log", "-1", "--format=%ct")
    if not newest:
        return None
    older = git("rev-list", "-1", f"--before={int(newest) - HOURS_OF_A_CHANGE * 3600}", "HEAD")
    return older or git("rev-parse", "--verify", "HEAD~1")


def changed_files(base):
    """Returns the paths of files that differ from the commit `base`, are new, or were deleted."""
    differing = git("diff", "--name-only", base) or ""
    new = git("ls-files", "--others", "--exclude-standard") or ""
    return sorted(set(differing.splitlines()) | set(new.splitlines()))


def commit_count():
    """Returns the number of commits up to HEAD; 0 without a history."""
    return int(git("rev-list", "--count", "HEAD") or 0)
