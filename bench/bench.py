"""./run bench [NAME …]: runs every benchmark, with its peer in the same run if it has one.

Peers are PyTorch and JAX from PyPI, each in a separate environment (build/bench/venv, 3.4 GB;
build/bench/jax), created on first use. If one cannot be installed, the benchmark reports it and
prints only our figures.
"""

import argparse
import contextlib
import glob
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = ROOT / "build/release/bin"
VENV = ROOT / "build/bench/venv"
TORCH = "torch==2.15.0"
NUMPY = "numpy==1.26.4"
# For each command, step or training; whatever exceeds it is killed and the bench fails.
LIMIT_SECONDS = 900


def say(text):
    print(text, flush=True)


def python_with(module, packages, venv, size, environment=None):
    """Returns the interpreter of the environment `venv`, which has `module` by installing
    `packages` (of `size` in all), or None after printing the reason."""
    python = venv / "bin/python"
    if python.exists() and subprocess.run([python, "-c", f"import {module}"], env=environment,
                                          capture_output=True).returncode == 0:
        return str(python)
    say(f"bench: installing {packages[0]} into {venv.relative_to(ROOT)} ({size})")
    made = subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", venv], capture_output=True,
                          text=True)
    if made.returncode == 0:
        made = subprocess.run([venv / "bin/pip", "install", "-q", *packages], capture_output=True,
                              text=True)
    if made.returncode != 0:
        reason = made.stderr.strip().rpartition("\n")[2] or f"exit code {made.returncode}"
        say(f"bench: {packages[0]} cannot be installed here, so no peer is measured: {reason}")
        return None
    return str(python)


def torch_python():
    return python_with("torch", [TORCH, NUMPY], VENV, "3.4 GB", torch_environment())


def torch_environment():
    # The wheels' own CUDA libraries must precede any of the machine's.
    libraries = sorted(glob.glob(str(VENV / "lib/python3*/site-packages/nvidia/*/lib")))
    return {**os.environ,
            "LD_LIBRARY_PATH": ":".join(libraries + [os.environ.get("LD_LIBRARY_PATH", "")])}


def limited(process):
    """Kills the process if it still runs after the limit, so that reads from it end."""
    timer = threading.Timer(LIMIT_SECONDS, process.kill)
    timer.daemon = True
    timer.start()
    return timer


