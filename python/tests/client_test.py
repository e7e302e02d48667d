"""The client against a coordinator whose answers the test states: retries, watches, TLS."""

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import socket
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

import grpc

import troupe
from fake import Authority, FakeCoordinator, end, event, silence, step
from troupe.v1 import checkpoint_pb2


TOKEN = f"troupe~lab~{'0a' * 8}~{'1b' * 32}"


def brief(update):
    if isinstance(update, troupe.StepEvent):
        return (update.step, update.group_epoch)
    return update.event if isinstance(update, troupe.JobEvent) else str(update.state)


def unused_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class CallTest(unittest.TestCase):
    def test_a_call_is_repeated_until_the_coordinator_is_back(self):
        port = unused_port()
        back = contextlib.ExitStack()
        self.addCleanup(back.close)
        timer = threading.Timer(
            0.5, lambda: back.enter_context(FakeCoordinator(port=port)))
        timer.start()
        with troupe.Client(f"127.0.0.1:{port}") as client:
            self.assertEqual(client.get("a").name, "jobs/a")
        timer.join()

    def test_a_submission_is_repeated_with_the_same_request_id(self):
        with FakeCoordinator() as server, troupe.Client(server.address) as client:
            server.unavailable = 2
            self.assertEqual(client.submit({"name": "a"}), "jobs/a")
            self.assertEqual(len(server.requests), 3)
            self.assertEqual(len({request.request_id for request in server.requests}), 1)
            self.assertGreater(len(server.requests[0].request_id), 20)

    def test_what_a_coordinator_refuses_has_its_place_in_the_job_file(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "job.yaml")
        path.write_text("name: a\noptimizer: {lr: -1}\n")
        with FakeCoordinator() as server, troupe.Client(server.address) as client:
            server.violation = ("optimizer.lr", "is -1, not in (0, ∞)")
            for job, overrides, place in ((path, {}, f" ({path}:2:13)"),
                                          (path, {"optimizer.lr": -1}, ""),
                                          ({"optimizer": {"lr": -1}}, {}, "")):
                with self.assertRaises(troupe.InvalidJob) as caught:
                    client.submit(job, overrides=overrides)
                text = f"is -1, not in (0, ∞){place}"
                self.assertEqual(caught.exception.message, f"optimizer.lr {text}")
                self.assertEqual(caught.exception.violations, (("optimizer.lr", text),))

    def test_a_call_that_changes_more_the_second_time_is_not_repeated(self):
        with FakeCoordinator() as server, troupe.Client(server.address) as client:
            server.unavailable = 1
            with self.assertRaisesRegex(troupe.Unavailable, "restarting"):
                client.delete("a")
            self.assertEqual(len(server.requests), 1)

    def test_a_coordinator_that_stays_away_is_named_after_the_timeout(self):
        address = f"127.0.0.1:{unused_port()}"
        with troupe.Client(address, timeout=0.5) as client:
            with self.assertRaisesRegex(troupe.Unavailable, address):
                client.get("a")
            with self.assertRaisesRegex(troupe.Unavailable, address):
                client.delete("a")

    def test_all_pages_are_listed(self):
        with FakeCoordinator() as server, troupe.Client(server.address) as client:
            self.assertEqual([job.name for job in client.list(page_size=2)],
                             [f"jobs/{i}" for i in range(5)])
            self.assertEqual(len(server.requests), 3)

    def test_a_list_whose_page_token_comes_again_ends_with_an_error(self):
        with FakeCoordinator() as server, troupe.Client(server.address) as client:
            server.repeats_token = True
            with self.assertRaisesRegex(troupe.TroupeError, "repeats the page token '2'") as raised:
                list(client.list(page_size=2))
            self.assertEqual(raised.exception.code, "INTERNAL")
            self.assertEqual(len(server.requests), 2)

    def test_an_address_is_needed(self):
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("TROUPE_COORDINATOR", None)
            with self.assertRaisesRegex(ValueError, "TROUPE_COORDINATOR"):
                troupe.Client()
        with self.assertRaisesRegex(ValueError, "HOST:PORT"):
            troupe.Client("localhost")

    def test_the_environment_names_the_coordinator(self):
        with FakeCoordinator() as server:
            with unittest.mock.patch.dict(os.environ, TROUPE_COORDINATOR=server.address):
                with troupe.Client() as client:
                    self.assertEqual(client.get("jobs/a").state, "RUNNING")

    def test_a_token_is_not_sent_in_plaintext(self):
        for address in ("10.0.0.1:7000", "127.0.0.1:7000"):
            with self.assertRaisesRegex(ValueError, "plaintext"):
                troupe.Client(address, token=TOKEN)


