"""Attacks on the ports of a cluster with TLS, before and after the handshake: no process ends, no
step is lost, its health stays good, and connections are closed within their limit."""

import concurrent.futures
import contextlib
import http.client
import itertools
import re
import socket
import ssl
import struct
import threading
import time

from attacks_test import ATTACK_SECONDS, SLOW, Attack
from bad_input_test import GARBAGE, listens_on
from harness import ClusterCase, alive, wait_until
from tls_test import VIEWER, WORKERS, TlsCluster, read_page

CLOSED_SECONDS = 10  # docs/service.md: for a request over HTTP, and for becoming HTTP/2
LATE_SECONDS = 10  # a machine with too much to do closes a connection so much later
BYTE_SECONDS = 0.5  # between two bytes of a slow connection

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4
LIST_JOBS = b"/troupe.v1.JobService/ListJobs"
# The header block of a call: entries of HPACK's static table, then literals.
CALL = (b"\x83\x87" + b"\x04" + bytes([len(LIST_JOBS)]) + LIST_JOBS + b"\x01\x01h" +
        b"\x5f\x10application/grpc" + b"\x00\x02te\x08trailers")
# A field of 4,000 bytes that enters the table of HPACK, and then stands for one byte each time.
LARGE_FIELD = b"\x40\x01a" + b"\x7f" + bytes([(4000 - 127) % 128 + 128, (4000 - 127) // 128]) + (
    b"v" * 4000)


def frame(kind, flags, stream, payload=b"", length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


BEGIN = PREFACE + frame(SETTINGS, 0, 0)
AFTER_HANDSHAKE = {
    "nothing": b"",
    "garbage": GARBAGE[0],
    "a preface and garbage": PREFACE + GARBAGE[0],
    "a flood of settings": PREFACE + frame(SETTINGS, 0, 0) * 5000,
    "settings of an impossible size": PREFACE + frame(SETTINGS, 0, 0, b"\xff" * 7),
    "settings with forbidden values": PREFACE + frame(
        SETTINGS, 0, 0, b"".join(struct.pack(">HI", key, 0xFFFFFFFF) for key in range(8))),
    "a flood of pings": BEGIN + frame(PING, 0, 0, bytes(8)) * 5000,
    "headers that state 16 MiB": BEGIN + frame(HEADERS, END_HEADERS, 1, b"\xff" * 4096,
                                               length=(1 << 24) - 1),
    "headers without an end": BEGIN + frame(HEADERS, 0, 1, CALL) + b"".join(
        frame(CONTINUATION, 0, 1, b"\x00\x01a\x7f\x81\x7d" + b"v" * 16000) for _ in range(64)),
    "a flood of empty continuations": BEGIN + frame(HEADERS, 0, 1, CALL) + frame(
        CONTINUATION, 0, 1) * 5000,
    "small headers that become large": BEGIN + frame(
        HEADERS, END_HEADERS, 1, CALL + LARGE_FIELD + b"\xbe" * 8000),
    "a continuation of nothing": BEGIN + frame(CONTINUATION, END_HEADERS, 1, CALL),
    "calls that are reset at once": BEGIN + b"".join(
        frame(HEADERS, END_HEADERS, stream, CALL) + frame(RST_STREAM, 0, stream, bytes(4))
        for stream in range(1, 2001, 2)),
    "calls that stay open": BEGIN + b"".join(
        frame(HEADERS, END_HEADERS, stream, CALL) for stream in range(1, 2001, 2)),
    "a message of 4 GiB": BEGIN + frame(HEADERS, END_HEADERS, 1, CALL) + frame(
        DATA, END_STREAM, 1, b"\x00\xff\xff\xff\xff" + bytes(1024)),
    "data of no stream": BEGIN + frame(DATA, 0, 7, bytes(1024)) * 16,
    "windows that overflow": BEGIN + frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 2,
    "unknown frames": BEGIN + b"".join(frame(kind, 0xFF, 1, bytes(64)) for kind in range(10, 256)),
    "a request over HTTP/1.1": b"GET /health HTTP/1.1\r\n\r\n",
    "an endless request": b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 65536,
}


def client_hello():
    """Returns the first message of a TLS client."""
    outgoing = ssl.MemoryBIO()
    session = anybody().wrap_bio(ssl.MemoryBIO(), outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def anybody():
    """Returns the TLS of a client without a certificate, which does not check the server's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


def holder(directory):
    """Returns the TLS of a client with the certificate in the directory."""
    context = anybody()
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    return context


def seconds_until_closed(address, context, first, then):
    """Sends `first`, with a context after a handshake, and after it a byte of `then` now and then.
    Returns after which time the server has closed the connection, infinity if it has not."""
    end = CLOSED_SECONDS + LATE_SECONDS
    begin = time.monotonic()
    with socket.create_connection(address, timeout=end) as plain:
        try:
            with plain if context is None else context.wrap_socket(plain) as connection:
                connection.settimeout(BYTE_SECONDS)
                connection.sendall(first)
                slow = itertools.cycle(then)
                while time.monotonic() - begin < end:
                    with contextlib.suppress(TimeoutError):
                        if not connection.recv(4096):
                            return time.monotonic() - begin
                    if then:
                        connection.sendall(bytes([next(slow)]))
        except (ssl.SSLError, ConnectionError):
            return time.monotonic() - begin
    return float("inf")


class HealthProbe:
    """Reads the pages of a cluster until it is stopped, and keeps what was not good."""

    def __init__(self, cluster, metrics, health):
        self.cluster = cluster
        self.pages = [f"{url}/{page}" for url in health for page in ("healthz", "readyz")]
        self.pages += [url.replace("/metrics", "/health") for url in metrics]
        self.reads = 0
        self.bad = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def problem(self, page):
        try:
            code, text = read_page(page, self.cluster.tls(VIEWER) if "https" in page else None)
        except (OSError, http.client.HTTPException) as error:
            return str(error)
        if code != 200:
            return f"{code} {text}"
        ages = re.findall(r"^troupe_health_age_seconds (\S+)$", text, re.MULTILINE)
        if "https" in page and not all(float(age) < self.cluster.detection_seconds
                                       for age in ages or ["inf"]):
            return f"no sign of life for {ages} s"
        return None

    def run(self):
        while not self.stopping.wait(0.2):
            for page in self.pages:
                problem = self.problem(page)
                self.reads += 1
                if problem:
                    self.bad.append(f"{page}: {problem}")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(timeout=60)


class PortsWithTls(ClusterCase):
    def setUp(self):
        # Ranks use TCP on the address that they were given, as between hosts.
        environment = {**SLOW, "UCX_TLS": "tcp,self"}
        self.cluster = TlsCluster(environment=environment, flags=(
            "--metrics-listen", "0.0.0.0:0", "--health-listen", "0.0.0.0:0"))
        self.enterContext(self.cluster)
        self.job = self.cluster.submit("steady", steps=100000, interval=200)
        self.cluster.wait_for_step(self.job, 1)

    def find_ports(self):
        """Finds what listens: the API, the pages of metrics and of health, the ranks."""
        workers = self.cluster.json("workers")["workers"]
        self.metrics = [self.cluster.ready["metrics"], *(worker["metrics"] for worker in workers)]
        ports = [re.search("are served on port ([0-9]+)", self.cluster.log(name).read_text())[1]
                 for name in WORKERS]
        self.health = [f"http://{address}".replace("0.0.0.0", "127.0.0.1") for address in (
            self.cluster.ready["health"], *(f"0.0.0.0:{port}" for port in ports))]
        ranks = self.cluster.describe(self.job)["ranks"]
        self.processes = {**{name: process.pid for name, process in self.cluster.processes.items()},
                          **{f"rank {rank['rank']}": rank["pid"] for rank in ranks}}
        self.listening = {name: listens_on(pid) for name, pid in self.processes.items()}
        port_of = re.compile(":([0-9]+)(?:/|$)")
        self.over_tls = {int(port_of.search(url)[1])
                         for url in (self.cluster.address, *self.metrics)}
        self.pages = {int(port_of.search(url)[1]) for url in self.health}

    def messages(self):
        """Returns for each address what is thrown at it."""
        hello = client_hello()
        plain = [(message, None) for message in (
            *GARBAGE, b"", hello[:1], hello[:5], hello[:len(hello) // 2], hello[:-1], hello,
            hello + GARBAGE[0])]
        contexts = (anybody(), holder(self.cluster.tls(VIEWER)))
        tls = [(message, context) for context in contexts for message in AFTER_HANDSHAKE.values()]
        without_tls = [(message, None) for message in AFTER_HANDSHAKE.values()]
        self.assertEqual({name: bool(found) for name, found in self.listening.items()},
                         dict.fromkeys(self.processes, True))
        return {address: plain + (tls if address[1] in self.over_tls else without_tls)
                for found in self.listening.values() for address in found}

    def slow_connections(self):
        """Returns the connections that a server has to close: the arguments of
        seconds_until_closed."""
        hello = client_hello()
        request = b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 1000
        viewer = holder(self.cluster.tls(VIEWER))
        for port in sorted(self.over_tls):
            address = ("127.0.0.1", port)
            yield address, None, b"", b""
            yield address, None, b"", hello
            yield address, None, hello[:len(hello) // 2], b""
            yield address, viewer, b"", b""
            yield address, viewer, b"", PREFACE if port == self.api_port() else request
        for port in sorted(self.pages):
            address = ("127.0.0.1", port)
            yield address, None, b"", b""
            yield address, None, b"", request
        yield ("127.0.0.1", self.api_port()), anybody(), PREFACE, b""

    def api_port(self):
        return int(self.cluster.address.rsplit(":", 1)[1])

    def check_slow_connections(self):
        several = list(self.slow_connections())
        with concurrent.futures.ThreadPoolExecutor(len(several)) as pool:
            for arguments, seconds in zip(several, pool.map(
                    lambda arguments: seconds_until_closed(*arguments), several)):
                self.assertLess(seconds, CLOSED_SECONDS + LATE_SECONDS, arguments)

    def test_neither_before_nor_after_the_handshake_can_anything_be_disturbed(self):
        cluster, job = self.cluster, self.job
        self.find_ports()
        before = cluster.describe(job)["step"]
        with Attack(self.messages()) as attack, HealthProbe(cluster, self.metrics,
                                                            self.health) as probe:
            begin = time.monotonic()
            self.check_slow_connections()
            attack.stopping.wait(ATTACK_SECONDS - (time.monotonic() - begin))
            wait_until(lambda: all(attack.rounds.values()), "every port got every message")
        self.assertEqual(probe.bad, [])
        self.assertGreaterEqual(probe.reads, len(probe.pages))
        cluster.wait_for_step(job, before + 20)
        code, _, err = cluster.troupe("cancel", job, "--checkpoint")
        self.assertEqual(code, 0, err + cluster.logs())
        done = cluster.wait_for_state(job, "CANCELLED")
        self.assertEqual((done["restarts"], done["group_epoch"]), (0, 1), cluster.logs())
        steps = [line["step"] for line in cluster.watched(job) if line["type"] == "step"]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        for name in ("main", *WORKERS):
            self.assertTrue(alive(self.processes[name]), f"{name} died\n{cluster.logs()}")
        self.assert_committed_checkpoints_verify(cluster, job)
