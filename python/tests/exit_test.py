"""Programs that use the client and do not close it end."""

import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from fake import Authority, FakeCoordinator, end, silence, step

SECONDS = 120  # for all programs of a test, of which each takes one on an idle machine

# Each program uses the client `c` and comes to its end; then its exit code and its output.
PROGRAMS = {
    "logs": ("print(*c.logs('j'))", 0, "first second"),
    "abandoned logs": ("g = c.logs('j'); print(next(g))", 0, "first"),
    "watch": ("print(len(list(c.watch('j'))))", 0, "2"),
    "abandoned watch": ("g = c.watch('j'); print(next(g).step)", 0, "1"),
    "wait": ("print(c.wait('j'))", 0, "SUCCEEDED"),
    "delete": ("print(c.delete('j').name)", 0, "jobs/j"),
    "exit": ("print(c.wait('j')); raise SystemExit(3)", 3, "SUCCEEDED"),
    "closed by a destructor": ("""
class Trainer:
    def __init__(self): print(c.wait('j'))
    def __del__(self): c.close()
trainer = Trainer()""", 0, "SUCCEEDED"),
    "used by a handler of the exit": ("""
import atexit
atexit.register(lambda: print(c.get('j').state))
c.wait('j')""", 0, "RUNNING"),
    "dropped by the child of a fork": ("""
import os, signal
g = c.watch('j')
next(g)
child = os.fork()
if child == 0:
    signal.alarm(60)
    del c, g
    os._exit(0)
print(os.waitpid(child, 0)[1])""", 0, "0"),
}
# A thread watches a job that has not ended.
WATCHING = """
import threading, time
threading.Thread(target=lambda: list(c.watch('j')), daemon=True).start()
print(c.get('j').state)"""
# A thread makes a connection until the interpreter ends, in which a destructor closes the client.
CONNECTING = """
import sys, threading
class Trainer:
    def __del__(self): c.close()
trainer = Trainer()
threading.Thread(target=c.get, args=('j',), daemon=True).start()
sys.stdin.readline()"""
TOKEN = f"troupe~lab~{'0a' * 8}~{'1b' * 32}"


class ExitTest(unittest.TestCase):
    def setUp(self):
        self.limit = time.monotonic() + SECONDS

    def start(self, program, *arguments):
        """Starts a program whose client has these arguments."""
        made = f"import troupe\nc = troupe.Client(*{arguments})\n"
        started = subprocess.Popen(
            [sys.executable, "-c", made + program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        return started

    def ended(self, program):
        """Gives the program a line, and returns its exit code and what it printed."""
        try:
            out, err = program.communicate("\n", max(0.1, self.limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.fail(f"it has not ended within {SECONDS} s")
        self.assertNotIn("Traceback", err)
        return program.returncode, out.strip()

    def test_a_program_that_does_not_close_its_client_ends(self):
        with FakeCoordinator(len(PROGRAMS) * [[step(1), end()]]) as server:
            programs = {name: self.start(text, server.address)
                        for name, (text, _, _) in PROGRAMS.items()}
            for name, (_, code, output) in PROGRAMS.items():
                with self.subTest(name):
                    self.assertEqual(self.ended(programs[name]), (code, output))

    def test_a_program_ends_while_one_of_its_threads_watches(self):
        with FakeCoordinator([silence]) as server:
            program = self.start(WATCHING, server.address)
            self.assertEqual(self.ended(program), (0, "RUNNING"))

    def test_a_destructor_closes_the_client_while_a_thread_makes_a_connection(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-exit-"))
        self.addCleanup(shutil.rmtree, home)
        Authority(home / "tls")
        with socket.create_server(("127.0.0.1", 0)) as server:  # it accepts, and never answers
            server.settimeout(SECONDS)
            program = self.start(CONNECTING, f"127.0.0.1:{server.getsockname()[1]}",
                                 str(home / "tls"), TOKEN)
            with server.accept()[0]:
                self.assertEqual(self.ended(program), (0, ""))


if __name__ == "__main__":
    unittest.main()