class CheckpointTest(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.server = stack.enter_context(FakeCoordinator())
        self.client = stack.enter_context(troupe.Client(self.server.address))
        self.server.checkpoints = [
            checkpoint_pb2.CheckpointRecord(step=step, state=state, reason=f"reason {step}")
            for step, state in ((1, checkpoint_pb2.CHECKPOINT_STATE_COMMITTED),
                                (2, checkpoint_pb2.CHECKPOINT_STATE_QUARANTINED),
                                (3, checkpoint_pb2.CHECKPOINT_STATE_COMMITTED),
                                (4, checkpoint_pb2.CHECKPOINT_STATE_ABORTED))]

    def test_the_committed_ones_of_all_pages_are_listed(self):
        self.assertEqual([each.step for each in self.client.checkpoints("a")], [1, 3])
        self.assertEqual(len(self.server.requests), 4)
        self.assertEqual(self.server.requests[0].job, "jobs/a")
        self.assertEqual([(each.step, each.state, each.reason)
                          for each in self.client.checkpoints("a", quarantined=True)][1],
                         (2, "QUARANTINED", "reason 2"))

    def test_one_that_is_not_committed_is_an_error(self):
        with self.assertRaisesRegex(troupe.TroupeError, "not committed: reason 4") as raised:
            self.client.create_checkpoint("a")
        self.assertEqual(raised.exception.code, "ABORTED")
        del self.server.checkpoints[-1]
        self.assertEqual(self.client.create_checkpoint("a").step, 3)

    def test_one_is_pinned_by_its_step_path_or_record(self):
        self.assertTrue(self.client.pin_checkpoint("a", 3).pinned)
        self.client.pin_checkpoint("a", "/k/3")
        record = troupe.CheckpointRecord(path="/k/4")
        self.assertFalse(self.client.pin_checkpoint("a", record, pinned=False).pinned)
        self.assertEqual([(each.job, each.step, each.path) for each in self.server.requests],
                         [("jobs/a", 3, ""), ("jobs/a", 0, "/k/3"), ("jobs/a", 0, "/k/4")])


class InsecureTest(unittest.TestCase):
    """A coordinator that runs with --insecure: one warning for a channel."""

    def use(self, what, client):
        if what == "call":
            client.get("a")
        elif what == "stream":
            list(client.watch("a"))
        else:
            with self.assertRaises(troupe.Unavailable):
                client.delete("a")

    def test_the_first_answer_is_followed_by_a_warning_of_the_line_that_called(self):
        for what in 2 * ("call", "refused call", "stream"):
            with FakeCoordinator([[step(1), end()]]) as server:
                server.insecure = True
                server.unavailable = 1 if what == "refused call" else 0
                with troupe.Client(server.address) as client:
                    with self.assertWarnsRegex(
                            troupe.InsecureWarning,
                            f"{server.address} runs with --insecure") as shown:
                        self.use(what, client)
                    self.assertEqual(len(shown.warnings), 1, what)
                    self.assertEqual(shown.filename, __file__, what)
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")
                        client.get("a")

    def test_other_coordinators_and_errors_without_an_answer_do_not_warn(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with FakeCoordinator([[step(1), end()]]) as server:
                with troupe.Client(server.address) as client:
                    client.get("a")
                    self.assertEqual(len(list(client.watch("a"))), 2)
            with troupe.Client(f"127.0.0.1:{unused_port()}", timeout=0.3) as client:
                with self.assertRaises(troupe.Unavailable):
                    client.get("a")


class TokenFileTest(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-token-"))
        self.addCleanup(shutil.rmtree, self.home)
        self.path = self.home / "token"

    def test_a_file_that_others_may_use_is_refused(self):
        self.path.write_text(TOKEN)
        for mode in (0o644, 0o640, 0o620):
            self.path.chmod(mode)
            with self.assertRaisesRegex(ValueError, f"{mode:04o}.*chmod 600") as refused:
                troupe.Client("h:1", self.home, token_file=self.path)
            self.assertNotIn(TOKEN, str(refused.exception))

    def test_a_file_without_a_whole_token_is_refused(self):
        for text in ("", TOKEN[:-1], TOKEN + "0", "\xff"):
            self.path.write_text(text)
            self.path.chmod(0o600)
            with self.assertRaisesRegex(ValueError, "no whole token"):
                troupe.Client("h:1", self.home, token_file=self.path)
        with self.assertRaisesRegex(ValueError, "not whole"):
            troupe.Client("h:1", self.home, token="t")
        with self.assertRaises(FileNotFoundError):
            troupe.Client("h:1", self.home, token_file=self.home / "absent")
        with self.assertRaisesRegex(ValueError, "more than 4096"):
            self.path.write_text(TOKEN + " " * 4096)
            troupe.Client("h:1", self.home, token_file=self.path)
        with self.assertRaisesRegex(ValueError, "either token or token_file"):
            troupe.Client("h:1", self.home, token=TOKEN, token_file=self.path)


    def test_a_fifo_in_the_place_of_a_token_or_certificate_is_not_waited_for(self):
        fifo = self.home / "fifo"
        os.mkfifo(fifo, 0o600)
        with self.assertRaisesRegex(ValueError, "not a regular file"):
            troupe.Client("h:1", self.home, token_file=fifo)
        for name in ("ca.pem", "cert.pem", "key.pem"):
            (self.home / name).write_text("")
        os.mkfifo(self.home / "next")
        (self.home / "next").replace(self.home / "ca.pem")
        with FakeCoordinator() as server, troupe.Client(server.address, self.home) as client:
            with self.assertRaisesRegex(troupe.Untrusted, "not a regular file"):
                client.get("a")


class WatchTest(unittest.TestCase):
    def watch(self, *streams, from_step=0):
        with FakeCoordinator(streams) as server, troupe.Client(server.address) as client:
            updates = [brief(update) for update in client.watch("a", from_step)]
            return updates, [request.from_step for request in server.requests]

    def test_a_watch_continues_after_the_last_step_and_repeats_nothing(self):
        updates, starts = self.watch(
            [event("STARTED"), step(1), step(2), event("CHECKPOINT_COMMITTED", 2, time=2)],
            [event("CHECKPOINT_COMMITTED", 2, time=2), step(3)],
            [step(4), event("SUCCEEDED", 4, time=3), end()])
        self.assertEqual(updates, ["STARTED", (1, 1), (2, 1), "CHECKPOINT_COMMITTED", (3, 1),
                                   (4, 1), "SUCCEEDED", "SUCCEEDED"])
        self.assertEqual(starts, [0, 3, 4])

    def test_a_step_that_is_repeated_after_a_recovery_comes_again(self):
        updates, _ = self.watch([step(1), step(2), step(3), step(2, 2), step(3, 2), end()])
        self.assertEqual(updates, [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), "SUCCEEDED"])

    def test_steps_that_were_repeated_while_the_coordinator_was_away_are_read(self):
        updates, starts = self.watch(
            [step(1), step(2), step(3)],
            [step(4, 2)],
            [step(1), step(2, 2), step(3, 2), step(4, 2), step(5, 2), end()])
        self.assertEqual(updates, [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (4, 2), (5, 2),
                                   "SUCCEEDED"])
        self.assertEqual(starts, [0, 4, 0])

    def test_a_watch_begins_at_the_given_step(self):
        self.assertEqual(self.watch([step(7)], [step(8), end()], from_step=7),
                         ([(7, 1), (8, 1), "SUCCEEDED"], [7, 8]))

    def test_a_watch_of_an_unknown_job_ends_at_once(self):
        with FakeCoordinator() as server, troupe.Client(server.address) as client:
            server.streams = [
                lambda context: context.abort(grpc.StatusCode.NOT_FOUND, "no such job")]
            with self.assertRaisesRegex(troupe.NotFound, "no such job"):
                next(client.watch("a"))

    def test_a_watch_ends_after_its_timeout(self):
        with FakeCoordinator([silence]) as server, troupe.Client(server.address) as client:
            with self.assertRaises(troupe.DeadlineExceeded):
                list(client.watch("a", timeout=0.3))

    def test_a_final_state_of_a_newer_coordinator_is_unspecified(self):
        with FakeCoordinator([[end(4711)]]) as server, troupe.Client(server.address) as client:
            self.assertEqual(client.wait("a", timeout=10), "UNSPECIFIED")

    def test_waiting_returns_the_final_state(self):
        with FakeCoordinator([[event("FAILED"), end(7)]]) as server:
            with troupe.Client(server.address) as client:
                self.assertIs(client.wait("a"), troupe.JobState.FAILED)


class TlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-tls-"))
        cls.addClassCleanup(shutil.rmtree, cls.home)
        cls.authority = Authority(cls.home / "authority")
        cls.server = cls.authority.issue(cls.home / "server", "lab/coordinator/main")
        cls.user = cls.authority.issue(cls.home / "user", "lab/submitter/ann")

    def get(self, server_folder, client_folder, timeout=1.0):
        with FakeCoordinator(tls=server_folder) as server:
            with troupe.Client(server.address, client_folder, timeout=timeout) as client:
                return client.get("a").name

    def test_a_coordinator_is_known_by_its_identity_whatever_its_host(self):
        self.assertEqual(self.get(self.server, self.user, 10), "jobs/a")
        for i, host in enumerate(("DNS:host.example", "DNS:*.example", "IP:127.0.0.1",
                                  "IP:10.0.0.1")):
            named = self.authority.issue(self.home / f"named{i}", "lab/coordinator/b", host=host)
            self.assertEqual(self.get(named, self.user, 10), "jobs/a", host)

    def test_another_server_of_the_authority_is_refused(self):
        worker = self.authority.issue(self.home / "worker", "lab/worker/w0", "main",
                                      "DNS:localhost")
        with self.assertRaisesRegex(troupe.Untrusted,
                                    "is spiffe://lab/worker/w0, not spiffe://lab/coordinator/"):
            self.get(worker, self.user)
        other = self.authority.issue(self.home / "other", "field/coordinator/main")
        with self.assertRaisesRegex(troupe.Untrusted, "not spiffe://lab/coordinator/NAME"):
            self.get(other, self.user)

    def test_a_server_of_another_authority_is_refused(self):
        foreign = Authority(self.home / "foreign").issue(self.home / "fs", "lab/coordinator/main")
        with self.assertRaisesRegex(troupe.Untrusted, "CERTIFICATE_VERIFY_FAILED"):
            self.get(foreign, self.user)

    def test_a_client_of_another_authority_is_refused(self):
        folder = Authority(self.home / "foreign2").issue(self.home / "fu", "lab/submitter/ann")
        shutil.copy(self.user / "ca.pem", folder / "ca.pem")
        with self.assertRaisesRegex(troupe.Untrusted, "whose certificate it does not accept"):
            self.get(self.server, folder)

    def test_a_token_needs_the_authority_alone_and_is_sent_with_each_call(self):
        folder = self.home / "token"
        folder.mkdir()
        shutil.copy(self.user / "ca.pem", folder)
        (folder / "token").write_text(TOKEN + "\n")
        (folder / "token").chmod(0o600)
        with FakeCoordinator([[step(1), end()]], tls=self.server,
                             needs_certificate=False) as server:
            with troupe.Client(server.address, folder, token_file=folder / "token") as client:
                client.get("a")
                self.assertEqual(len(list(client.watch("a"))), 2)
            with unittest.mock.patch.dict(os.environ, TROUPE_TOKEN_FILE=str(folder / "token")):
                with troupe.Client(server.address, self.user) as client:
                    client.get("a")
            self.assertEqual([metadata["authorization"] for metadata in server.metadata],
                             3 * [f"Bearer {TOKEN}"])

    def token_folder(self, name):
        """Makes a folder with an authority and a token; returns the token's path and a function
        that replaces the file."""
        folder = self.home / name
        folder.mkdir()
        shutil.copy(self.user / "ca.pem", folder)

        def replace(text):
            (folder / "next").write_text(text)
            (folder / "next").chmod(0o600)
            (folder / "next").replace(folder / "token")

        replace(TOKEN)
        return folder / "token", replace

    def test_a_token_file_that_is_replaced_is_read_again(self):
        path, replace = self.token_folder("replaced")
        second = TOKEN.replace("1b", "2c")
        third = TOKEN.replace("1b", "3d")
        with FakeCoordinator([[step(1)], [step(2), end()]], tls=self.server,
                             needs_certificate=False) as server:
            server.broken = grpc.StatusCode.UNAUTHENTICATED
            with troupe.Client(server.address, path.parent, token_file=path) as client:
                client.get("a")
                replace(second)
                client.get("a")
                # A stream that the coordinator ends, because its token is revoked, goes on.
                updates = client.watch("a")
                self.assertEqual(brief(next(updates)), (1, 1))
                replace(third)
                self.assertEqual([brief(update) for update in updates], [(2, 1), "SUCCEEDED"])
            self.assertEqual([metadata["authorization"] for metadata in server.metadata],
                             [f"Bearer {token}" for token in (TOKEN, second, second, third)])

    def test_a_token_file_that_is_not_whole_is_tried_again(self):
        path, replace = self.token_folder("half")
        with FakeCoordinator(tls=self.server, needs_certificate=False) as server:
            with troupe.Client(server.address, path.parent, token_file=path) as client:
                client.get("a")
                replace(TOKEN[:20])
                timer = threading.Timer(0.3, replace, (TOKEN,))
                timer.start()
                client.delete("a")
                timer.join()
            with troupe.Client(server.address, path.parent, token_file=path,
                               timeout=0.5) as client:
                path.unlink()
                with self.assertRaisesRegex(troupe.Untrusted, "token"):
                    client.get("a")

    def test_a_new_token_of_another_cluster_is_not_sent_to_the_former_server(self):
        path, replace = self.token_folder("moved")
        with FakeCoordinator(tls=self.server, needs_certificate=False) as server:
            with troupe.Client(server.address, path.parent, token_file=path,
                               timeout=0.5) as client:
                client.get("a")
                replace(TOKEN.replace("lab", "field"))
                with self.assertRaisesRegex(troupe.Untrusted,
                                            "not spiffe://field/coordinator/NAME"):
                    client.get("a")
            self.assertEqual(len(server.metadata), 1)

    def test_a_server_of_another_cluster_does_not_get_the_token(self):
        other = self.authority.issue(self.home / "field", "field/coordinator/main")
        with FakeCoordinator(tls=other, needs_certificate=False) as server:
            with troupe.Client(server.address, self.user, TOKEN, timeout=1.0) as client:
                with self.assertRaisesRegex(troupe.Untrusted, "not spiffe://lab/coordinator/NAME"):
                    client.get("a")
            self.assertEqual(server.metadata, [])

    def test_a_watch_whose_certificate_has_expired_continues_with_a_new_one(self):
        def expire(context):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "expired")

        with FakeCoordinator([[step(1)], [step(2), end()]]) as server:
            server.broken = grpc.StatusCode.UNAUTHENTICATED
            with troupe.Client(server.address) as client:
                self.assertEqual([brief(update) for update in client.watch("a")],
                                 [(1, 1), (2, 1), "SUCCEEDED"])
                server.streams = [expire]
                with self.assertRaises(troupe.Unauthenticated):
                    list(client.watch("a"))

    def test_a_server_without_tls_is_refused(self):
        with FakeCoordinator() as server:
            with troupe.Client(server.address, self.user, timeout=0.5) as client:
                with self.assertRaises(troupe.Untrusted):
                    client.get("a")

    def test_a_server_that_is_silent_in_the_handshake_is_given_up_after_the_timeout(self):
        with socket.create_server(("127.0.0.1", 0)) as server:  # accepts, and never answers
            with troupe.Client(f"127.0.0.1:{server.getsockname()[1]}", self.user,
                               timeout=0.5) as client:
                for call, error in ((lambda: client.get("a"), troupe.Unavailable),
                                    (lambda: client.resume("a"), troupe.Unavailable),
                                    (lambda: list(client.logs("a")), troupe.Unavailable),
                                    (lambda: client.wait("a", timeout=0.5),
                                     troupe.DeadlineExceeded)):
                    begin = time.monotonic()
                    with self.assertRaises(error):
                        call()
                    self.assertLess(time.monotonic() - begin, 5)

    def test_a_handshake_of_another_thread_is_not_awaited_beyond_the_timeout(self):
        with socket.create_server(("127.0.0.1", 0)) as server, \
                troupe.Client(f"127.0.0.1:{server.getsockname()[1]}", self.user,
                              timeout=0.5) as client, \
                concurrent.futures.ThreadPoolExecutor(1) as other:
            waits = other.submit(client.wait, "a", timeout=4)
            with server.accept()[0]:  # it waits for the handshake
                with self.assertRaises(troupe.Unavailable):
                    client.get("a")
                self.assertFalse(waits.done())
            self.assertIsInstance(waits.exception(30), troupe.DeadlineExceeded)

    def test_a_missing_authority_is_named(self):
        with self.assertRaisesRegex(FileNotFoundError, "ca.pem"):
            troupe.Client("localhost:1", self.home)

    def test_a_coordinator_that_returns_with_a_new_certificate_is_reached(self):
        with FakeCoordinator([[step(1)]], tls=self.server) as server:
            port = server.port
            client = troupe.Client(server.address, self.user)
            self.addCleanup(client.close)
            updates = client.watch("a")
            self.assertEqual(brief(next(updates)), (1, 1))
        renewed = self.authority.issue(self.home / "renewed", "lab/coordinator/main")
        with FakeCoordinator([[step(2), end()]], port, renewed):
            self.assertEqual([brief(update) for update in updates], [(2, 1), "SUCCEEDED"])

    def test_a_call_that_is_not_repeated_reaches_a_coordinator_with_a_new_certificate(self):
        with FakeCoordinator(tls=self.server) as server:
            port = server.port
            client = troupe.Client(server.address, self.user)
            self.addCleanup(client.close)
            client.get("a")
        replaced = self.authority.issue(self.home / "replaced-server", "lab/coordinator/main")
        with FakeCoordinator([], port, replaced) as server:
            self.assertEqual(client.delete("a").name, "jobs/a")
            self.assertEqual(len(server.requests), 1)

    def test_files_with_the_former_size_and_time_are_read_too(self):
        folder = self.home / "copied"
        certificates = []
        with FakeCoordinator(tls=self.server) as server:
            for _ in range(2):
                made = self.authority.issue(self.home / "made", "lab/submitter/ann")
                for name in ("ca.pem", "cert.pem", "key.pem"):
                    text = (made / name).read_text()
                    (made / name).write_text(text + (8192 - len(text)) * "\n")
                    os.utime(made / name, (1, 1))
                certificates.append((made / "cert.pem").read_bytes().strip())
                if not folder.exists():
                    made.rename(folder)
                    client = troupe.Client(server.address, folder)
                    self.addCleanup(client.close)
                else:
                    for name in ("cert.pem", "key.pem"):
                        (made / name).replace(folder / name)
                client.get("a")
            self.assertEqual([[each.strip() for each in found] for found in server.certificates],
                             [[each] for each in certificates])

    def test_certificates_that_change_are_read_again(self):
        folder = self.home / "rotated"
        shutil.copytree(self.user, folder)
        with FakeCoordinator(tls=self.server) as server:
            with troupe.Client(server.address, folder) as client:
                client.get("a")
                # Half of a rotation: the new certificate does not fit the old key.
                old_key = (folder / "key.pem").read_bytes()
                self.authority.issue(folder, "lab/submitter/ann")
                new_key = (folder / "key.pem").read_bytes()
                (folder / "key.pem").write_bytes(old_key)
                timer = threading.Timer(0.3, (folder / "key.pem").write_bytes, (new_key,))
                timer.start()
                client.get("a")
                self.assertEqual(len(server.requests), 2)
                timer.join()


if __name__ == "__main__":
    unittest.main()