class Stepper:
    """A process that runs one training step per input line and answers with its seconds."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.seconds = []
        self.facts = {}  # its reports before it is ready
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True,
                                        env=environment)
        timer = limited(self.process)
        line = self.process.stdout.readline().strip()
        if line.startswith("{"):
            self.facts = json.loads(line)
            line = self.process.stdout.readline().strip()
        if line != "ready":
            sys.exit(f"bench: {name} did not start: {' '.join(command)}")
        timer.cancel()

    def step(self):
        self.seconds.append(float(self.ask("")))

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        timer = limited(self.process)
        answer = self.process.stdout.readline()
        timer.cancel()
        if not answer:
            sys.exit(f"bench: {self.name} ended, or was ended after {LIMIT_SECONDS} s")
        return answer.strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def run_json(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, env=environment,
                          timeout=LIMIT_SECONDS)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        sys.exit(f"bench: {' '.join(command)} failed with exit code {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def show(record):
    say(json.dumps(record))


def bench_actor():
    for program in ("troupe-bench-actor", "troupe-bench-control"):
        for record in run_json([str(BIN / program)]):
            show(record)


def bench_daemon():
    for record in run_json([str(BIN / "troupe-bench-daemon")]):
        show(record)


def bench_metrics():
    for record in run_json([str(BIN / "troupe-bench-metrics")]):
        show(record)


def bench_kernels():
    for record in run_json([str(BIN / "troupe-bench-kernels")]):
        show(record)


JAX = "jax==0.10.2"
JAXLIB = "jaxlib==0.10.2"
JAX_VENV = ROOT / "build/bench/jax"


def jax_python():
    return python_with("jax", [JAX, JAXLIB], JAX_VENV, "0.4 GB")


class XlaStepper(Stepper):
    """troupe-bench-xla: the answer also has the seconds outside of programs and the loss."""

    def step(self):
        seconds, outside, loss, *_ = self.ask("").split()
        self.seconds.append(float(seconds))
        self.outside.append(float(outside))
        self.losses.append(float(loss))

    def __init__(self, name, command):
        self.outside, self.losses = [], []
        super().__init__(name, command)


# Batch, tokens, compute dtype and, if samples are packed, the tokens of each document.
XLA_SHAPES = ((1, 256, "float32", None), (1, 256, "bfloat16", None), (1, 1024, "float32", None),
              (1, 1024, "float32", 128))


def bench_xla():
    """Compares our step on a device of XLA with the module that JAX makes of the same step, which
    the same plugin runs with the same options and threads on the same weights and tokens. jaxlib's
    own figure is for information."""
    program = str(BIN / "troupe-bench-xla")
    if not pathlib.Path(program).exists():
        say("bench: XLA was left out of the build, so nothing is measured")
        return
    python = jax_python()
    for batch, sequence, dtype, document in XLA_SHAPES:
        shape = ["--batch", str(batch), "--sequence", str(sequence), "--dtype", dtype,
                 "--threads", "2", *(["--document", str(document)] if document else [])]
        with tempfile.TemporaryDirectory() as folder:
            # The second process loads what the first one compiled.
            kept = [program, *shape, "--executables", f"{folder}/executables"]
            XlaStepper("troupe", kept).close()
            ours = XlaStepper("troupe", kept)
            load_seconds = ours.facts["compile_seconds"]
            ours.close()
            ours = XlaStepper("troupe", [program, *shape])
            steppers = [ours]
            if python:
                script = [python, str(ROOT / "bench/jax_llama.py"), *shape]
                subprocess.run([*script, "--output", folder], check=True, timeout=LIMIT_SECONDS)
                peer = XlaStepper("jax's module", [
                    program, *shape, "--module", f"{folder}/step.mlir", "--module-arguments",
                    f"{folder}/arguments.txt"])
                steppers += [peer, Stepper("jaxlib", script)]
            for _ in range(5):  # alternating, so that a busy moment affects all equally
                for stepper in steppers:
                    time.sleep(1)  # the process before frees its memory after its step
                    stepper.step()
        what = {"bench": "xla", "model": "llama-124m", "tokens": f"{batch}x{sequence}",
                "dtype": dtype, "documents_of": document}
        for stepper in steppers:
            record = {**what, "who": stepper.name,
                      "step_seconds": round(statistics.median(stepper.seconds), 3)}
            if isinstance(stepper, XlaStepper):
                record |= {"compile_seconds": stepper.facts["compile_seconds"],
                           "milliseconds_outside_of_programs":
                           round(1e3 * statistics.median(stepper.outside), 2)}
            if stepper is ours:
                record["load_seconds"] = load_seconds
            show(record)
            stepper.close()
        if not python:
            continue
        show({"comparison": "xla", **what, "times_the_speed_of_jax's_module":
              round(statistics.median(peer.seconds) / statistics.median(ours.seconds), 2),
              # The same step: the weights, the tokens and the optimizer are the same.
              "largest_relative_difference_of_losses": max(
                  abs(a - b) / b for a, b in zip(ours.losses, peer.losses))})


# Name, degrees of Troupe's axes and of JAX's, and the slice.
TPU_LAYOUTS = (("tensor 2", {"tensor_parallel_degree": 2}, {"tensor": 2}, "v6e:1x2"),
               ("shards 4", {"data_parallel_shard_degree": 4, "zero_stage": 3}, {"fsdp": 4},
                "v6e:2x2"),
               ("data 2, tensor 2",
                {"data_parallel_replicate_degree": 2, "tensor_parallel_degree": 2},
                {"data": 2, "tensor": 2}, "v6e:2x2"))
TPU_SHAPE = {"hidden": 768, "layers": 2, "heads": 12, "ffn": 2048, "vocab": 50304,
             "sequence": 1024}


def tpu_job(degrees, samples):
    shape = TPU_SHAPE
    return {"name": "tpu", "devices": "xla",
            "model": {"pattern": f"(AD)x{shape['layers']}", "hidden_size": shape["hidden"],
                      "num_attention_heads": shape["heads"], "vocab_size": shape["vocab"],
                      "num_key_value_heads": shape["heads"], "intermediate_size": shape["ffn"],
                      "tie_word_embeddings": True},
            "training": {"global_batch_size": samples, "micro_batch_size": 1, "steps": 1,
                         "sequence_length": shape["sequence"], "compute_dtype": "bfloat16"},
            "parallelism": degrees}


def bench_tpu():
    """Compares the programs of a step on a slice of TPU v6e with the one that JAX makes of the
    same step, both compiled by libtpu with the same options: their collectives, and the memory
    that they need in addition to parameters and optimizer state. No TPU is needed."""
    program, python = BIN / "troupe-bench-tpu", jax_python()
    library = pathlib.Path(os.environ.get("TROUPE_LIBTPU") or ROOT / "build/libtpu/libtpu.so")
    for lacking, name in ((not program.exists(), "XLA was left out of the build"),
                          (not library.exists(), f"there is no {library} (docs/tpu.md)"),
                          (not python, "there is no JAX")):
        if lacking:
            say(f"bench: {name}, so nothing is measured")
            return
    for name, degrees, mesh, topology in TPU_LAYOUTS:
        samples = math.prod(mesh.values()) // mesh.get("tensor", 1)
        what = {"bench": "tpu", "layout": name, "topology": topology,
                "tokens": f"{samples}x{TPU_SHAPE['sequence']}", "dtype": "bfloat16"}
        with tempfile.TemporaryDirectory() as folder:
            job = pathlib.Path(folder) / "job.yaml"
            job.write_text(json.dumps(tpu_job(degrees, samples)))  # JSON is YAML
            plan = json.loads(subprocess.run(
                [BIN / "troupe", "plan", job, "--profile", ROOT / "examples/profiles/tpu-v6e.yaml",
                 "--compile", "-o", "json"], check=True, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL).stdout)
            module = pathlib.Path(folder) / "step.mlir"
            flags = [f"--{key}={value}" for key, value in
                     (TPU_SHAPE | mesh | {"batch": samples, "output": module}).items()]
            options = [f"--option={option}" for option in plan["compiler_options"]]
            peers = {}
            for peer, further in (("jax's module", []),
                                  ("jax's module, float32 gradients", ["--float32-gradients"])):
                subprocess.run([python, ROOT / "bench/jax_tpu.py", *flags, *further], check=True)
                peers[peer] = json.loads(subprocess.run(
                    [program, "--module", module, "--topology", topology, *options], check=True,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
        memory = plan["stages"][0]["memory"]
        ours = {"collectives": {entry["kind"]: entry["count"]
                                for entry in memory["compiled_collectives"]},
                "work_bytes": int(memory["compiled_work_bytes"])}
        show({**what, "who": "troupe", **ours})
        for who, peer in peers.items():
            show({**what, "who": who, **peer})
            show({"comparison": "tpu", **what, "peer": who,
                  "times_the_peer's_collectives": round(sum(ours["collectives"].values())
                                                        / sum(peer["collectives"].values()), 2),
                  "times_the_peer's_work_bytes": round(ours["work_bytes"] / peer["work_bytes"],
                                                       2)})


def bench_collective():
    python = torch_python()
    ours = run_json([str(BIN / "troupe-bench-collective"), "--sizes", "64,67108864"])
    for record in ours:
        show(record)
    if not python:
        return
    for peer in run_json([python, str(ROOT / "bench/torch_gloo.py"), "--sizes", "64,67108864"],
                         torch_environment()):
        show(peer)
        for record in ours:
            if record.get("operation") == "all_reduce" and record.get("bytes") == peer["bytes"]:
                ratio = peer["median_seconds"] / record["median_seconds"]
                show({"comparison": "all_reduce", "bytes": peer["bytes"],
                      "times_faster_than_gloo": round(ratio, 1)})


def bench_step():
    python = torch_python()
    for sequence, dtype in ((256, "float32"), (256, "bfloat16"), (1024, "bfloat16")):
        shape = ["--model", "llama-124m", "--batch", "4", "--sequence", str(sequence), "--threads",
                 "2"]
        steppers = [Stepper("troupe", [str(BIN / "troupe-bench-step"), *shape, "--dtype", dtype,
                                       "--on-request"])]
        if python:
            script = [python, str(ROOT / "bench/torch_llama.py"), *shape]
            for precision in ["float32"] if dtype == "float32" else ["autocast", "weights"]:
                for mode in ([], ["--compile"]):
                    name = f"torch {precision} {'compiled' if mode else 'eager'}"
                    steppers.append(Stepper(name, [*script, "--precision", precision, *mode],
                                            torch_environment()))
        for _ in range(5):  # alternating, so that a busy moment affects all equally
            for stepper in steppers:
                stepper.step()
        rates = {}
        for stepper in steppers:
            rates[stepper.name] = 4 * sequence / statistics.median(stepper.seconds)
            show({"bench": "step", "model": "llama-124m", "tokens": f"4x{sequence}", "dtype": dtype,
                  "who": stepper.name, "tokens_per_second": round(rates[stepper.name], 1)})
            stepper.close()
        peers = [rate for name, rate in rates.items() if name != "troupe"]
        if peers:
            show({"comparison": "step", "tokens": f"4x{sequence}", "dtype": dtype,
                  "times_the_best_torch": round(rates["troupe"] / max(peers), 2)})
        for record in run_json([str(BIN / "troupe-bench-step"), *shape, "--dtype", dtype,
                                "--matmuls-alone"]):
            record["share_of_matmuls_alone"] = round(rates["troupe"] / record["tokens_per_second"],
                                                      2)
            show(record)


def bench_experts():
    for ranks, dispatch in ((1, "all_to_all"), (2, "all_to_all"), (2, "all_gather")):
        for dtype in ("float32", "bfloat16"):
            for record in run_json([str(BIN / "troupe-bench-experts"), "--ranks", str(ranks),
                                    "--dispatch", dispatch,
                                    "--dtype", dtype]):
                show(record)


def bench_pairs():
    """Overlapped pairs, interleaved and one action after the other, over links with given
    delays."""
    for delay_ms in (1, 5):
        records = run_json([str(BIN / "troupe-bench-pairs"), str(delay_ms)])
        for record in records:
            show(record)
        apart, interleaved = records
        show({"comparison": "pairs", "message_delay_ms": delay_ms,
              "exposed_dispatch_times_that_of_one_action_after_the_other": round(
                  interleaved["dispatch_exposed_seconds"] / apart["dispatch_exposed_seconds"], 3)})


def plan_command(folder, name, training, parallelism):
    """Writes a job of llama-8b and returns the command that plans it."""
    job = folder / f"{name}.yaml"
    job.write_text(f"name: {name}\nmodel: {{preset: llama-8b}}\ndata: {{train: none}}\n"
                   f"training: {{steps: 10, {training}, compute_dtype: bfloat16}}\n"
                   f"parallelism: {{{parallelism}}}\n")
    return [str(BIN / "troupe"), "plan", str(job), "-o", "json"]


def bench_plan():
    """Times one plan, and two searches: one over degrees for 1,024 devices, and one over degrees
    and schedules for 16, three times."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        large = plan_command(folder, "large", "sequence_length: 8192, global_batch_size: 2048",
                             "data_parallel_replicate_degree: 32, tensor_parallel_degree: 8, "
                             "pipeline_parallel_degree: 4")
        auto = plan_command(folder, "auto", "sequence_length: 4096, global_batch_size: 64",
                            "pipeline_parallel_schedule: auto")
        start = time.perf_counter()
        subprocess.run(large, check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_SECONDS)
        show({"bench": "plan", "ranks": 1024, "seconds": round(time.perf_counter() - start, 3)})
        profile = folder / "profile.yaml"
        profile.write_text(
            "name: h100\nmemory_bytes: 85899345920\nfloat32_flops_per_second: 60e12\n"
            "bfloat16_flops_per_second: 989e12\nmatmul_efficiency: 0.7\n"
            "memory_bytes_per_second: 3.35e12\nlaunch_seconds: 2.0e-6\n"
            "devices_per_island: 8\n"
            "island: {bytes_per_second: 450e9, latency_seconds: 3.0e-6}\n"
            "fabric: {bytes_per_second: 50e9, latency_seconds: 6.0e-6}\n")
        for command, devices, turns in ((large, 1024, 1), (auto, 16, 3)):
            seconds = []
            for _ in range(turns):
                start = time.perf_counter()
                found = subprocess.run(
                    [*command, "--search", "--workers", str(devices), "--profile", str(profile)],
                    check=True, capture_output=True, text=True, timeout=LIMIT_SECONDS)
                seconds.append(time.perf_counter() - start)
            found = json.loads(found.stdout)
            show({"bench": "search", "devices": devices,
                  "seconds": round(statistics.median(seconds), 3),
                  "layouts": len(found["best"]) + len(found["rejected"]),
                  "unseen": sum("not evaluated" in layout["reason"]
                                for layout in found["rejected"])})


