"""`python -m troupe.data prepare` without packages of PyPI: the same files as those of `troupe data
prepare`, the same refusals, and what a failure leaves."""

import errno
import gzip
import os
import pathlib
import signal
import struct
import subprocess
import sys
import unittest
import unittest.mock

from data_case import FILES, LIMIT_SECONDS, DataCase, needs_program
from harness import wait_until
from troupe.data import _dataset_writer, _json_lines, _prepare, _progress_line, _sources
from troupe.data._dataset_writer import DatasetWriter
from troupe.data._prefix_lock import prefix_lock

LINES = (b'\xef\xbb\xbf{"text": "one", "body": "eins"}\r\n\n{"text": "", "body": ""}\n'
         b'{"body": "zw\xffei", "text": "t\\u0077o \\ud83d\\ude00 \\ud83d \\\\ud83d"}\n'
         b'{"text": "n", "more": [1, {"text": 2}, -1.5e300], "body": "x"}')


class SameAsTheCommandTest(DataCase):
    def write_everything(self):
        self.write("b/text.h", "größe\n")
        self.write("b/ill.txt", b"bad \xff\xe2\x82 end \xef\xbf\xbd\xef")
        self.write("a.jsonl", LINES)
        self.write("c.jsonl.gz", gzip.compress(LINES) + gzip.compress(b"\n" + LINES) + b"\0\0")
        self.write("d.jsonl", "\n \r\n")
        self.write("binary", b"a\0b")
        self.write("late zero", b"x" * 8192 + b"\0")
        self.write("packed.gz", gzip.compress(b"text"))
        self.write("empty", b"")
        self.write("Z", "upper case comes first")
        self.write("object.json", '{\n  "text": "x"\n}\n')
        self.write("large", b"0123456789" * 300_000)
        (self.folder / "link").symlink_to("Z")
        os.mkfifo(self.folder / "fifo")

    @needs_program
    def test_every_kind_of_file(self):
        self.write_everything()
        done = self.assert_equal_to_the_command()
        self.assertIn("1 symbolic links, 1 special", done.err)
        self.assert_equal_to_the_command("--json-key", "body")

    @needs_program
    def test_files_as_they_are(self):
        self.write("a.jsonl", LINES)
        self.write("b.json", '{"text": 1}\n{"text": 2}\n')
        self.assert_equal_to_the_command("--json-as-text")

    @needs_program
    def test_the_same_input_is_refused(self):
        for name, content in (("a.jsonl", b'{"text": null}'), ("a.jsonl", b'{"text": "x"'),
                              ("a.json", b'{"text": "x"}\n'), ("a.jsonl", b"\n"),
                              ("a.jsonl.gz", gzip.compress(LINES)[:-9]),
                              ("a", b"version https://git-lfs.github.com/spec/v1\n")):
            self.write(name, content)
            with self.subTest(content):
                self.assertEqual(self.by_the_command().code, 2)
                self.refused()
            (self.folder / name).unlink()

    def test_the_description_is_that_of_the_command(self):
        self.write("a", "abc")
        self.assertEqual(self.prepare().files[".troupe.json"],
                         b'{"tokenizer":"bytes","vocab_size":257,"end_of_document":256,"tokens":4,'
                         b'"text_bytes":3}\n')


