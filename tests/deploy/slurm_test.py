"""deploy/slurm/troupe.sbatch: with stand-ins for Slurm's commands everywhere, and on two slurmd of
this host where Slurm is installed. A run is stopped by the signal of the time limit and queued
again; the next one resumes at the step of the checkpoint. A run that is cancelled is not queued
again. A short job finishes."""

import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import harness

SCRIPT = harness.ROOT / "deploy/slurm/troupe.sbatch"
# The steps of a job that a test stops: no machine takes them all before the signal arrives.
ENDLESS = 10_000_000
SHORT = 20
NODES = ("n1", "n2")

# srun of the script's two steps: each task runs here, with the name of its node.
SRUN = r"""#!/bin/bash
nodes=(n1 n2)
while [[ $1 == --* ]]; do
  [[ $1 != --nodelist=* ]] || nodes=("${1#*=}")
  shift
done
children=()
for node in "${nodes[@]}"; do
  SLURMD_NODENAME=$node setsid "$@" & children+=($!)
done
stop() { for child in "${children[@]}"; do kill -TERM -- "-$child"; done; }
trap stop TERM
for child in "${children[@]}"; do
  until wait "$child" || ! kill -0 "$child" 2>/dev/null; do :; done
done
"""
SCONTROL = r"""#!/bin/bash
case "$1 $2" in
  "show hostnames") printf '%s' "${HOSTNAMES-n1
n2
}" ;;
  "show node") echo "NodeName=$3 NodeAddr=127.0.0.1 NodeHostName=host" ;;
  "--oneliner show")
    # The last task of an array has the array's number: Slurm shows all tasks under it.
    for task in "$4 $STATE" ${SIBLING:+"$(($4 + 1)) $SIBLING"}; do
      printf 'JobId=%s ArrayJobId=%s JobName=troupe JobState=%s Reason=None\n' \
        "${task% *}" "$4" "${task#* }"
    done | sort -r ;;
  requeue*) echo "$2" >>"$REQUEUED" ;;
esac
"""


def job_file(folder, steps):
    text = folder / "text.txt"
    text.write_text("all the world's a stage, and all the men and women merely players. " * 400)
    harness.run("data", "prepare", "--output", folder / "text", text)
    job = folder / "job.yaml"
    job.write_text(harness.JOB.format(
        name="any", train=folder / "text", steps=steps, folder=folder / "checkpoints",
        interval=steps, parallelism="data_parallel_replicate_degree: 2"))
    return job


def printed_steps(log):
    """Returns the steps that `troupe watch` has printed into the log of the script."""
    return [int(step) for step in re.findall(r"^step +(\d+)", log.read_text(), re.MULTILINE)]


class StandInTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        commands = self.folder / "bin"
        commands.mkdir()
        for name, text in {"srun": SRUN, "scontrol": SCONTROL}.items():
            (commands / name).write_text(text)
            (commands / name).chmod(0o755)
        self.log = self.folder / "log"
        self.requeued = self.folder / "requeued"
        # A port of its own: the script derives it from the id.
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            number = 700000 + listener.getsockname()[1] % 10000
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("TROUPE_")} | {
                "PATH": f"{commands}:{harness.BIN}:{os.environ['PATH']}",
                "SLURM_JOB_ID": str(number), "SLURM_JOB_NODELIST": "n[1-2]",
                "SLURM_SUBMIT_DIR": str(self.folder), "REQUEUED": str(self.requeued),
                "STATE": "RUNNING"}

    def start(self, job):
        with open(self.log, "ab") as log:
            process = subprocess.Popen(["bash", SCRIPT, job], env=self.environment, stdout=log,
                                       stderr=log, stdin=subprocess.DEVNULL)
        self.addCleanup(self.stop, process)
        return process

    def end_of_log(self):
        return "\n".join(self.log.read_text().splitlines()[-20:])

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)

    def test_a_run_that_is_stopped_is_queued_again_and_resumes_from_its_checkpoint(self):
        job = job_file(self.folder, ENDLESS)
        before = self.last_step_when_stopped(job, 5)
        self.log.rename(self.folder / "first.log")
        self.last_step_when_stopped(job, before + 5)
        self.assertTrue(f"resumed from step {before}\n" in self.log.read_text())
        self.assertEqual(self.requeued.read_text().split(),
                         [self.environment["SLURM_JOB_ID"]] * 2)

    def test_a_run_that_slurm_ends_commits_and_is_not_queued_again(self):
        self.environment["STATE"] = "COMPLETING"  # as scontrol shows it after scancel
        self.last_step_when_stopped(job_file(self.folder, ENDLESS), 5, code=1)
        self.assertIn("cancelled after its commit of step", self.log.read_text())
        self.assertFalse(self.requeued.exists())

    def test_a_task_of_an_array_is_not_taken_for_another(self):
        number = self.environment["SLURM_JOB_ID"]
        self.environment |= {"STATE": "COMPLETING", "SIBLING": "RUNNING",
                             "SLURM_ARRAY_JOB_ID": number, "SLURM_ARRAY_TASK_ID": "3"}
        job = job_file(self.folder, ENDLESS)
        before = self.last_step_when_stopped(job, 5, code=1)
        self.assertFalse(self.requeued.exists())
        self.log.rename(self.folder / "first.log")
        self.environment |= {"STATE": "RUNNING", "SIBLING": "PENDING"}
        self.last_step_when_stopped(job, before + 5)
        self.assertEqual(self.requeued.read_text().split(), [f"{number}_3"])

    def test_a_component_of_a_heterogeneous_job_is_refused(self):
        self.environment["SLURM_HET_SIZE"] = "2"
        process = self.start(job_file(self.folder, SHORT))
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn("SLURM_HET_SIZE is 2", self.log.read_text())

    def test_a_run_whose_job_ends_as_it_is_warned_is_not_queued_again(self):
        self.wrap_troupe('if [[ $1 == cancel ]]; then troupe watch "$2" >/dev/null; fi')
        run = self.start(job_file(self.folder, SHORT * 20))
        harness.wait_until(lambda: self.log.exists() and 5 in printed_steps(self.log), "step 5")
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=120), 0, self.end_of_log())
        self.assertEqual(printed_steps(self.log)[-1], SHORT * 20)
        self.assertFalse(self.requeued.exists())

    def test_a_run_whose_cancel_fails_is_queued_again(self):
        self.wrap_troupe('if [[ $1 == cancel ]]; then exit 3; fi')
        run = self.start(job_file(self.folder, ENDLESS))
        harness.wait_until(lambda: self.log.exists() and 5 in printed_steps(self.log), "step 5")
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=120), 0, self.end_of_log())
        self.assertIn("no checkpoint was made", self.log.read_text())
        self.assertTrue(self.requeued.exists())

    def wrap_troupe(self, line):
        """Runs `line` before each `troupe`."""
        wrapper = self.folder / "bin/troupe"
        wrapper.write_text(f'#!/bin/bash\nPATH={harness.BIN}:$PATH\n{line}\nexec troupe "$@"\n')
        wrapper.chmod(0o755)

    def last_step_when_stopped(self, job, step, code=0):
        """Runs the script until `step` is printed, sends the signal, and returns the last step."""
        run = self.start(job)
        harness.wait_until(lambda: self.log.exists() and step in printed_steps(self.log),
                           f"step {step}")
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=60), code, self.end_of_log())
        return printed_steps(self.log)[-1]

    def test_a_job_that_finishes_is_not_queued_again(self):
        run = self.start(job_file(self.folder, SHORT))
        self.assertEqual(run.wait(timeout=120), 0, self.end_of_log())
        self.assertEqual(printed_steps(self.log)[-1], SHORT)
        self.assertFalse(self.requeued.exists())

    def test_a_list_without_nodes_is_an_error(self):
        self.environment["HOSTNAMES"] = ""
        process = self.start(job_file(self.folder, SHORT))
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn("the node list 'n[1-2]' names no host", self.log.read_text())

    def test_a_job_file_that_is_missing_is_an_error(self):
        process = self.start(self.folder / "none.yaml")
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn("none.yaml cannot be read", self.log.read_text())


def has_slurm():
    return all(shutil.which(name) for name in ("slurmctld", "slurmd", "munged", "sbatch", "srun"))


# Two slurmd of this host, which differ by their ports. The plugins need neither cgroups of their
# own nor a database.
CONFIGURATION = """
ClusterName=troupe
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
JobRequeue=1
KillWait=30
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=4
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=4
PartitionName=all Nodes=n1,n2 Default=YES State=UP
"""


