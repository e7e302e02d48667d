"""Hosts that see different folders at checkpoint.folder: never shared, or with a lost mount.

Each worker runs in its own mount namespace and under its own host name. Without the right to create
namespaces the tests are skipped.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

from harness import (BIN, JOB, ClusterCase, failpoint_flags, kill, run, training_data,
                     wait_until)

SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:20"}


def may_make_namespaces():
    return subprocess.run(["unshare", "-m", "-u", "mount", "-t", "tmpfs", "none", "/mnt"],
                          capture_output=True, timeout=10).returncode == 0


class Hosts:
    """A coordinator and workers host-0, host-1, …, each with a local disk at `folder`; mounting
    puts the shared folder on top of it."""

    def __init__(self, workers=2, shared=(), environment=None):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.folder = self.home / "checkpoints"
        self.shared_folder = self.home / "shared"
        self.folder.mkdir()
        self.shared_folder.mkdir()
        self.environment = {**os.environ, **(environment or {})}
        self.processes = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.start("coordinator", [str(BIN / "troupe-coordinator"), "--listen", self.address,
                                   "--data-dir", str(self.home / "coordinator"),
                                   "--detection-seconds", "1",
                                   *failpoint_flags(self.environment)])
        self.workers = [self.start_worker(i, i in shared) for i in range(workers)]
        wait_until(lambda: self.ready() == workers, "all workers connected")

    def start(self, name, command):
        log = open(self.home / f"{name}.log", "ab")
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                   env=self.environment)
        log.close()
        self.processes.append(process)
        return process

    def start_worker(self, index, shared):
        mount = f"mount --make-rprivate / && mount -t tmpfs none {self.folder}"
        if shared:
            mount += f" && mount --bind {self.shared_folder} {self.folder}"
        data = self.home / f"worker-{index}"
        data.mkdir(exist_ok=True)
        command = (f"{mount} && hostname host-{index} && exec {BIN}/troupe-worker --coordinator "
                   f"{self.address} "
                   f"--name worker-{index} --devices cpu:1 --data-dir {data} --drain-seconds 0 "
                   + " ".join(failpoint_flags(self.environment)))
        return self.start(f"worker-{index}", ["unshare", "-m", "-u", "sh", "-c", command])

    def unmount(self, index):
        subprocess.run(["nsenter", "-t", str(self.workers[index].pid), "-m", "umount", "-l",
                        str(self.folder)],
                       check=True, timeout=10)

    def mount(self, index):
        subprocess.run(["nsenter", "-t", str(self.workers[index].pid), "-m", "mount", "--bind",
                        str(self.shared_folder), str(self.folder)], check=True, timeout=10)

    def ready(self):
        code, out, _ = run("workers", "--coordinator", self.address, "-o", "json")
        return sum(w["state"] == "READY" for w in json.loads(out)["workers"]) if code == 0 else 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=10)
        shutil.rmtree(self.home, ignore_errors=True)

    def logs(self):
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-4000:]}"
                         for path in sorted(self.home.rglob("*.log"))
                         if "coordinator/" not in str(path))

    def json(self, *arguments):
        code, out, err = run(*arguments, "--coordinator", self.address, "-o", "json")
        if code != 0:
            raise AssertionError(f"troupe {arguments}: exit {code}: {err}\n{self.logs()}")
        return json.loads(out)

    def submit(self, name, steps=12, interval=4, parallelism="tensor_parallel_degree: 2"):
        path = self.home / f"{name}.yaml"
        path.write_text(JOB.format(name=name, train=training_data(), steps=steps, interval=interval,
                                   parallelism=parallelism, folder=self.folder))
        return self.json("submit", path)["name"]

    def describe(self, job):
        return self.json("describe", job)

    def events(self, job):
        """Returns {event: [messages]} of an ended job."""
        _, out, _ = run("watch", job, "--coordinator", self.address, "-o", "json")
        found = {}
        for line in map(json.loads, out.splitlines()):
            if line["type"] == "event":
                found.setdefault(line["event"], []).append(line["message"])
        return found

    def wait_for_end(self, job):
        ended = ("FAILED", "CANCELLED", "SUCCEEDED")
        try:
            wait_until(lambda: self.describe(job)["state"] in ended, f"{job} to end", 120)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None
        return self.describe(job)

    def committed(self, job):
        return [c["step"] for c in self.json("checkpoints", "list", job)["checkpoints"]]


@unittest.skipUnless(may_make_namespaces(), "needs the right to make mount namespaces")
class Folders(ClusterCase):
    def wait(self, hosts, condition, what):
        try:
            wait_until(condition, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{hosts.logs()}") from None

    def test_a_job_whose_hosts_do_not_share_the_folder_does_not_start_and_names_a_host(self):
        with Hosts(workers=2) as hosts:
            job = hosts.submit("apart")
            done = hosts.wait_for_end(job)
            self.assertEqual(done["state"], "FAILED", hosts.logs())
            self.assertEqual(done["failure"]["cause"], "STORAGE", done["failure"])
            self.assertRegex(done["failure"]["message"],
                             r"do not share: rank \d on worker worker-\d of host host-\d")
            self.assertEqual(done["step"], 0)
            self.assertEqual(hosts.committed(job), [])

    def test_a_shared_folder_starts_and_leaves_no_tokens(self):
        with Hosts(workers=2, shared=(0, 1)) as hosts:
            job = hosts.submit("together")
            done = hosts.wait_for_end(job)
            self.assertEqual(done["state"], "SUCCEEDED", hosts.logs())
            self.assertEqual(hosts.committed(job), [4, 8, 12])
            names = [path.name for path in hosts.shared_folder.iterdir()]
            self.assertEqual([n for n in names if n.startswith(".start-")], [], names)
            self.assertEqual(len([n for n in names if n.startswith(".troupe-folder-")]), 1, names)
            for checkpoint in hosts.json("checkpoints", "list", job)["checkpoints"]:
                path = hosts.shared_folder / pathlib.Path(checkpoint["path"]).relative_to(
                    hosts.folder)
                code, out, err = run("checkpoints", "verify", path)
                self.assertEqual(code, 0, out + err)

    def test_a_mount_that_is_lost_while_training_commits_nothing_more_and_loses_nothing(self):
        with Hosts(workers=2, shared=(0, 1), environment=SLOW) as hosts:
            job = hosts.submit("lost", steps=40, interval=4)
            self.wait(hosts, lambda: hosts.committed(job), "a first commit")
            hosts.unmount(1)
            at = hosts.describe(job)["step"]
            self.wait(hosts, lambda: hosts.describe(job)["step"] > at + 9,
                      "two more checkpoints due")
            before = hosts.committed(job)
            self.assertLessEqual(before[-1], at + 4,
                                 "a commit of which one host wrote its part elsewhere")
            # A rank dies while the mount is lost: the recovery must not treat missing files as
            # damaged ones.
            kill(hosts.describe(job)["ranks"][0]["pid"])
            self.wait(hosts, lambda: hosts.describe(job)["restarts"] > 0, "the recovery")
            hosts.mount(1)
            done = hosts.wait_for_end(job)
            self.assertEqual(done["state"], "SUCCEEDED", f"{done['failure']}\n{hosts.logs()}")
            events = hosts.events(job)
            self.assertNotIn("CHECKPOINT_QUARANTINED", events)
            aborted = [m for m in events["CHECKPOINT_ABORTED"] if "host-1" in m or
                       "another disk" in m]
            self.assertTrue(aborted, events["CHECKPOINT_ABORTED"])
            self.assertEqual(done["checkpoints"][-1]["step"], 40)


if __name__ == "__main__":
    unittest.main()
