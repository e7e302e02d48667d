"""Output that cannot be written is reported and gives exit code 1; a message that cannot be written
changes nothing. The messages of a command are its own, not those of its libraries."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import BIN, LIMIT_SECONDS, TROUPE, Cluster, ClusterCase, run

NO_SPACE = "standard output cannot be written: No space left on device"


def run_in_shell(redirections, *command):
    """Runs the command with redirections of the shell, such as `2>&-`, and returns its exit code,
    output and messages."""
    done = subprocess.run(["sh", "-c", f'exec "$@" {redirections}', "sh", *map(str, command)],
                          capture_output=True, text=True, timeout=LIMIT_SECONDS)
    return done.returncode, done.stdout, done.stderr


class Output(unittest.TestCase):
    def test_a_full_device_is_reported(self):
        for program, arguments in (("troupe", ["keys"]), ("troupe", ["--help"]),
                                   ("troupe", ["--version"]), ("troupe", ["certs", "--help"]),
                                   ("troupe", ["list", "--help"]),
                                   ("troupe-coordinator", ["--help"]),
                                   ("troupe-worker", ["--list-failpoints"])):
            with self.subTest(program, arguments=arguments):
                code, _, err = run_in_shell(">/dev/full", BIN / program, *arguments)
                self.assertEqual((code, err), (1, f"{program}: {NO_SPACE}\n"))

    def test_a_closed_output_is_reported(self):
        for arguments in (["keys"], ["--version"]):
            code, _, err = run_in_shell(">&-", TROUPE, *arguments)
            self.assertEqual(code, 1, err)
            self.assertIn("standard output cannot be written: Bad file descriptor", err)

    def test_the_definition_of_troupe_job_has_one_form(self):
        for arguments in (["model"], ["--markdown"], ["-o", "json"]):
            with self.subTest(arguments):
                code, out, err = run_in_shell("", TROUPE, "keys", "--kubernetes", *arguments)
                self.assertEqual((code, out), (2, ""))
                self.assertIn("--kubernetes prints a whole page", err)

    def test_wrong_usage_without_standard_error(self):
        for command in ([TROUPE], [TROUPE, "nope"], [TROUPE, "certs", "nope"],
                        [TROUPE, "list", "--bogus"], [BIN / "troupe-coordinator", "--bogus"],
                        [BIN / "troupe-worker", "--bogus"]):
            for redirection in ("2>&-", "2>/dev/full"):
                with self.subTest(command=command, redirection=redirection):
                    self.assertEqual(run_in_shell(redirection, *command), (2, "", ""))

    def test_output_without_standard_error(self):
        for redirection in ("2>&-", "2>/dev/full", "<&- 2>&-"):
            code, out, _ = run_in_shell(redirection, TROUPE, "--version")
            self.assertEqual((code, out.split()[0]), (0, "troupe"))

    def test_a_reader_that_leaves_is_no_error(self):
        for restored, code in ((True, -signal.SIGPIPE), (False, 0)):
            reader, writer = os.pipe()
            os.close(reader)
            try:
                done = subprocess.run([TROUPE, "--version"], stdout=writer, stderr=subprocess.PIPE,
                                      text=True, restore_signals=restored, timeout=LIMIT_SECONDS)
            finally:
                os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (code, ""))


class OutputOfACluster(ClusterCase):
    def test_what_a_coordinator_answers_is_not_lost_in_silence(self):
        with Cluster(workers=1) as cluster:
            here = ("--data-dir", cluster.directory)
            job = cluster.write_job("unseen", steps=2, parallelism="tensor_parallel_degree: 1")
            code, _, err = run_in_shell(">/dev/full", TROUPE, "submit", job, *here)
            self.assertEqual(code, 1, err)
            self.assertIn(NO_SPACE, err)
            cluster.wait_for_state("unseen", "SUCCEEDED")
            for arguments in (["list"], ["list", "-o", "json"], ["describe", "unseen"],
                              ["watch", "unseen"], ["watch", "unseen", "-o", "json"],
                              ["receipt", "unseen"], ["workers"],
                              ["logs", "unseen", "-o", "json"]):
                with self.subTest(arguments=arguments):
                    code, _, err = run_in_shell(">/dev/full", TROUPE, *arguments, *here)
                    self.assertEqual(code, 1, err)
                    self.assertIn(NO_SPACE, err)
            code, out, _ = run_in_shell("2>/dev/full", TROUPE, "submit", job, "--name", "unheard",
                                        "-o", "json", *here)
            self.assertEqual(code, 0)
            self.assertIn("unheard", json.loads(out)["name"])


class Messages(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.home)

    def issue(self, authority, role):
        """Returns a new TLS directory."""
        if not (self.home / authority).exists():
            self.assertEqual(run("certs", "init", self.home / authority, "--cluster", "lab")[0], 0)
        output = self.home / f"{authority}-{role}"
        code, _, err = run("certs", "issue", self.home / authority, "--role", role, "--name", "ann",
                           "--output", output)
        self.assertEqual(code, 0, err)
        return output

    def test_a_refused_certificate_is_one_sentence(self):
        coordinator = subprocess.Popen(
            [BIN / "troupe-coordinator", "--listen", "127.0.0.1:0", "--data-dir",
             self.home / "data", "--tls-dir", self.issue("known", "coordinator")],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            address = json.loads(coordinator.stdout.readline())["address"]
            command = ("list", "--coordinator", address, "--tls-dir",
                       self.issue("foreign", "viewer"))
            code, out, err = run(*command)
            self.assertEqual((code, out, err.count("\n")), (3, "", 1), err)
            self.assertTrue(err.startswith("troupe: cannot reach the coordinator at "), err)
            code, _, err = run(*command, environment={"GRPC_VERBOSITY": "ERROR"})
            self.assertEqual(code, 3, err)
            self.assertGreater(err.count("\n"), 1)
        finally:
            coordinator.kill()
            coordinator.communicate(timeout=LIMIT_SECONDS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
