"""Client of Troupe, a distributed training service.

    import troupe

    with troupe.Client() as client:              # the coordinator in TROUPE_COORDINATOR
        job = client.submit("job.yaml")
        for update in client.watch(job):
            if isinstance(update, troupe.StepEvent):
                print(update.step, update.loss)
"""

from importlib.metadata import version as _version

from troupe._client import Client, End, Update
from troupe._job_file import JobInput
from troupe.errors import (AlreadyExists, DeadlineExceeded, FailedPrecondition, InsecureWarning,
                           InvalidArgument, InvalidJob, NotFound, PermissionDenied,
                           ProgramNotFound, ResourceExhausted, TroupeError, Unauthenticated,
                           Unavailable, Untrusted, Violation)
from troupe.messages import (CheckpointRecord, CheckpointState, Job, JobEvent, JobState, Plan,
                             StepEvent, WorkerStatus)

__all__ = [
    "AlreadyExists", "CheckpointRecord", "CheckpointState", "Client", "DeadlineExceeded", "End",
    "FailedPrecondition", "InsecureWarning", "InvalidArgument", "InvalidJob", "Job", "JobEvent",
    "JobInput", "JobState", "NotFound", "PermissionDenied", "Plan", "ProgramNotFound",
    "ResourceExhausted", "StepEvent", "TroupeError", "Unauthenticated", "Unavailable", "Untrusted",
    "Update", "Violation", "WorkerStatus",
]

__version__ = _version("troupe")
