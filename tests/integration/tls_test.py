"""A cluster whose processes have certificates: what each role may do, and the replacement of
certificates and authorities under a running job."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from harness import BIN, TROUPE, Cluster, failpoint_flags, run, wait_until

# Each step takes at least 20 ms, so that the job outlasts what a test does to it.
SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:20"}
WORKERS = ("worker-0", "worker-1")
SUBMITTER, VIEWER = "ann", "vera"
HOLDERS = {"main": "coordinator", **dict.fromkeys(WORKERS, "worker"), SUBMITTER: "submitter",
           VIEWER: "viewer"}
END_SECONDS = 10  # a process that was asked to end is killed after this time


def init_authority(directory):
    code, out, err = run("certs", "init", directory, "--cluster", "lab")
    if code != 0:
        raise AssertionError(f"certs init: {code} {out}{err}")


def issue_as(authority, role, name, output):
    code, out, err = run("certs", "issue", authority, "--role", role, "--name", name, "--output",
                         output)
    if code != 0:
        raise AssertionError(f"certs issue: {code} {out}{err}")


def issue(authority, name, output):
    issue_as(authority, HOLDERS[name], name, output)


def ready_workers(listed):
    """Returns the names of the workers that `troupe workers -o json` lists as ready."""
    code, out, err = listed
    if code != 0:
        raise AssertionError(f"workers: {code} {out}{err}")
    return tuple(worker["name"] for worker in json.loads(out)["workers"]
                 if worker["state"] == "READY")


def is_accepted(address, directory):
    """Returns whether server and client accept each other's certificates on a new connection."""
    context = ssl.create_default_context(cafile=directory / "ca.pem")
    context.check_hostname = False
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    context.set_alpn_protocols(["h2"])
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as plain:
        try:
            with context.wrap_socket(plain) as connection:
                # A client learns only by reading that the server refuses its certificate. The
                # first bytes of a server that does not are its HTTP/2 settings.
                return len(connection.recv(1)) == 1
        except (ssl.SSLError, ConnectionResetError):
            return False


def here(address):
    """The address or URL, by which this host reaches a process that listens on all interfaces."""
    return address.replace("0.0.0.0", "127.0.0.1")


def read_page(url, directory=None):
    """Returns code and text of a page, read with the certificate in the directory."""
    context = None
    if url.startswith("https:"):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if directory:
        context = ssl.create_default_context(cafile=directory / "ca.pem")
        context.check_hostname = False
        context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    try:
        with urllib.request.urlopen(here(url), timeout=10, context=context) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


class TlsCluster(Cluster):
    """A coordinator and two workers with TLS on the loopback; commands have the submitter's
    certificate."""

    coordinator_flags = ()

    def __init__(self, environment=None, flags=()):
        # A machine with too much to do must not look like a lost worker.
        super().__init__(environment=environment, detection_seconds=10)
        self.authority = self.home / "authority"
        self.processes = {}
        self.address = "127.0.0.1:0"
        self.flags = flags  # of the coordinator and the workers
        self.ready = {}  # what the coordinator printed
        (self.directory / "logs").mkdir(parents=True)
        init_authority(self.authority)
        for name in HOLDERS:
            issue(self.authority, name, self.tls(name))

    def tls(self, name):
        return self.home / "tls" / name

    def log(self, name):
        return self.directory / "logs" / f"{name}.log"

    def security(self, name):
        """The flags by which a process or command of this name is secure."""
        return "--tls-dir", self.tls(name)

    def start(self, name, *command, stdout=subprocess.DEVNULL):
        command = [*command, *self.security(name), *self.flags]
        with self.log(name).open("a") as log:
            self.processes[name] = subprocess.Popen(
                [*map(str, command), *failpoint_flags(self.environment)], stdout=stdout,
                stderr=log, env={**os.environ, **self.environment})
        return self.processes[name]

    def start_coordinator(self):
        path = self.directory / "ready"
        with path.open("w") as ready:
            self.start("main", BIN / "troupe-coordinator", "--listen", self.address, "--data-dir",
                       self.directory / "coordinator", "--detection-seconds",
                       self.detection_seconds, *self.coordinator_flags, stdout=ready)
        wait_until(lambda: path.read_text().endswith("\n"), f"a coordinator\n{self.logs()}")
        self.ready = json.loads(path.read_text())
        self.address = here(self.ready["address"])

    def start_workers(self):
        for name in WORKERS:
            self.start_worker(name)

    def start_worker(self, name):
        self.start(name, BIN / "troupe-worker", "--coordinator", self.address, "--name", name,
                   "--devices", "cpu:1", "--host", "127.0.0.1", "--data-dir",
                   self.directory / name, "--peak-dir", self.directory, "--log-dir",
                   self.directory / "logs", "--drain-seconds", "0")

    def up(self):
        try:
            self.start_coordinator()
            self.start_workers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def down(self):
        # Workers without a coordinator would wait for it.
        for name in sorted(self.processes, key="main".__eq__):
            self.stop(name)

    def stop(self, name):
        process = self.processes.pop(name)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=END_SECONDS)
        process.kill()
        process.wait(timeout=END_SECONDS)

    def arguments(self, name=SUBMITTER):
        return "--coordinator", self.address, *self.security(name)

    def troupe(self, *arguments, timeout=60, environment=None):
        return run(*arguments, *self.arguments(), timeout=timeout, environment=environment)

    @contextlib.contextmanager
    def watching(self, job):
        """Watches the job with one command; yields a function that waits for its end, and returns
        its exit code and what it printed."""
        path = self.home / "watched"
        with path.open("w") as output, self.log("watch").open("w") as log:
            command = [TROUPE, "watch", job, "-o", "json", *map(str, self.arguments())]
            process = subprocess.Popen(command, stdout=output, stderr=log)

        def ended():
            wait_until(lambda: process.poll() is not None, f"the end of watching {job}")
            return process.returncode, [json.loads(line) for line in path.read_text().splitlines()]

        try:
            yield ended
        finally:
            process.kill()
            process.wait(timeout=END_SECONDS)

    def audit_log(self):
        return self.directory / "coordinator" / "audit.log"


