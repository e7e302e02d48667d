"""A terminal and a log get no control characters of a coordinator's texts."""

import traceback
import unittest

import grpc

import troupe
from fake import FakeCoordinator, end
from troupe._printable import printable
from troupe.v1 import service_pb2

TEXT = "no\x1b[2J\nI \x9b\u202eforged"
SHOWN = "no\\u001b[2J\\nI \\u009b\\u202eforged"


def refuse(context):
    context.abort(grpc.StatusCode.NOT_FOUND, TEXT)


def go_away(context):
    context.abort(grpc.StatusCode.UNAVAILABLE, TEXT)


class HostileCoordinator(FakeCoordinator):
    def CreateJob(self, request, context):
        job = service_pb2.Job(name="jobs/a")
        job.plan.warnings.append(TEXT)
        return service_pb2.CreateJobResponse(job=job)

    def GetJob(self, request, context):
        refuse(context)

    def ReadJobLogs(self, request, context):
        refuse(context)


class PrintableTest(unittest.TestCase):
    def test_control_characters_are_shown_by_their_numbers(self):
        for text, shown in (("a\tb \u00e9\u2027\u202f\u2065\u206a", None),
                            ("\x00\x08\x0b\x1f", "\\u0000\\u0008\\u000b\\u001f"),
                            ("\x7f\x80\x9f\xa0", "\\u007f\\u0080\\u009f\xa0"),
                            ("\u2028\u2029\u202a", "\\u2028\\u2029\\u202a"),
                            ("\u202e\u2066\u2069", "\\u202e\\u2066\\u2069"),
                            ("a\r\nb", "a\\r\\nb")):
            self.assertEqual(printable(text), text if shown is None else shown)
        self.assertEqual(printable("a\r\nb", keeps_newlines=True), "a\\r\nb")

    def test_an_exception_and_its_traceback_show_none_and_its_attributes_are_as_they_came(self):
        with HostileCoordinator([refuse]) as server, troupe.Client(server.address) as client:
            for call in (lambda: client.get("a"), lambda: list(client.logs("a")),
                         lambda: list(client.watch("a"))):
                with self.assertRaises(troupe.NotFound) as raised:
                    call()
                error = raised.exception
                self.assertEqual((error.message, str(error)), (TEXT, SHOWN))
                shown = "".join(traceback.format_exception(type(error), error,
                                                           error.__traceback__))
                self.assertIn(SHOWN, shown)
                self.assertNotIn("\x1b", shown)

    def test_violations_have_a_line_each(self):
        violations = (troupe.Violation("a.b", "is \x1b"), troupe.Violation("c", "is 0"))
        error = troupe.InvalidJob("a.b is \x1b\nc is 0", violations)
        self.assertEqual(str(error), "a.b is \\u001b\nc is 0")
        self.assertEqual(str(error.violations[0]), "a.b is \\u001b")
        self.assertEqual(error.violations[0].description, "is \x1b")

    def test_a_log_has_one_record_in_a_line(self):
        with HostileCoordinator([go_away, [end()]]) as server:
            with troupe.Client(server.address) as client:
                with self.assertLogs("troupe", "INFO") as logged:
                    client.submit({"name": "a"})
                    client.wait("a")
        self.assertEqual([record.getMessage() for record in logged.records],
                         [f"jobs/a: {SHOWN}", "the watch of jobs/a waits for the coordinator: "
                          f"{server.address}: {SHOWN}"])


if __name__ == "__main__":
    unittest.main()
