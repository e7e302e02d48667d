"""Channels to a coordinator, in plaintext or with TLS.

gRPC compares a server's certificate with a host name. The identity of a coordinator is instead the
URI spiffe://CLUSTER/coordinator/NAME in its certificate. Therefore each channel begins with one
handshake by the standard library, which checks the chain and the identity; gRPC is then given
exactly that certificate as the only one to trust, and a name in it to compare.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import grpc

from troupe._plain_file import read_plain_file
from troupe._printable import printable
from troupe.errors import InsecureWarning, Unavailable, Untrusted
from troupe.v1 import service_pb2_grpc

_IDENTITY = re.compile("spiffe://([A-Za-z0-9._-]+)/([a-z]+)/([A-Za-z0-9._-]+)")
_TOKEN = re.compile("troupe~([A-Za-z0-9._-]{1,63})~[0-9a-f]{16}~[0-9a-f]{64}")
_State = Tuple[Tuple[int, int, int], ...]  # of files: inode, time of change and size
HANDSHAKE_SECONDS = 10.0  # the longest time for a connection and its handshake
_MOST_TOKEN_BYTES = 4096
_MOST_PEM_BYTES = 1 << 20
_INSECURE_KEY = "troupe-insecure"  # the initial metadata of a coordinator with --insecure

# As in `troupe`: reconnects fast, uses no proxy of the environment, and accepts plans of any size.
# The coordinator permits a ping every 5 minutes, which detects that its host is gone.
_OPTIONS: List[Tuple[str, Union[int, str]]] = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
    # A coordinator that has moved to another address is found within a second or two.
    ("grpc.dns_min_time_between_resolutions_ms", 500),
    ("grpc.dns_ares_query_timeout", 5000),
    ("grpc.max_receive_message_length", -1),
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 20_000),
]


def read_token(path: str) -> str:
    """Returns the token in a file that only its owner may use. Raises OSError, and ValueError."""
    content, mode = read_plain_file(path, _MOST_TOKEN_BYTES)
    if mode & 0o077:
        raise ValueError(f"{path}: others may use this token (mode {mode:04o}); only its owner "
                         f"may be able to: chmod 600 {path}")
    text = content.decode("ascii", errors="replace").strip()
    if _TOKEN.fullmatch(text) is None:
        raise ValueError(f"{path} has no whole token, troupe~CLUSTER~ID~SECRET")
    return text


def _read_pem(path: str) -> bytes:
    """Raises OSError, and SSLError for what cannot be a certificate or a key."""
    try:
        return read_plain_file(path, _MOST_PEM_BYTES)[0]
    except ValueError as error:
        raise ssl.SSLError(str(error)) from None


def _cluster_of(token: str) -> str:
    """The cluster of a token. An error must not repeat the token."""
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise ValueError("the token is not whole: it needs the form troupe~CLUSTER~ID~SECRET")
    return found[1]


def _state_of(paths: Sequence[Optional[str]]) -> _State:
    """Changes when a file changes or is replaced."""
    state = []
    for path in paths:
        if path is None:
            continue
        try:
            found = os.stat(path)
        except OSError:  # in the middle of a rotation
            state.append((0, 0, 0))
            continue
        state.append((found.st_ino, found.st_mtime_ns, found.st_size))
    return tuple(state)


class TlsFiles:
    """The files of a TLS directory: ca.pem, cert.pem and key.pem. A client with a token, one of
    `token_cluster`, uses ca.pem alone."""

    def __init__(self, folder: str, token_cluster: Optional[str] = None) -> None:
        self.authority = os.path.join(folder, "ca.pem")
        self.certificate: Optional[str] = None
        self.key: Optional[str] = None
        self.token_cluster = token_cluster
        if token_cluster is None:
            self.certificate = os.path.join(folder, "cert.pem")
            self.key = os.path.join(folder, "key.pem")
        if not os.path.exists(self.authority):
            raise FileNotFoundError(f"{self.authority}: no such file; a TLS directory has ca.pem, "
                                    "cert.pem and key.pem")

    def state(self) -> _State:
        return _state_of((self.authority, self.certificate, self.key))

    def cluster(self) -> str:
        """The cluster of the client's certificate or token."""
        if self.certificate is None:
            return str(self.token_cluster)
        leaf = re.search("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----",
                         _read_pem(self.certificate).decode("latin-1"), re.DOTALL)
        if leaf is None:
            raise ssl.SSLError(f"{self.certificate} has no certificate")
        # The URI is the only text of this form; it is ASCII in the encoded certificate.
        names = set(_IDENTITY.findall(ssl.PEM_cert_to_DER_cert(leaf[0]).decode("latin-1")))
        clusters = {cluster for cluster, _, _ in names}
        if len(clusters) != 1:
            raise ssl.SSLError(f"{self.certificate} has no identity spiffe://CLUSTER/ROLE/NAME")
        return str(clusters.pop())

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # the identity is checked instead
        for path in (self.authority, self.certificate, self.key):
            if path is not None:
                _read_pem(path)  # the library itself would wait for the writer of a FIFO
        context.load_verify_locations(self.authority)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        context.set_alpn_protocols(["h2"])
        return context


