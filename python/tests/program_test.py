"""What only the command can do is done by the installed program, here by one of the test."""

import os
import pathlib
import shutil
import tempfile
import unittest
import unittest.mock

import troupe
from fake import Authority

# It prints its arguments and its variables of the coordinator, or does what the test states.
PROGRAM = """#!/bin/sh
if [ -n "$FAKE_MESSAGE" ]; then echo "$FAKE_MESSAGE" >&2; fi
if [ -n "$FAKE_SLEEP" ]; then exec sleep "$FAKE_SLEEP"; fi
if [ -n "$FAKE_CODE" ]; then exit "$FAKE_CODE"; fi
printf '{"arguments": "%s", "coordinator": "%s", "tls": "%s", "token": "%s"}' "$*" \\
  "$TROUPE_COORDINATOR" "$TROUPE_TLS_DIR" "$TROUPE_TOKEN_FILE"
"""
TOKEN = f"troupe~lab~{'0a' * 8}~{'1b' * 32}"


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-program-"))
        self.addCleanup(shutil.rmtree, self.home)
        self.program = self.home / "troupe"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.set(TROUPE_BIN=str(self.home))
        self.client = troupe.Client("127.0.0.1:1")
        self.addCleanup(self.client.close)

    def set(self, **environment):
        patch = unittest.mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def test_the_program_gets_the_arguments_and_the_coordinator(self):
        done = self.client.export("jobs/a@3", self.home / "to", dtype="bfloat16",
                                  tokenizer=self.home)
        self.assertEqual(done, {
            "arguments": f"checkpoints export jobs/a@3 --to {self.home}/to --dtype bfloat16 "
                         f"--tokenizer {self.home} -o json",
            "coordinator": "127.0.0.1:1", "tls": "", "token": ""})
        record = troupe.CheckpointRecord(path="/k/step-3")
        self.assertIn("export /k/step-3 --to", self.client.export(record, "to")["arguments"])
        with unittest.mock.patch("troupe._client.run_program", return_value={}) as run:
            self.assertEqual(self.client.report("a", "r.html", trace_step=5),
                             os.path.abspath("r.html"))
            self.assertEqual(self.client.trace("a", "t.json", 5), os.path.abspath("t.json"))
            self.client.trace("a", "t.json", 5, 8)
        self.assertEqual([call.args[0][:2] for call in run.mock_calls],
                         [["report", "a"], ["trace", "a"], ["trace", "a"]])
        self.assertEqual(run.mock_calls[0].args[0][-2:], ["--trace-step", "5"])
        self.assertEqual([call.args[0][3] for call in run.mock_calls][1:], ["5:5", "5:8"])

    def test_the_program_has_the_identity_of_the_client(self):
        authority = Authority(self.home / "authority")
        folder = authority.issue(self.home / "user", "lab/submitter/ann")
        token = self.home / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        with troupe.Client("127.0.0.1:1", folder, token_file=token) as client:
            done = client.export("a", "to")
        self.assertEqual((done["tls"], done["token"]), (str(folder), str(token)))
        with troupe.Client("127.0.0.1:1", folder, token=TOKEN) as client:
            with self.assertRaisesRegex(troupe.InvalidArgument, "token_file") as refused:
                client.export("a", "to")
            self.assertNotIn(TOKEN, str(refused.exception))

    def test_an_error_of_the_program_is_an_exception(self):
        for code, kind in ((1, troupe.TroupeError), (2, troupe.InvalidArgument),
                           (3, troupe.Unavailable), (4, troupe.NotFound)):
            self.set(FAKE_CODE=str(code), FAKE_MESSAGE="troupe: no such \x1b[2Jjob")
            with self.assertRaises(troupe.TroupeError) as raised:
                self.client.report("a", "r.html")
            self.assertIs(type(raised.exception), kind)
            self.assertEqual(str(raised.exception), "no such \\u001b[2Jjob")

    def test_a_message_of_the_program_is_logged(self):
        self.set(FAKE_MESSAGE="it has no tokenizer")
        with self.assertLogs("troupe", "WARNING") as logged:
            self.client.export("a", "to")
        self.assertEqual([record.message for record in logged.records], ["it has no tokenizer"])

    def test_a_program_that_does_not_end_is_ended(self):
        self.set(FAKE_SLEEP="60")
        with self.assertRaisesRegex(troupe.DeadlineExceeded, "0.3 s"):
            self.client.report("a", "r.html", timeout=0.3)

    def test_the_program_is_found_by_the_variable_or_on_the_path(self):
        self.set(TROUPE_BIN=str(self.program))
        self.assertEqual(self.client.export("a", "to")["coordinator"], "127.0.0.1:1")
        self.set(TROUPE_BIN="", PATH=f"{self.home}:{os.environ['PATH']}")
        self.client.export("a", "to")
        for environment, words in (({"TROUPE_BIN": str(self.home / "none")}, "TROUPE_BIN is"),
                                   ({"PATH": str(self.home / "none")}, "is not on PATH")):
            self.set(TROUPE_BIN="")
            self.set(**environment)
            with self.assertRaisesRegex(troupe.ProgramNotFound, words):
                self.client.export("a", "to")


if __name__ == "__main__":
    unittest.main()