class LocalCluster:
    """`troupe up` with warm workers and a dataset of this machine's headers. `binaries` is the
    folder of the programs."""

    def __init__(self, workers, binaries=BIN, devices="cpu"):
        self.devices = devices
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-bench-"))
        self.workers = workers
        self.binaries = pathlib.Path(binaries)
        # By which commands find the coordinator.
        self.target = ["--data-dir", str(self.home / "cluster")]
        # `troupe up` notes its folder there, not among the clusters of this user.
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.home / "state")}

    def __enter__(self):
        self.troupe("data", "prepare", "--output", self.home / "headers", "--tokenizer", "bytes",
                    "/usr/include/c++")
        self.troupe("up", "--workers", self.workers, "--devices", f"{self.devices}:1",
                    "--data-dir", self.home / "cluster")
        return self

    def __exit__(self, *_):
        self.troupe("down", "--data-dir", self.home / "cluster")
        shutil.rmtree(self.home, ignore_errors=True)

    def troupe(self, *arguments):
        done = subprocess.run([str(self.binaries / "troupe"), *map(str, arguments)],
                              capture_output=True, text=True, env=self.environment,
                              timeout=LIMIT_SECONDS)
        if done.returncode != 0:
            sys.exit(f"bench: troupe {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def worker_pid(self, index):
        described = json.loads((self.home / "cluster/cluster.json").read_text())
        return described["workers"][index]["pid"]

    def metric(self, name):
        """Returns the value of a coordinator metric with a single series; 0 before it has one."""
        described = json.loads((self.home / "cluster/cluster.json").read_text())
        with urllib.request.urlopen(described["coordinator"]["metrics"], timeout=30) as page:
            for line in page.read().decode().splitlines():
                if line.startswith(name + "{"):
                    return float(line.rpartition(" ")[2])
        return 0

    def write_job(self, name, model, training, further):
        job = self.home / f"{name}.yaml"
        job.write_text(f"name: {name}\ndevices: {self.devices}\nmodel: {model}\n"
                       f"data: {{train: {self.home / 'headers'}}}\n"
                       f"training: {training}\n{further}\n")
        return job

    def train(self, name, model, training, parallelism, on_step=lambda step: None, checkpoint=None,
              on_event=lambda event: None):
        further = f"parallelism: {parallelism}\n" + (f"checkpoint: {checkpoint}\n" if checkpoint
                                                     else "")
        return self.run_job(self.write_job(name, model, training, further), on_step, on_event)

    def run_job(self, job, on_step=lambda step: None, on_event=lambda event: None):
        """Submits a job and watches it to its end. Returns the seconds from the submit to the first
        finished step, and the step events."""
        name = job.stem
        start = time.perf_counter()
        self.troupe("submit", job, *self.target)
        watch = subprocess.Popen([str(self.binaries / "troupe"), "watch", name, "-o", "json",
                                  *self.target], stdout=subprocess.PIPE,
                                 text=True)
        timer = limited(watch)
        first, steps = None, []
        for line in watch.stdout:
            event = json.loads(line)
            if event["type"] == "step":
                first = first or time.perf_counter() - start
                steps.append(event)
                on_step(event)
            elif event["type"] == "event":
                on_event(event)
            elif event["type"] == "end" and event["state"] != "SUCCEEDED":
                sys.exit(f"bench: {name} ended {event['state']}")
        watch.wait(timeout=30)
        timer.cancel()
        if watch.returncode != 0:
            sys.exit(f"bench: watching {name} ended with exit code {watch.returncode}")
        return first, steps


class DirectCluster(LocalCluster):
    """A coordinator and workers that are started one by one, as on several hosts, with or without
    TLS between them and with commands."""

    def __init__(self, workers, has_tls):
        super().__init__(workers)
        self.has_tls = has_tls
        self.processes = []

    def __enter__(self):
        self.troupe("data", "prepare", "--output", self.home / "headers", "--tokenizer", "bytes",
                    "/usr/include/c++")
        if self.has_tls:
            self.troupe("certs", "init", self.home / "authority", "--cluster", "bench")
        try:
            ready = self.start("coordinator", "main", "--listen", "127.0.0.1:0", "--data-dir",
                               self.home / "coordinator")
            timer = limited(ready)
            address = json.loads(ready.stdout.readline() or "{}").get("address")
            timer.cancel()
            if address is None:
                sys.exit("bench: the coordinator did not start")
            self.target = ["--coordinator", address, *self.tls_flags("submitter", "bench")]
            for index in range(self.workers):
                name = f"worker-{index}"
                self.start("worker", name, "--coordinator", address, "--name", name, "--devices",
                           "cpu:1", "--host", "127.0.0.1", "--data-dir", self.home / name,
                           "--peak-dir", self.home)
                self.wait_until_ready(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):  # workers without a coordinator would wait for it
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=30)
        shutil.rmtree(self.home, ignore_errors=True)

    def wait_until_ready(self, name):
        """Waits for a worker, so that all start in the same order, by which they divide cores."""
        end = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < end:
            workers = json.loads(self.troupe("workers", *self.target, "-o", "json"))["workers"]
            if any(each["name"] == name and each["state"] == "READY" for each in workers):
                return
            time.sleep(0.05)
        sys.exit(f"bench: {name} was not ready within {LIMIT_SECONDS} s")

    def tls_flags(self, role, name):
        """Returns the flags of a holder of a certificate, which is issued; none without TLS."""
        if not self.has_tls:
            return []
        folder = self.home / f"tls-{name}"
        self.troupe("certs", "issue", self.home / "authority", "--role", role, "--name", name,
                    "--output", folder)
        return ["--tls-dir", str(folder)]

    def start(self, role, name, *flags):
        command = [self.binaries / f"troupe-{role}", *flags, *self.tls_flags(role, name)]
        with open(self.home / f"{name}.log", "ab") as log:
            self.processes.append(subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE,
                                                   stderr=log, text=True))
        return self.processes[-1]


