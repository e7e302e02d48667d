"""The commands of the base's pods, executed as processes of this machine: only addresses and
mounted directories are replaced. Probes are answered as the manifests ask for them, and a job
trains."""

import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import harness
import manifests

STEPS = 30


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Pod:
    """The process of a pod's container `name`."""

    def __init__(self, pod, name, objects, folder, replaced):
        container, = [one for one in manifests.containers(pod) if one["name"] == name]
        self.ports = {port["name"]: free_port() for port in container["ports"]}
        numbers = {str(port["containerPort"]): self.ports[port["name"]]
                   for port in container["ports"]}
        self.container = container
        words = []
        for word in manifests.command_line(container, objects):
            for number, port in numbers.items():
                word = word.replace(f"0.0.0.0:{number}", f"127.0.0.1:{port}")
            for text, value in replaced.items():
                word = word.replace(text, value)
            for mount in container["volumeMounts"]:
                if word.endswith("=" + mount["mountPath"]):
                    directory = folder / mount["name"]
                    directory.mkdir(parents=True, exist_ok=True)
                    word = word.replace(mount["mountPath"], str(directory))
            words.append(word)
        with open(folder / f"{name}.log", "ab") as log:
            self.process = subprocess.Popen([manifests.program_flags.BIN / words[0], *words[1:]],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def passes(self, probe):
        """Returns whether the probe of the container succeeds, as a kubelet judges it."""
        http = self.container[probe]["httpGet"]
        address = f"http://127.0.0.1:{self.ports[http['port']]}{http['path']}"
        try:
            with urllib.request.urlopen(address, timeout=3) as answer:
                return 200 <= answer.status < 400
        except (urllib.error.URLError, OSError):
            return False

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@unittest.skipIf(manifests.yaml is None, "PyYAML is missing")
class PodsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "checkpoints").mkdir()
        self.objects = manifests.resources(manifests.KUBERNETES / "base")

    def start(self, kind, name, replaced):
        item, = [one for one in self.objects
                 if one["kind"] == "StatefulSet" and one["metadata"]["name"] == f"troupe-{kind}"]
        template, = manifests.pods(item)
        folder = self.folder / name
        folder.mkdir()
        # All pods share the claims.
        for shared in ("checkpoints", "data"):
            (self.folder / shared).mkdir(exist_ok=True)
            (folder / shared).symlink_to(self.folder / shared)
        pod = Pod(template, kind, self.objects, folder, replaced)
        self.addCleanup(pod.stop)
        return pod

    def test_probes_pass_and_a_job_trains(self):
        coordinator = self.start("coordinator", "troupe-coordinator-0", {})
        harness.wait_until(lambda: coordinator.passes("startupProbe"), "the coordinator starts")
        harness.wait_until(lambda: coordinator.passes("readinessProbe"), "the coordinator is ready")
        address = f"127.0.0.1:{coordinator.ports['api']}"
        workers = []
        for index in range(2):
            name = f"troupe-worker-{index}"
            workers.append(self.start("worker", name, {
                "troupe-coordinator.metadata.namespace.svc:7070": address, "metadata.name": name,
                "status.podIP": "127.0.0.1",
                "metadata.labels['topology.kubernetes.io/zone']": "zone-a"}))
        for worker in workers:
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                harness.wait_until(lambda w=worker, p=probe: w.passes(p), f"{probe} of a worker")
        trained = self.train(address)
        self.assertEqual(trained.returncode, 0, trained.stderr)
        self.assertTrue(list((self.folder / "checkpoints").rglob("manifest.json")))

    def train(self, address):
        text = self.folder / "data" / "text.txt"
        text.write_text("all the world's a stage, and all the men and women merely players. " * 400)
        harness.run("data", "prepare", "--output", self.folder / "data" / "text", text)
        job = self.folder / "job.yaml"
        job.write_text(harness.JOB.format(
            name="pods", train=self.folder / "data" / "text", steps=STEPS,
            folder=self.folder / "checkpoints", interval=10,
            parallelism="data_parallel_replicate_degree: 2"))
        return subprocess.run(
            [harness.TROUPE, "submit", "--wait", "--coordinator", address, job],
            capture_output=True, text=True, timeout=120, check=False,
            env={key: value for key, value in os.environ.items() if not key.startswith("TROUPE_")})


if __name__ == "__main__":
    unittest.main()
