"""A worker that joins with a token, and whose short-lived certificate is renewed under a job."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import BIN, run, wait_until
from tls_test import SLOW, TlsCluster, init_authority, issue, steps_of

WORKER, OPERATOR = "worker-0", "olga"
LIFE_HOURS = 0.01  # 36 s: a renewal has 12 s before the former certificate expires


class JoinedCluster(TlsCluster):
    """A coordinator with an authority, and one worker, which has joined with a token."""

    def __init__(self, environment=None, life_hours=LIFE_HOURS):
        super().__init__(environment=environment or SLOW)
        self.coordinator_flags = ("--authority", self.authority, "--worker-certificate-hours",
                                  life_hours)
        shutil.rmtree(self.tls(WORKER))
        code, out, err = run("certs", "issue", self.authority, "--role", "operator", "--name",
                             OPERATOR, "--output", self.tls(OPERATOR))
        if code != 0:
            raise AssertionError(f"certs issue: {code} {out}{err}")
        self.token = self.home / "token"
        self.joined = None

    def start_workers(self):
        code, out, err = run("certs", "token", "--name", WORKER, *self.arguments(OPERATOR))
        if code != 0:
            raise AssertionError(f"certs token: {code} {out}{err}")
        self.token.write_text(out)
        code, out, err = self.join(self.tls(WORKER))
        if code != 0:
            raise AssertionError(f"certs join: {code} {out}{err}")
        self.joined = json.loads(out)
        self.start_worker(WORKER)

    def join(self, directory):
        return run("certs", "join", "--coordinator", self.address, "--token-file", self.token,
                   "--output", directory, "-o", "json")

    def records(self):
        return [json.loads(line) for line in self.audit_log().read_text().splitlines()]


class Join(unittest.TestCase):
    maxDiff = None

    def test_a_certificate_is_renewed_under_a_running_job(self):
        with JoinedCluster() as cluster:
            job = cluster.submit("joined", steps=100000, interval=0,
                                 parallelism="tensor_parallel_degree: 1")
            with cluster.watching(job) as ended:
                cluster.wait_for_step(job, 3)
                before = cluster.describe(job)
                wait_until(lambda: " is renewed: " in cluster.log(WORKER).read_text(),
                           f"a renewal\n{cluster.logs()}", 60)
                wait_until(lambda: time.time() > cluster.joined["not_after"] + 1,
                           "the end of the first certificate", 60)
                cluster.wait_for_step(job, cluster.describe(job)["step"] + 20)
                after = cluster.describe(job)
                self.assertEqual(cluster.troupe("cancel", job, "--checkpoint")[0], 0)
                code, watched = ended()
            self.assertEqual(code, 1, cluster.logs())
            ranks = [rank["pid"] for rank in before["ranks"]]
            self.assertEqual([rank["pid"] for rank in after["ranks"]], ranks)
            self.assertEqual((after["group_epoch"], after["restarts"]), (1, 0))
            last = cluster.checkpoints(job)[-1]["step"]
            self.assertEqual(steps_of(watched), list(range(1, last + 1)))
            self.assertIsNone(cluster.processes[WORKER].poll())
            self.check_audit(cluster)

    def check_audit(self, cluster):
        service = "/troupe.v1.EnrollmentService"
        worker = f"spiffe://lab/worker/{WORKER}"
        self.assertEqual(cluster.joined["identity"], worker)
        seen = [(record["outcome"], record["rpc"], record["target"])
                for record in cluster.records()]
        self.assertIn(("ALLOWED", f"{service}/CreateJoinToken", f"workers/{WORKER}"), seen)
        self.assertIn(("ALLOWED", f"{service}/Join", f"workers/{WORKER}"), seen)
        self.assertIn(("ALLOWED", f"{service}/Renew", ""), seen)
        # The session went over to the new certificate before the former one expired.
        self.assertEqual([record for record in cluster.records()
                          if record["outcome"] == "DENIED"], [])
        code, out, err = cluster.join(cluster.home / "again")
        self.assertEqual((code, out), (1, ""), err)
        self.assertIn("was used at", err)
        self.assertFalse((cluster.home / "again").exists())
        self.assertEqual(cluster.records()[-1]["outcome"], "DENIED")
        self.assertEqual(run("audit", "verify", cluster.audit_log())[0], 0)


class BadAuthority(unittest.TestCase):
    def refuse(self, reason, *flags):
        done = subprocess.run(
            [BIN / "troupe-coordinator", "--listen", "127.0.0.1:0", "--data-dir",
             self.home / "data", *flags], capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(reason, done.stderr)
        self.assertRegex(done.stderr, "--authority|open .*/absent")

    def test_an_authority_that_cannot_sign_ends_the_coordinator(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.home)
        authority, other = self.home / "authority", self.home / "other"
        init_authority(authority)
        init_authority(other)
        issue(authority, "main", self.home / "tls")
        tls = ("--tls-dir", self.home / "tls")
        self.refuse("requires --tls-dir", "--authority", authority)
        self.refuse("requires --authority", "--worker-certificate-hours", "5", *tls)
        self.refuse("authority.pem: cannot be read", "--authority", self.home / "absent", *tls)
        self.refuse("has not signed", "--authority", other, *tls)
        (authority / "authority.key").chmod(0o644)
        self.refuse("authority.key: every user of this machine may read", "--authority", authority,
                    *tls, "--namespaces", self.home / "absent")
        shutil.copy(other / "authority.key", authority / "authority.key")
        self.refuse("the authority's key does not belong to its certificate", "--authority",
                    authority, *tls)
        (authority / "authority.key").write_text("")
        self.refuse("authority.key: the file is empty", "--authority", authority, *tls)
        (authority / "authority.pem").write_text("")
        self.refuse("authority.pem: the file is empty", "--authority", authority, *tls)


if __name__ == "__main__":
    unittest.main()