TLS_ROUNDS = 5
TLS_STEPS = 60
TLS_FIRST_STEPS = 10  # not counted: the processes warm up


def quickstart_seconds(has_tls):
    """Trains the quickstart's job for some steps, and returns the median seconds of one."""
    with DirectCluster(4, has_tls) as cluster:
        text = (ROOT / "examples/quickstart.yaml").read_text()
        for former, new in (("../build/quickstart/headers", str(cluster.home / "headers")),
                            ("../build/quickstart/checkpoints", str(cluster.home / "checkpoints")),
                            ("steps: 600", f"steps: {TLS_STEPS}")):
            if text.count(former) != 1:
                sys.exit(f"bench: examples/quickstart.yaml has not one {former}")
            text = text.replace(former, new)
        job = cluster.home / "quickstart.yaml"
        job.write_text(text)
        _, steps = cluster.run_job(job)
    return statistics.median(step["step_seconds"] for step in steps[TLS_FIRST_STEPS:])


def bench_tls():
    """Compares steps of the quickstart's job with and without TLS between coordinator, workers and
    commands, in alternating runs. Ranks talk to each other in the same way in both."""
    seconds = {False: [], True: []}
    for turn in range(TLS_ROUNDS):
        for has_tls in ((False, True) if turn % 2 == 0 else (True, False)):
            seconds[has_tls].append(quickstart_seconds(has_tls))
            show({"bench": "tls", "job": "quickstart", "ranks": 4, "turn": turn, "tls": has_tls,
                  "median_step_seconds": round(seconds[has_tls][-1], 5)})
    plain = statistics.median(seconds[False])
    # The two runs of a turn are next to each other in time, so they are compared with each other.
    difference = statistics.median(with_tls / without - 1 for with_tls, without
                                   in zip(seconds[True], seconds[False]))
    noise = max(abs(each / plain - 1) for each in seconds[False])
    show({"comparison": "tls", "job": "quickstart", "ranks": 4, "turns": TLS_ROUNDS,
          "steps_of_a_run": TLS_STEPS - TLS_FIRST_STEPS,
          "median_step_seconds_without": round(plain, 5),
          "median_step_seconds_with": round(statistics.median(seconds[True]), 5),
          "difference_of_a_step": f"{difference:+.2%}",
          "noise_of_runs_without": f"{noise:.2%}",
          "is_below_the_noise": abs(difference) <= noise})