class OpenCluster(TlsCluster):
    """A coordinator that listens on all interfaces without TLS, and its workers."""

    def __init__(self, flags=()):
        super().__init__(flags=flags)
        self.address = "0.0.0.0:0"

    def security(self, name):
        return ("--insecure",) if name in ("main", *WORKERS) else ()


def steps_of(watched):
    return [line["step"] for line in watched if line["type"] == "step"]


class Roles(unittest.TestCase):
    maxDiff = None

    def check_audit(self, cluster):
        path = cluster.audit_log()
        lines = path.read_text().splitlines(keepends=True)
        seen = [(record["outcome"], record["identity"], record["rpc"], record["target"])
                for record in map(json.loads, lines)]
        self.assertIn(("ALLOWED", "spiffe://lab/submitter/ann", "/troupe.v1.JobService/CreateJob",
                       "jobs/roles"), seen)
        self.assertIn(("DENIED", "spiffe://lab/viewer/vera", "/troupe.v1.JobService/CancelJob", ""),
                      seen)
        code, out, err = run("audit", "verify", path)
        self.assertEqual(code, 0, out + err)
        self.assertIn(f"{len(lines)} records, intact", out)
        damaged = cluster.home / "audit.log"
        damaged.write_text("".join(lines[1:]))
        code, out, err = run("audit", "verify", damaged)
        self.assertEqual(code, 1, out + err)
        self.assertIn(f"damaged after 0 records: {damaged}: line 1: ", out)

    def test_a_submitter_trains_a_viewer_cannot_cancel_and_an_outsider_gets_no_connection(self):
        with TlsCluster(environment=SLOW) as cluster:
            outsider = subprocess.Popen([TROUPE, "list", "--coordinator", cluster.address],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(outsider.kill)
            job = cluster.submit("roles", steps=40, interval=20)
            with cluster.watching(job) as ended:
                cluster.wait_for_state(job, "RUNNING")
                code, out, err = run("cancel", job, *cluster.arguments(VIEWER))
                self.assertEqual((code, out), (1, ""), err)
                self.assertIn("/troupe.v1.JobService/CancelJob requires the role submitter or "
                              "operator; vera has the role viewer", err)
                code, watched = ended()
            self.assertEqual(code, 0, cluster.logs())
            self.assertEqual(steps_of(watched), list(range(1, 41)))
            self.assertEqual(watched[-1], {"type": "end", "state": "SUCCEEDED"})
            code, out, err = run("describe", job, "-o", "json", *cluster.arguments(VIEWER))
            self.assertEqual(code, 0, err)
            self.assertEqual([c["step"] for c in json.loads(out)["checkpoints"]], [20, 40])
            out, err = outsider.communicate(timeout=30)
            self.assertEqual((outsider.returncode, out), (3, ""), err)
            self.assertIn("--tls-dir", err)
            self.check_audit(cluster)

    def test_a_token_reads_until_it_is_revoked_and_a_worker_serves_unless_revoked(self):
        with TlsCluster() as cluster:
            issue_as(cluster.authority, "operator", "olga", cluster.tls("olga"))
            code, token, err = run("tokens", "create", "--name", "tom", "--role", "viewer", "--for",
                                   "1h", *cluster.arguments("olga"))
            self.assertEqual(code, 0, err)
            cluster.tls("tom").mkdir()
            shutil.copy(cluster.tls(VIEWER) / "ca.pem", cluster.tls("tom"))
            file = cluster.tls("tom") / "token"
            file.write_text(token)
            file.chmod(0o600)
            with_token = (*cluster.arguments("tom"), "--token-file", file)
            self.assertEqual(run("list", *with_token)[0], 0)
            wait_until(lambda: ready_workers(run("workers", "-o", "json", *with_token)) == WORKERS,
                       f"both workers\n{cluster.logs()}")
            code, out, err = run("certs", "revoke", "--identity", "spiffe://lab/worker/worker-1",
                                 "-o", "json", *cluster.arguments("olga"))
            self.assertEqual(code, 0, err)
            wait_until(lambda: ready_workers(run("workers", "-o", "json", *with_token)) ==
                       WORKERS[:1], f"worker-1 without a session\n{cluster.logs()}", 30)
            wait_until(lambda: time.time() >= json.loads(out)["revoked"] + 1, "the next second")
            code, _, err = run("certs", "issue", cluster.authority, "--role", "worker", "--name",
                               "worker-1", "--output", cluster.tls("worker-1"),
                               "--valid-from-now")
            self.assertEqual(code, 0, err)
            wait_until(lambda: ready_workers(run("workers", "-o", "json", *with_token)) == WORKERS,
                       f"worker-1 with its new certificate\n{cluster.logs()}", 30)
            code, _, err = run("tokens", "revoke", token.split("~")[2], *cluster.arguments("olga"))
            self.assertEqual(code, 0, err)
            code, out, err = run("list", *with_token)
            self.assertEqual((code, out), (3, ""), err)
            self.assertIn("was revoked", err)
            self.assertNotIn(token.strip().split("~")[3], cluster.logs() + err)
            self.assertNotIn(token.strip().split("~")[3], cluster.audit_log().read_text())

    def test_a_worker_with_the_certificate_of_another_one_does_not_start(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, home)
        init_authority(home / "authority")
        issue(home / "authority", "worker-0", home / "tls")
        done = subprocess.run(
            [BIN / "troupe-worker", "--coordinator", "127.0.0.1:1", "--name", "worker-1",
             "--devices", "cpu:1", "--data-dir", home / "data", "--tls-dir", home / "tls"],
            capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn('--name is "worker-1", but ', done.stderr)
        self.assertIn("is the certificate of spiffe://lab/worker/worker-0", done.stderr)


class Pages(unittest.TestCase):
    """The pages of processes over HTTP."""

    def test_metrics_off_the_loopback_are_for_readers_with_a_certificate(self):
        with TlsCluster(flags=("--metrics-listen", "0.0.0.0:0")) as cluster:
            workers = wait_until(lambda: cluster.json("workers")["workers"], "the workers")
            for url in (cluster.ready["metrics"], workers[0]["metrics"]):
                self.assertRegex(url, "^https://(0.0.0.0|127.0.0.1):")  # a worker has a --host
                code, text = read_page(url, cluster.tls(VIEWER))
                self.assertEqual(code, 200, text)
                self.assertIn("\ntroupe_insecure 0\n", text)
                code, text = read_page(url, cluster.tls("worker-0"))
                self.assertEqual(code, 403)
                self.assertIn("worker-0 has the role worker", text)
                for outside in (url, url.replace("https:", "http:")):
                    with self.assertRaises((OSError, http.client.HTTPException)):
                        read_page(outside)

    def test_health_pages_are_for_everybody(self):
        with TlsCluster(flags=("--health-listen", "0.0.0.0:0")) as cluster:
            health = f"http://{cluster.ready['health']}"
            wait_until(lambda: read_page(f"{health}/readyz") == (200, "ok\n"), "it is ready")
            self.assertEqual(read_page(f"{health}/healthz"), (200, "ok\n"))
            self.assertEqual(read_page(f"{health}/metrics")[0], 404)
            port = wait_until(lambda: re.search("are served on port ([0-9]+)",
                                                cluster.log("worker-0").read_text()),
                              "the pages of a worker")[1]
            worker = f"http://127.0.0.1:{port}"
            wait_until(lambda: read_page(f"{worker}/readyz") == (200, "ok\n"), "it is ready")
            # A worker without a coordinator lives, but nothing can run on it.
            cluster.stop("main")
            wait_until(lambda: read_page(f"{worker}/readyz") == (503, "not ok\n"), "not ready")
            self.assertEqual(read_page(f"{worker}/healthz"), (200, "ok\n"))


class Insecure(unittest.TestCase):
    """A cluster that its user permits to run without TLS shows it."""

    def test_limits_of_users_are_refused_without_tls(self):
        with tempfile.TemporaryDirectory() as home:
            for flag in ("--most-user-jobs", "--most-user-streams", "--most-user-plans"):
                done = subprocess.run(
                    [BIN / "troupe-coordinator", "--listen", "127.0.0.1:0", "--data-dir", home,
                     flag, "5"], capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{flag} requires --tls-dir", done.stderr)

    def test_it_shows_in_logs_metrics_the_first_line_and_every_command(self):
        with OpenCluster(flags=("--metrics-listen", "0.0.0.0:0")) as cluster:
            self.assertIs(cluster.ready["insecure"], True)
            job = cluster.submit("open", steps=4, interval=0)
            cluster.wait_for_state(job, "SUCCEEDED")
            workers = cluster.json("workers")["workers"]
            for url in (cluster.ready["metrics"], *(worker["metrics"] for worker in workers)):
                self.assertRegex(url, "^http://(0.0.0.0|127.0.0.1):")  # a worker has a --host
                code, text = read_page(url)
                self.assertEqual(code, 200, text)
                self.assertIn("\ntroupe_insecure 1\n", text)
            for name in cluster.processes:
                self.assertIn("runs with --insecure", cluster.log(name).read_text(), name)
            for command in (("list",), ("workers",), ("describe", job), ("watch", job)):
                code, _, err = cluster.troupe(*command)
                self.assertEqual(code, 0, err)
                self.assertIn("runs with --insecure: whoever reaches it has every role", err)


class Rotation(unittest.TestCase):
    maxDiff = None

    def bring(self, authorities, directories):
        """Makes ca.pem of each directory the certificates of these authorities."""
        text = "".join((authority / "authority.pem").read_text() for authority in authorities)
        for directory in directories:
            (directory / "ca.pem").write_text(text)

    def wait_until_used(self, cluster, times):
        """Waits until every process has begun to use new certificates so often."""
        def used():
            return all(cluster.log(name).read_text().count(" are in use") >= times
                       for name in cluster.processes)

        wait_until(used, f"new certificates in use\n{cluster.logs()}", 20)

    def replace_authority(self, cluster):
        """Follows docs/certificates.md, and shows after each step what the coordinator accepts."""
        old, new = cluster.authority, cluster.home / "new"
        directories = [cluster.tls(name) for name in HOLDERS]
        former = cluster.home / "former"
        shutil.copytree(cluster.tls(VIEWER), former)
        init_authority(new)
        self.bring([old, new], [old, new, former, *directories])
        self.wait_until_used(cluster, 1)
        for name in HOLDERS:
            issue(new, name, cluster.tls(name))
        self.wait_until_used(cluster, 2)
        self.assertTrue(is_accepted(cluster.address, former), "both authorities are trusted")
        self.bring([new], [new, *directories])
        self.wait_until_used(cluster, 3)
        wait_until(lambda: not is_accepted(cluster.address, former),
                   "certificates of the old authority refused", 20)
        # This also shows that the coordinator's own certificate is of the new authority.
        self.assertTrue(is_accepted(cluster.address, cluster.tls(VIEWER)))

    def test_certificates_and_authority_are_replaced_under_a_running_job(self):
        with TlsCluster(environment=SLOW) as cluster:
            job = cluster.submit("rotated", steps=100000, interval=0)
            with cluster.watching(job) as ended:
                cluster.wait_for_step(job, 3)
                before = cluster.describe(job)
                self.replace_authority(cluster)
                # Everybody dials again, with new certificates: the former ones are refused now.
                step = cluster.describe(job)["step"]
                cluster.stop("main")
                wait_until(lambda: "waiting for it" in cluster.log("watch").read_text(),
                           "the watching command without a coordinator")
                cluster.start_coordinator()
                cluster.wait_for_step(job, step + 10)
                after = cluster.describe(job)
                self.assertEqual(cluster.troupe("cancel", job, "--checkpoint")[0], 0)
                code, watched = ended()
            self.assertEqual(code, 1, cluster.logs())
            self.assertEqual(watched[-1], {"type": "end", "state": "CANCELLED"})
            ranks = [rank["pid"] for rank in before["ranks"]]
            self.assertEqual([rank["pid"] for rank in after["ranks"]], ranks)
            self.assertEqual((after["group_epoch"], after["restarts"]), (1, 0))
            # No step is lost or repeated, neither for the watcher nor in the history.
            last = cluster.checkpoints(job)[-1]["step"]
            self.assertGreaterEqual(last, step + 10)
            self.assertEqual(steps_of(watched), list(range(1, last + 1)))
            self.assertEqual(sorted(cluster.losses(job)), list(range(1, last + 1)))
            self.assertEqual(run("audit", "verify", cluster.audit_log())[0], 0)


if __name__ == "__main__":
    unittest.main()