def _split(address: str) -> Tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _values(names: Any, kind: str) -> List[str]:
    return [value for key, value in names or () if key == kind]


def _check_identity(certificate: Dict[str, Any], cluster: str) -> None:
    uris = _values(certificate.get("subjectAltName"), "URI")
    identity = _IDENTITY.fullmatch(uris[0]) if len(uris) == 1 else None
    if identity is None or identity[2] != "coordinator" or cluster != identity[1]:
        wanted = f"spiffe://{cluster}/coordinator/NAME"
        found = printable(", ".join(uris)) or "without an identity"
        raise ssl.SSLError(f"the server is {found}, not {wanted}")


def _name_in(certificate: Dict[str, Any]) -> str:
    """A name with which gRPC finds the certificate to be the server's."""
    names = _values(certificate.get("subjectAltName"), "DNS")
    for part in certificate.get("subject", ()):
        names += _values(part, "commonName")
    if not names:
        raise ssl.SSLError("the server's certificate has neither a DNS name nor a common name")
    return names[0].replace("*", "any")


def _await_acceptance(connection: ssl.SSLSocket) -> None:
    """Waits for the first byte of the server's settings. A server that refuses the client's
    certificate ends the connection instead, after the handshake."""
    try:
        accepted = connection.recv(1) != b""
    except ConnectionResetError:
        accepted = False
    if not accepted:
        raise ssl.SSLError("the server ended the connection after the handshake, as it does with a "
                           "client whose certificate it does not accept")


def _left(end: float) -> float:
    """Returns the seconds until `end`. Raises OSError if it has passed."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("it does not answer")
    return left


def _greet(address: str, files: TlsFiles, end: float) -> Tuple[bytes, str]:
    """Makes a connection before `end`, and returns the PEM of the server's certificate and a name
    in it. Raises OSError."""
    with socket.create_connection(_split(address), _left(end)) as plain:
        plain.settimeout(_left(end))
        with files.context().wrap_socket(plain) as connection:
            connection.settimeout(_left(end))
            _await_acceptance(connection)
            certificate: Dict[str, Any] = dict(connection.getpeercert() or {})
            encoded = connection.getpeercert(binary_form=True)
    if encoded is None:
        raise ssl.SSLError("the server has no certificate")
    _check_identity(certificate, files.cluster())
    return ssl.DER_cert_to_PEM_cert(encoded).encode(), _name_in(certificate)


def _secure_channel(address: str, files: TlsFiles, end: float) -> grpc.Channel:
    try:
        trusted, name = _greet(address, files, end)
        certificate = key = None
        if files.certificate is not None and files.key is not None:
            certificate = _read_pem(files.certificate)
            key = _read_pem(files.key)
    except ssl.SSLError as error:
        raise Untrusted(f"{address}: {error}") from error
    except OSError as error:
        raise Unavailable(f"{address}: {error}") from error
    credentials = grpc.ssl_channel_credentials(trusted, key, certificate)
    return grpc.secure_channel(address, credentials,
                               [*_OPTIONS, ("grpc.ssl_target_name_override", name)])


def _callers_level() -> int:
    """The `stacklevel` by which the caller of this function warns of the line outside of the
    package that has called it."""
    level = 1
    while sys._getframe(level).f_globals.get("__name__", "").startswith("troupe."):
        level += 1
    return level


class Connection:
    """A channel to `address` with its stubs, and the metadata of its calls. It is closed when
    nobody refers to it any more, so that the streams of a channel that was replaced live on."""

    def __init__(self, channel: grpc.Channel, address: str, token: Optional[str] = None) -> None:
        self.channel = channel
        self.metadata: Tuple[Tuple[str, str], ...] = (
            () if token is None else (("authorization", f"Bearer {token}"),))
        self._address = address
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._warned = False
        self.jobs = service_pb2_grpc.JobServiceStub(channel)
        self.plans = service_pb2_grpc.PlanServiceStub(channel)
        self.cluster = service_pb2_grpc.ClusterServiceStub(channel)
        self.checkpoints = service_pb2_grpc.CheckpointServiceStub(channel)

    def warn_if_insecure(self, call: grpc.Call) -> None:
        """Issues an InsecureWarning, one for the channel, if an answer shows that the coordinator
        runs with --insecure. REQUIRES: the call has had an answer."""
        if self._warned or all(key != _INSECURE_KEY for key, _ in call.initial_metadata() or ()):
            return
        with self._lock:
            if self._warned:
                return
            self._warned = True
        warnings.warn(f"the coordinator at {self._address} runs with --insecure: whoever reaches "
                      "it has every role", InsecureWarning, _callers_level())

    def close(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Ends the channel and the calls on it, unless the threads that close() of the channel
        waits for do not run any more: in an interpreter that is about to end, and in the child of
        a fork. There the sockets are closed with the process."""
        # The names of this module may be gone already, so the function is a default.
        if not is_finalizing() and os.getpid() == self._process:
            self.channel.close()

    def __del__(self) -> None:
        self.close()