# Model and training of the jobs of `start` and `restart`.
START_JOBS = (("tiny", "{steps: 4, global_batch_size: 4, micro_batch_size: 2, "
                       "sequence_length: 256}"),
              ("llama-124m", "{steps: 4, global_batch_size: 2, micro_batch_size: 2, "
                             "sequence_length: 256}"))


def compare_kinds(bench, figure, measure):
    """Shows the median of `measure(cluster, name, model, training)` on processors and on XLA's
    plugin for them, alternating. The first job of each, which on XLA compiles, is left out."""
    kinds = ["cpu", "xla"] if (BIN / "troupe-bench-xla").exists() else ["cpu"]
    for model, training in START_JOBS:
        seconds = {kind: [] for kind in kinds}
        with contextlib.ExitStack() as stack:
            clusters = {kind: stack.enter_context(LocalCluster(2, devices=kind))
                        for kind in kinds}
            for i in range(5):
                for kind, cluster in clusters.items():
                    seconds[kind].append(measure(cluster, f"{bench}-{i}", model, training))
        medians = {kind: statistics.median(all[1:]) for kind, all in seconds.items()}
        for kind in kinds:
            show({"bench": bench, "model": model, "ranks": 2, "devices": kind,
                  "first_job_seconds": round(seconds[kind][0], 3),
                  figure: round(medians[kind], 3)})
        if "xla" in medians:
            show({"comparison": bench, "model": model,
                  "xla_times_cpu": round(medians["xla"] / medians["cpu"], 2)})


def bench_start():
    """Jobs whose programs are in the workers' caches."""
    def measure(cluster, name, model, training):
        return cluster.train(name, f"{{preset: {model}}}", training,
                             "{tensor_parallel_degree: 2}")[0]

    compare_kinds("start", "median_seconds_from_submit_to_first_finished_step", measure)


def bench_restart():
    """One of two ranks is killed after step 2. The new process loads its programs from the worker's
    cache. No checkpoint exists: the next step is the first one again."""
    def measure(cluster, name, model, training):
        killed = {}

        def kill_at_two(event):
            if event["step"] == 2 and not killed:
                killed["epoch"] = event["group_epoch"]
                described = json.loads(cluster.troupe("describe", name, *cluster.target,
                                                      "-o", "json"))
                os.kill(described["ranks"][1]["pid"], signal.SIGKILL)
                killed["at"] = time.perf_counter()
            elif killed and "seconds" not in killed and event["group_epoch"] > killed["epoch"]:
                killed["seconds"] = time.perf_counter() - killed["at"]

        cluster.train(name, f"{{preset: {model}}}", training, "{tensor_parallel_degree: 2}",
                      kill_at_two)
        return killed["seconds"]

    compare_kinds("restart", "median_seconds_from_kill_to_next_finished_step", measure)


def bench_recovery():
    seconds = []
    for _ in range(3):
        with LocalCluster(4) as cluster:
            killed = {}

            def kill_at_ten(event):
                if event["step"] == 10 and not killed:
                    killed["epoch"] = event["group_epoch"]
                    os.kill(cluster.worker_pid(1), signal.SIGKILL)
                    killed["at"] = time.perf_counter()
                elif killed and "seconds" not in killed and event["group_epoch"] > killed["epoch"]:
                    killed["seconds"] = time.perf_counter() - killed["at"]

            cluster.train("recovery", "{preset: tiny}",
                          "{steps: 40, global_batch_size: 8, micro_batch_size: 2, "
                          "sequence_length: 256}",
                          "{tensor_parallel_degree: 2, pipeline_parallel_degree: 2}", kill_at_ten)
            seconds.append(killed["seconds"])
    show({"bench": "recovery", "model": "tiny", "ranks": 4, "killed": "one worker with SIGKILL",
          "median_seconds_from_kill_to_next_finished_step": round(statistics.median(seconds), 3),
          "maximum_seconds": round(max(seconds), 3)})


def bench_pods():
    import pods
    pods.measure(show)


def bench_layouts():
    layouts = {"single": (1, "{}"),
               "pipe 2 x tensor 2": (4, "{tensor_parallel_degree: 2, pipeline_parallel_degree: 2}")}
    for dtype in ("float32", "bfloat16"):
        rates = {}
        for name, (ranks, parallelism) in layouts.items():
            with LocalCluster(ranks) as cluster:
                _, steps = cluster.train("bench", "{preset: llama-124m}",
                                         "{steps: 7, global_batch_size: 4, micro_batch_size: "
                                         f"{4 if ranks == 1 else 1}, sequence_length: 256, "
                                         f"compute_dtype: {dtype}}}",
                                         parallelism)
            rates[name] = statistics.median(step["tokens_per_second"] for step in steps[2:])
            show({"bench": "layouts", "model": "llama-124m", "tokens": "4x256", "dtype": dtype,
                  "layout": name, "ranks": ranks, "tokens_per_second": round(rates[name], 1)})
        show({"comparison": "layouts", "dtype": dtype,
              "times_the_single_rank": round(rates["pipe 2 x tensor 2"] / rates["single"], 2)})


def train_together(cluster, names):
    """Returns the seconds from the first submit to the end of the last of these jobs: llama-124m,
    4x256, two ranks with one thread each."""
    steps = 8
    training = (f"{{steps: {steps}, global_batch_size: 4, micro_batch_size: 2, "
                "sequence_length: 256, compute_dtype: bfloat16}")
    jobs = [cluster.write_job(name, "{preset: llama-124m}", training,
                              "parallelism: {data_parallel_replicate_degree: 2}\n"
                              "checkpoint: {folder: \"\"}\n")
            for name in names]
    failures = []

    def run(job):
        try:
            cluster.run_job(job)
        except SystemExit as failure:
            failures.append(str(failure))

    threads = [threading.Thread(target=run, args=[job]) for job in jobs]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit(failures[0])
    return time.perf_counter() - start


def bench_cores():
    """Compares two concurrent jobs with each job alone. TROUPE_BENCH_BEFORE names the folder of
    another build's programs, which then run alternately with this build's."""
    builds = {"this build": BIN}
    if os.environ.get("TROUPE_BENCH_BEFORE"):
        builds["before"] = os.environ["TROUPE_BENCH_BEFORE"]
    ratios = {name: [] for name in builds}
    for turn in range(4):
        for name, binaries in builds.items():
            with LocalCluster(4, binaries) as cluster:
                alone = [train_together(cluster, [job]) for job in ("a", "b")]
                together = train_together(cluster, ["c", "d"])
            ratios[name].append(together / sum(alone))
            show({"bench": "cores", "build": name, "turn": turn,
                  "alone_seconds": [round(s, 2) for s in alone],
                  "together_seconds": round(together, 2),
                  "times_the_sum": round(ratios[name][-1], 3)})
    for name, of_build in ratios.items():
        show({"comparison": "cores", "model": "llama-124m", "tokens": "4x256",
              "layout": "data_replicate 2", "build": name,
              "two_jobs_at_once_times_the_sum_of_each_alone": round(statistics.median(of_build), 3),
              "aim": 1.1})


