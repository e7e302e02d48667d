"""A stand-in for the API server of Kubernetes: the part of its REST interface that the coordinator
uses for TroupeJobs and pods, with the answers that version 1.36 gives. Tests change objects as
kubectl does, and make it answer with errors."""

import copy
import datetime
import http.server
import json
import re
import ssl
import threading
import time
import urllib.parse
import uuid

BASE = "/apis/troupe.dev/v1alpha1/namespaces/troupe/troupejobs"
EVENTS = "/apis/events.k8s.io/v1/namespaces/troupe/events"
PODS = "/api/v1/namespaces/troupe/pods/"
# The fields of the status that the definition declares.
STATUS_FIELDS = {"observedGeneration", "state", "jobName", "step", "steps", "loss", "mfu",
                 "restarts", "remainingSeconds", "lastCheckpoint", "conditions"}
CONDITION_FIELDS = {"type", "status", "reason", "message", "observedGeneration",
                    "lastTransitionTime"}


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, code, message, headers=None):
        super().__init__(message)
        self.code, self.message, self.headers = code, message, headers or {}


def check_event(event):
    """Refuses an event as the API server does."""
    name = event["metadata"]["name"]
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name) or len(name) > 253:
        raise Refused(422, f"metadata.name: Invalid value: {name}")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["eventTime"]):
        raise Refused(422, f"eventTime: {event['eventTime']}")
    if len(event["note"].encode()) > 1024:
        raise Refused(422, "note: can have at most 1024 characters")
    for field in ("reason", "action", "reportingController", "reportingInstance", "type"):
        if not event.get(field):
            raise Refused(422, f"{field}: Required value")
    if not event["regarding"]["uid"]:
        raise Refused(422, "regarding.uid is empty")


def apply_json_patch(target, operations):
    """Performs the operations of a JSON patch on a copy, which it returns."""
    target = copy.deepcopy(target)
    for operation in operations:
        *path, last = operation["path"].strip("/").split("/")
        parent = target
        for part in path:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        key = int(last) if isinstance(parent, list) else last
        if operation["op"] == "test":
            try:
                same = parent[key] == operation["value"]
            except (KeyError, IndexError):
                same = False
            if not same:
                raise Refused(422, "the server rejected our request due to an error in our request")
        elif operation["op"] == "add":
            parent[key] = operation["value"]
        elif operation["op"] == "remove":
            del parent[key]
    return target


def apply_merge_patch(target, patch):
    """Returns the target of a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_merge_patch(merged.get(key), value)
    return merged


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    stand_in = None  # that of a subclass
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # header and body are two writes
    timeout = 60

    def log_message(self, *_):
        pass

    def handle_one(self):
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        method = self.command
        try:
            with self.stand_in.lock:
                if self.stand_in.ends:
                    self.close_connection = True  # without an answer
                    return
                self.stand_in.requests.append((method, self.path))
                bearer = self.headers.get("Authorization")
                if self.stand_in.token and bearer != f"Bearer {self.stand_in.token}":
                    raise Refused(401, "Unauthorized")
                if self.stand_in.refuse is not None:
                    self.stand_in.refuse(method, self.path, body)
                if "watch=true" in self.path:
                    self.watch()
                    return
                code, item = self.stand_in.answer(method, self.path,
                                                  self.headers.get("Content-Type"), body)
                text = json.dumps(item).encode()
            self.send(code, text, {})
        except Refused as refused:
            self.send(refused.code, json.dumps(
                {"kind": "Status", "code": refused.code,
                 "message": refused.message}).encode(), refused.headers)

    do_GET = do_POST = do_PATCH = handle_one

    def send(self, code, text, headers):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(text)

    def watch(self):
        if not self.stand_in.is_defined:
            raise Refused(404, "the server could not find the requested resource")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

        def write(event, cut=False):
            text = json.dumps(event).encode()
            text = text[:len(text) // 2] if cut else text + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))

        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        self.stand_in.watches += 1
        self.stand_in.lock.notify_all()
        try:
            self.stand_in.watch(query, write)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
        finally:
            self.stand_in.watches -= 1


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A coordinator that is killed resets its connections."""


