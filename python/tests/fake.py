"""A coordinator of a test: a server of the real protocol whose answers the test states."""

import concurrent.futures
import pathlib
import subprocess
import threading

import grpc

from google.rpc import error_details_pb2, status_pb2
from troupe.v1 import checkpoint_pb2, service_pb2, service_pb2_grpc


def refuse(context, field, description):
    """Ends a call as a coordinator does that finds a field wrong."""
    status = status_pb2.Status(code=3, message=f"{field} {description}")
    status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[
        error_details_pb2.BadRequest.FieldViolation(field=field, description=description)]))
    context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString())])
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, status.message)


class FakeCoordinator(service_pb2_grpc.JobServiceServicer,
                      service_pb2_grpc.CheckpointServiceServicer):
    """Serves `streams`, one for each WatchJob call: a list of updates, which ends with `broken`
    unless its last update is an end, or a function of the call's context. `requests` has all
    requests."""

    def __init__(self, streams=(), port=0, tls=None, needs_certificate=True):
        self.streams = list(streams)
        self.requests = []
        self.metadata = []
        self.certificates = []  # of the clients, by request; None: without
        self.unavailable = 0  # calls to refuse
        self.violation = None  # the field and the description for which CreateJob is refused
        self.repeats_token = False  # whether every page of a list has the same token
        self.checkpoints = []  # all of them
        self.insecure = False  # whether it shows that it runs with --insecure
        self.broken = grpc.StatusCode.UNAVAILABLE  # of a stream that ends before its job
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        service_pb2_grpc.add_JobServiceServicer_to_server(self, self.server)
        service_pb2_grpc.add_CheckpointServiceServicer_to_server(self, self.server)
        address = f"127.0.0.1:{port}"
        if tls is None:
            self.port = self.server.add_insecure_port(address)
        else:
            authority, certificate, key = ((tls / name).read_bytes()
                                           for name in ("ca.pem", "cert.pem", "key.pem"))
            self.port = self.server.add_secure_port(
                address, grpc.ssl_server_credentials(
                    [(key, certificate)], authority if needs_certificate else None,
                    needs_certificate))
        self.address = f"127.0.0.1:{self.port}"
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait()

    def record(self, request, context):
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        self.certificates.append(context.auth_context().get("x509_pem_cert"))
        if self.insecure:
            context.send_initial_metadata([("troupe-insecure", "1")])
        if self.unavailable > 0:
            self.unavailable -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "restarting")

    def CreateJob(self, request, context):
        self.record(request, context)
        if self.violation is not None:
            refuse(context, *self.violation)
        return service_pb2.CreateJobResponse(
            job=service_pb2.Job(name=f"jobs/{request.job.name}"))

    def GetJob(self, request, context):
        self.record(request, context)
        return service_pb2.GetJobResponse(
            job=service_pb2.Job(name=request.name, state=service_pb2.JOB_STATE_RUNNING))

    def DeleteJob(self, request, context):
        self.record(request, context)
        return service_pb2.DeleteJobResponse(job=service_pb2.Job(name=request.name))

    def ReadJobLogs(self, request, context):
        self.record(request, context)
        yield service_pb2.ReadJobLogsResponse(lines=["first", "second"])

    def ListJobs(self, request, context):
        self.record(request, context)
        first = int(request.page_token or 0)
        last = min(first + request.page_size, 5)
        return service_pb2.ListJobsResponse(
            jobs=[service_pb2.Job(name=f"jobs/{i}") for i in range(first, last)],
            next_page_token="2" if self.repeats_token else str(last) if last < 5 else "")

    def ListCheckpoints(self, request, context):
        self.record(request, context)
        first = int(request.page_token or 0)
        last = first + 1
        return service_pb2.ListCheckpointsResponse(
            checkpoints=self.checkpoints[first:last],
            next_page_token=str(last) if last < len(self.checkpoints) else "")

    def CreateCheckpoint(self, request, context):
        self.record(request, context)
        return service_pb2.CreateCheckpointResponse(checkpoint=self.checkpoints[-1])

    def PinCheckpoint(self, request, context):
        self.record(request, context)
        return service_pb2.PinCheckpointResponse(checkpoint=checkpoint_pb2.CheckpointRecord(
            job=request.job, pinned=request.pinned))

    def WatchJob(self, request, context):
        self.record(request, context)
        updates = self.streams.pop(0)
        if callable(updates):
            updates(context)
            return
        yield from updates
        if updates[-1].WhichOneof("update") != "end":
            context.abort(self.broken, "restarting")


def silence(context):
    """Keeps a stream open until its client ends it, for ten seconds at most."""
    ended = threading.Event()
    context.add_callback(ended.set)
    ended.wait(10)


def step(number, epoch=1):
    return service_pb2.WatchJobResponse(
        step=service_pb2.StepEvent(step=number, group_epoch=epoch, loss=1 / number))


def event(word, number=0, epoch=1, time=1):
    return service_pb2.WatchJobResponse(
        event=service_pb2.JobEvent(event=word, step=number, group_epoch=epoch, wall_time_ns=time))


def end(state=service_pb2.JOB_STATE_SUCCEEDED):
    return service_pb2.WatchJobResponse(end=state)


class Authority:
    """An authority for certificates, made with the program openssl, in `folder`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj",
                     "/CN=authority")

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def issue(self, directory, identity, name="node", host=None):
        """Makes a TLS directory for spiffe://IDENTITY and a host, such as "DNS:localhost"."""
        directory.mkdir(exist_ok=True)
        names = f"URI:spiffe://{identity}" + (f",{host}" if host else "")
        (self.folder / "names").write_text(f"subjectAltName={names}\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-keyout", directory / "key.pem", "-out", "request", "-subj", f"/CN={name}")
        self.openssl("x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key",
                     "-CAcreateserial", "-out", directory / "cert.pem", "-days", "2", "-extfile",
                     "names")
        (directory / "ca.pem").write_bytes((self.folder / "ca.pem").read_bytes())
        return directory