def bench_float8():
    """Trains the quickstart's model for 200 steps in bfloat16 and with each float8 recipe, on the
    same samples, to compare the loss, not the speed. A CPU multiplies FP8 operands as bfloat16,
    which represents them exactly."""
    model = ('{pattern: "(AD)x4", hidden_size: 256, num_attention_heads: 8, '
             'num_key_value_heads: 4, '
             "intermediate_size: 704, vocab_size: 259}")
    tails, held_out = {}, {}
    with LocalCluster(1) as cluster:
        for recipe in ("none", "current", "delayed", "blockwise"):
            job = cluster.home / f"float8-{recipe}.yaml"
            job.write_text(
                f"name: float8-{recipe}\nmodel: {model}\n"
                f"data: {{train: {cluster.home / 'headers'}, validation_fraction: 0.02}}\n"
                "training: {steps: 200, global_batch_size: 8, micro_batch_size: 2, "
                "sequence_length: 256, seed: 1, "
                f"compute_dtype: bfloat16, validation_interval: 200, "
                f"float8: {{recipe: {recipe}}}}}\n"
                "optimizer: {lr: 1.0e-3, beta2: 0.95, weight_decay: 0.1}\n"
                "lr_schedule: {warmup_steps: 20, decay_type: cosine, min_lr_factor: 0.1}\n")
            _, steps = cluster.run_job(job)
            tails[recipe] = statistics.mean(step["loss"] for step in steps[-20:])
            held_out[recipe] = steps[-1]["validation_loss"]
            show({"bench": "float8", "model": "quickstart", "steps": 200, "recipe": recipe,
                  "loss_of_step_200": round(steps[-1]["loss"], 4),
                  "mean_loss_of_the_last_20": round(tails[recipe], 4),
                  "held_out_loss": round(held_out[recipe], 4),
                  "tokens_per_second": round(statistics.median(step["tokens_per_second"]
                                                               for step in steps[5:]), 1)})
    for recipe in ("current", "delayed", "blockwise"):
        show({"comparison": "float8", "recipe": recipe, "relative_to": "bfloat16",
              "mean_loss_of_the_last_20": f"{tails[recipe] / tails['none'] - 1:+.2%}",
              "held_out_loss": f"{held_out[recipe] / held_out['none'] - 1:+.2%}"})


def bench_sharding():
    """Two ranks with one thread each: compares sharding with plain data parallelism and with
    PyTorch's DDP and FSDP2, and two tensor ranks with one rank that has both threads. Two rounds,
    with layouts and peers alternating."""
    shape = "sequence_length: 256, compute_dtype: bfloat16"
    layouts = {"one rank": (1, 4, "{}"),
               "data_replicate 2": (2, 2, "{data_parallel_replicate_degree: 2}"),
               "data_shard 2, ZeRO-1": (2, 2, "{data_parallel_shard_degree: 2, zero_stage: 1}"),
               "data_shard 2, ZeRO-3": (2, 2, "{data_parallel_shard_degree: 2, zero_stage: 3}"),
               "tensor 2, sequence parallel": (2, 4, "{tensor_parallel_degree: 2, "
                                                     "sequence_parallel: true}")}
    rates = {name: [] for name in layouts}
    python = torch_python()
    peers = {"ddp-autocast": [], "ddp-weights": [], "fsdp2": []} if python else {}
    for turn in range(2):
        for index, (name, (ranks, samples, parallelism)) in enumerate(layouts.items()):
            with LocalCluster(ranks) as cluster:
                _, steps = cluster.train(f"bench-{turn}-{index}", "{preset: llama-124m}",
                                         f"{{steps: 6, global_batch_size: 4, "
                                         f"micro_batch_size: {samples}, {shape}}}",
                                         parallelism)
            rates[name] += [step["tokens_per_second"] for step in steps[2:]]
        for variant in peers:
            command = [python, str(ROOT / "bench/torch_sharding.py"), "--variant", variant]
            for peer in run_json(command, torch_environment()):
                peers[variant] += peer["tokens_per_second"]
    rates = {name: statistics.median(values) for name, values in rates.items()}
    peers = {name: statistics.median(values) for name, values in peers.items()}
    for name, rate in rates.items():
        show({"bench": "sharding", "model": "llama-124m", "tokens": "4x256", "dtype": "bfloat16",
              "layout": name, "ranks": layouts[name][0], "tokens_per_second": round(rate, 1)})
    for name, rate in peers.items():
        show({"peer": "torch", "variant": name, "ranks": 2, "tokens_per_second": round(rate, 1)})
    plain, single = rates["data_replicate 2"], rates["one rank"]
    comparison = {"zero_1_times_plain": rates["data_shard 2, ZeRO-1"] / plain,
                  "zero_3_times_plain": rates["data_shard 2, ZeRO-3"] / plain,
                  "tensor_2_times_one_rank": rates["tensor 2, sequence parallel"] / single}
    if peers:
        comparison["plain_times_the_best_ddp"] = plain / max(peers["ddp-autocast"],
                                                             peers["ddp-weights"])
        comparison["zero_3_times_fsdp2"] = rates["data_shard 2, ZeRO-3"] / peers["fsdp2"]
    show({"comparison": "sharding", **{name: round(ratio, 2)
                                       for name, ratio in comparison.items()}})


def descendants(pid):
    """Returns the descendants of a process."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def resident_bytes(pid):
    """Returns the proportional set size: shared memory is divided among the processes that share
    it."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return 1024 * int(line.split()[1])
    return 0


