"""The client of a coordinator."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import random
import time
import types
import uuid
from typing import (Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple, Type,
                    TypeVar, Union)

import grpc

from troupe import errors
from troupe._connection import HANDSHAKE_SECONDS, Connection, Connections
from troupe._convert import state_of, to_dataclass
from troupe._job_file import JobInput, read_job, read_overrides
from troupe._key_places import KeyPlaces, with_places
from troupe._printable import printable
from troupe._program import run_program
from troupe._receipt import receipt_dict
from troupe._shown import Shown
from troupe.messages import (CheckpointRecord, CheckpointState, Job, JobEvent, JobState, Plan,
                             StepEvent, WorkerStatus)
from troupe.v1 import service_pb2

T = TypeVar("T")

_log = logging.getLogger("troupe")

_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0
_LEAST_SECONDS = 0.1       # for one try of a call
_CONNECT_SECONDS = 5.0     # for calls that are not repeated
_READY_SECONDS = 2.0       # until a channel that does not become ready is replaced
_CHECKPOINT_SECONDS = 600  # for calls that wait for a commit or for the removal of checkpoints
_ROTATION_SECONDS = 5.0    # in which certificates that do not fit each other are replaced
_AWAY_SECONDS = 60.0       # a watch ends if the coordinator is away for longer
_BEYOND_HISTORY = 1 << 40  # a step that no job reaches
_PROGRAM_SECONDS = 660     # for a report or a trace, which may wait for a step
_EXPORT_SECONDS = 3600

_Path = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True, repr=False)
class End(Shown):
    """The last update of a job."""

    state: JobState


Update = Union[StepEvent, JobEvent, End]
# Returns the method of a stub.
_Method = Callable[[Connection], "grpc.UnaryUnaryMultiCallable[Any, T]"]


class _Pauses:
    """Pauses between tries, which grow up to a limit and differ between clients."""

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE_SECONDS

    def wait(self, limit: float) -> None:
        time.sleep(max(0.0, min(self._next * random.uniform(0.5, 1.5), limit)))
        self._next = min(2 * self._next, _LONGEST_PAUSE_SECONDS)


class _Seen:
    """The updates that a watcher has had. Within a group epoch, steps come without gaps."""

    def __init__(self) -> None:
        self.last_step = 0
        self.epoch = 0  # the highest
        self._steps: Dict[int, Tuple[int, int]] = {}  # by group epoch: the first and the last
        self._events: "set[Tuple[int, str, str]]" = set()

    def is_new(self, update: Union[StepEvent, JobEvent]) -> bool:
        if isinstance(update, JobEvent):
            key = (update.wall_time_ns, update.event, update.message)
            if key in self._events:
                return False
            self._events.add(key)
        else:
            step, epoch = update.step, update.group_epoch
            if any(e >= epoch and low <= step <= high
                   for e, (low, high) in self._steps.items()):
                return False
            low, high = self._steps.get(epoch, (step, step))
            self._steps[epoch] = (min(low, step), max(high, step))
            self.last_step = step
        self.epoch = max(self.epoch, update.group_epoch)
        return True


@contextlib.contextmanager
def _placing(places: KeyPlaces) -> Iterator[None]:
    """Adds the places of keys in a job file to what a coordinator finds wrong with them."""
    try:
        yield
    except errors.TroupeError as error:
        if not error.violations:
            raise
        raise with_places(error, places) from None


def _job_name(job: str) -> str:
    return job if job.startswith("jobs/") else f"jobs/{job}"


class Client:
    """A client of the coordinator at `address`, HOST:PORT (default: TROUPE_COORDINATOR).

    `tls_dir` (default: TROUPE_TLS_DIR) has ca.pem, cert.pem and key.pem. `token`, or the one in
    `token_file` (default: TROUPE_TOKEN_FILE), identifies the caller instead of a certificate; it
    needs only ca.pem. All these files are read again when they change. `timeout` is the number of
    seconds after which a call is given up, with its repetitions: calls that have the same effect
    when they are repeated are repeated while the coordinator cannot be reached.

    Jobs are named "x" or "jobs/x"; "lab.x" is a job of the namespace "lab". All methods raise
    subclasses of TroupeError. Thread-safe; a process that forks makes its own client in the child.
    """

    def __init__(self, address: Optional[str] = None,
                 tls_dir: "Optional[Union[str, os.PathLike[str]]]" = None,
                 token: Optional[str] = None, timeout: float = 30,
                 token_file: "Optional[Union[str, os.PathLike[str]]]" = None) -> None:
        address = address or os.environ.get("TROUPE_COORDINATOR")
        if not address:
            raise ValueError("no coordinator is given: pass address=\"HOST:PORT\" or set "
                             "TROUPE_COORDINATOR, as `troupe up` prints it")
        folder = os.fspath(tls_dir) if tls_dir else os.environ.get("TROUPE_TLS_DIR") or None
        if token is not None and token_file is not None:
            raise ValueError("give either token or token_file")
        path = os.fspath(token_file) if token_file else os.environ.get("TROUPE_TOKEN_FILE")
        self._connections = Connections(address, folder, token,
                                        path if token is None and path else None)
        self._timeout = timeout
        self._tls_dir = folder
        self._token = token
        self._token_file = path if token is None else None

    def __repr__(self) -> str:
        folder = "" if self._tls_dir is None else f", tls_dir={self._tls_dir!r}"
        return f"Client({self._connections.address!r}{folder})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[types.TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection and the calls on it."""
        self._connections.close()

    def submit(self, job: JobInput, *, request_id: Optional[str] = None,
               overrides: Optional[Mapping[str, Any]] = None) -> str:
        """Submits a job, the path of a job file or its keys as a mapping, and returns its name.

        A repeated `request_id` returns the job of the first request. `overrides` sets keys by their
        paths: {"training.steps": 20}. Raises InvalidJob.
        """
        places: KeyPlaces = {}
        request = service_pb2.CreateJobRequest(job=read_job(job, overrides or {}, places),
                                               request_id=request_id or uuid.uuid4().hex)
        with _placing(places):
            created = self._call(lambda c: c.jobs.CreateJob, request, invalid=errors.InvalidJob)
        for warning in created.job.plan.warnings:
            _log.warning("%s", printable(f"{created.job.name}: {warning}"))
        return created.job.name

    def plan(self, job: JobInput, *, overrides: Optional[Mapping[str, Any]] = None) -> Plan:
        """Returns the plan that the job would get now. Raises InvalidJob."""
        places: KeyPlaces = {}
        request = service_pb2.PlanJobRequest(job=read_job(job, overrides or {}, places))
        with _placing(places):
            planned = self._call(lambda c: c.plans.PlanJob, request, invalid=errors.InvalidJob)
        return to_dataclass(planned.plan, Plan)

    def get(self, job: str) -> Job:
        request = service_pb2.GetJobRequest(name=_job_name(job))
        return to_dataclass(self._call(lambda c: c.jobs.GetJob, request).job, Job)

    def list(self, page_size: int = 100) -> Iterator[Job]:
        """Yields all jobs, without spec and plan, and reads them page by page."""
        request = service_pb2.ListJobsRequest(page_size=page_size)
        for page in self._pages(lambda c: c.jobs.ListJobs, request):
            for job in page.jobs:
                yield to_dataclass(job, Job)

    def workers(self) -> Tuple[WorkerStatus, ...]:
        request = service_pb2.ListWorkersRequest(page_size=100)
        found: List[WorkerStatus] = []
        for page in self._pages(lambda c: c.cluster.ListWorkers, request):
            found += [to_dataclass(worker, WorkerStatus) for worker in page.workers]
        return tuple(found)

    def cancel(self, job: str, *, checkpoint: bool = False) -> Job:
        """Stops a job; with `checkpoint` at a step, after a commit, for which the call waits."""
        request = service_pb2.CancelJobRequest(name=_job_name(job), checkpoint=checkpoint)
        limit = max(self._timeout, _CHECKPOINT_SECONDS) if checkpoint else self._timeout
        return to_dataclass(self._call(lambda c: c.jobs.CancelJob, request, limit).job, Job)

    def resume(self, job: str, *, overrides: Optional[Mapping[str, Any]] = None,
               discard_images: bool = False) -> Job:
        """Queues a cancelled or failed job again. It continues from its newest checkpoint; with
        `discard_images` even if the ranks' images are newer. Raises InvalidJob."""
        request = service_pb2.ResumeJobRequest(
            name=_job_name(job), overrides=read_overrides(overrides or {}),
            discard_images=discard_images)
        resumed = self._call_once(lambda c: c.jobs.ResumeJob, request, self._timeout,
                                  errors.InvalidJob)
        return to_dataclass(resumed.job, Job)

    def delete(self, job: str, *, checkpoints: bool = False) -> Job:
        """Removes an ended job, with its history, and with `checkpoints` their directories too."""
        request = service_pb2.DeleteJobRequest(name=_job_name(job), checkpoints=checkpoints)
        limit = max(self._timeout, _CHECKPOINT_SECONDS) if checkpoints else self._timeout
        return to_dataclass(self._call_once(lambda c: c.jobs.DeleteJob, request, limit).job, Job)

    def receipt(self, job: str) -> Dict[str, Any]:
        """Returns what a job measured, and the conditions, as `troupe receipt -o json` prints it.
        """
        request = service_pb2.GetJobReceiptRequest(name=_job_name(job))
        return receipt_dict(self._call(lambda c: c.jobs.GetJobReceipt, request).receipt)

    def checkpoints(self, job: str, *, quarantined: bool = False) -> Tuple[CheckpointRecord, ...]:
        """Returns the committed checkpoints of a job, newest last; with `quarantined` also those
        that were found damaged, with the reason."""
        request = service_pb2.ListCheckpointsRequest(job=_job_name(job), page_size=100)
        wanted = {CheckpointState.COMMITTED}
        wanted |= {CheckpointState.QUARANTINED} if quarantined else set()
        found: List[CheckpointRecord] = []
        for page in self._pages(lambda c: c.checkpoints.ListCheckpoints, request):
            found += [to_dataclass(each, CheckpointRecord) for each in page.checkpoints]
        return tuple(each for each in found if each.state in wanted)

    def create_checkpoint(self, job: str) -> CheckpointRecord:
        """Takes a checkpoint at the job's next step, and returns it when it is committed."""
        request = service_pb2.CreateCheckpointRequest(job=_job_name(job))
        limit = max(self._timeout, _CHECKPOINT_SECONDS)
        made = self._call_once(lambda c: c.checkpoints.CreateCheckpoint, request, limit)
        checkpoint = to_dataclass(made.checkpoint, CheckpointRecord)
        if checkpoint.state != CheckpointState.COMMITTED:
            aborted = errors.TroupeError(f"{request.job}: the attempt was not committed: "
                                         f"{checkpoint.reason}")
            aborted.code = "ABORTED"
            raise aborted
        return checkpoint

    def pin_checkpoint(self, job: str, checkpoint: Union[int, str, CheckpointRecord], *,
                       pinned: bool = True) -> CheckpointRecord:
        """Keeps a checkpoint, named by its step, path or record, whatever the retention of its job
        is. With `pinned=False` the retention applies again at once."""
        request = service_pb2.PinCheckpointRequest(job=_job_name(job), pinned=pinned)
        if isinstance(checkpoint, int):
            request.step = checkpoint
        else:
            request.path = checkpoint if isinstance(checkpoint, str) else checkpoint.path
        done = self._call(lambda c: c.checkpoints.PinCheckpoint, request)
        return to_dataclass(done.checkpoint, CheckpointRecord)

    def export(self, checkpoint: Union[_Path, CheckpointRecord], to: _Path, *,
               dtype: Optional[str] = None, tokenizer: Optional[_Path] = None,
               timeout: float = _EXPORT_SECONDS) -> Dict[str, Any]:
        """Writes the weights of a checkpoint as a Hugging Face directory, as `troupe checkpoints
        export` does, which has to be installed here. `checkpoint` is a record, or a path or
        JOB[@STEP] as the command takes them; this host needs its files. Returns what the command
        prints with -o json. Raises DeadlineExceeded after `timeout` seconds."""
        source = checkpoint.path if isinstance(checkpoint, CheckpointRecord) else (
            os.fspath(checkpoint))
        flags = [] if dtype is None else ["--dtype", dtype]
        flags += [] if tokenizer is None else ["--tokenizer", os.path.abspath(tokenizer)]
        return self._run(["checkpoints", "export", source, "--to", os.path.abspath(to), *flags],
                         timeout)

    def report(self, job: str, output: _Path, *, trace_step: Optional[int] = None,
               timeout: float = _PROGRAM_SECONDS) -> str:
        """Draws what a job did into an HTML file, as `troupe report` does, which has to be
        installed here. Returns the file's path. Raises DeadlineExceeded after `timeout` seconds."""
        path = os.path.abspath(output)
        flags = [] if trace_step is None else ["--trace-step", str(trace_step)]
        self._run(["report", job, "--output", path, *flags], timeout)
        return path

    def trace(self, job: str, output: _Path, first_step: int, last_step: Optional[int] = None, *,
              timeout: float = _PROGRAM_SECONDS) -> str:
        """Writes a timeline of these steps for Perfetto, as `troupe trace` does, which has to be
        installed here; waits for steps in the future. Returns the file's path. Raises
        DeadlineExceeded after `timeout` seconds."""
        path = os.path.abspath(output)
        steps = f"{first_step}:{first_step if last_step is None else last_step}"
        self._run(["trace", job, "--steps", steps, "--output", path], timeout)
        return path

    def logs(self, job: str, rank: Optional[int] = None) -> Iterator[str]:
        """Yields the lines of the logs of all ranks, or of one."""
        request = service_pb2.ReadJobLogsRequest(name=_job_name(job), rank=rank)
        connection = self._connected(self._timeout)
        call = connection.jobs.ReadJobLogs(request, timeout=self._timeout,
                                           metadata=connection.metadata)
        try:
            for response in call:
                connection.warn_if_insecure(call)
                yield from response.lines
        except grpc.RpcError as error:
            raise self._error(error) from None
        finally:
            call.cancel()

    def watch(self, job: str, from_step: int = 0,
              timeout: Optional[float] = None) -> Iterator[Update]:
        """Yields the steps and events of a job from its history and as they happen, then End.

        A step that is repeated after a recovery comes again with a higher group_epoch; nothing else
        comes twice. While the coordinator is away, for up to a minute, the iterator waits and then
        continues. Raises DeadlineExceeded after `timeout` seconds.
        """
        name, seen, pauses = _job_name(job), _Seen(), _Pauses()
        end = None if timeout is None else time.monotonic() + timeout
        away_since = time.monotonic()
        start = from_step
        while True:
            heard = False
            try:
                for update in self._updates(name, start, end):
                    heard = True
                    if isinstance(update, End):
                        yield update
                        return
                    # The group was formed anew while the coordinator was away: steps before `start`
                    # may have been repeated, so the history is read again.
                    if start > from_step and update.group_epoch > seen.epoch:
                        start = from_step
                        break
                    if seen.is_new(update):
                        yield update
                else:
                    start = max(from_step, seen.last_step + 1)
            except errors.Unavailable as error:
                if end is not None and time.monotonic() >= end:
                    raise errors.DeadlineExceeded(f"not within {timeout} s: {error}") from error
                start = max(from_step, seen.last_step + 1)
                untrusted = isinstance(error, errors.Untrusted)
                limit = _ROTATION_SECONDS if untrusted else _AWAY_SECONDS
                if not heard and time.monotonic() - away_since > limit:
                    raise
                _log.info("%s", printable(
                    f"the watch of {name} waits for the coordinator: {error}"))
            except errors.ResourceExhausted:
                # This watcher read too slowly, or it may not watch.
                if not heard:
                    raise
                start = max(from_step, seen.last_step + 1)
            except errors.Unauthenticated:
                # The certificate with which the stream began has expired, and may have been
                # renewed since. A stream that does not begin ends the watch.
                if not heard:
                    raise
                start = max(from_step, seen.last_step + 1)
            if heard:
                away_since, pauses = time.monotonic(), _Pauses()
            pauses.wait(float("inf") if end is None else end - time.monotonic())

    def wait(self, job: str, timeout: Optional[float] = None) -> JobState:
        """Returns the final state of a job when it has ended. Raises DeadlineExceeded after
        `timeout` seconds."""
        for update in self.watch(job, _BEYOND_HISTORY, timeout):
            if isinstance(update, End):
                return update.state
        raise AssertionError("a watch ends with End")

    def _run(self, arguments: List[str], timeout: float) -> Dict[str, Any]:
        """Runs the program `troupe` with this client's coordinator and identity."""
        if self._token is not None:
            raise errors.InvalidArgument("the program troupe reads a token from a file only: make "
                                         "the client with token_file")
        environment = {"TROUPE_COORDINATOR": self._connections.address,
                       "TROUPE_TLS_DIR": self._tls_dir, "TROUPE_TOKEN_FILE": self._token_file}
        return run_program(arguments, {key: value for key, value in environment.items() if value},
                           timeout)

    def _updates(self, name: str, from_step: int, end: Optional[float]) -> Iterator[Update]:
        """Yields the updates of one stream."""
        connection = self._connections.get(
            HANDSHAKE_SECONDS if end is None else max(_LEAST_SECONDS, end - time.monotonic()))
        request = service_pb2.WatchJobRequest(name=name, from_step=from_step)
        limit = None if end is None else max(0.0, end - time.monotonic())
        call = connection.jobs.WatchJob(request, timeout=limit,
                                        metadata=connection.metadata)
        try:
            for response in call:
                connection.warn_if_insecure(call)
                kind = response.WhichOneof("update")
                if kind == "step":
                    yield to_dataclass(response.step, StepEvent)
                elif kind == "event":
                    yield to_dataclass(response.event, JobEvent)
                elif kind == "end":
                    yield End(state_of(response.end))
        except grpc.RpcError as error:
            raise self._error(error, connection) from None
        finally:
            call.cancel()

    def _pages(self, method: _Method[T], request: Any) -> Iterator[T]:
        """Yields the pages of a list. The coordinator chooses their tokens, so a list whose token
        comes again would have no end."""
        earlier: Set[str] = set()
        while True:
            page: Any = self._call(method, request)
            yield page
            token = page.next_page_token
            if not token:
                return
            if token in earlier:
                endless = errors.TroupeError(
                    f"the coordinator repeats the page token {token!r}, so that its list has no "
                    "end")
                endless.code = "INTERNAL"
                raise endless
            earlier.add(token)
            request.page_token = token

    def _call(self, method: _Method[T], request: Any,
              limit: Optional[float] = None,
              invalid: Type[errors.InvalidArgument] = errors.InvalidArgument) -> T:
        """Makes a call that may be repeated, until it succeeds or the limit has passed."""
        begin, pauses = time.monotonic(), _Pauses()
        end = begin + (self._timeout if limit is None else limit)
        rotated = begin + _ROTATION_SECONDS
        unavailable: Optional[errors.Unavailable] = None
        while True:
            try:
                return self._try(method, request, end, invalid)
            except errors.Unavailable as error:
                untrusted = isinstance(error, errors.Untrusted)
                if time.monotonic() >= (min(end, rotated) if untrusted else end):
                    raise
                unavailable = error
            except errors.DeadlineExceeded:
                if unavailable is not None:
                    raise unavailable from None
                raise
            pauses.wait(end - time.monotonic())

    def _call_once(self, method: _Method[T], request: Any,
                   limit: float,
                   invalid: Type[errors.InvalidArgument] = errors.InvalidArgument) -> T:
        """Makes a call that must not be repeated, once there is a connection."""
        end = time.monotonic() + limit
        self._connected(min(_CONNECT_SECONDS, limit))
        return self._try(method, request, end, invalid)

    def _try(self, method: _Method[T], request: Any, end: float,
             invalid: Type[errors.InvalidArgument]) -> T:
        connection = self._connections.get(max(_LEAST_SECONDS, end - time.monotonic()))
        try:
            response, call = method(connection).with_call(
                request, timeout=max(_LEAST_SECONDS, end - time.monotonic()),
                metadata=connection.metadata)
        except grpc.RpcError as error:
            raise self._error(error, connection, invalid) from None
        connection.warn_if_insecure(call)
        return response

    def _connected(self, limit: float) -> Connection:
        """Returns a connection that is ready. With TLS, a coordinator that has a new certificate is
        reached by a new channel only, so no channel is given all the time."""
        begin, pauses = time.monotonic(), _Pauses()
        end = begin + limit
        while True:
            try:
                connection = self._connections.get(max(_LEAST_SECONDS, end - time.monotonic()))
                self._await_ready(connection, min(end - time.monotonic(), _READY_SECONDS))
                return connection
            except errors.Unavailable as error:
                untrusted = isinstance(error, errors.Untrusted)
                if time.monotonic() >= (min(end, begin + _ROTATION_SECONDS) if untrusted else end):
                    raise
            pauses.wait(end - time.monotonic())

    def _await_ready(self, connection: Connection, limit: float) -> None:
        ready = grpc.channel_ready_future(connection.channel)
        try:
            ready.result(max(0.0, limit))
        except grpc.FutureTimeoutError:
            ready.cancel()
            self._connections.lost(connection)
            raise errors.Unavailable(f"{self._connections.address}: it does not answer") from None

    def _error(self, error: grpc.RpcError, connection: Optional[Connection] = None,
               invalid: Type[errors.InvalidArgument] = errors.InvalidArgument
               ) -> errors.TroupeError:
        """Converts the error of a call. It is raised `from None`: a traceback would show the text
        of gRPC's error with its control characters."""
        converted = errors.from_rpc(error, self._connections.address, invalid)
        if connection is not None and isinstance(error, grpc.Call):
            connection.warn_if_insecure(error)
        if isinstance(converted, errors.Unavailable) and connection is not None:
            self._connections.lost(connection)
        return converted