class JsonLinesTest(DataCase):
    def test_a_line_without_a_document_is_named(self):
        for line, words in (
                ('{"text": null}', 'has null at the key "text", not a string'),
                ('{"text": -12.5e3}', 'has the number -12.5e3 at the key "text", not a string'),
                ('{"text": true}', "has true at the key"),
                ('{"text": {"text": "x"}}', "has an object at the key"),
                ('{"text": []}', "has an array at the key"),
                ('{"a": 1, "b": 2}', 'has no key "text"; its keys are ["a", "b"]; --json-key'),
                ("{}", 'has no key "text"; its keys are []'),
                ('{"text": "a", "text": "b"}', 'has the key "text" twice'),
                ('["text"]', "is an array, not an object"),
                ('"text"', "is a string, not an object"),
                ("3", "is the number 3, not an object"),
                ('{"text": "x"} y', "is not one JSON object from byte 14 on"),
                ('{"text": "x\ty"}', "is not one JSON object from byte"),
                ('{"text": "x", "a": NaN}', "has NaN, which is not JSON"),
                ('{"text": "x", "a": 1e999}', "has a number that float64 cannot hold"),
                (f'{{"text": "x", "a": 1{"0" * 5000}}}', "has a number that float64 cannot hold"),
                ('{"text": "x", "a": ' + "[" * 100_000, "is nested too deep")):
            self.write("a.jsonl", f'{{"text": "first"}}\n\n{line}\n')
            with self.subTest(line[:40]):
                self.assertIn(f"in/a.jsonl:3: the line {words}", self.refused())

    def test_a_line_has_a_limit(self):
        self.write("a.jsonl", '{"text": "x"}\n' + "y" * 3_000_000)
        with unittest.mock.patch.object(_json_lines, "MOST_LINE_BYTES", 2 << 20):
            self.assertEqual(self.refused(), "in/a.jsonl:2: the line has more than 2097152 bytes; "
                             "each line is one document")

    def test_a_text_looks_like_them_by_its_first_lines(self):
        for text in ('{"text": "x"}', '{"a": 1, "text": "cut he', ' {"text": null}\n',
                     '{"text": 1, "text": 2}\n', '{"score": NaN}\n{"score": NaN}\n',
                     '{ "text": "x", "score": NaN} \n', '\ufeff{"text": "\\ud83d"}'):
            for is_whole in (True, False):
                for key in (None, "text"):
                    self.assertTrue(
                        _json_lines.looks_like_json_lines(text.encode(), is_whole, key), text)
        for text in ("", "\n", "{", "{\n", "{\n{", '{\n  "text": "x"\n}\n', '{"a": 1}\ntext',
                     "{a: 1}\n{a: 2}\n", "[1]\n[2]\n", "{ return x; }\n{ return y; }\n",
                     '{"text": "x",\n"b": 1}\n'):
            for is_whole in (True, False):
                for key in (None, "text"):
                    self.assertFalse(
                        _json_lines.looks_like_json_lines(text.encode(), is_whole, key), text)
        alone = b'{"a": {"text": "x"}}\n'
        self.assertFalse(_json_lines.looks_like_json_lines(alone, True, None))
        self.assertTrue(_json_lines.looks_like_json_lines(alone, True, "text"))
        self.assertTrue(_json_lines.looks_like_json_lines(b'{"a": "cut he', False, None))

    def test_what_looks_like_them_needs_a_flag_unless_its_name_states_it(self):
        self.write("a.json", LINES)
        self.assertIn("in/a.json looks like JSON lines", self.refused())
        self.write("b.gz", gzip.compress(b"\n") + gzip.compress(LINES[3:]))
        self.assertEqual(self.prepare("--json-key", "body").text, "eins|zw\ufffdei|x|" * 2)

    def test_damaged_data_are_an_error(self):
        for content, words in ((gzip.compress(LINES)[:-9], "they end early"),
                               (gzip.compress(LINES) + b"junk", "incorrect header check"),
                               (gzip.compress(LINES)[:-8] + b"\0" * 8, "incorrect data check")):
            self.write("a.jsonl.gz", content)
            error = self.refused()
            self.assertIn("in/a.jsonl.gz: its gzip data cannot be decompressed beyond byte", error)
            self.assertIn(words, error)


