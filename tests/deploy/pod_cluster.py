"""A cluster of pods with TLS, and what may happen to its pods while a job trains."""

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time

import harness
from pod_network import Network, Pod, end

SERVICE = "troupe-coordinator.troupe.svc"
PORT = 7070


class Watch:
    """What `troupe watch` prints, and when."""

    def __init__(self, command, log):
        self.lines = []  # (time, line)
        self.changed = threading.Condition()
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors,
                                            text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for text in self.process.stdout:
            with self.changed:
                self.lines.append((time.monotonic(), json.loads(text)))
                self.changed.notify_all()

    def wait_for(self, matches, what, since=0.0):
        """Returns time and line of the first one after `since` that matches."""
        def found():
            return next(((at, line) for at, line in self.lines if at > since and matches(line)),
                        None)

        with self.changed:
            if not self.changed.wait_for(found, timeout=harness.LIMIT_SECONDS):
                raise AssertionError(f"not within {harness.LIMIT_SECONDS} s: {what}; watched: "
                                     f"{self.lines[-5:]}")
            return found()

    def wait_for_step(self, step):
        return self.wait_for(lambda line: line["type"] == "step" and line["step"] >= step,
                             f"step {step}")

    def wait_for_end(self):
        return self.wait_for(lambda line: line["type"] == "end", "the end")[1]["state"]

    def steps(self):
        return [line for _, line in self.lines if line["type"] == "step"]

    def close(self):
        end(self.process)
        self.reader.join()
        self.process.stdout.close()


class Outcome:
    """What became of a job: its description, its steps as watched, and its stored losses."""

    def __init__(self, cluster, job, watch, seconds):
        self.described = cluster.describe(job)
        self.steps = watch.steps()
        self.losses = cluster.losses(job)
        self.seconds = seconds  # from the disturbance to the next finished step


class PodCluster(harness.Cluster):
    """A coordinator, workers with a device each and a client in pods of their own, with TLS."""

    def __init__(self, workers=3, drain_seconds=60, environment=None):
        super().__init__(workers=workers, environment=environment, detection_seconds=3)
        self.drain_seconds = drain_seconds
        self.closing = contextlib.ExitStack()
        self.pods = {}
        self.starts = 0  # of coordinators

    def __enter__(self):
        with contextlib.ExitStack() as closing:
            if self.own:
                closing.callback(shutil.rmtree, self.home, ignore_errors=True)
            (self.directory / "logs").mkdir(parents=True)
            self.make_certificates()
            self.network = Network(self.directory / "logs")
            closing.callback(self.network.close)
            closing.callback(self.remove_pods)
            self.client = self.add_pod("client")
            self.start_coordinator()
            for index in range(self.workers):
                self.add_pod(f"worker-{index}")
                self.start_worker(f"worker-{index}")
            harness.wait_until(self.has_all_workers, f"all workers\n{self.logs()}")
            self.closing = closing.pop_all()
        return self

    def __exit__(self, *_):
        self.closing.close()

    def make_certificates(self):
        authority = self.home / "authority"
        holders = {"main": "coordinator", "client": "operator",
                   **{f"worker-{index}": "worker" for index in range(self.workers)}}
        commands = [["certs", "init", authority, "--cluster", "pods"]]
        commands += [["certs", "issue", authority, "--role", role, "--name", name, "--output",
                      self.home / "tls" / name] for name, role in holders.items()]
        for command in commands:
            code, out, err = harness.run(*command)
            if code != 0:
                raise AssertionError(f"{command}: {code} {out}{err}")

    def add_pod(self, name):
        self.pods[name] = Pod(self.network, name)
        return self.pods[name]

    def remove_pods(self):
        for pod in self.pods.values():
            pod.remove()

    def start(self, pod, cpu, program, *flags):
        pod.start(harness.BIN / program, *flags, *harness.failpoint_flags(self.environment),
                  cpu=cpu, environment=self.environment)

    def start_coordinator(self):
        """Starts a coordinator with the catalog of the former one, in a pod with an address of its
        own, and gives its name to that address."""
        pod = self.add_pod("main")
        self.starts += 1
        self.start(pod, None, "troupe-coordinator", "--listen", f"0.0.0.0:{PORT}", "--data-dir",
                   self.home / "catalog", "--detection-seconds", self.detection_seconds,
                   "--tls-dir", self.home / "tls/main")
        self.network.set_address(SERVICE, pod.address)
        harness.wait_until(lambda: pod.log.read_text().count('{"address"') == self.starts,
                           f"a coordinator\n{self.logs()}")

    def start_worker(self, name):
        """Starts the container of a worker's pod. Its processor is its own as far as there are
        enough."""
        pod = self.pods[name]
        cpu = min(int(name.rpartition("-")[2]), os.cpu_count() - 1)
        self.start(pod, cpu, "troupe-worker", "--coordinator", f"{SERVICE}:{PORT}", "--name", name,
                   "--devices", "cpu:1", "--host", pod.address, "--data-dir", self.home / name,
                   "--peak-dir", self.directory, "--drain-seconds", self.drain_seconds,
                   "--tls-dir", self.home / "tls" / name)

    def has_all_workers(self):
        code, out, _ = self.troupe("workers", "-o", "json")
        return code == 0 and [worker["state"] for worker in json.loads(out)["workers"]] == [
            "READY"] * self.workers

    def command(self, *words):
        """Returns the command line of a `troupe` command in the client's pod."""
        return self.client.command(harness.TROUPE, *map(str, words), "--coordinator",
                                   f"{SERVICE}:{PORT}", "--tls-dir", self.home / "tls/client")

    def troupe(self, *arguments, timeout=harness.LIMIT_SECONDS, environment=None):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              timeout=timeout, env={**os.environ, **(environment or {})},
                              check=False)
        return done.returncode, done.stdout, done.stderr

    def train(self, job_file, disturb=None, step=20):
        """Trains a job to its end. `disturb` gets cluster, job and watch after the step, and
        returns seconds."""
        job = self.json("submit", job_file)["name"]
        watch = Watch(self.command("watch", job, "-o", "json"), self.directory / "logs/watch.log")
        try:
            seconds = None
            if disturb is not None:
                watch.wait_for_step(step)
                seconds = disturb(self, job, watch)
            state = watch.wait_for_end()
            if state != "SUCCEEDED":
                raise AssertionError(f"{job} is {state}\n{self.logs()}")
        finally:
            watch.close()
        return Outcome(self, job, watch, seconds)


