"""examples/python/log_run.py against a stand-in of MLflow's server and of the package wandb."""

import contextlib
import http.server
import io
import json
import math
import os
import pathlib
import socket
import sys
import threading
import time
import types
import unittest
import unittest.mock
import urllib.parse

import troupe
from fake import FakeCoordinator, end, event, step
from troupe.v1 import job_pb2, service_pb2

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples/python"))
import log_run  # noqa: E402


class FakeMlflow(http.server.ThreadingHTTPServer):
    """Keeps experiments and runs as MLflow's server does, with its limits. `failures` has the
    statuses to answer the next calls with."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.experiments, self.runs = {}, {}
        self.calls, self.failures, self.headers = [], [], []
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.shutdown()
        self.server_close()
        self.thread.join()

    def answer(self, method, body):
        """Returns a status and a message."""
        if method == "experiments/create":
            if body["name"] in self.experiments:
                return 400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "taken"}
            self.experiments[body["name"]] = str(len(self.experiments))
            return 200, {"experiment_id": self.experiments[body["name"]]}
        if method == "experiments/get-by-name":
            return 200, {"experiment": {"experiment_id": self.experiments[body["experiment_name"]]}}
        if method == "runs/create":
            run = {"info": {"run_id": f"run-{len(self.runs)}", "status": "RUNNING"}, "metrics": [],
                   "params": {}, "tags": {tag["key"]: tag["value"] for tag in body["tags"]}}
            self.runs[run["info"]["run_id"]] = run
            return 200, {"run": {"info": run["info"]}}
        if method == "runs/search":
            return 200, self.search(body["filter"])
        run = self.runs[body["run_id"]]
        if method == "runs/update":
            run["info"].update(body)
            return 200, {}
        entries = body.get("metrics", []) + body.get("params", [])
        if len(entries) > 1000 or len(body.get("params", [])) > 100:
            return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "too many"}
        run["metrics"] += body.get("metrics", [])
        run["params"].update((each["key"], each["value"]) for each in body.get("params", []))
        return 200, {}

    def search(self, text):
        wanted = dict(part.removeprefix("tags.`").rstrip("'").split("` = '")
                      for part in text.split(" and "))
        for run in self.runs.values():
            if run["tags"] == wanted:
                newest = {metric["key"]: metric for metric in run["metrics"]}
                return {"runs": [{"info": run["info"],
                                  "data": {"metrics": list(newest.values())}}]}
        return {}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"])),
                              parse_constant=lambda word: self.fail(word)))

    def do_GET(self):
        self.reply(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)))

    def fail(self, word):
        raise AssertionError(f"{word} is no JSON")

    def reply(self, body):
        method = urllib.parse.urlsplit(self.path).path.removeprefix("/api/2.0/mlflow/")
        self.server.calls.append((method, body))
        self.server.headers.append(dict(self.headers))
        if self.server.failures:
            status, message = self.server.failures.pop(0), {}
        else:
            status, message = self.server.answer(method, body)
        data = json.dumps(message).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def described(name="jobs/a"):
    return troupe._client.to_dataclass(service_pb2.Job(
        name=name, create_wall_time_ns=7_000_000, spec=job_pb2.JobSpec(
            name="a", training=job_pb2.TrainingSpec(steps=3, sequence_length=64))), troupe.Job)


class MlflowTest(unittest.TestCase):
    def setUp(self):
        cleanup = contextlib.ExitStack()
        self.addCleanup(cleanup.close)
        self.mlflow = FakeMlflow()
        cleanup.callback(self.mlflow.close)
        cleanup.enter_context(unittest.mock.patch.dict(os.environ, {"NO_PROXY": "127.0.0.1"}))

    def log(self, updates):
        """Logs what a watch yields, in a new process as it were, and returns the requests."""
        with FakeCoordinator([updates]) as server, troupe.Client(server.address) as client:
            log = log_run.Mlflow(self.mlflow.url, "tests", described())
            state = log_run.follow(client, described(), log)
            return state, server.requests

    def metrics(self, key="loss"):
        return [(metric["step"], metric["value"]) for run in self.mlflow.runs.values()
                for metric in run["metrics"] if metric["key"] == key]

    def test_a_job_is_a_run_with_its_keys_and_steps(self):
        first = step(1)
        first.step.mfu = 0.5
        first.step.wall_time_ns = 1_700_000_000_000_000_000
        self.assertEqual(self.log([first, step(2), end()])[0], "SUCCEEDED")
        run, = self.mlflow.runs.values()
        self.assertEqual(run["params"]["training.sequence_length"], "64")
        self.assertEqual(run["tags"], {"troupe.job": "jobs/a", "troupe.created": "7000000"})
        self.assertEqual(run["info"]["status"], "FINISHED")
        self.assertEqual(self.metrics(), [(1, 1.0), (2, 0.5)])
        self.assertEqual(self.metrics("mfu"), [(1, 0.5)])
        self.assertEqual(run["metrics"][0]["timestamp"], 1_700_000_000_000)

    def test_all_times_are_those_of_the_job(self):
        hour = 3_600_000_000_000
        first, untimed = step(1), step(2)
        first.step.wall_time_ns = hour
        self.log([first, untimed, event("SUCCEEDED", 2, time=2 * hour), end()])
        run, = self.mlflow.runs.values()
        self.assertEqual([metric["timestamp"] for metric in run["metrics"]
                          if metric["key"] == "loss"], [3_600_000, 3_600_000])
        self.assertEqual(run["info"]["end_time"], 7_200_000)
        created, = [body for method, body in self.mlflow.calls if method == "runs/create"]
        self.assertEqual(created["start_time"], 7)

    def test_it_goes_on_behind_the_last_step_of_the_run(self):
        self.log([step(1), step(2), end(service_pb2.JOB_STATE_CANCELLED)])
        run, = self.mlflow.runs.values()
        self.assertEqual(run["info"]["status"], "KILLED")
        # The job was resumed. The coordinator also sends what a recovery repeats.
        _, requests = self.log([step(3), step(2, 2), step(3, 2), step(4, 2), end()])
        self.assertEqual(requests[-1].from_step, 3)
        self.assertEqual(list(self.mlflow.runs), ["run-0"])
        self.assertEqual([number for number, _ in self.metrics()], [1, 2, 3, 4])
        self.assertEqual(run["info"]["status"], "FINISHED")

    def test_a_step_without_the_loss_counts_as_logged(self):
        self.log([step(1), end()])
        run, = self.mlflow.runs.values()
        run["metrics"].append({"key": "grad_norm", "value": 1.0, "step": 4})
        run["metrics"].append({"key": "of_somebody_else", "value": 1.0, "step": 9})
        _, requests = self.log([end()])
        self.assertEqual(requests[-1].from_step, 5)

    def test_numbers_that_are_not_finite_are_words(self):
        odd = step(1)
        odd.step.loss, odd.step.grad_norm = math.nan, math.inf
        self.log([odd, end(service_pb2.JOB_STATE_FAILED)])
        self.assertEqual(self.metrics(), [(1, "NaN")])
        self.assertEqual(self.metrics("grad_norm"), [(1, "Infinity")])
        run, = self.mlflow.runs.values()
        self.assertEqual(run["info"]["status"], "FAILED")

    def test_a_long_history_is_logged_in_batches_within_the_limit(self):
        with unittest.mock.patch.object(log_run, "FLUSH_SECONDS", 3600.0):
            self.log([*map(step, range(1, 601)), end()])
        self.assertEqual([number for number, _ in self.metrics()], list(range(1, 601)))
        sizes = [len(body["metrics"]) for method, body in self.mlflow.calls
                 if method == "runs/log-batch" and "metrics" in body]
        self.assertLessEqual(max(sizes), 1000)
        self.assertLess(len(sizes), 10)
        # No step is in two batches: a run that was stopped between them would lack figures.
        batches = [{metric["step"] for metric in body["metrics"]}
                   for method, body in self.mlflow.calls
                   if method == "runs/log-batch" and "metrics" in body]
        self.assertEqual(sum(map(len, batches)), 600)

    def test_a_server_that_is_away_for_a_while_is_called_again(self):
        self.mlflow.failures = [503, 429]
        self.log([step(1), end()])
        self.assertEqual(self.metrics(), [(1, 1.0)])
        self.mlflow.failures = [401]
        with self.assertRaisesRegex(log_run.MlflowError, "HTTP 401"):
            self.log([step(1), end()])

    def test_credentials_are_those_of_mlflows_own_client(self):
        with unittest.mock.patch.dict(os.environ, {"MLFLOW_TRACKING_TOKEN": "abc"}):
            self.log([end()])
        self.assertEqual({headers["Authorization"] for headers in self.mlflow.headers},
                         {"Bearer abc"})
        with unittest.mock.patch.dict(os.environ, {"MLFLOW_TRACKING_USERNAME": "a",
                                                   "MLFLOW_TRACKING_PASSWORD": "b"}):
            self.assertEqual(log_run.authorization(), {"Authorization": "Basic YTpi"})


class MainTest(unittest.TestCase):
    """The whole program: what cannot be used is a sentence within five seconds."""

    def main(self, *arguments):
        """Returns the exit code and the message of a job's copy."""
        err = io.StringIO()
        with FakeCoordinator() as server, contextlib.redirect_stderr(err), \
                unittest.mock.patch.dict(os.environ, TROUPE_COORDINATOR=server.address,
                                         NO_PROXY="127.0.0.1"), \
                unittest.mock.patch.object(sys, "argv", ["log_run.py", "a", *arguments]):
            began = time.monotonic()
            code = log_run.main()
            self.assertLess(time.monotonic() - began, 5)
        return code, err.getvalue()

    def test_a_package_that_is_missing_is_a_sentence(self):
        with unittest.mock.patch.dict(sys.modules, {"wandb": None}):
            code, message = self.main("--wandb", "p")
        self.assertEqual(code, 1)
        self.assertRegex(message,
                         r"^log_run: --wandb needs the package wandb .*pip install wandb\n$")

    def test_a_login_that_is_missing_is_a_sentence(self):
        class Error(Exception):
            pass

        def init(**_):
            raise Error("no API key\nconfigured")

        package = types.SimpleNamespace(init=init, Error=Error)
        with unittest.mock.patch.dict(sys.modules, {"wandb": package}):
            code, message = self.main("--wandb", "p")
        self.assertEqual((code, message),
                         (1, "log_run: Weights & Biases cannot be used: no API key configured\n"))

    def test_a_server_that_is_not_there_is_a_sentence(self):
        self.assertLess(log_run.FIRST_ANSWER_SECONDS, 4.5)
        with unittest.mock.patch.object(log_run, "FIRST_ANSWER_SECONDS", 1.0):
            self.check_a_server_that_is_not_there()

    def check_a_server_that_is_not_there(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and never answers
            port = silent.getsockname()[1]
            code, message = self.main("--mlflow", f"http://127.0.0.1:{port}")
            self.assertEqual(code, 1)
            self.assertIn(f"MLflow cannot be reached at http://127.0.0.1:{port}/", message)
            self.assertIn("it has not answered within 1 s", message)
        code, message = self.main("--mlflow", f"http://127.0.0.1:{port}")
        self.assertEqual((code, message.count("\n")), (1, 1))
        self.assertIn("Connection refused", message)

    def test_a_server_of_something_else_is_a_sentence(self):
        class Page(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"<html>")

        with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            code, message = self.main("--mlflow", f"http://127.0.0.1:{server.server_address[1]}")
            thread.join()
        self.assertEqual(code, 1)
        self.assertIn("answers with what is no JSON", message)


class FakeWandbRun:
    def __init__(self, step):
        self.step, self.logged, self.exit_code = step, [], None

    def log(self, values, step):
        self.logged.append((step, values["loss"], values["_timestamp"]))

    def finish(self, exit_code):
        self.exit_code = exit_code


class WandbTest(unittest.TestCase):
    def test_a_run_that_is_resumed_gets_the_steps_that_it_lacks(self):
        run, asked = FakeWandbRun(step=3), {}

        def init(**arguments):
            asked.update(arguments)
            return run

        package = types.SimpleNamespace(init=init, Error=Exception)
        with unittest.mock.patch.dict(sys.modules, {"wandb": package}), \
                FakeCoordinator([[step(2), step(3), step(4), end()]]) as server, \
                troupe.Client(server.address) as client:
            log_run.follow(client, described("jobs/lab.a"),
                           log_run.Wandb("project", described("jobs/lab.a")))
        self.assertEqual(run.logged, [(3, 1 / 3, 0.007), (4, 1 / 4, 0.007)])
        self.assertEqual(run.exit_code, 0)
        self.assertEqual(asked["id"], "lab-a-7000000")
        self.assertEqual(asked["resume"], "allow")
        self.assertEqual(asked["config"]["training.steps"], "3")


if __name__ == "__main__":
    unittest.main()
