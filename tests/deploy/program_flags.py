"""The flags of the programs as their --help prints them, and command lines checked against them."""

import functools
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TROUPE_BIN", ROOT / "build/release/bin"))
PROGRAMS = ("troupe", "troupe-coordinator", "troupe-worker")


@functools.cache
def help_text(*words):
    """Returns what `PROGRAM [COMMAND] --help` prints."""
    done = subprocess.run([BIN / words[0], *words[1:], "--help"], capture_output=True, text=True,
                          timeout=60, check=False)
    return done.stdout if done.returncode == 0 else ""


@functools.cache
def commands():
    """Returns the commands of `troupe`, such as "submit" and "data prepare"."""
    return set(re.findall(r"^  ([a-z][a-z-]*(?: [a-z][a-z-]*)?) +[A-Z]", help_text("troupe"),
                          re.MULTILINE))


@functools.cache
def flags(*words):
    """Returns {flag: whether it takes a value}."""
    return {name: bool(value) for name, value in re.findall(
        r"^  (?:-\w,)?(--?[\w-]+)( [A-Z]\S*| cpu:\S+)?", help_text(*words), re.MULTILINE)}


def problems(line):
    """Returns what is wrong with a command line of one of the programs: a list of sentences."""
    program, arguments = line[0], list(line[1:])
    if program not in PROGRAMS:
        return [f"{program} is no program of Troupe"]
    words = [program]
    if program == "troupe":
        if arguments == ["--help"] or arguments == ["--version"]:
            return []
        for length in (2, 1):
            if " ".join(arguments[:length]) in commands():
                words += arguments[:length]
                arguments = arguments[length:]
                break
        else:
            return [f"troupe has no command '{' '.join(arguments[:1])}'"]
    known, found = flags(*words), []
    while arguments:
        argument = arguments.pop(0)
        if argument == "-" or not argument.startswith("-"):  # "-" is standard input
            if program != "troupe":
                found.append(f"{program}: '{argument}' belongs to no flag")
            continue
        name, equals, _ = argument.partition("=")
        if name not in known:
            found.append(f"{' '.join(words)} has no flag {name}")
        elif known[name] and not equals:
            if not arguments:
                found.append(f"{name} of {program} needs a value")
            arguments = arguments[1:]
        elif equals and not known[name]:
            found.append(f"{name} of {program} takes no value")
    return found