class FilesTest(DataCase):
    def test_the_files_are_replaced_as_a_whole(self):
        self.write("a", "old")
        self.prepare()
        calls = []

        def spy(name, real):
            def call(path, *more):
                calls.append((name, os.path.basename(path)))
                return real(path, *more)
            return unittest.mock.patch.object(os, name, call)

        self.write("a", "new")
        with spy("unlink", os.unlink), spy("replace", os.replace):
            self.assertEqual(self.prepare().text, "new|")
        self.assertEqual(calls[:4], [("unlink", "data.idx"), ("replace", "data.bin.tmp"),
                                     ("replace", "data.troupe.json.tmp"),
                                     ("replace", "data.idx.tmp")])

    def test_a_failure_leaves_the_older_dataset_or_none_but_never_a_mixture(self):
        self.write("a", "newer")
        newer = self.prepare(prefix="newer/data").files
        for name in ("fsync", "unlink", "replace"):
            for number in range(1, 7):
                self.write("a", "old")
                old = self.prepare().files
                self.write("a", "newer")
                left = [number]
                real = getattr(os, name)

                def fail(*arguments, real=real, left=left):
                    left[0] -= 1
                    if left[0] == 0:
                        raise OSError(errno.ENOSPC, "No space left on device", "x")
                    return real(*arguments)

                with unittest.mock.patch.object(os, name, fail):
                    done = self.prepare()
                if left[0] > 0 or done.code == 0:
                    break
                with self.subTest(name, number=number):
                    self.assertEqual((done.code, done.err),
                                     (1, "troupe.data: x: No space left on device\n"))
                    if ".idx" in done.files:
                        self.assertIn(done.files, (old, newer))
                    self.assertEqual(
                        [each.name for each in (self.home / "out").glob("*")
                         if not each.name.endswith(FILES)], [])
            self.assertGreater(number, 1)

    def test_one_process_writes_a_prefix_at_a_time(self):
        self.write("a", "x")
        self.prepare()
        prefix = self.home / "out/data"
        with prefix_lock(str(prefix)):
            done = self.prepare()
            self.assertEqual(done.code, 1)
            self.assertIn("another process writes this dataset", done.err)
            self.assertTrue(pathlib.Path(f"{prefix}.lock").exists())
        pathlib.Path(f"{prefix}.lock").write_text("")  # of a process that was killed
        self.assertEqual(self.prepare().code, 0)
        self.assertFalse(pathlib.Path(f"{prefix}.lock").exists())

    def test_a_document_beyond_the_limit_becomes_several_sequences(self):
        prefix = str(self.home / "data")
        tokens = _dataset_writer.array.array("H", range(10))
        with unittest.mock.patch.object(_dataset_writer, "_MOST_SEQUENCE_TOKENS", 4):
            with DatasetWriter(prefix, "H") as writer:
                writer.append(tokens, _dataset_writer.array.array("q", [2, 2, 10]))
                writer.append(tokens, _dataset_writer.array.array("q"))
                writer.append(tokens, _dataset_writer.array.array("q", [2]))
                writer.append(tokens[:0], _dataset_writer.array.array("q", [0]))
                writer.finish("{}\n")
        index = pathlib.Path(prefix + ".idx").read_bytes()
        self.assertEqual(struct.unpack("<9sQBQQ", index[:34]), (b"MMIDIDX\0\0", 1, 8, 8, 6))
        lengths = struct.unpack("<8i", index[34:66])
        self.assertEqual(lengths, (2, 4, 4, 4, 4, 4, 4, 4))
        self.assertEqual(struct.unpack("<8q", index[66:130]),
                         tuple(2 * sum(lengths[:i]) for i in range(8)))
        self.assertEqual(struct.unpack("<6q", index[130:]), (0, 1, 1, 3, 6, 8))

    def test_files_that_cannot_be_read_are_counted(self):
        self.write("a", "x")
        closed = self.write("closed", "secret")
        real = os.open

        def refuse(path, *more):
            if path == str(closed):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return real(path, *more)

        with unittest.mock.patch.object(os, "open", refuse):
            done = self.prepare()
        self.assertEqual((done.text, done.err), (
            "x|", "skipped: 0 binary, 1 unreadable, 0 empty, 0 symbolic links, 0 special\n"))


