"""A real local cluster for tests: real binaries, real processes, only the `troupe` command and
signals.

Tests are unittest cases; CMakeLists.txt registers each method with ctest. Every wait has a limit.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TROUPE_BIN", ROOT / "build/release/bin"))
TROUPE = str(BIN / "troupe")
LIMIT_SECONDS = 60

# `troupe up` notes its folder there: the clusters of tests are not those of this user.
os.environ["XDG_STATE_HOME"] = str(BIN.parent / "state")

JOB = """
name: {name}
model: {{pattern: "(AD)x2", hidden_size: 64, num_attention_heads: 4, num_key_value_heads: 2,
        intermediate_size: 96, vocab_size: 259}}
data: {{train: {train}}}
training: {{global_batch_size: 8, micro_batch_size: 2, sequence_length: 32, steps: {steps},
           seed: 7}}
optimizer: {{lr: 1.0e-3}}
lr_schedule: {{warmup_steps: 4, decay_type: cosine, min_lr_factor: 0.1}}
parallelism: {{{parallelism}}}
checkpoint: {{folder: {folder}, interval: {interval}, keep_latest_k: 0, async_mode: disabled}}
fault_tolerance: {{max_restarts: 5}}
"""


def run(*arguments, environment=None, timeout=LIMIT_SECONDS, cwd=None):
    """Returns (exit code, stdout, stderr) of `troupe ARGUMENTS`."""
    done = subprocess.run([TROUPE, *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, **(environment or {})}, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def failpoint_flags(environment):
    """Returns the flag without which a process does not start with failpoints in its
    environment."""
    return ["--allow-failpoints"] if (environment or {}).get("TROUPE_FAILPOINTS") else []


def wait_until(condition, what, limit_seconds=LIMIT_SECONDS):
    """Polls until `condition()` is true and returns its value; raises an error after the limit."""
    end = time.monotonic() + limit_seconds
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit_seconds} s: {what}")
        pause.wait(0.05)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


_data = None


def training_data():
    """Returns PREFIX of a small dataset, which the product's own command creates once per
    process."""
    global _data
    if _data is None:
        folder = tempfile.mkdtemp(prefix="troupe-data-")
        source = pathlib.Path(folder) / "text"
        source.mkdir()
        for i in range(8):
            text = "".join(f"line {j}: {j * j % 97} {chr(97 + (i * j) % 26) * 5}\n"
                           for j in range(200))
            (source / f"{i}.h").write_text(text)
        code, out, err = run("data", "prepare", "--output", f"{folder}/data", "--tokenizer",
                             "bytes", source)
        if code != 0:
            raise AssertionError(f"data prepare: {code} {out} {err}")
        _data = f"{folder}/data"
    return _data


class Cluster:
    """`troupe up` in a temporary directory, which is stopped and removed at the end."""

    def __init__(self, workers=2, environment=None, detection_seconds=1.0, directory=None,
                 devices_per_worker=1):
        self.own = directory is None
        self.home = pathlib.Path(directory or tempfile.mkdtemp(prefix="troupe-test-"))
        self.directory = self.home / "cluster"
        self.workers = workers
        self.environment = environment or {}
        self.detection_seconds = detection_seconds
        self.devices_per_worker = devices_per_worker

    def up(self):
        code, out, err = run("up", "--workers", self.workers, "--data-dir", self.directory,
                             "--detection-seconds", self.detection_seconds, "--devices-per-worker",
                             self.devices_per_worker, *failpoint_flags(self.environment),
                             environment=self.environment)
        if code != 0:
            raise AssertionError(f"up: exit {code}: {out}{err}\n{self.logs()}")
        return self

    def down(self):
        return run("down", "--data-dir", self.directory)

    def __enter__(self):
        return self.up()

    def __exit__(self, *_):
        self.down()
        if self.own:
            shutil.rmtree(self.home, ignore_errors=True)

    def info(self):
        return json.loads((self.directory / "cluster.json").read_text())

    def logs(self):
        parts = []
        for path in sorted((self.directory / "logs").rglob("*.log")):
            with contextlib.suppress(OSError):
                parts.append(f"--- {path.name}\n" + path.read_text(errors="replace")[-3000:])
        return "\n".join(parts)

    def troupe(self, *arguments, timeout=LIMIT_SECONDS, environment=None):
        return run(*arguments, "--data-dir", self.directory, timeout=timeout,
                   environment=environment)

    def json(self, *arguments, timeout=LIMIT_SECONDS):
        code, out, err = self.troupe(*arguments, "-o", "json", timeout=timeout)
        if code != 0:
            raise AssertionError(f"troupe {arguments}: exit {code}: {err}\n{self.logs()}")
        return json.loads(out)

    def write_job(self, name, steps=12, interval=4, parallelism="tensor_parallel_degree: 2",
                  extra=""):
        path = self.home / f"{name}.yaml"
        path.write_text(JOB.format(name=name, train=training_data(), steps=steps, interval=interval,
                                   parallelism=parallelism,
                                   folder=self.home / "checkpoints") + extra)
        return path

    def submit(self, name, **options):
        return self.json("submit", self.write_job(name, **options))["name"]

    def describe(self, job):
        return self.json("describe", job)

    def wait_for_state(self, job, *states, limit_seconds=LIMIT_SECONDS):
        def reached():
            described = self.describe(job)
            if described["state"] in states:
                return described
            if described["state"] in ("FAILED", "CANCELLED", "SUCCEEDED"):
                raise AssertionError(
                    f"{job} is {described['state']}: {described['failure']}\n{self.logs()}")
            return None

        try:
            return wait_until(reached, f"{job} in {states}", limit_seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def wait_for_step(self, job, step, limit_seconds=LIMIT_SECONDS):
        return wait_until(lambda: self.describe(job)["step"] >= step, f"{job} at step {step}",
                          limit_seconds)

    def watched(self, job):
        """Returns everything that `watch` prints of an ended job, in order."""
        code, out, err = self.troupe("watch", job, "-o", "json")
        if code not in (0, 1):  # 1: the job was cancelled or failed
            raise AssertionError(f"watch: {code} {err}")
        return [json.loads(line) for line in out.splitlines()]

    def losses(self, job):
        """Returns {step: (loss text, grad_norm text)} as stored; exact, since 17 digits identify a
        double."""
        return {line["step"]: (repr(line["loss"]), repr(line["grad_norm"]))
                for line in self.watched(job) if line["type"] == "step"}

    def checkpoints(self, job):
        return self.json("checkpoints", "list", job)["checkpoints"]

    def worker(self, name):
        return next(w for w in self.info()["workers"] if w["name"] == name)


class ClusterCase(unittest.TestCase):
    maxDiff = None

    def assert_committed_checkpoints_verify(self, cluster, job):
        checkpoints = cluster.checkpoints(job)
        self.assertTrue(checkpoints, "no committed checkpoint")
        whole = 0
        for checkpoint in checkpoints:
            code, out, err = run("checkpoints", "verify", checkpoint["path"])
            if code != 0 and not os.path.exists(checkpoint["path"]):
                continue  # a newer commit let it go meanwhile
            self.assertEqual(code, 0, f"{checkpoint['path']}: {out}{err}")
            whole += 1
        self.assertGreater(whole, 0, "every checkpoint went while it was looked at")


def kill(pid):
    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit("a module of the tests, not a test")
