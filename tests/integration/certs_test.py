"""The commands of certificates, whose results another implementation of TLS accepts."""

import json
import pathlib
import shutil
import ssl
import stat
import tempfile
import unittest

from harness import run


def handshake(server_directory, client_directory, host):
    """Returns the certificate that the server sees of the client; raises ssl.SSLError if one of the
    two refuses the other."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = host is not None
    for context, directory in ((server, server_directory), (client, client_directory)):
        context.load_verify_locations(directory / "ca.pem")
        context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(to_client, to_server, server_hostname=host),
             server.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
    return sides[1].getpeercert()


class Certs(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.home)
        self.authority = self.home / "authority"
        self.assertEqual(run("certs", "init", self.authority, "--cluster", "lab")[0], 0)

    def issue(self, role, name, *more, authority=None, output=None):
        output = output or self.home / name
        code, out, error = run("certs", "issue", authority or self.authority, "--role", role,
                               "--name", name, "--output", output, "-o", "json", *more)
        self.assertEqual(code, 0, error)
        return output, json.loads(out)

    def test_a_server_and_a_client_accept_each_other(self):
        server, _ = self.issue("coordinator", "c", "--host", "node-1.lab", "--host", "10.0.0.7")
        client, answer = self.issue("worker", "worker-0", "--days", "2")
        self.assertEqual(answer["identity"], "spiffe://lab/worker/worker-0")
        for host in ("node-1.lab", "10.0.0.7", None):
            seen = handshake(server, client, host)
            self.assertEqual(seen["subjectAltName"], (("URI", "spiffe://lab/worker/worker-0"),))
            self.assertEqual(seen["serialNumber"].lower().lstrip("0"), answer["serial"].lstrip("0"))
            self.assertEqual(ssl.cert_time_to_seconds(seen["notAfter"]), answer["not_after"])
        with self.assertRaises(ssl.SSLCertVerificationError):
            handshake(server, client, "node-2.lab")

    def test_parties_of_another_authority_are_refused(self):
        other = self.home / "other"
        self.assertEqual(run("certs", "init", other, "--cluster", "lab")[0], 0)
        server, _ = self.issue("coordinator", "c")
        client, _ = self.issue("operator", "o", authority=other)
        with self.assertRaises(ssl.SSLError):
            handshake(server, client, None)
        # Also one that trusts the server's authority.
        shutil.copy(server / "ca.pem", client / "ca.pem")
        with self.assertRaises(ssl.SSLError):
            handshake(server, client, None)

    def test_keys_are_for_their_owner_only(self):
        server, _ = self.issue("coordinator", "c")
        for key in (self.authority / "authority.key", server / "key.pem"):
            self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)

    def test_renewal_keeps_a_directory_of_the_same_identity_only(self):
        server, first = self.issue("coordinator", "c")
        _, second = self.issue("coordinator", "c")
        self.assertNotEqual(first["serial"], second["serial"])
        code, _, error = run("certs", "issue", self.authority, "--role", "operator", "--name", "c",
                             "--output", server)
        self.assertEqual(code, 2)
        self.assertIn("is not a certificate of spiffe://lab/operator/c", error)
        code, _, error = run("certs", "init", self.authority)
        self.assertEqual(code, 2)
        self.assertIn("exists and is not empty", error)
        self.assertTrue(handshake(server, server, None))


if __name__ == "__main__":
    unittest.main()
