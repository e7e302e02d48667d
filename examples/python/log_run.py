"""Copies the steps of a job into MLflow or Weights & Biases, live or from the history.

    python log_run.py JOB --mlflow http://127.0.0.1:5000 [--experiment NAME]
    python log_run.py JOB --wandb PROJECT

It goes on behind the last step that the run has: it may be stopped and started again. MLflow is
reached by its REST API with the standard library alone; Weights & Biases needs the package wandb.
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import importlib
import json
import math
import os
import queue
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Iterator, NamedTuple, Protocol

import troupe

# Limits of MLflow's log-batch.
MOST_ENTRIES = 1000
MOST_PARAMETERS = 100
LONGEST_VALUE = 6000

FIGURES = ("loss", "validation_loss", "grad_norm", "learning_rate", "tokens_per_second", "mfu")
ENDS = {"SUCCEEDED": "FINISHED", "FAILED": "FAILED", "CANCELLED": "KILLED"}
FLUSH_SECONDS = 1.0
FIRST_ANSWER_SECONDS = 4.0  # a server that has not answered by then is not there
RETRY_SECONDS = 60.0
CALL_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 5.0


class Step(NamedTuple):
    event: troupe.StepEvent
    time_ns: int  # of the job, since the Unix epoch


class Log(Protocol):
    """Where the steps go. Times are those of the job, also where its history is copied later."""

    last_step: int  # that the run has already

    def add(self, steps: list[Step]) -> None: ...

    def end(self, state: str, time_ns: int) -> None: ...


class LogError(Exception):
    """The service cannot be used; the text is a sentence."""


def figures(step: troupe.StepEvent) -> dict[str, float]:
    values = {name: getattr(step, name) for name in FIGURES}
    return {name: value for name, value in values.items() if value is not None}


def parameters(message: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yields the keys of a job, such as "training.steps", with their values."""
    for field in dataclasses.fields(message):
        value, key = getattr(message, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            yield from parameters(value, key + ".")
        elif value is not None and value != ():
            yield key, str(value)


def number(value: float) -> float | str:
    """Returns a number as MLflow reads it: JSON has no word for those that are not finite."""
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


class MlflowError(LogError):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Mlflow:
    """A run of an MLflow server. The run of a job is found again by its tags."""

    def __init__(self, url: str, experiment: str, job: troupe.Job) -> None:
        self._api = url.rstrip("/") + "/api/2.0/mlflow/"
        self._has_answered = False
        self.last_step = 0
        tags = {"troupe.job": job.name, "troupe.created": str(job.create_wall_time_ns)}
        experiment_id = self._experiment(experiment)
        found = self._call("runs/search", {
            "experiment_ids": [experiment_id], "max_results": 1,
            "filter": " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items()),
        }).get("runs", [])
        if found:
            self.run_id = str(found[0]["info"]["run_id"])
            for metric in found[0].get("data", {}).get("metrics", []):
                if metric["key"] in FIGURES:
                    self.last_step = max(self.last_step, int(metric.get("step", 0)))
            self._call("runs/update", {"run_id": self.run_id, "status": "RUNNING"})
            return
        made = self._call("runs/create", {
            "experiment_id": experiment_id, "run_name": job.name.removeprefix("jobs/"),
            "start_time": job.create_wall_time_ns // 1_000_000,
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        })
        self.run_id = str(made["run"]["info"]["run_id"])
        entries = [{"key": key, "value": value[:LONGEST_VALUE]}
                   for key, value in parameters(job.spec)] if job.spec is not None else []
        for first in range(0, len(entries), MOST_PARAMETERS):
            self._call("runs/log-batch", {"run_id": self.run_id,
                                          "params": entries[first:first + MOST_PARAMETERS]})

    def add(self, steps: list[Step]) -> None:
        # A step is in one batch as a whole: the run has all figures of its last step, or none.
        most_steps = MOST_ENTRIES // len(FIGURES)
        for first in range(0, len(steps), most_steps):
            entries = [{"key": key, "value": number(value), "step": step.event.step,
                        "timestamp": step.time_ns // 1_000_000}
                       for step in steps[first:first + most_steps]
                       for key, value in figures(step.event).items()]
            self._call("runs/log-batch", {"run_id": self.run_id, "metrics": entries})

    def end(self, state: str, time_ns: int) -> None:
        self._call("runs/update", {"run_id": self.run_id, "status": ENDS.get(state, "FAILED"),
                                   "end_time": time_ns // 1_000_000})

    def _experiment(self, name: str) -> str:
        try:
            return str(self._call("experiments/create", {"name": name})["experiment_id"])
        except MlflowError as error:
            if error.code != "RESOURCE_ALREADY_EXISTS":
                raise
        query = urllib.parse.urlencode({"experiment_name": name})
        found = self._call(f"experiments/get-by-name?{query}")
        return str(found["experiment"]["experiment_id"])

    def _call(self, method: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Makes a call, again for a minute while the server is away or overloaded. A batch that was
        logged before its answer was lost does no harm: MLflow keeps one of equal entries."""
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        request = urllib.request.Request(self._api + method, data,
                                         {"Content-Type": "application/json", **authorization()})
        limit = RETRY_SECONDS if self._has_answered else FIRST_ANSWER_SECONDS
        give_up, pause = time.monotonic() + limit, 0.1
        while True:
            try:
                answered = answer(request, min(CALL_SECONDS, give_up - time.monotonic()))
                self._has_answered = True
                parsed: dict[str, Any] = json.loads(answered)
                return parsed
            except urllib.error.HTTPError as error:
                self._has_answered = True
                text = error.read().decode(errors="replace")
                if error.code != 429 and error.code < 500 or time.monotonic() + pause > give_up:
                    raise mlflow_error(error.code, text) from None
            except OSError as error:  # among them URLError
                if time.monotonic() + pause > give_up:
                    raise MlflowError("UNAVAILABLE", f"MLflow cannot be reached at {self._api}: "
                                      f"{getattr(error, 'reason', error)}") from None
            except ValueError:
                raise MlflowError("INTERNAL", f"{self._api}{method} answers with what is no JSON: "
                                  "is it the address of MLflow?") from None
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def answer(request: urllib.request.Request, seconds: float) -> bytes:
    """Returns the body of the answer, within `seconds`: a look-up of a name and a slow server have
    no limit of their own. Raises OSError."""
    results: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()

    def call() -> None:
        try:
            # The wait below ends first, so that its sentence is the error.
            with urllib.request.urlopen(request, timeout=seconds + 1) as response:
                results.put(response.read())
        except Exception as error:
            results.put(error)

    threading.Thread(target=call, daemon=True).start()
    try:
        result = results.get(timeout=max(0.1, seconds))
    except queue.Empty:
        raise TimeoutError(f"it has not answered within {seconds:.0f} s") from None
    if isinstance(result, Exception):
        raise result
    return result


def mlflow_error(status: int, text: str) -> MlflowError:
    try:
        answer = json.loads(text)
        return MlflowError(answer["error_code"], answer.get("message", ""))
    except (ValueError, KeyError, TypeError):
        return MlflowError(f"HTTP {status}", text[:200] or "is this the address of MLflow?")


def authorization() -> dict[str, str]:
    """Returns the header for the credentials in the environment variables that MLflow's own client
    reads."""
    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    if token:
        return {"Authorization": f"Bearer {token}"}
    user = os.environ.get("MLFLOW_TRACKING_USERNAME")
    if not user:
        return {}
    pair = f"{user}:{os.environ.get('MLFLOW_TRACKING_PASSWORD', '')}"
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def load_wandb() -> Any:
    try:
        return importlib.import_module("wandb")
    except ImportError as error:
        raise LogError(f"--wandb needs the package wandb ({error}): pip install wandb") from None


class Wandb:
    """A run of Weights & Biases, whose id is that of the job."""

    def __init__(self, project: str, job: troupe.Job) -> None:
        wandb = load_wandb()
        name = job.name.removeprefix("jobs/")
        try:
            self._run = wandb.init(
                project=project, name=name,
                id=f"{name}-{job.create_wall_time_ns}".replace(".", "-"), resume="allow",
                config=dict(parameters(job.spec)) if job.spec is not None else {})
        except wandb.Error as error:  # no login, no connection
            raise LogError(f"Weights & Biases cannot be used: {error}") from None
        # The step that a resumed run would log next.
        self.last_step = max(0, int(self._run.step) - 1)

    def add(self, steps: list[Step]) -> None:
        for step in steps:
            self._run.log({**figures(step.event), "_timestamp": step.time_ns / 1e9},
                          step=step.event.step)

    def end(self, state: str, time_ns: int) -> None:
        self._run.finish(exit_code=0 if state == "SUCCEEDED" else 1)


def follow(client: troupe.Client, job: troupe.Job, log: Log) -> str:
    """Logs the steps of a job until it ends, and returns its final state.

    Each step is logged once, in order: steps that a recovery repeats are left out, because both
    services only append. Steps of the last second are logged together.
    """
    waiting: list[Step] = []
    last, flushed, time_ns = log.last_step, 0.0, job.create_wall_time_ns
    for update in client.watch(job.name, last + 1):
        if not isinstance(update, troupe.End):
            time_ns = max(time_ns, update.wall_time_ns or 0)
        if isinstance(update, troupe.StepEvent) and update.step > last:
            waiting.append(Step(update, time_ns))
            last = update.step
        ended = isinstance(update, troupe.End)
        if waiting and (ended or time.monotonic() - flushed >= FLUSH_SECONDS or
                        len(waiting) * len(FIGURES) >= MOST_ENTRIES):
            log.add(waiting)
            waiting, flushed = [], time.monotonic()
        if isinstance(update, troupe.End):
            log.end(str(update.state), time_ns)
            return str(update.state)
    raise AssertionError("a watch ends with End")


def connect() -> troupe.Client:
    try:
        return troupe.Client()
    except (OSError, ValueError) as error:  # no address, or TLS files that cannot be used
        raise LogError(str(error)) from None


def copy(arguments: argparse.Namespace) -> int:
    if arguments.wandb:
        load_wandb()  # before anything else is waited for
    with connect() as client:
        job = client.get(arguments.job)
        log: Log = (Mlflow(arguments.mlflow, arguments.experiment, job) if arguments.mlflow
                    else Wandb(arguments.wandb, job))
        state = follow(client, job, log)
    print(f"{job.name} {state}, logged up to its end")
    return 0 if state == "SUCCEEDED" else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job")
    service = parser.add_mutually_exclusive_group(required=True)
    service.add_argument("--mlflow", metavar="URL", help="address of an MLflow server")
    service.add_argument("--wandb", metavar="PROJECT", help="project of Weights & Biases")
    parser.add_argument("--experiment", default="troupe", help="experiment of MLflow")
    arguments = parser.parse_args()
    try:
        return copy(arguments)
    except KeyboardInterrupt:
        return 130
    except (LogError, troupe.TroupeError) as error:
        # A server chose parts of the text.
        text = "".join(each if each.isprintable() else " " for each in str(error))
        print(f"log_run: {text}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
