"""Attacks of programs that reach the ports of a cluster without any right: no process ends, and no
step is lost. docs/security.md lists all attacks that were tried."""

import contextlib
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

from bad_input_test import GARBAGE, listens_on
from harness import BIN, TROUPE, Cluster, ClusterCase, alive, run, wait_until
from service_test import LOOPBACK, listening_addresses

# For how long every port is attacked; the job's steps go on meanwhile.
ATTACK_SECONDS = float(os.environ.get("TROUPE_ATTACK_SECONDS", "20"))
SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:20"}
SLOW_CONNECTIONS = 4  # to each port, which send a byte at a time
END_SECONDS = 20
UCX_MAGIC = struct.pack("<Q", 0xCAFEBABE12345678)
# A header of UCX's TCP transport, which states the kind of message and its length, and a payload.
# Kinds from 32 on are those of the transport itself; one copies to an address that the peer names.
UCX_MESSAGES = [UCX_MAGIC + struct.pack("<BI", kind, 64) + b"A" * 64 for kind in range(40)]


def throw(address, message, context=None):
    """Sends a message, with a context after a TLS handshake, and ends the connection abruptly."""
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=5) as plain:
        connection = plain if context is None else context.wrap_socket(plain)
        connection.settimeout(0.1)
        # The message is sent to its end, or until the other side reads no more of it.
        with contextlib.suppress(OSError):
            connection.sendall(message)
            connection.recv(4096)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


class SlowConnections:
    """Connections to one port that stay open and send a byte at a time, or nothing."""

    def __init__(self, address):
        self.address = address
        self.connections = [None] * SLOW_CONNECTIONS

    def send(self, byte):
        for i, connection in enumerate(self.connections):
            try:
                if connection is None:
                    connection = socket.create_connection(self.address, timeout=5)
                    self.connections[i] = connection
                if i > 0:  # the first one stays half open
                    connection.sendall(byte)
            except OSError:
                self.close(i)

    def close(self, i):
        if self.connections[i] is not None:
            self.connections[i].close()
        self.connections[i] = None

    def close_all(self):
        for i in range(SLOW_CONNECTIONS):
            self.close(i)


class Attack:
    """Attacks every port until it is stopped, each from a thread of its own. Each port gets its
    messages in turn: the bytes, and the context of TLS or None."""

    def __init__(self, messages):
        self.stopping = threading.Event()
        self.rounds = {address: 0 for address in messages}
        self.threads = [threading.Thread(target=self.run, args=item) for item in messages.items()]

    def run(self, address, messages):
        slow = SlowConnections(address)
        try:
            while not self.stopping.is_set():
                for message, context in messages:
                    if self.stopping.wait(0.02):
                        break
                    throw(address, message, context)
                    slow.send(message[:1])
                else:
                    self.rounds[address] += 1
        finally:
            slow.close_all()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=END_SECONDS)


class Ports(ClusterCase):
    def attack(self, environment, messages, ranks_listen):
        # A machine with too much to do must not look like a lost worker.
        with Cluster(workers=2, environment=environment, detection_seconds=10) as cluster:
            job = cluster.submit("steady", steps=100000, interval=200)
            cluster.wait_for_step(job, 1)
            info = cluster.info()
            ranks = cluster.describe(job)["ranks"]
            processes = {"coordinator": info["coordinator"]["pid"],
                         **{w["name"]: w["pid"] for w in info["workers"]},
                         **{f"rank {r['rank']}": r["pid"] for r in ranks}}
            listening = {name: listens_on(pid) for name, pid in processes.items()}
            for name, pid in processes.items():
                found = set(listening_addresses(pid))
                self.assertEqual(found - LOOPBACK, set(), name)
                self.assertEqual(bool(found), ranks_listen or not name.startswith("rank"), name)
            before = cluster.describe(job)["step"]
            addresses = [address for several in listening.values() for address in several]
            plain = [(message, None) for message in messages]
            with Attack(dict.fromkeys(addresses, plain)) as attack:
                attack.stopping.wait(ATTACK_SECONDS)
                wait_until(lambda: all(attack.rounds.values()), "every port got every message")
            cluster.wait_for_step(job, before + 20)
            self.assertEqual(cluster.troupe("cancel", job, "--checkpoint")[0], 0)
            done = cluster.wait_for_state(job, "CANCELLED")
            self.assertEqual((done["restarts"], done["group_epoch"]), (0, 1), cluster.logs())
            steps = [line for line in cluster.watched(job) if line["type"] == "step"]
            self.assertEqual([line["step"] for line in steps], list(range(1, len(steps) + 1)))
            for name in ("coordinator", "worker-0", "worker-1"):
                self.assertTrue(alive(processes[name]), f"{name} died\n{cluster.logs()}")
            self.assert_committed_checkpoints_verify(cluster, job)

    def test_garbage_slow_bytes_and_the_messages_of_ucx_on_every_port_disturb_nothing(self):
        self.attack(SLOW, GARBAGE + UCX_MESSAGES, ranks_listen=False)

    def test_ranks_that_use_tcp_outlast_everything_that_is_not_of_ucx(self):
        # Messages of UCX end the process: whoever reaches the port of a rank can stop its job.
        self.attack({**SLOW, "UCX_TLS": "tcp,self"}, GARBAGE, ranks_listen=True)


class Failpoints(unittest.TestCase):
    def test_no_process_starts_with_failpoints_unless_a_flag_permits_them(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        armed = {"TROUPE_FAILPOINTS": "step.begin=error"}
        worker = ("--coordinator", "127.0.0.1:1", "--name", "w", "--devices", "cpu:1")
        for program, arguments in (
                ("troupe", ("up", "--data-dir", home / "up")),
                ("troupe", ("supervise", "--data-dir", home / "up")),
                ("troupe-coordinator", ("--listen", "127.0.0.1:0", "--data-dir", home / "c")),
                ("troupe-worker", (*worker, "--data-dir", home / "w")),
                ("troupe-worker", ("--rank-process", "3,4"))):
            command = [pathlib.Path(TROUPE) if program == "troupe" else BIN / program, *arguments]
            done = subprocess.run(list(map(str, command)), env={**os.environ, **armed}, timeout=20,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, f"{program}: {done.stderr}")
            self.assertIn("TROUPE_FAILPOINTS", done.stderr)
            self.assertIn("--allow-failpoints", done.stderr)
        self.assertFalse((home / "up" / "cluster.json").exists())
        # Commands that have none ignore them.
        self.assertEqual(run("keys", environment=armed)[0], 0)
