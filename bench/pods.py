"""Times to the next step after pods of a job are deleted, killed, drained or moved; called by
./run bench pods."""

import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/deploy"), str(ROOT / "tests/integration")]

import harness  # noqa: E402
import pod_cluster  # noqa: E402
import pod_network  # noqa: E402

TURNS = 3
BEFORE = 8  # steps, then something happens
STEPS = 30
INTERVAL = 4  # steps between checkpoints
JOB = """
name: pods
model: {{preset: tiny}}
data: {{train: {train}}}
training: {{steps: {steps}, global_batch_size: 4, micro_batch_size: 2, sequence_length: 256}}
parallelism: {{data_parallel_replicate_degree: 2}}
checkpoint: {{folder: {folder}, interval: {interval}}}
"""
# Each case is what happens, the time that a worker has to drain, and the most seconds wanted.
CASES = {
    "worker deleted": (pod_cluster.delete_worker, 0, 2),
    "worker killed": (pod_cluster.kill_worker, 0, 2),
    "worker lost with its pod": (pod_cluster.lose_worker, 0, None),
    "worker stopped with time to drain": (pod_cluster.stop_worker, 60, None),
    "worker drained by an operator": (pod_cluster.drain_worker, 60, None),
    "coordinator moved": (pod_cluster.move_coordinator, 60, 3),
}


def train(disturb, drain_seconds):
    with pod_cluster.PodCluster(drain_seconds=drain_seconds) as cluster:
        job = cluster.home / "pods.yaml"
        job.write_text(JOB.format(train=harness.training_data(), steps=STEPS, interval=INTERVAL,
                                  folder=cluster.home / "checkpoints"))
        return cluster.train(job, disturb, step=BEFORE)


def measure(show):
    """Calls show with a record for each case."""
    obstacle = pod_network.obstacle()
    if obstacle is not None:
        sys.exit(f"bench: {obstacle}")
    undisturbed = train(None, 0)
    show({"bench": "pods", "model": "tiny", "ranks": 2, "case": "undisturbed",
          "median_step_seconds": round(statistics.median(
              step["step_seconds"] for step in undisturbed.steps), 4)})
    for case, (disturb, drain_seconds, aim) in CASES.items():
        outcomes = [train(disturb, drain_seconds) for _ in range(TURNS)]
        seconds = [outcome.seconds for outcome in outcomes]
        show({"bench": "pods", "model": "tiny", "ranks": 2, "case": case, "turns": TURNS,
              "median_seconds_to_the_next_finished_step": round(statistics.median(seconds), 3),
              "maximum_seconds": round(max(seconds), 3), "aim_seconds": aim,
              "repeated_steps": [len(outcome.steps) - STEPS for outcome in outcomes],
              "restarts": [outcome.described["restarts"] for outcome in outcomes],
              "losses_are_those_of_the_undisturbed_job":
              all(outcome.losses == undisturbed.losses for outcome in outcomes)})