class ApiStandIn:
    """Serves on a free port of the loopback. `objects` and `events` may be read under `lock`."""

    def __init__(self, tls=None, token=None):
        self.lock = threading.Condition()
        self.objects = {}  # by name
        self.pods = {}  # by name
        self.events = []
        self.history = []  # (resource version, type, object)
        self.version = 100
        self.oldest = 100  # a watch from an older version is refused
        self.requests = []  # (method, path)
        self.token = token
        self.is_defined = True
        self.status_fields = set(STATUS_FIELDS)
        self.drops_status = False
        self.refuse = None  # called with (method, path, body); may raise Refused
        self.watches = 0  # those that are open
        self.watch_number = 0  # raised to end the open watches
        self.cuts = False  # ends watches in the middle of a line
        self.ends = False
        self.server = Server(("127.0.0.1", 0), type("OwnHandler", (Handler,), {"stand_in": self}))
        scheme = "http"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls / "cert.pem", tls / "key.pem")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def stop(self):
        with self.lock:
            self.ends = True
            self.lock.notify_all()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    # Changes as kubectl makes them.

    def apply(self, name, job, **spec):
        with self.lock:
            self.version += 1
            now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            self._store("ADDED", {
                "apiVersion": "troupe.dev/v1alpha1", "kind": "TroupeJob",
                "metadata": {"name": name, "namespace": "troupe", "uid": str(uuid.uuid4()),
                             "generation": 1, "creationTimestamp": now},
                "spec": {"job": job, **spec}})

    def change(self, name, **spec):
        with self.lock:
            changed = copy.deepcopy(self.objects[name])
            changed["spec"].update(spec)
            changed["metadata"]["generation"] += 1
            self._store("MODIFIED", changed)

    def delete(self, name):
        with self.lock:
            changed = copy.deepcopy(self.objects[name])
            changed["metadata"]["generation"] += 1
            changed["metadata"]["deletionTimestamp"] = "2026-11-26T00:00:00Z"
            self._store("MODIFIED", changed)

    def add_pod(self, name):
        with self.lock:
            self.pods[name] = {"metadata": {"name": name, "namespace": "troupe",
                                            "annotations": {"other": "kept"}}}

    def annotations(self, name):
        """Returns those of a pod."""
        with self.lock:
            return dict(self.pods[name]["metadata"]["annotations"])

    def get(self, name):
        """Returns the object, or None."""
        with self.lock:
            return copy.deepcopy(self.objects.get(name))

    def status(self, name):
        return (self.get(name) or {}).get("status", {})

    def condition(self, name, kind):
        """Returns a condition; an empty one if there is none."""
        found = [one for one in self.status(name).get("conditions", []) if one["type"] == kind]
        return found[0] if found else {}

    # Faults.

    def forget_history(self):
        """Makes the versions of all watches so far too old, and ends the open ones."""
        with self.lock:
            self.version += 1
            self.oldest = self.version
            self.history.clear()
            self._end_watches()

    def end_watches(self, cut=False):
        """Ends the open watches; with `cut` in the middle of a line."""
        with self.lock:
            self.cuts = cut
            self._end_watches()

    def wait_for_watch(self, limit_seconds=30):
        """Waits until there is an open watch."""
        with self.lock:
            if not self.lock.wait_for(lambda: self.watches > 0, limit_seconds):
                raise AssertionError("there is no watch")

    def count(self, method, pattern):
        """Returns the number of requests whose path matches."""
        with self.lock:
            return sum(one == method and re.search(pattern, path) is not None
                       for one, path in self.requests)

    def _end_watches(self):
        self.watch_number += 1
        self.lock.notify_all()

    def _store(self, kind, item):
        """Stores a changed object, unless it is deleted and nothing keeps it."""
        metadata = item["metadata"]
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            kind = "DELETED"
            self.objects.pop(metadata["name"], None)
        else:
            self.objects[metadata["name"]] = item
        self.history.append((self.version, kind, item))
        self.lock.notify_all()
        return item

    def _find(self, name):
        if name not in self.objects:
            raise Refused(404, f'troupejobs.troupe.dev "{name}" not found')
        return self.objects[name]

    def _apply_status(self, name, body):
        stored = self._find(name)
        uid = body["metadata"].get("uid")
        if uid is not None and uid != stored["metadata"]["uid"]:
            raise Refused(409, f"Precondition failed: UID in precondition: {uid}")
        undeclared = set(body["status"]) - self.status_fields
        for condition in body["status"].get("conditions", []):
            undeclared |= set(condition) - CONDITION_FIELDS
        if undeclared:
            raise Refused(500, f".status.{min(undeclared)}: field not declared in schema")
        if self.drops_status or stored.get("status") == body["status"]:
            return stored
        changed = copy.deepcopy(stored)
        changed["status"] = body["status"]
        return self._store("MODIFIED", changed)

    def _patch_object(self, name, operations):
        stored = self._find(name)
        changed = apply_json_patch(stored, operations)
        changed["status"] = stored.get("status", {})  # status of the main resource is dropped
        return self._store("MODIFIED", changed)

    def _patch_pod(self, name, content_type, body):
        if content_type != "application/merge-patch+json":
            raise Refused(415, f"the body of the request was in an unknown format: {content_type}")
        if name not in self.pods:
            raise Refused(404, f'pods "{name}" not found')
        changed = apply_merge_patch(self.pods[name], body)
        for key, value in changed["metadata"]["annotations"].items():
            if not isinstance(value, str):
                raise Refused(400, f"annotations.{key}: cannot unmarshal into a string")
        self.pods[name] = changed
        return changed

    def answer(self, method, path, content_type, body):
        """Returns the code and the object of an answer that is no watch."""
        plain = urllib.parse.urlsplit(path).path
        name = plain[len(BASE) + 1:]
        if method == "POST" and plain == EVENTS:
            check_event(body)
            self.events.append(body)
            return 201, body
        if method == "PATCH" and plain.startswith(PODS):
            return 200, self._patch_pod(plain[len(PODS):], content_type, body)
        if not plain.startswith(BASE) or not self.is_defined:
            raise Refused(404, "the server could not find the requested resource")
        if method == "GET" and not name:
            return 200, {"kind": "TroupeJobList", "items": list(self.objects.values()),
                         "metadata": {"resourceVersion": str(self.version)}}
        if method == "GET":
            return 200, self._find(name)
        if method == "PATCH" and content_type == "application/apply-patch+yaml" and \
                name.endswith("/status"):
            return 200, self._apply_status(name.removesuffix("/status"), body)
        if method == "PATCH" and content_type == "application/json-patch+json":
            return 200, self._patch_object(name, body)
        raise Refused(405, f"{method} {path} with {content_type}")

    def watch(self, query, write):
        """Writes the lines of a watch until it ends. Called with the lock."""
        version = int(query["resourceVersion"][0])
        if version < self.oldest:
            write({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired",
                                               "message": f"too old resource version: {version}"}})
            return
        number = self.watch_number
        end = time.monotonic() + min(float(query["timeoutSeconds"][0]), 60)
        while not self.ends and self.watch_number == number and time.monotonic() < end:
            for later, kind, item in [one for one in self.history if one[0] > version]:
                write({"type": kind, "object": item})
                version = later
            self.lock.wait(1)
        if self.cuts:
            write({"type": "MODIFIED", "object": {"metadata": {"name": "x" * 100}}}, cut=True)
        else:
            write({"type": "BOOKMARK", "object": {"kind": "TroupeJob", "metadata": {
                "resourceVersion": str(version)}}})
