"""Finds the command lines of programs in a page, to check them against the flags of the programs.

A block of code that has lines with the prompt `$ ` has commands in those alone; in another block
every line may be one. A command goes on in the next line after a backslash, and what it reads from
a here-document is no command. In a synopsis, `[--flag VALUE]` counts as if it were stated.
"""

import pathlib
import re
import shlex

BLOCK = re.compile(r"^( *)```.*\n((?:.*\n)*?)\1```", re.MULTILINE)
CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
HERE_DOCUMENT = re.compile(r"<<-?'?(\w+)'?.*\n(?:.*\n)*?\s*\1(?:\n|$)")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
SHELL_WORDS = ("!", "{", "do", "exec", "if", "then", "time", "until", "while", "$")
OPERATORS = set("();<>|&")


def logical_lines(block):
    """Returns the lines of a block that may be commands, without prompts."""
    text = HERE_DOCUMENT.sub("\n", re.sub(r"\\\n\s*", " ", block))
    lines = [line.strip() for line in text.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")] or lines


def simple_commands(line):
    """Returns the words of each command of a line of the shell, without redirections."""
    if "[-" in line:
        line = re.sub(r"[][|]", " ", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found, is_redirected = [[]], False
    for word in lexer:
        if is_redirected:
            is_redirected = False
        elif not word or not set(word) <= OPERATORS:
            found[-1].append(word)
        elif word[0] in "<>" and "(" not in word:
            is_redirected = True
        else:
            found.append([])
    return found


def words_of(command, programs):
    """Returns the words of a simple command from the program's name on; [] of other programs."""
    words = list(command)
    while words and (words[0] in SHELL_WORDS or ASSIGNMENT.match(words[0])):
        del words[0]
    if "--" in words:  # such as kubectl exec POD -- PROGRAM
        del words[:words.index("--") + 1]
    program = pathlib.PurePath(words[0]).name if words else ""
    if program not in programs:
        return []
    # A daemon has no words but flags and their values.
    return [program, *(word for word in words[1:] if program == "troupe" or word != "…")]


def commands_in(lines, programs):
    named = re.compile(rf"(?<![\w.-])(?:{'|'.join(programs)})\s")
    return [words for line in lines if named.search(line) for command in simple_commands(line)
            if (words := words_of(command, programs))]


def of_blocks(page, programs):
    """Returns the commands of `programs` in the blocks of a page, each a list of words."""
    return commands_in([line for block in BLOCK.finditer(page) for line in logical_lines(block[2])],
                       programs)


def of_sentences(page, programs):
    """Returns those in `code` of sentences, which may be the beginnings of commands only."""
    return commands_in([" ".join(code.split()) for code in CODE.findall(BLOCK.sub("", page))],
                       programs)


if __name__ == "__main__":
    raise SystemExit("a module of the tests, not a test")
