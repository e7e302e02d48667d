"""A training job as a task of a scheduler: a plain function that Flyte, Prefect, Dagster or Airflow
call after their own decorator (docs/python.md).

    python scheduler_task.py JOB.yaml RUN_ID
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import troupe


class Trained(NamedTuple):
    job: str
    loss: float
    checkpoint: str
    tokens_per_second: float | None


def train(job_file: str, run_id: str, overrides: dict[str, object] | None = None) -> Trained:
    """Trains the job to its end and returns what the next task needs.

    `run_id` identifies the run of the task: a scheduler that starts the task again, because its
    machine was lost, follows the job of the first start. Raises RuntimeError if the job fails. If
    the task is interrupted, the job commits a checkpoint and is cancelled.
    """
    with troupe.Client() as client:
        name = client.submit(job_file, request_id=run_id, overrides=overrides)
        loss = float("nan")
        try:
            for update in client.watch(name):
                if isinstance(update, troupe.StepEvent):
                    loss = update.loss
                    print(f"step {update.step} loss {update.loss:.6f}", flush=True)
        except KeyboardInterrupt:
            client.cancel(name, checkpoint=True)
            raise
        job = client.get(name)
        if job.state != troupe.JobState.SUCCEEDED:
            reason = job.failure.message if job.failure is not None else "no failure"
            raise RuntimeError(f"{name} is {job.state}: {reason}")
        rate = client.receipt(name)["steady"]["tokens_per_second"]
        committed = [each.path for each in job.checkpoints
                     if each.state == troupe.CheckpointState.COMMITTED]
        return Trained(name, loss, committed[-1], rate)


if __name__ == "__main__":
    print(train(sys.argv[1], sys.argv[2]))
