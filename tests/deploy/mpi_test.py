"""deploy/mpi/troupe-mpi.sh: two processes as mpirun starts them, and mpirun itself where it is
installed."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import harness
import slurm_test

SCRIPT = harness.ROOT / "deploy/mpi/troupe-mpi.sh"


class MpiTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("TROUPE_")} | {
                "PATH": f"{harness.BIN}:{os.environ['PATH']}", "TROUPE_PORT": str(port),
                "TROUPE_HOST": "127.0.0.1", "TROUPE_STATE": str(self.folder / "state")}
        self.log = self.folder / "log"

    def start(self, *words, **variables):
        with open(self.log, "ab") as log:
            process = subprocess.Popen([*map(str, words)], env=self.environment | variables,
                                       stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.addCleanup(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)

    def test_two_processes_train_a_job(self):
        job = slurm_test.job_file(self.folder, slurm_test.SHORT)
        processes = [self.start("bash", SCRIPT, job, OMPI_COMM_WORLD_RANK=str(rank),
                                OMPI_COMM_WORLD_SIZE="2", PMIX_NAMESPACE="prterun-host-7@1")
                     for rank in range(2)]
        for process in processes:
            self.assertEqual(process.wait(timeout=180), 0, self.log.read_text()[-3000:])
        self.assertEqual(slurm_test.printed_steps(self.log)[-1], slurm_test.SHORT)

    def test_without_mpirun_it_is_an_error(self):
        process = self.start("bash", SCRIPT, self.folder / "job.yaml")
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn("use mpirun", self.log.read_text())

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
    def test_mpirun_trains_a_job(self):
        job = slurm_test.job_file(self.folder, slurm_test.SHORT)
        words = ["mpirun", "--allow-run-as-root"] if os.getuid() == 0 else ["mpirun"]
        process = self.start(*words, "--oversubscribe", "-np", 2, SCRIPT, job)
        self.assertEqual(process.wait(timeout=180), 0, self.log.read_text()[-3000:])
        self.assertEqual(slurm_test.printed_steps(self.log)[-1], slurm_test.SHORT)


if __name__ == "__main__":
    unittest.main()
