"""The commands of pages run as they are written, with small inputs, and print what the pages
show. The commands of all pages exist, with their flags."""

import json
import sys
import unittest

import command_lines
import models
import pages
from harness import ROOT

sys.path.append(str(ROOT / "tests/deploy"))
import program_flags

# Pages whose commands need neither a cluster nor other inputs than the files of the tree.
SELF_CONTAINED = ("docs/choosing.md", "docs/hugging-face.md", "docs/planning.md",
                  "examples/README.md")


class Pages(unittest.TestCase):
    def test_fine_tune(self):
        # transformers is a package of ./run test interop, which runs sample.py too.
        page = pages.Page(self, "docs/fine-tune.md", models.SMALL_FINE_TUNE,
                          omitted=["hf download", "python3 sample.py", "vllm serve"])
        models.write_model(page.folder / "Llama-3.2-1B")
        models.write_notes(page.folder / "notes.jsonl")
        page.run()
        for name in models.TOKENIZER_FILES:
            self.assertEqual((page.folder / "tuned" / name).read_bytes(),
                             (page.folder / "Llama-3.2-1B" / name).read_bytes())

    def test_why_slow(self):
        page = pages.Page(self, "docs/why-slow.md")
        page.run()
        receipt = json.loads((page.folder / "receipt.json").read_text())
        self.assertGreater(receipt["steady"]["bubble"]["measured"], 0)
        self.assertIn("<html", (page.folder / "slow.html").read_text())
        self.assertTrue(json.loads((page.folder / "slow.json").read_text())["traceEvents"])

    def test_change_data(self):
        # A reader waits until the job trains.
        cancel = "troupe cancel first --checkpoint"
        page = pages.Page(self, "docs/change-data.md",
                          {cancel: f"until {cancel} 2>>early; do :; done"})
        page.run()
        self.assertTrue(list((page.folder / "checkpoints/second").glob("step-*/manifest.json")))

    def test_pages_that_need_no_cluster(self):
        for name in SELF_CONTAINED:
            with self.subTest(name):
                pages.Page(self, name).run()


def unknown(page):
    """Returns what is wrong with the command lines of a page: a list of sentences."""
    found = [problem for words in command_lines.of_blocks(page, program_flags.PROGRAMS)
             for problem in program_flags.problems(words)]
    groups = {command.split()[0] for command in program_flags.commands() if " " in command}
    for words in command_lines.of_sentences(page, program_flags.PROGRAMS):
        if words[0] == "troupe" and words[1:] and words[1] in groups and len(words) == 2:
            continue  # a group, such as `troupe certs`
        # A sentence may name a flag without its value.
        found += [problem for problem in program_flags.problems(words)
                  if not problem.endswith("needs a value")]
    return found


class CommandLines(unittest.TestCase):
    def test_all_pages_name_only_commands_and_flags_that_exist(self):
        paths = [ROOT / "README.md", ROOT / "examples/README.md",
                 *sorted((ROOT / "docs").rglob("*.md"))]
        texts = {path: path.read_text() for path in paths}
        lines = [words for text in texts.values()
                 for words in command_lines.of_blocks(text, program_flags.PROGRAMS)]
        self.assertGreater(len(lines), 100)
        self.assertEqual({words[0] for words in lines}, set(program_flags.PROGRAMS))
        for path, text in texts.items():
            with self.subTest(path.relative_to(ROOT)):
                self.assertEqual(unknown(text), [])

    def test_a_command_or_flag_that_does_not_exist_is_named(self):
        for line, problem in (
                ("$ troupe submt job.yaml", "troupe has no command 'submt'"),
                ("$ troupe submit job.yaml \\\n    --wiat", "troupe submit has no flag --wiat"),
                ("troupe submit --name", "--name of troupe needs a value"),
                ("x | troupe list --now", "troupe list has no flag --now"),
                ("A=1 troupe-worker --hots a", "troupe-worker has no flag --hots"),
                ("$ ls\n$ x exec -- troupe-coordinator a",
                 "troupe-coordinator: 'a' belongs to no flag")):
            self.assertEqual(unknown(f"```\n{line}\n```\n")[:1], [problem], line)
        self.assertEqual(
            unknown("Use `troupe submit\n--wiat`, `troupe certs` or `troupe list -o`."),
            ["troupe submit has no flag --wiat"])

    def test_what_a_block_prints_or_writes_is_no_command(self):
        page = ("```\n$ cat >f <<'END'\ntroupe x\nEND\n$ troupe up >log  # comment's\ntroupe y\n"
                "```\n   ```\n   source <(troupe man | less)\n   troupe: a sentence\n   ```\n"
                "```\ntroupe data prepare [--tokenizer bytes | FILE]  # it's a synopsis\n```\n")
        self.assertEqual(command_lines.of_blocks(page, program_flags.PROGRAMS),
                         [["troupe", "up"], ["troupe", "man"],
                          ["troupe", "data", "prepare", "--tokenizer", "bytes", "FILE"]])


class Reading(unittest.TestCase):
    """How pages.py reads a page and compares its lines."""

    def commands(self, text):
        return [(command.text, command.shown) for command in pages.commands_of(text.split("\n"))]

    def test_commands_are_those_of_blocks_that_begin_with_a_prompt(self):
        page = "a\n```\n$ x \\\n    y\n1\n…\n$ z\n```\n```yaml\na: b\n```\n"
        self.assertEqual(self.commands(page),
                         [("x \\\n    y", ["1", "…"]), ("z", [])])
        self.assertEqual(self.commands("```\n$ cat >f <<'END'\n$ no command\nEND\n$ z\n1\n```\n"),
                         [("cat >f <<'END'\n$ no command\nEND", []), ("z", ["1"])])

    def test_numbers_times_digests_and_what_is_left_out_may_be_others(self):
        for shown, printed in (("4 ranks, 1.5 GB", "16 ranks, 2 GB"), ("in 0.3 s;", "in 20 ms;"),
                               ("sha256:60ac1338…", "sha256:54cbe552aa"), ("a  b", "a b"),
                               ("at 12 … more", "at 7 or 8 more"), ("1e-3", "2.5e-10")):
            self.assertTrue(pages.shows([shown], [printed]), shown)
        for shown, printed in (("4 ranks", "4 hosts"), ("1.5 GB", "1.5 MB"), ("a.b", "axb"),
                               ("4", ""), ("a", "a b")):
            self.assertFalse(pages.shows([shown], [printed]), shown)

    def test_a_line_of_three_dots_is_any_number_of_lines(self):
        self.assertTrue(pages.shows(["…", "a 1", "…", "b"], ["x", "a 2", "b"]))
        self.assertTrue(pages.shows(["a", "…"], ["a"]))
        self.assertFalse(pages.shows(["a", "b"], ["a", "x", "b"]))
        self.assertFalse(pages.shows(["a"], ["a", "b"]))


if __name__ == "__main__":
    unittest.main()
