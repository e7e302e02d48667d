"""The exceptions of the client: one for each status of the protocol that a caller may handle."""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple, Type, cast

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from troupe._printable import printable


class Violation(NamedTuple):
    """A field that is wrong, and why: "training.steps", "is 0, below 1"."""

    field: str
    description: str

    def __str__(self) -> str:
        return printable(f"{self.field} {self.description}")


class TroupeError(Exception):
    """The coordinator refused a call, or could not be reached.

    `code` is the name of the status, such as "NOT_FOUND"; `violations` has the fields at fault.
    `message` is the text as it came, with any characters; str() of an exception shows its control
    characters as \\uNNNN.
    """

    code = "UNKNOWN"

    def __init__(self, message: str, violations: Tuple[Violation, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.violations = violations

    def __str__(self) -> str:
        # Each violation has a line.
        return printable(self.message, keeps_newlines=bool(self.violations))


class InsecureWarning(UserWarning):
    """The coordinator runs with --insecure: whoever reaches it has every role."""


class InvalidArgument(TroupeError):
    code = "INVALID_ARGUMENT"


class InvalidJob(InvalidArgument):
    """A job that cannot be read or planned; `violations` names every key that is wrong."""


class NotFound(TroupeError):
    code = "NOT_FOUND"


class AlreadyExists(TroupeError):
    """The request id was used before, for another job."""

    code = "ALREADY_EXISTS"


class FailedPrecondition(TroupeError):
    """The state of the job or of the cluster does not permit the call now."""

    code = "FAILED_PRECONDITION"


class PermissionDenied(TroupeError):
    """The role of the caller does not permit the call."""

    code = "PERMISSION_DENIED"


class Unauthenticated(TroupeError):
    """The certificate or token of the caller is not valid."""

    code = "UNAUTHENTICATED"


class ResourceExhausted(TroupeError):
    """A quota or a limit is reached."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(TroupeError):
    """The coordinator cannot be reached."""

    code = "UNAVAILABLE"


class Untrusted(Unavailable):
    """The TLS handshake failed: one side does not accept the certificate of the other."""


class DeadlineExceeded(TroupeError, TimeoutError):
    code = "DEADLINE_EXCEEDED"


class ProgramNotFound(TroupeError):
    """The program `troupe`, which does what the method needs, is not installed here."""

    code = "PROGRAM_NOT_FOUND"


_CLASSES: Dict[str, Type[TroupeError]] = {
    error.code: error
    for error in (InvalidArgument, NotFound, AlreadyExists, FailedPrecondition, PermissionDenied,
                  Unauthenticated, ResourceExhausted, Unavailable, DeadlineExceeded)
}


def _violations(call: grpc.Call) -> Tuple[Violation, ...]:
    found = []
    for key, value in call.trailing_metadata() or ():
        if key != "grpc-status-details-bin" or not isinstance(value, bytes):
            continue
        try:
            details = status_pb2.Status.FromString(value).details
        except DecodeError:
            continue
        for detail in details:
            request = error_details_pb2.BadRequest()
            if detail.Unpack(request):
                found += [Violation(each.field, each.description)
                          for each in request.field_violations]
    return tuple(found)


def invalid_job(violations: Tuple[Violation, ...]) -> InvalidJob:
    message = "\n".join(f"{each.field} {each.description}" for each in violations)
    return InvalidJob(message, violations)


def from_rpc(error: grpc.RpcError, address: str,
             invalid: Type[InvalidArgument] = InvalidArgument) -> TroupeError:
    """Converts the error of a call to `address`; INVALID_ARGUMENT becomes `invalid`."""
    call = cast(grpc.Call, error)
    code = call.code().name
    message = call.details() or code
    kind = invalid if code == InvalidArgument.code else _CLASSES.get(code, TroupeError)
    if kind is Unavailable:
        message = f"{address}: {message}"
    ours = kind(message, _violations(call))
    if kind is TroupeError:
        ours.code = code
    return ours