ESTIMATED = {
    # ranks, micro_batch_size, model, other keys of the job
    "one rank": (1, 4, "{preset: llama-124m}", "parallelism: {}"),
    "one rank, recomputed": (1, 4, "{preset: llama-124m}",
                             "activation_recomputation: {mode: full}"),
    "one rank, float32": (1, 2, "{preset: llama-124m}", "parallelism: {}"),
    "data_replicate 2": (2, 2, "{preset: llama-124m}",
                         "parallelism: {data_parallel_replicate_degree: 2}"),
    "data_shard 2, ZeRO-1": (2, 2, "{preset: llama-124m}",
                             "parallelism: {data_parallel_shard_degree: 2, zero_stage: 1}"),
    "data_shard 2, ZeRO-3": (2, 1, "{preset: llama-124m}",
                             "parallelism: {data_parallel_shard_degree: 2, zero_stage: 3}"),
    "tensor 2, sequence parallel": (2, 2, "{preset: llama-124m}",
                                    "parallelism: {tensor_parallel_degree: 2, "
                                    "sequence_parallel: true}"),
    "pipe 2": (2, 1, "{preset: llama-124m}", "parallelism: {pipeline_parallel_degree: 2}"),
    "context 2": (2, 2, "{preset: llama-124m}", "parallelism: {context_parallel_degree: 2}"),
    "expert 2": (2, 2, "{preset: llama-124m, pattern: (AE)x6, num_experts: 8, "
                       "num_experts_per_tok: 2,"
                       " moe_intermediate_size: 768}", "parallelism: {expert_parallel_degree: 2}"),
    "data_shard 4, ZeRO-3": (4, 1, "{preset: llama-124m}",
                             "parallelism: {data_parallel_shard_degree: 4, zero_stage: 3}"),
    "data_shard 4, runs of 2": (4, 1, "{preset: llama-124m}",
                                "parallelism: {data_parallel_shard_degree: 4, zero_stage: 3, "
                                "reshard_after_forward: 2}"),
}


def bench_estimates():
    """Compares the step time and the memory of a rank that `troupe plan` estimates, with the
    profile that a worker measures here, with measured values. Memory is everything resident in a
    rank's process, including the program and its libraries, and its share of memory that processes
    share. It is measured after the save of step 4, whose copy of the state the plan counts."""
    for ranks in (1, 2, 4):
        names = [name for name, entry in ESTIMATED.items() if entry[0] == ranks]
        with LocalCluster(ranks) as cluster:
            profiled = cluster.home / "profiled"
            profiled.mkdir()
            for index, name in enumerate(names):
                # The profile is measured anew each time, because the speed of a virtual machine
                # changes within minutes.
                subprocess.run([str(BIN / "troupe-worker"), "--measure-peak", "--even-if-busy",
                                "--devices", f"cpu:{ranks}", "--data-dir", str(profiled)],
                               check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_SECONDS)
                _, samples, model, further = ESTIMATED[name]
                dtype = "float32" if "float32" in name else "bfloat16"
                resident = []

                def sample_memory(event):
                    if event["step"] > 4:
                        resident.append(max(resident_bytes(pid) for worker in range(ranks)
                                            for pid in descendants(cluster.worker_pid(worker))))

                training = (f"{{steps: 7, global_batch_size: 4, micro_batch_size: {samples}, "
                            f"sequence_length: 256, "
                            f"compute_dtype: {dtype}}}")
                job = cluster.write_job(f"estimate-{ranks}-{index}", model, training,
                                        further + "\ncheckpoint: {interval: 4}")
                plan = json.loads(cluster.troupe("plan", job, "--profile",
                                                 profiled / "profile.yaml", "-o", "json"))
                _, steps = cluster.run_job(job, sample_memory)
                seconds = statistics.median(step["step_seconds"] for step in steps[2:])
                planned = max(stage["memory"]["total_bytes"] for stage in plan["stages"])
                show({"bench": "estimates", "layout": name, "dtype": dtype,
                      "profile": dict(line.split(": ")
                                      for line in (
                                              profiled / "profile.yaml").read_text().splitlines()
                                      if re.match(r"[a-z_0-9]+_(efficiency|second): ", line)),
                      "planned_seconds": round(plan["estimate"]["step_seconds"], 3),
                      "measured_seconds": round(seconds, 3),
                      # A profile does not describe ranks that share cores.
                      "time_ratio": round(plan["estimate"]["step_seconds"] / seconds, 2)
                      if ranks <= os.cpu_count() else None,
                      "planned_megabytes": round(planned / 1e6),
                      "measured_megabytes": round(max(resident) / 1e6),
                      "within_a_tenth_and_64_mib": abs(max(resident) - planned) <= 0.1 * planned +
                      64 * 2**20})


def bench_data():
    """Compares `data prepare` with a tokenizer.json with the PyPI package `tokenizers`, on this
    machine's C++ headers."""
    sys.path.insert(0, str(ROOT / "tests/interop"))
    import peer_environment
    import tokenizers_test
    try:
        python = peer_environment.peer_python(tokenizers_test.VENV, [tokenizers_test.PACKAGE])
    except subprocess.CalledProcessError as error:
        say(f"bench: {tokenizers_test.PACKAGE} cannot be installed here, so nothing is "
            f"measured: {error}")
        return
    paths, size = [], 0
    for path in sorted(pathlib.Path("/usr/include").rglob("*.h*")):
        if path.is_file() and size < 6e6:
            paths.append(str(path))
            size += path.stat().st_size
    with tempfile.TemporaryDirectory() as folder:
        for rule in tokenizers_test.RULES:
            tokenizer = f"{folder}/{rule}.json"
            peer = subprocess.run([python, str(ROOT / "bench/tokenizers_peer.py"),
                                   str(ROOT / f"data/testdata/{rule}_tokenizer.json"), tokenizer],
                                  input="\n".join(paths), capture_output=True, text=True,
                                  timeout=LIMIT_SECONDS,
                                  env={**os.environ, "TOKENIZERS_PARALLELISM": "false"})
            if peer.returncode != 0:
                sys.exit(f"bench: the peer failed: {peer.stderr}")
            theirs = [json.loads(line) for line in peer.stdout.splitlines()]
            done = subprocess.run([str(BIN / "troupe-bench-tokenizer"), tokenizer],
                                  input="\n".join(paths), capture_output=True, text=True,
                                  timeout=LIMIT_SECONDS, check=True)
            ours = [json.loads(line) for line in done.stdout.splitlines()]
            if {r["tokens"] for r in ours} != {r["tokens"] for r in theirs}:
                sys.exit("bench: the tokenizers do not agree")
            rates = {}
            for who, records in (("troupe", ours), ("tokenizers", theirs)):
                rates[who] = ours[0]["bytes"] / 1e6 / statistics.median(
                    r["cpu_seconds"] for r in records)
                show({"bench": "data", "rule": rule, "documents": len(paths),
                      "megabytes": round(ours[0]["bytes"] / 1e6, 1),
                      "threads": 1, "who": who, "megabytes_per_cpu_second": round(rates[who], 1)})
            show({"comparison": "data", "rule": rule,
                  "times_the_package": round(rates["troupe"] / rates["tokenizers"], 1)})