class Connections:
    """The current connection to one address. Thread-safe."""

    def __init__(self, address: str, tls_folder: Optional[str], token: Optional[str],
                 token_file: Optional[str]) -> None:
        if re.fullmatch(r".+:[0-9]{1,5}", address) is None:
            raise ValueError(f"the address {address} is not HOST:PORT")
        if token_file is not None:
            token = read_token(token_file)
        if token is not None and tls_folder is None:
            raise ValueError(f"the token would be sent to {address} in plaintext: give tls_dir, a "
                             "directory with ca.pem")
        cluster = None if token is None else _cluster_of(token)
        self.address = address
        self._token = token
        self._token_file = token_file
        self._files = None if tls_folder is None else TlsFiles(tls_folder, cluster)
        self._lock = threading.Lock()  # held while a connection is made
        self._current: Optional[Connection] = None
        self._state: _State = ()

    def get(self, limit: float = HANDSHAKE_SECONDS) -> Connection:
        """Returns a connection that uses the current files, within `limit` seconds. Raises
        Unavailable, and Untrusted."""
        limit = min(limit, HANDSHAKE_SECONDS)
        end = time.monotonic() + limit
        # Another thread may be waiting for a handshake.
        if not self._lock.acquire(timeout=max(0.0, limit)):
            raise Unavailable(f"{self.address}: it does not answer")
        try:
            return self._get(end)
        finally:
            self._lock.release()

    def _get(self, end: float) -> Connection:
        """REQUIRES: the lock is held."""
        current = self._current  # close() and lost() do not wait for the lock
        if self._files is None:
            if current is None:
                channel = grpc.insecure_channel(self.address, _OPTIONS)
                self._current = current = Connection(channel, self.address)
            return current
        state = self._files.state() + _state_of((self._token_file,))
        if current is None or state != self._state:
            self._current = current = self._connect(self._files, end)
            self._state = state
        return current

    def _connect(self, files: TlsFiles, end: float) -> Connection:
        if self._token_file is not None:
            try:
                self._token = read_token(self._token_file)
            except (OSError, ValueError) as error:
                raise Untrusted(f"{self.address}: {error}") from error
            # The server has to be of the cluster of the token that it gets.
            files.token_cluster = _cluster_of(self._token)
        return Connection(_secure_channel(self.address, files, end), self.address, self._token)

    def lost(self, connection: Connection) -> None:
        """The coordinator was not reached: with TLS it may return with another certificate."""
        if self._files is not None and self._current is connection:
            self._current = None

    def close(self) -> None:
        """Ends the current connection. It waits for no thread that makes one: in an interpreter
        that is about to end, and in the child of a fork, such a thread does not run any more. A
        connection that is made meanwhile stays, as if it was made later."""
        current, self._current = self._current, None
        if current is not None:
            current.close()