@unittest.skipUnless(has_slurm(), "slurm-wlm and munge are not installed")
class SlurmTest(unittest.TestCase):
    """The script under Slurm itself. The signal is sent as Slurm does at the time limit."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        os.chmod(self.folder, 0o755)  # munged refuses a folder that only its owner can enter
        ports = []
        for _ in range(3):
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                ports.append(listener.getsockname()[1])
        (self.folder / "state").mkdir()
        user = pwd.getpwuid(os.getuid()).pw_name
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(CONFIGURATION.format(
            host=socket.gethostname(), folder=self.folder, user=user, controller=ports[0],
            first=ports[1], second=ports[2]))
        cgroup = self.folder / "cgroup.conf"
        cgroup.write_text("CgroupPlugin=cgroup/v1\n"
                          if pathlib.Path("/sys/fs/cgroup/memory").exists() else "")
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("TROUPE_")} | {
                "SLURM_CONF": str(self.configuration),
                "PATH": f"{harness.BIN}:{os.environ['PATH']}:/usr/sbin",
                "TROUPE_STATE": str(self.folder / "troupe")}
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.daemon("munged", "--foreground", "--force", f"--key-file={key}",
                    f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munged.pid",
                    f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munge.seed")
        harness.wait_until((self.folder / "munge.socket").exists, "munged listens")
        self.daemon("slurmctld", "-D", "-f", str(self.configuration))
        for node in NODES:
            (self.folder / f"spool-{node}").mkdir()
            self.daemon("slurmd", "-D", "-N", node, "-f", str(self.configuration))
        harness.wait_until(lambda: self.slurm("sinfo", "-h", "-o", "%D", "-t", "idle") == "2",
                           "two idle nodes")

    def daemon(self, *words):
        with open(self.folder / f"{words[0]}.output", "ab") as log:
            process = subprocess.Popen(words, env=self.environment, stdout=log, stderr=log,
                                       stdin=subprocess.DEVNULL)

        def stop():
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

        self.addCleanup(stop)

    def slurm(self, *words):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True,
                              timeout=60, check=False, cwd=self.folder)
        return done.stdout.strip()

    def test_a_run_that_is_stopped_is_queued_again_and_resumes_from_its_checkpoint(self):
        log, number = self.submit(ENDLESS)
        harness.wait_until(lambda: log.exists() and len(printed_steps(log)) > 5, "steps")
        self.slurm("scancel", "--batch", "--signal=TERM", number)
        harness.wait_until(lambda: "resumed from step" in log.read_text(), "the next run", 240)
        at, = re.findall(r"cancelled after its commit of step (\d+)", log.read_text())[:1]
        self.assertIn(f"resumed from step {at}\n", log.read_text())

    def test_a_run_that_is_cancelled_is_not_queued_again(self):
        log, number = self.submit(ENDLESS)
        harness.wait_until(lambda: log.exists() and len(printed_steps(log)) > 5, "steps")
        self.slurm("scancel", number)
        shown = harness.wait_until(
            lambda: (text := self.slurm("scontrol", "show", "job", number)) and
            "JobState=RUNNING" not in text and "JobState=COMPLETING" not in text and text,
            "the end", 120)
        self.assertIn("JobState=CANCELLED", shown)
        self.assertIn("Restarts=0", shown)

    def test_a_job_that_finishes_is_not_queued_again(self):
        log, number = self.submit(SHORT)
        harness.wait_until(
            lambda: "COMPLETED" in self.slurm("scontrol", "show", "job", number), "the end", 240)
        self.assertEqual(printed_steps(log)[-1], SHORT)

    def submit(self, steps):
        """Submits a job of this many steps. Returns the log of its script, and Slurm's number."""
        log = self.folder / "log"
        number = self.slurm("sbatch", "--parsable", "--nodes=2", "--cpus-per-task=1",
                            f"--output={log}", str(SCRIPT), str(job_file(self.folder, steps)))
        self.assertRegex(number, r"^\d+$")
        self.addCleanup(self.slurm, "scancel", "--full", number)
        return log, number


if __name__ == "__main__":
    unittest.main()