def next_step(watch, former, since):
    """Returns the seconds from `since` to the first step of a later group than that of the line
    `former`."""
    at, _ = watch.wait_for(lambda line: line["type"] == "step" and
                           line["group_epoch"] > former["group_epoch"], "a step of a new group")
    return at - since


def worker_of(cluster, job, rank):
    return next(each["worker"] for each in cluster.describe(job)["ranks"] if each["rank"] == rank)


def delete_worker(cluster, job, watch):
    """A worker gets SIGTERM, has no time to drain, and its pod is gone."""
    pod = cluster.pods[worker_of(cluster, job, 1)]
    former, since = watch.steps()[-1], time.monotonic()
    pod.terminate()
    pod.container.wait(timeout=harness.LIMIT_SECONDS)
    pod.remove()
    return next_step(watch, former, since)


def kill_worker(cluster, job, watch):
    """Everything in a worker's pod is killed at once, and its container is started again."""
    name = worker_of(cluster, job, 1)
    former, since = watch.steps()[-1], time.monotonic()
    cluster.pods[name].kill()
    cluster.start_worker(name)
    return next_step(watch, former, since)


def lose_worker(cluster, job, watch):
    """A worker's pod is gone, without a word and for ever."""
    pod = cluster.pods[worker_of(cluster, job, 1)]
    former, since = watch.steps()[-1], time.monotonic()
    pod.remove()
    return next_step(watch, former, since)


def stop_worker(cluster, job, watch):
    """A worker gets SIGTERM and has time to drain, as at a drain of its node."""
    pod = cluster.pods[worker_of(cluster, job, 1)]
    former, since = watch.steps()[-1], time.monotonic()
    pod.terminate()
    seconds = next_step(watch, former, since)
    pod.container.wait(timeout=harness.LIMIT_SECONDS)
    return seconds


def drain_worker(cluster, job, watch):
    """An operator drains a worker."""
    name = worker_of(cluster, job, 1)
    former, since = watch.steps()[-1], time.monotonic()
    cluster.json("workers", "drain", name)
    return next_step(watch, former, since)


def move_coordinator(cluster, job, watch):
    """The coordinator's pod is killed, and another one at another address has its catalog and its
    name."""
    since = time.monotonic()
    cluster.pods["main"].remove()
    cluster.start_coordinator()
    ready = time.monotonic()
    at, _ = watch.wait_for(lambda line: line["type"] == "step", "a step after the move", ready)
    return at - since
