"""The coordinator and its daemons as a service: ports, addresses, limits and processes that no
longer answer."""

import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

from harness import BIN, TROUPE, Cluster, alive, kill, run, wait_until


# 127.0.0.1, ::1 and ::ffff:127.0.0.1 as /proc/net/tcp prints them.
LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


def listening_addresses(pid):
    """Returns the local addresses, IPv4 and IPv6 as in /proc/net/tcp, of the sockets on which
    process `pid` listens."""
    inodes = set()
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(descriptor)
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                addresses.append(fields[1].split(":")[0])
    return addresses


class UpTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="troupe-test-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)

    def test_a_taken_port_is_named_at_once(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            begin = time.monotonic()
            code, out, err = run("up", "--data-dir", f"{self.home}/c", "--port", port)
            self.assertLess(time.monotonic() - begin, 10)
            self.assertEqual(code, 2, out + err)
            self.assertIn(f"--port {port}", err)
            self.assertIn("another process listens", err)
            self.assertFalse(pathlib.Path(f"{self.home}/c/cluster.json").exists())

    def test_a_damaged_catalog_names_what_helps_and_does_not_wait(self):
        cluster = Cluster(workers=1, directory=self.home)
        with cluster:
            pass
        note = cluster.directory / "coordinator" / "ACKNOWLEDGED"
        note.write_text("nonsense")
        begin = time.monotonic()
        code, out, err = run("up", "--workers", 1, "--data-dir", cluster.directory)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(code, 1, out + err)
        self.assertIn("ACKNOWLEDGED", err)
        self.assertIn("remove the file", err)
        self.assertFalse((cluster.directory / "cluster.json").exists(),
                         "nothing is left to try for ever")
        note.unlink()
        with cluster:
            pass


    def pids(self, info):
        return [info["supervisor"]["pid"], info["coordinator"]["pid"],
                *(worker["pid"] for worker in info["workers"])]

    def lose_supervisor(self, cluster):
        info = cluster.info()
        kill(info["supervisor"]["pid"])
        wait_until(lambda: not alive(info["supervisor"]["pid"]), "the supervisor gone")
        return info

    def test_a_cluster_whose_supervisor_died_serves_and_is_repaired_by_up(self):
        with Cluster(workers=1, directory=self.home) as cluster:
            before = self.lose_supervisor(cluster)
            code, _, err = cluster.troupe("list")
            self.assertEqual(code, 0, err)
            self.assertIn(f"`troupe up --data-dir {cluster.directory}` repairs the cluster", err)
            # The survivors are a running cluster, which keeps its settings.
            code, _, err = cluster.troupe("up", "--detection-seconds", 7)
            self.assertEqual(code, 1, err)
            self.assertIn("troupe down", err)
            code, _, err = cluster.troupe("up")
            self.assertEqual(code, 0, err)
            after = cluster.info()
            self.assertTrue(alive(after["supervisor"]["pid"]))
            self.assertEqual(self.pids(after)[1:], self.pids(before)[1:])
            self.assertEqual(cluster.troupe("list")[1:], ("", "there are no jobs\n"))
            self.assertEqual(cluster.troupe("list", "-o", "json")[2], "")
            code, _, err = cluster.down()
            self.assertEqual(code, 0, err)
            self.assertFalse(any(map(alive, self.pids(after))))

    def test_down_stops_a_supervisor_that_has_just_replaced_a_dead_one(self):
        with Cluster(workers=1, directory=self.home) as cluster:
            left = self.lose_supervisor(cluster)
            successor = subprocess.Popen([TROUPE, "supervise", "--data-dir", cluster.directory],
                                         stderr=subprocess.PIPE, text=True)
            try:
                self.assertIn("is still running as process", successor.stderr.readline())
                code, _, err = cluster.down()
                self.assertEqual(code, 0, err)
                self.assertEqual(successor.wait(timeout=5), 0)
            finally:
                successor.kill()
                successor.communicate()
            self.assertFalse(any(map(alive, self.pids(left))))

    def test_down_stops_a_cluster_whose_file_is_damaged(self):
        with Cluster(workers=1, directory=self.home) as cluster:
            before = self.pids(cluster.info())
            file = cluster.directory / "cluster.json"
            for damage in ("nonsense", "{}", " " * (2 << 20)):
                file.write_text(damage)
                code, _, err = cluster.troupe("list")
                self.assertNotEqual(code, 0)
                self.assertIn(str(file), err)
            code, _, err = cluster.down()
            self.assertEqual(code, 0, err)
            self.assertFalse(any(map(alive, before)))
            self.assertFalse(file.exists())
            # Without a supervisor nothing is known of the cluster's processes.
            file.write_text("nonsense")
            code, _, err = cluster.down()
            self.assertEqual(code, 2, err)
            self.assertIn("no supervisor", err)
            self.assertIn("remove the file", err)
            self.assertTrue(file.exists())
            file.unlink()

    def test_the_number_of_workers_is_kept_and_can_only_grow_while_they_run(self):
        with Cluster(workers=2, directory=self.home) as cluster:
            code, _, err = cluster.troupe("up", "--workers", 1)
            self.assertEqual(code, 1, err)
            self.assertIn("--workers 2", err)
            self.assertIn("troupe down", err)
            cluster.down()
            self.assertEqual(cluster.troupe("up")[0], 0)
            self.assertEqual(len(cluster.info()["workers"]), 2)
            cluster.down()
            self.assertEqual(cluster.troupe("up", "--workers", 1)[0], 0)
            self.assertEqual(len(cluster.info()["workers"]), 1)


class LoopbackTest(unittest.TestCase):
    def test_nothing_of_a_local_cluster_listens_off_the_loopback(self):
        with Cluster(workers=2) as cluster:
            job = cluster.submit("a", steps=100000, interval=0)
            cluster.wait_for_state(job, "RUNNING")
            ranks = [rank["pid"] for rank in cluster.describe(job)["ranks"]]
            info = cluster.info()
            daemons = [info["coordinator"]["pid"]] + [worker["pid"] for worker in info["workers"]]
            seen = 0
            for pid in ranks + daemons:
                for address in listening_addresses(pid):
                    seen += 1
                    self.assertIn(address, LOOPBACK, f"process {pid}")
            self.assertGreater(seen, 3, "the coordinator and the metrics of each process listen")
            for pid in ranks:
                self.assertEqual(listening_addresses(pid), [], "a port of UCX")


def limited(soft, hard):
    """Returns a function that limits the open descriptors of a process."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class NameTest(unittest.TestCase):
    def test_a_worker_waits_for_the_name_of_its_coordinator(self):
        home = tempfile.mkdtemp(prefix="troupe-test-")
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        with subprocess.Popen([BIN / "troupe-worker", "--coordinator", "no-such-name.invalid:7000",
                               "--name", "w", "--devices", "cpu:1", "--data-dir", home,
                               "--insecure"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as worker:
            self.addCleanup(worker.kill)
            line = ""
            for line in worker.stderr:
                if "no-such-name.invalid:7000 has no address" in line:
                    break
            self.assertIn("it tries again", line)
            self.assertIsNone(worker.poll())
            worker.terminate()
            self.assertEqual(worker.wait(timeout=30), 0)


class DescriptorsTest(unittest.TestCase):
    """A separate coordinator with few descriptors, and more connections than it can have."""

    HARD = 200

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="troupe-test-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.coordinator = subprocess.Popen(
            [BIN / "troupe-coordinator", "--listen", "127.0.0.1:0", "--metrics-listen",
             "127.0.0.1:0", "--data-dir", f"{self.home}/c", "--detection-seconds", "1"],
             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            preexec_fn=limited(100, self.HARD))
        self.addCleanup(self.stop)
        started = json.loads(self.coordinator.stdout.readline())
        self.address, self.metrics = started["address"], started["metrics"]

    def stop(self):
        self.coordinator.kill()
        self.coordinator.wait()
        self.coordinator.stdout.close()

    def answers(self):
        return run("list", "--coordinator", self.address)[0] == 0

    @staticmethod
    def limits_of(process):
        """Returns the soft and the hard limit of the process's descriptors."""
        limits = pathlib.Path(f"/proc/{process.pid}/limits").read_text()
        line = next(line for line in limits.splitlines() if line.startswith("Max open files"))
        return [int(limit) for limit in line.split()[3:5]]

    def test_the_soft_limit_is_raised_to_the_hard_one(self):
        self.assertEqual(self.limits_of(self.coordinator), [self.HARD, self.HARD])

    def test_the_soft_limit_of_a_daemon_is_raised_too(self):
        folder = pathlib.Path(self.home) / "w"
        folder.mkdir()
        daemon = subprocess.Popen(
            [BIN / "troupe-worker", "--coordinator", self.address, "--name", "worker-0",
             "--devices", "cpu:1", "--data-dir", folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=limited(100, self.HARD))
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)  # cleanups run last to first
        wait_until(lambda: self.limits_of(daemon) == [self.HARD, self.HARD], "the limit is raised")

    def test_more_connections_than_descriptors_do_not_end_the_server(self):
        wait_until(self.answers, "the coordinator answering")
        host, port = self.address.split(":")
        with contextlib.ExitStack() as stack:
            for _ in range(2 * self.HARD):
                with contextlib.suppress(OSError):
                    stack.enter_context(socket.create_connection((host, int(port)), timeout=5))
            wait_until(lambda: self.metric("troupe_connections_refused_total") > self.HARD,
                       f"more than {self.HARD} connections refused")
            # The rest of the process has its descriptors: its catalog is written, its metrics are
            # served.
            self.assertLess(len(os.listdir(f"/proc/{self.coordinator.pid}/fd")), self.HARD)
        wait_until(self.answers, "the coordinator answering again")
        self.assertIsNone(self.coordinator.poll())

    def metric(self, name):
        with urllib.request.urlopen(self.metrics, timeout=10) as page:
            for line in page.read().decode().splitlines():
                if line.startswith(name + " "):
                    return float(line.split()[1])
        return 0


class GrowthTest(unittest.TestCase):
    """State that would grow without bound: ended jobs with their series, logs."""

    def series(self, url, job):
        with urllib.request.urlopen(url, timeout=10) as answer:
            return [line for line in answer.read().decode().splitlines()
                    if f'job_name="{job}"' in line]

    def names(self, *address):
        code, out, err = run("list", *address, "-o", "json")
        self.assertEqual(code, 0, err)
        return {job["name"] for job in json.loads(out)["jobs"]}

    def test_a_deleted_job_goes_with_its_series_and_checkpoints(self):
        with Cluster(workers=2) as cluster:
            for name in ("a", "b"):
                cluster.wait_for_state(cluster.submit(name), "SUCCEEDED")
            url = cluster.info()["coordinator"]["metrics"]
            self.assertTrue(self.series(url, "a"))
            before = self.series(url, "b")
            paths = [pathlib.Path(checkpoint["path"]) for checkpoint in cluster.checkpoints("a")]
            self.assertTrue(paths and all(path.exists() for path in paths))
            # The daemons may not have reported yet that the ranks of "a" are gone.
            def deleted():
                code, out, _ = cluster.troupe("delete", "a", "--checkpoints")
                return out if code == 0 else None

            self.assertEqual(wait_until(deleted, "a is deleted"), "jobs/a deleted\n")
            self.assertEqual(self.names("--data-dir", cluster.directory), {"jobs/b"})
            wait_until(lambda: not self.series(url, "a"), "the series of a are gone")
            self.assertEqual(len(self.series(url, "b")), len(before))
            self.assertFalse([path for path in paths if path.exists()])
            self.assertNotEqual(cluster.troupe("describe", "a")[0], 0)

    def test_ended_jobs_beyond_those_to_keep_go_with_their_series(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        command = [BIN / "troupe-coordinator", "--listen", "127.0.0.1:0", "--metrics-listen",
                   "127.0.0.1:0",
                   "--data-dir", f"{home}/c"]
        wrong = subprocess.run([*command, "--keep-ended", "soon"], capture_output=True, text=True,
                               timeout=60)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn('--keep-ended is "soon"', wrong.stderr)
        with subprocess.Popen([*command, "--keep-ended", "1"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as coordinator:
            self.addCleanup(coordinator.kill)
            started = json.loads(coordinator.stdout.readline())
            address = ("--coordinator", started["address"])
            writer = Cluster(directory=home)
            for name in ("a", "b", "c"):
                code, _, err = run("submit", writer.write_job(name), *address)
                self.assertEqual(code, 0, err)
                self.assertTrue(self.series(started["metrics"], name), name)
            for name in ("a", "b"):
                self.assertEqual(run("cancel", name, *address)[0], 0)
            self.assertEqual(self.names(*address), {"jobs/b", "jobs/c"})
            wait_until(lambda: not self.series(started["metrics"], "a"), "the series of a are gone")
            self.assertTrue(self.series(started["metrics"], "b"))
            coordinator.terminate()

    def test_a_full_log_is_moved_aside_and_read_across(self):
        cluster = Cluster(workers=1)
        self.addCleanup(shutil.rmtree, cluster.home, ignore_errors=True)
        up = ("up", "--workers", 1, "--data-dir", cluster.directory)
        code, out, err = run(*up, "--log-bytes", 300, "--log-files", 2)
        self.assertEqual(code, 0, out + err)
        self.addCleanup(cluster.down)
        code, out, err = run(*up, "--log-bytes", 400)
        self.assertNotEqual(code, 0)
        self.assertIn("runs with --log-bytes 300 --log-files 2", err)
        job = cluster.submit("a", steps=40, interval=2, parallelism="tensor_parallel_degree: 1")
        cluster.wait_for_state(job, "SUCCEEDED")
        logs = cluster.directory / "logs"
        files = {path.relative_to(logs).as_posix(): path.stat().st_size
                 for path in logs.rglob("*.log*")}
        self.assertIn("coordinator.log.1", files)
        self.assertNotIn("coordinator.log.3", files)
        for name, size in files.items():
            self.assertLess(size, 300 + 600, f"{name} of {files}")


class HangTest(unittest.TestCase):
    """Processes of a local cluster that are alive but no longer answer."""

    def wait_until_asked(self, metrics):
        """Waits until the supervisor, not only this test, has read the process's health."""
        own = 0

        def asked():
            nonlocal own
            with urllib.request.urlopen(metrics.replace("/metrics", "/health"), timeout=10) as page:
                text = page.read().decode()
            own += 1
            count = next(float(line.split()[1]) for line in text.splitlines()
                         if line.startswith("troupe_health_requests_total "))
            return count > own

        wait_until(asked, "the supervisor asking")

    def test_a_coordinator_that_stands_still_is_replaced_and_the_job_goes_on(self):
        with Cluster(workers=2) as cluster:
            job = cluster.submit("a", steps=2000, interval=50)
            cluster.wait_for_state(job, "RUNNING")
            stopped = cluster.info()["coordinator"]["pid"]
            self.wait_until_asked(cluster.info()["coordinator"]["metrics"])
            os.kill(stopped, signal.SIGSTOP)
            begin = time.monotonic()
            log = cluster.directory / "logs" / "supervisor.log"
            noticed = f"coordinator, process {stopped}, has shown no progress"
            wait_until(lambda: noticed in log.read_text(), "the supervisor noticing")
            wait_until(lambda: cluster.info()["coordinator"]["pid"] not in (0, stopped),
                       "another coordinator")
            self.assertGreater(time.monotonic() - begin, 5, "it was given time")
            self.assertFalse(alive(stopped))
            cluster.wait_for_state(job, "RUNNING", "SUCCEEDED")

    def test_a_daemon_that_stands_still_is_replaced(self):
        with Cluster(workers=2) as cluster:
            stopped = cluster.info()["workers"][1]["pid"]
            self.wait_until_asked(cluster.info()["workers"][1]["metrics"])
            os.kill(stopped, signal.SIGSTOP)
            wait_until(lambda: cluster.info()["workers"][1]["pid"] not in (0, stopped),
                       "another daemon")
            wait_until(lambda: all(worker["state"] == "READY"
                                   for worker in cluster.json("workers")["workers"]),
                       "both workers ready")

    def test_processes_that_work_are_left_alone(self):
        with Cluster(workers=2) as cluster:
            before = cluster.info()
            # A supervisor that was suspended itself kills no process.
            os.kill(before["supervisor"]["pid"], signal.SIGSTOP)
            end = time.monotonic() + 12
            wait_until(lambda: time.monotonic() > end, "longer than the limit", 30)
            os.kill(before["supervisor"]["pid"], signal.SIGCONT)
            end = time.monotonic() + 3
            wait_until(lambda: time.monotonic() > end, "some rounds", 30)
            self.assertEqual(cluster.info(), before)


if __name__ == "__main__":
    unittest.main()