class UsageTest(DataCase):
    def test_what_cannot_be_prepared_is_refused(self):
        self.assertEqual(self.refused(), "no document found in 1 path: 0 binary, 0 unreadable, "
                         "0 empty files, 0 links")
        self.write("a", "x")
        self.assertIn("ends in .bin", self.refused(prefix="out/data.bin"))
        self.assertEqual(self.refused(paths=[self.folder / "none"]),
                         "in/none: No such file or directory")
        os.mkfifo(self.folder / "fifo")
        self.assertIn("neither a regular file nor a directory",
                      self.refused(paths=[self.folder / "fifo"]))
        self.assertIn("the tokenizer bytes has a fixed one", self.refused("--eod-id", 3))
        self.assertIn('tokenizer "./words" is unknown', self.refused("--tokenizer", "./words"))
        self.assertIn("contradict each other", self.refused("--json-key", "a", "--json-as-text"))
        for number in ("-1", "0", "x", "9" * 30):
            self.assertIn("not a whole number from 1", self.refused("--processes", number))

    def test_a_package_that_is_missing_is_named(self):
        path = self.write("tokenizer.json", "{}")
        with unittest.mock.patch.dict(sys.modules, {"tokenizers": None, "pyarrow": None,
                                                    "transformers": None}):
            self.assertIn("pip install 'troupe[data]'", self.refused("--tokenizer", path))
            self.assertIn("the package transformers", self.refused("--tokenizer", "gpt2"))
            self.write("a.parquet", "PAR1")
            self.assertIn("the package pyarrow", self.refused())

    def test_the_command_prints_what_it_made(self):
        self.write("a", "abc")
        done = subprocess.run([sys.executable, "-m", "troupe.data", "prepare", "--output",
                               self.home / "data", self.folder], capture_output=True, text=True,
                              timeout=LIMIT_SECONDS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, "^1 document, 4 tokens of 3 B of text, .* tokens/s\n"
                         "token ids are below 257, and 256 ends a document\n")
        self.assertTrue(done.stdout.endswith(f"{self.home}/data.bin\n{self.home}/data.idx\n"))

    def test_an_interrupt_leaves_nothing(self):
        # It reads a large file until the interrupt.
        with open(self.folder / "large", "wb") as file:
            file.write(b"x" * 8192)
            file.truncate(1 << 40)
        process = subprocess.Popen([sys.executable, "-m", "troupe.data", "prepare", "--output",
                                    self.home / "data", self.folder],
                                   # A shell starts what runs in the background with it ignored.
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until((self.home / "data.bin.tmp").exists, "the command writes")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT_SECONDS), 130)
        self.assertEqual([each.name for each in self.home.iterdir()], ["in"])


class ProgressTest(DataCase):
    def test_the_line_has_the_part_that_is_read_and_the_time_left(self):
        progress = _prepare.Progress(4_000_000, 1_000_000, 7, 500)
        self.assertEqual(_progress_line.progress_text(progress, 30.0),
                         "25% of 4.0 MB  7 documents  500 tokens  17 tokens/s  1:30 left")
        progress.bytes_read = 5_000_000  # a file has grown
        self.assertIn("100% of 4.0 MB", _progress_line.progress_text(progress, 30.0))
        self.assertIn(" 2:00:00 left",
                      _progress_line.progress_text(_prepare.Progress(3, 1, 0, 0), 3600.0))

    def test_it_is_shown_after_each_part(self):
        self.write("a", b"x" * (3 << 20))
        self.write("b", b"x")
        shown = []
        _prepare.prepare(_prepare.Options(str(self.home / "data"), "bytes", [str(self.folder)]),
                         lambda progress: shown.append((progress.bytes_read, progress.documents)))
        self.assertEqual(shown[-1], ((3 << 20) + 1, 2))
        self.assertEqual([read for read, _ in shown], sorted(read for read, _ in shown))
        self.assertGreater(len(shown), 2)
        self.assertEqual(_sources.bytes_beneath(str(self.folder)), (3 << 20) + 1)


if __name__ == "__main__":
    unittest.main()
