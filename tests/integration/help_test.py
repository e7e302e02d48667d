"""What the programs print about themselves: completion scripts, which bash runs here, and manual
pages."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import BIN, TROUPE, run

# Completes the last of the words after the first.
COMPLETE = r"""
source <("$0" completion bash) || exit
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_troupe
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
"""


def complete(*words, cwd=None):
    """Returns what bash proposes for the last of `words`, which follow `troupe`."""
    done = subprocess.run(["bash", "-c", COMPLETE, TROUPE, "troupe", *words], capture_output=True,
                          text=True, timeout=30, check=False, cwd=cwd)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"{words}: {done.returncode} {done.stderr}")
    return done.stdout.splitlines()


def commands():
    """Returns the commands that `troupe help` lists."""
    return re.findall(r"^  ([a-z-]+(?: [a-z-]+)?) +[A-Z]", run("help")[1], re.MULTILINE)


def flags(command):
    """Returns the long flags that `troupe COMMAND --help` lists."""
    text = run(*command.split(), "--help")[1]
    return sorted(re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.MULTILINE))


class Completion(unittest.TestCase):
    def test_bash_completes_commands_and_the_words_that_follow_them(self):
        first_words = {command.split()[0] for command in commands()}
        self.assertGreater(len(first_words), 20)
        self.assertEqual(set(complete("")), first_words | {"help"})
        self.assertEqual(complete("check"), ["checkpoints"])
        for group in ("checkpoints", "data", "workers"):
            self.assertEqual(set(complete(group, "")),
                             {command.split()[1] for command in commands()
                              if command.startswith(group + " ")})
        self.assertEqual(complete("checkpoints", "ex"), ["export"])
        self.assertEqual(complete("no-such-command", ""), [])

    def test_bash_completes_the_flags_of_every_command(self):
        for command in commands():
            self.assertEqual(sorted(complete(*command.split(), "--")), flags(command), command)

    def test_bash_completes_words_of_flags(self):
        self.assertEqual(complete("list", "-o", ""), ["json", "text"])
        self.assertEqual(complete("certs", "issue", "DIR", "--role", "op"), ["operator"])
        self.assertEqual(complete("certs", "issue", "--role", "=", "w"), ["worker"])
        self.assertEqual(complete("certs", "issue", "--role", "="),
                         ["viewer", "submitter", "operator", "worker", "coordinator"])
        self.assertEqual(complete("completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(complete("submit", "job.yaml", "--name", ""), [])

    def test_bash_completes_files_and_directories(self):
        with tempfile.TemporaryDirectory(prefix="troupe-test-") as home:
            (pathlib.Path(home) / "a folder").mkdir()
            (pathlib.Path(home) / "a.yaml").touch()
            self.assertEqual(sorted(complete("submit", "a", cwd=home)), ["a folder", "a.yaml"])
            self.assertEqual(complete("up", "--data-dir", "", cwd=home), ["a folder"])
            self.assertEqual(complete("list", "", cwd=home), [])

    def test_zsh_and_fish_read_their_scripts(self):
        found = 0
        for shell in ("zsh", "fish"):
            code, out, err = run("completion", shell)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("checkpoints", out)
            if shutil.which(shell) is None:
                continue
            found += 1
            done = subprocess.run([shell, "-n"], input=out, capture_output=True, text=True,
                                  timeout=30, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)
        if found < 2:
            self.skipTest("zsh or fish is not installed")

    def test_another_shell_or_format_is_refused(self):
        code, out, err = run("completion", "tcsh")
        self.assertEqual((code, out), (2, ""))
        self.assertIn('"tcsh" is not bash, zsh or fish', err)
        for command in (["completion", "bash"], ["man"]):
            self.assertEqual(run(*command, "-o", "json")[:2], (2, ""))


class Manual(unittest.TestCase):
    def pages(self):
        """Returns the roff of every manual page by its name."""
        pages = {"troupe": run("man"), "troupe-submit": run("man", "submit"),
                 "troupe-checkpoints-list": run("man", "checkpoints", "list")}
        for program in ("troupe-coordinator", "troupe-worker"):
            done = subprocess.run([BIN / program, "--manual"], capture_output=True, text=True,
                                  timeout=30, check=False)
            pages[program] = done.returncode, done.stdout, done.stderr
        for name, (code, out, err) in pages.items():
            self.assertEqual((code, err), (0, ""), name)
            self.assertTrue(out.startswith(".TH "), name)
        return {name: out for name, (_, out, _) in pages.items()}

    def test_every_page_has_its_name_and_the_flags_of_the_help_text(self):
        pages = self.pages()
        for command in commands():
            self.assertIn(f'.SS "{command}'.replace("-", r"\-"), pages["troupe"])
        for flag in flags("submit"):
            self.assertIn(flag.replace("-", r"\-"), pages["troupe-submit"])
        for flag in ("--listen", "--tls-dir", "--version"):
            self.assertIn(rf"\fB{flag}\fR".replace("-", r"\-"), pages["troupe-coordinator"])
        self.assertIn(r"\fB\-\-measure\-peak\fR", pages["troupe-worker"])
        code, out, err = run("man", "no", "command")
        self.assertEqual((code, out), (2, ""))
        self.assertIn('"no command" is no command', err)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_formats_every_page_without_a_warning(self):
        for name, page in self.pages().items():
            # A long word may leave a line that cannot be filled.
            done = subprocess.run(["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-Wbreak"],
                                  input=page, capture_output=True, text=True, timeout=30,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn(name, re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout))


if __name__ == "__main__":
    unittest.main()
