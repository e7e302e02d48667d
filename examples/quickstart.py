"""The quickstart: prepares text, starts a cluster, trains, kills a worker, watches the recovery and
prints a summary.

./run quickstart calls it after the build. It uses the `troupe` command only, as a person would.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TROUPE = str(ROOT / "build/release/bin/troupe")
HOME = ROOT / "build/quickstart"
CLUSTER = HOME / "cluster"
COMMAND_LIMIT_SECONDS = 120
TRAINING_LIMIT_SECONDS = 1200
HELD_OUT_LOSS_BAR = 1.85  # nats per byte
DRAWS = sys.stdout.isatty()

# `troupe up` notes its folder there, so that a later one of this user does not continue with it.
os.environ["XDG_STATE_HOME"] = str(HOME / "state")


def say(text=""):
    print(text, flush=True)


def troupe(*arguments, check=True):
    done = subprocess.run([TROUPE, *arguments], capture_output=True, text=True,
                          timeout=COMMAND_LIMIT_SECONDS)
    if check and done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        sys.exit(f"troupe {' '.join(arguments)} failed with exit code {done.returncode}")
    return done.stdout


def read(*arguments):
    return json.loads(troupe(*arguments, "-o", "json"))


def draw(step, steps, event, seconds):
    rate = event["tokens_per_second"]
    left = (steps - step) * event["step_seconds"]
    line = (f"  step {step:>4}/{steps}  loss {event['loss']:.4f}  {rate:,.0f} tokens/s"
            f"  {seconds:4.0f} s  ~{left:.0f} s left")
    if DRAWS:
        print("\r\033[K" + line, end="", flush=True)
    elif step % 20 == 0 or step == 1:
        say(line)


def interrupt_line(text):
    say(("\r\033[K" if DRAWS else "") + text)


class Run:
    """The events of the watch stream so far."""

    def __init__(self):
        self.losses = {}
        self.validations = {}
        self.rates = []
        self.seen = 0
        self.killed_at = None
        self.killed_step = None
        self.recovered_after = None
        self.repeated_steps = 0
        self.repeated_seconds = 0.0
        self.state = None


def kill_one_worker():
    with open(CLUSTER / "cluster.json") as file:
        victim = json.load(file)["workers"][-1]
    os.kill(victim["pid"], signal.SIGKILL)
    return victim


def follow(run, job, steps):
    started = time.monotonic()
    watch = subprocess.Popen([TROUPE, "watch", job, "--data-dir", str(CLUSTER), "-o", "json"],
                             stdout=subprocess.PIPE, text=True)
    limit = threading.Timer(TRAINING_LIMIT_SECONDS, watch.kill)
    limit.daemon = True
    limit.start()
    # A few steps after the checkpoint at half of the steps.
    kill_step = steps // 2 + 5
    for line in watch.stdout:
        event = json.loads(line)
        now = time.monotonic()
        if event["type"] == "step":
            step = event["step"]
            if step <= run.seen:
                run.repeated_steps += 1
                if run.recovered_after is not None:  # the first one is part of the recovery
                    run.repeated_seconds += event["step_seconds"]
            is_recovering = run.killed_at and run.recovered_after is None
            if is_recovering and event["group_epoch"] > run.epoch_at_kill:
                run.recovered_after = now - run.killed_at
                interrupt_line(f"  recovered: step {step} finished {run.recovered_after:.1f} s "
                               "after the kill")
            run.seen = max(run.seen, step)
            run.losses[step] = event["loss"]
            run.rates.append(event["tokens_per_second"])
            if event.get("validation_loss") is not None:
                run.validations[step] = event["validation_loss"]
            draw(step, steps, event, now - started)
            if run.killed_at is None and step >= kill_step:
                run.epoch_at_kill = event["group_epoch"]
                run.killed_step = step
                victim = kill_one_worker()
                run.killed_at = time.monotonic()
                interrupt_line(f"  step {step}: killing {victim['name']} (pid {victim['pid']}) "
                               "with SIGKILL")
        elif event["type"] == "event":
            interrupt_line(f"  {event['event']:<22} {event.get('message', '')}")
        elif event["type"] == "end":
            run.state = event["state"]
            interrupt_line(f"  {run.state}")
    watch.wait(timeout=30)
    limit.cancel()


def main():
    if CLUSTER.exists():
        troupe("down", "--data-dir", str(CLUSTER), check=False)
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    began = time.monotonic()

    say("1. Text: every C and C++ header under /usr/include, byte by byte, in Megatron's indexed "
        "format")
    data = read("data", "prepare", "--output", str(HOME / "headers"), "--tokenizer", "bytes",
                "/usr/include")
    say(f"  {data['documents']:,} documents, {data['tokens']:,} tokens -> "
        f"{', '.join(data['files'])}")

    say("2. Cluster: one coordinator, four workers")
    troupe("up", "--workers", "4", "--data-dir", str(CLUSTER))
    try:
        with open(CLUSTER / "cluster.json") as file:
            cluster = json.load(file)
        say(f"  coordinator {cluster['coordinator']['address']}, metrics "
            f"{cluster['coordinator']['metrics']}")

        say("3. Job: examples/quickstart.yaml, two pipeline stages × two tensor-parallel ranks")
        job = read("submit", str(ROOT / "examples/quickstart.yaml"), "--data-dir",
                   str(CLUSTER))["name"]
        steps = read("describe", job, "--data-dir", str(CLUSTER))["steps"]
        run = Run()
        follow(run, job, steps)
        described = read("describe", job, "--data-dir", str(CLUSTER))
        checkpoints = read("checkpoints", "list", job, "--data-dir", str(CLUSTER))["checkpoints"]

        say()
        say("Summary")
        first, last = min(run.losses), max(run.losses)
        say(f"  training loss   {run.losses[first]:.4f} at step {first} -> {run.losses[last]:.4f} "
            f"at step {last} (nats per byte)")
        if run.validations:
            v_first, v_last = min(run.validations), max(run.validations)
            say(f"  validation loss {run.validations[v_first]:.4f} at step {v_first} ->"
                f" {run.validations[v_last]:.4f} at step {v_last}")
        rates = sorted(run.rates)
        say(f"  speed           {rates[len(rates) // 2]:,.0f} tokens/s (median)")
        if run.recovered_after is not None:
            say(f"  the kill        cost {run.recovered_after + run.repeated_seconds:.1f} "
                f"s: {run.recovered_after:.1f} s to the"
                f" next finished step, {run.repeated_seconds:.1f} s for {run.repeated_steps} "
                "repeated steps;"
                f" {described['restarts']} recovery")
        say("  checkpoints     committed, "
            f"kept: {', '.join('step ' + str(c['step']) for c in checkpoints)}")
        for checkpoint in checkpoints:
            say(f"                  {checkpoint['path']}")
        say(f"  whole run       {time.monotonic() - began:.0f} s")
        passed = (run.state == "SUCCEEDED" and run.recovered_after is not None and checkpoints and
                  run.validations
                  and run.validations[max(run.validations)] < HELD_OUT_LOSS_BAR)
        say()
        say("Next, with ./run build's binaries in build/release/bin on your PATH:")
        say("  troupe up --workers 4 --data-dir /tmp/troupe      a cluster that keeps running")
        say("  troupe plan examples/quickstart.yaml              the plan of the job, without "
            "running it")
        say("  troupe submit examples/quickstart.yaml --data-dir /tmp/troupe --name second --wait")
        say("  troupe checkpoints verify PATH                    check one of the checkpoints "
            "above")
        if not passed:
            sys.exit("the quickstart did not end as expected (SUCCEEDED, recovered, validation "
                     "loss below"
                     f" {HELD_OUT_LOSS_BAR}): see above and {CLUSTER / 'logs'}")
    finally:
        troupe("down", "--data-dir", str(CLUSTER), check=False)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