def measure_checkpoint_rates(folder):
    """Saves and loads without training. Returns the seconds for which an async save of torch DCP
    blocks its caller; None if there is no PyTorch."""
    python = torch_python()
    ours = Stepper("troupe", [str(BIN / "troupe-bench-checkpoint"), "--directory", str(folder)])
    asked = [(ours, command) for command in
             ("write", "save", "save-between", "copy", "read", "load-same", "load-reshard")]
    if python:
        dcp = Stepper("torch DCP", [python, str(ROOT / "bench/torch_dcp.py"), "--directory",
                                    str(folder)],
                      torch_environment())
        asked += [(dcp, command) for command in ("save", "async", "load")]
    seconds = {(who.name, command): [] for who, command in asked}
    for _ in range(5):  # alternating, so that a busy moment affects all equally
        for who, command in asked:
            seconds[who.name, command].append(float(who.ask(command)))
    size = ours.facts["bytes"]
    method = ours.ask("method")
    median = {key: statistics.median(values) for key, values in seconds.items()}
    for (who, command), value in median.items():
        show({"bench": "checkpoint", "who": who, "what": command, "bytes": size,
              "median_seconds": round(value, 3),
              "gigabytes_per_second": round(size / value / 1e9, 2),
              **({"method": method} if "save" in command and who == "troupe" else {})})
    mine = {command: value for (who, command), value in median.items() if who == "troupe"}
    show({"comparison": "checkpoint",
          "save_share_of_disk_write_rate": round(mine["write"] / mine["save"], 2),
          "load_share_of_disk_read_rate": round(mine["read"] / mine["load-same"], 2),
          "resharded_load_times_same_layout": round(mine["load-reshard"] / mine["load-same"], 2)})
    ours.close()
    if not python:
        return None
    show({"comparison": "checkpoint", "times_the_save_rate_of_dcp":
          round(median["torch DCP", "save"] / mine["save"], 2), "times_the_load_rate_of_dcp":
          round(median["torch DCP", "load"] / mine["load-same"], 2)})
    dcp.close()
    return median["torch DCP", "async"]


def measure_steps_with_saves(folder, dcp_stall_seconds):
    """Trains with saves, and compares the steps during them with the others, and the stalls with
    dcp_stall_seconds unless that is None."""
    stalls, steps, open_since, recorded_bytes = [], {"during": [], "between": []}, [], [0]
    with LocalCluster(1) as cluster:
        def on_step(event):
            if event["step"] > 2:  # the first ones are warm-up
                # The step after a save point runs during the save, even if the commit arrives
                # before its report.
                saving = open_since or event["step"] % 10 == 1
                steps["during" if saving else "between"].append(event["step_seconds"])
            if event["step"] % 10 == 0:
                open_since.append(event["step"])

        def on_event(event):
            if event["event"] != "CHECKPOINT_COMMITTED":
                return
            open_since.clear()
            # The coordinator records the commit's metrics after it has sent the event.
            deadline = time.monotonic() + 30
            while (total := cluster.metric("troupe_checkpoint_bytes_total")) <= recorded_bytes[0]:
                if time.monotonic() > deadline:
                    sys.exit("bench: the coordinator has not recorded a commit within 30 s")
                time.sleep(0.01)
            recorded_bytes[0] = total
            stalls.append(cluster.metric("troupe_checkpoint_stall_seconds"))

        cluster.train("saving", "{preset: llama-124m}",
                      "{steps: 40, global_batch_size: 4, micro_batch_size: 4, "
                      "sequence_length: 256}", "{}", on_step,
                      f"{{folder: {folder}, interval: 10, keep_latest_k: 2, async_mode: async}}",
                      on_event)
    during, between = (statistics.median(steps[which]) for which in ("during", "between"))
    show({"bench": "checkpoint", "what": "training with a save every 10 steps",
          "model": "llama-124m",
          "tokens": "4x256", "median_step_seconds": round(between, 3),
          "median_step_seconds_during_a_save": round(during, 3),
          "steps_during_saves": len(steps["during"]),
          "median_stall_seconds": round(statistics.median(stalls), 4),
          "longest_stall_seconds": round(max(stalls), 4)})
    comparison = {"comparison": "checkpoint",
                  "step_times_during_a_save": round(during / between, 2)}
    if dcp_stall_seconds is not None:
        comparison["dcp_async_stall_seconds"] = round(dcp_stall_seconds, 3)
        comparison["times_less_stall_than_dcp"] = round(
            dcp_stall_seconds / max(max(stalls), 1e-3), 1)
    show(comparison)


def bench_checkpoint():
    folder = ROOT / "build/bench/checkpoint"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    dcp_stall_seconds = measure_checkpoint_rates(folder)
    measure_steps_with_saves(folder, dcp_stall_seconds)
    shutil.rmtree(folder, ignore_errors=True)


BENCHES = {"actor": bench_actor, "daemon": bench_daemon, "metrics": bench_metrics,
           "collective": bench_collective, "kernels": bench_kernels,
           "step": bench_step, "xla": bench_xla, "tpu": bench_tpu, "experts": bench_experts,
           "pairs": bench_pairs, "plan": bench_plan, "start": bench_start, "restart": bench_restart,
           "recovery": bench_recovery, "pods": bench_pods, "layouts": bench_layouts,
           "cores": bench_cores,
           "sharding": bench_sharding, "float8": bench_float8, "estimates": bench_estimates,
           "data": bench_data, "checkpoint": bench_checkpoint, "tls": bench_tls}


def main():
    parser = argparse.ArgumentParser(
        prog="./run bench", description="Measures Troupe, with its peers in the same run, and "
        "prints one JSON object per line.", epilog="NAME: " + ", ".join(BENCHES))
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark (default: all)")
    parser.add_argument("--check", action="store_true",
                        help="check the names and measure nothing")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in BENCHES:
            sys.exit(f"bench: no benchmark '{name}': one of {', '.join(BENCHES)}")
    if arguments.check:
        return
    for name in arguments.names or BENCHES:
        say(f"# {name}")
        BENCHES[name]()


if __name__ == "__main__":
    main()
