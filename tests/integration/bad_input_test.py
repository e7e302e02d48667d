"""Every wrong input from a user or a stranger gets a message with field, value and relation, and
disturbs nothing else."""

import contextlib
import os
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

from harness import BIN, ROOT, Cluster, ClusterCase, alive, run, training_data

GOOD = """
name: good
model: {{preset: tiny}}
data: {{train: {train}}}
training: {{global_batch_size: 8, sequence_length: 32, steps: 4}}
"""

# (case, --set arguments or a text edit, words that the message must contain)
REFUSED = [
    ("unknown key", ["training.stepz=3"], ["training.stepz", "steps"]),
    ("wrong type", ["training.steps=many"], ["training.steps", "many"]),
    ("negative", ["training.steps=-1"], ["training.steps", "-1"]),
    ("zero", ["training.global_batch_size=0"], ["training.global_batch_size", "0"]),
    ("NaN", ["optimizer.lr=.nan"], ["optimizer.lr", "nan"]),
    ("infinite", ["optimizer.lr=.inf"], ["optimizer.lr", "inf"]),
    ("unknown section", ["nonsense.steps=3"], ["nonsense"]),
    ("heads not divisible", ["parallelism.tensor_parallel_degree=3"],
     ["tensor_parallel_degree", "3", "heads"]),
    ("fewer blocks than stages", ["parallelism.pipeline_parallel_degree=16"],
     ["pipeline_parallel_degree", "16", "8"]),
    ("batch not divisible", ["training.micro_batch_size=3"], ["micro_batch_size", "3", "8"]),
    ("unknown schedule", ["parallelism.pipeline_parallel_schedule=1F2B"],
     ["pipeline_parallel_schedule", "1F2B", "1F1B"]),
    ("too few microbatches for the schedule",
     ["parallelism.pipeline_parallel_schedule=DualPipeV", "parallelism.pipeline_parallel_degree=4",
      "training.micro_batch_size=1", "training.global_batch_size=7"],
     ["pipeline_parallel_schedule", "7 is below 2 × 4 = 8"]),
    ("fewer blocks than chunks",
     ["parallelism.pipeline_parallel_schedule=ZBV", "parallelism.pipeline_parallel_degree=8"],
     ["pipeline_parallel_degree", "8 stages × 2 chunks", "8 blocks"]),
    ("bad name", ["name=Not A Name"], ["name", "Not A Name"]),
    ("sequence longer than the data", ["training.sequence_length=100000000"],
     ["sequence_length", "100000000"]),
    ("missing data", ["data.train=/nowhere/at/all"], ["data.train", "/nowhere/at/all"]),
    ("bad pattern", ["model.pattern=(AD"], ["model.pattern", "(AD"]),
    ("context that does not cut the tokens", ["parallelism.context_parallel_degree=3"],
     ["context_parallel_degree", "not a multiple of 2 × 3"]),
]


class BadJobs(ClusterCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(workers=1).up()
        cls.job = cls.cluster.home / "good.yaml"
        cls.job.write_text(GOOD.format(train=training_data()))

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__()

    def refused(self, arguments, words, code=2, path=None):
        got, out, err = self.cluster.troupe("submit", path or self.job, *arguments)
        self.assertEqual(got, code, f"{arguments}: stdout {out} stderr {err}")
        self.assertEqual(out, "")
        for word in words:
            self.assertIn(word.lower(), err.lower())
        return err

    def test_each_bad_value_is_refused_by_name(self):
        before = self.cluster.json("list")["jobs"]
        for what, settings, words in REFUSED:
            with self.subTest(what):
                self.refused([part for setting in settings for part in ("--set", setting)], words)
        self.assertEqual(self.cluster.json("list")["jobs"], before)

    def test_a_typo_is_named_with_line_and_nearest_key(self):
        path = self.cluster.home / "typo.yaml"
        path.write_text(self.job.read_text() + "optimiser: {lr: 1.0}\n")
        message = self.refused([], ["optimiser", "optimizer"], path=path)
        self.assertIn(f"({path}:6:1)", message)

    def test_every_refusal_of_a_key_has_its_place(self):
        path = self.cluster.home / "placed.yaml"
        good = self.job.read_text()
        for text, field, place in (
                # by itself: a range, a word; by a relation; by the data, which the command opens
                (good.replace("steps: 4", "steps: -1"), "training.steps is -1",
                 f"5:{good.splitlines()[4].index('steps') + 1}"),
                (good + "optimizer: {name: lion}\n", "optimizer.name is", "6:13"),
                (good + "parallelism:\n  tensor_parallel_degree: 3\n",
                 "parallelism.tensor_parallel_degree is 3", "7:3"),
                (good.replace(training_data(), "/nowhere/x.txt"), "data.train is", "4:8")):
            with self.subTest(place):
                path.write_text(text)
                self.assertIn(f"({path}:{place})", self.refused([], [field], path=path))
        # For a key that is not stated: the place of another key in the relation, of the section, or
        # the file alone.
        for text, field, place in (
                (good.replace("global_batch_size: 8, ", "") +
                 "parallelism: {data_parallel_replicate_degree: 3}\n",
                 "training.global_batch_size is 16, not a multiple", ":6:15"),
                (good.replace(f"train: {training_data()}", ""), "data.train is required", ":4:1"),
                (good.replace("name: good\n", ""), "name is required", "")):
            with self.subTest(field):
                path.write_text(text)
                self.assertIn(f"({path}{place})", self.refused([], [field], path=path))
        # The coordinator alone knows the names that are taken.
        path.write_text(good)
        for name, place in ((None, f"{path}:2:1"), ("placed", "--name")):
            flags = [] if name is None else ["--name", name]
            code, out, err = self.cluster.troupe("submit", path, "--set", "training.steps=1",
                                                 *flags)
            self.assertEqual(code, 0, err)
            err = self.refused(flags, ["name is", "(--name)", "troupe delete"], path=path)
            self.assertIn(f"({place})", err)
            self.cluster.wait_for_state(out.strip(), "SUCCEEDED")
            self.assertEqual(self.cluster.troupe("delete", out.strip())[0], 0)
        self.assertIn("(--set training.steps)",
                      self.refused(["--set", "training.steps=0"], ["training.steps is 0"]))

    def test_a_job_on_standard_input(self):
        home = self.cluster.home / "elsewhere"
        home.mkdir()
        os.symlink(training_data() + ".bin", home / "near.bin")
        os.symlink(training_data() + ".idx", home / "near.idx")

        def submit(text, *arguments):
            done = subprocess.run([BIN / "troupe", "submit", "-", "--data-dir",
                                   self.cluster.directory, *arguments], input=text, text=True,
                                  capture_output=True, timeout=30, cwd=home)
            return done.returncode, done.stdout, done.stderr

        text = GOOD.format(train="near").replace("good", "piped")
        code, out, err = submit(text, "--set", "training.steps=1")
        self.assertEqual((code, out), (0, "jobs/piped\n"), err)
        self.cluster.wait_for_state("piped", "SUCCEEDED")
        self.assertTrue(self.cluster.checkpoints("piped")[-1]["path"].startswith(
            f"{home}/checkpoints/piped/"))
        code, out, err = submit(text.replace("steps: 4", "stepz: 4"))
        self.assertEqual((code, out), (2, ""), err)
        self.assertIn("(standard input:5:", err)
        self.assertEqual(submit("# nothing\n")[0], 2)

    def test_a_duplicate_key_is_refused(self):
        path = self.cluster.home / "twice.yaml"
        path.write_text(self.job.read_text() + "name: other\n")
        message = self.refused([], ["name", "duplicate"], path=path)
        self.assertIn(f"({path}:6:1)", message)

    def test_degrees_of_another_product_than_the_ranks_asked_for(self):
        for workers, settings, product in ((3, [], 1),
                                           (1, ["parallelism.tensor_parallel_degree=2"], 2),
                                           (3, ["parallelism.pipeline_parallel_degree=4"], 4)):
            with self.subTest(workers=workers, product=product):
                code, out, err = run("plan", self.job, "--workers", workers,
                                     *[part for setting in settings for part in ("--set", setting)])
                self.assertEqual((code, out), (2, ""), err)
                for words in ("parallelism", f"= {product} rank",
                              f"but --workers asks for {workers}"):
                    self.assertIn(words, err)

    def test_a_missing_file_is_refused(self):
        self.refused([], ["no-such.yaml"], path=self.cluster.home / "no-such.yaml")

    def test_a_duplicate_name_and_an_unknown_job(self):
        self.assertEqual(self.cluster.troupe("submit", self.job, "--name", "twin", "--set",
                                             "training.steps=1")[0], 0)
        code, _, err = self.cluster.troupe("submit", self.job, "--name", "twin")
        self.assertEqual(code, 2, err)
        self.assertIn("twin", err)
        for command in ("describe", "watch", "cancel", "resume", "logs"):
            code, _, err = self.cluster.troupe(command, "nobody")
            self.assertIn('job is "jobs/nobody"', err)
            self.assertEqual(code, 4, f"{command}: {err}")
            self.assertIn("nobody", err)
        self.cluster.wait_for_state("twin", "SUCCEEDED")

    def test_an_idx_that_lies_is_refused(self):
        folder = pathlib.Path(self.cluster.home) / "lies"
        folder.mkdir()
        good = training_data()
        whole = pathlib.Path(good + ".idx").read_bytes()
        pointer = 34 + 4 * struct.unpack_from("<Q", whole, 18)[0]
        cases = {
            "truncated": whole[:40],
            "magic": b"X" + whole[1:],
            "count": whole[:18] + struct.pack("<Q", 1 << 62) + whole[26:],
            "pointer": whole[:pointer] + struct.pack("<q", 1 << 40) + whole[pointer + 8:],
        }
        for name, content in cases.items():
            with self.subTest(name):
                shutil.copy(good + ".bin", folder / f"{name}.bin")
                (folder / f"{name}.idx").write_bytes(content)
                self.refused(["--set", f"data.train={folder / name}"], [f"{name}.idx"])
        with self.subTest("truncated .bin"):
            shutil.copy(good + ".idx", folder / "short.idx")
            tokens = pathlib.Path(good + ".bin").read_bytes()
            (folder / "short.bin").write_bytes(tokens[:len(tokens) // 2])
            self.refused(["--set", f"data.train={folder / 'short'}"],
                         ["data.train", "short.bin", f"size {len(tokens) // 2}", "short.idx"])
        with self.subTest("no .bin"):
            shutil.copy(good + ".idx", folder / "none.idx")
            self.refused(["--set", f"data.train={folder / 'none'}"], ["data.train", "none.bin"])

    def test_usage_errors(self):
        for arguments in ([], ["no-such-command"], ["submit"], ["submit", "--no-such-flag"]):
            code, out, err = run(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertTrue(err)
        for word, commands in (("checkpoints", ["checkpoints list", "checkpoints verify"]),
                               ("data", ["data prepare"])):
            for arguments in ([word], [word, "no-such-command"]):
                code, out, err = run(*arguments)
                self.assertEqual((code, out), (2, ""), arguments)
                for command in commands:
                    self.assertIn(command, err)
                self.assertNotIn("submit", err)
        for arguments, meant in ((["sumbit", self.job], "submit"),
                                 (["checkpoints", "exprot"], "checkpoints export"),
                                 (["export", "x"], "checkpoints export")):
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(f"there is no such command; did you mean `troupe {meant}`?", err)
            self.assertEqual(err.count("\n"), 1, "without the whole usage")
        for address in ("nonsense", "127.0.0.1:x"):
            code, _, err = run("list", "--coordinator", address)
            self.assertEqual(code, 2, err)
            self.assertIn(f"--coordinator {address} is not HOST:PORT", err)
            done = subprocess.run([BIN / "troupe-coordinator", "--listen", address, "--data-dir",
                                   "/proc/x"], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"--listen {address} is not HOST:PORT", done.stderr)
        done = subprocess.run([BIN / "troupe-coordinator", "--listen", "127.0.0.1:0", "--data-dir",
                               self.job], capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"--data-dir {self.job} is not a directory", done.stderr)
        code, _, err = run("list", "--coordinator", "127.0.0.1:1")
        self.assertEqual(code, 3, err)

    def test_an_address_off_the_loopback_needs_tls(self):
        for flag in ("--listen", "--metrics-listen", "--page-listen"):
            with self.subTest(flag):
                addresses = {"--listen": "127.0.0.1:0"} | {flag: "0.0.0.0:0"}
                done = subprocess.run([BIN / "troupe-coordinator", "--data-dir",
                                       self.cluster.home / "open",
                                       *(word for pair in addresses.items() for word in pair)],
                                      capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{flag} 0.0.0.0:0 is not an address of the loopback", done.stderr)
                self.assertIn("--tls-dir", done.stderr)

    def test_commands_that_need_no_cluster_ignore_its_flags(self):
        flags = ("--coordinator", "127.0.0.1:1", "--data-dir", "/no/such/place", "--tls-dir",
                 "/no/such/place", "--token-file", "/no/such/place")
        for command in (["keys"], ["plan", self.job], ["data", "show", self.job, "--step", 1],
                        ["man"], ["completion", "bash"]):
            with self.subTest(command):
                code, out, err = run(*command, *flags)
                self.assertEqual(code, 0, err)
                self.assertEqual(out, run(*command)[1])

    def test_a_file_of_namespaces_that_is_missing_or_invalid_prevents_the_start(self):
        path = self.cluster.home / "namespaces.yaml"
        head = "namespaces: [{name: lab, "
        for text, error in ((None, str(path)), ("", "namespaces is required"),
                            (head + "quota: {devices: 0}}]",
                             "quota.devices is 0; it must be at least 1; leave the key out"),
                            (head + "members: [admin/ann]}]", '"admin/ann"'),
                            (head + "roots: {data: data}}]", "not an absolute path"),
                            ("namespaces: [{name: a, x: 1}, {name: b, y: 1}]",
                             f"unknown key ({path}:1:24); namespaces[1].y is an unknown key"),
                            (head, f"{path}:1")):
            with self.subTest(text):
                path.unlink(missing_ok=True)
                if text is not None:
                    path.write_text(text)
                done = subprocess.run([BIN / "troupe-coordinator", "--listen", "127.0.0.1:0",
                                       "--data-dir", "/proc/x", "--namespaces", path],
                                      capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(error, done.stderr)

    def test_a_checkpoint_root_that_is_no_directory_prevents_the_start(self):
        for root, error in (("/no/such/root", "--checkpoint-root /no/such/root cannot be used"),
                            ("", "--checkpoint-root is empty"),
                            ("checkpoints", '--checkpoint-root is "checkpoints", which is not an '
                                            "absolute path"),
                            (str(self.job), f"--checkpoint-root {self.job} is not a directory"),
                            ("/proc", "--checkpoint-root /proc cannot be written: mkdir /proc/")):
            with self.subTest(root):
                done = subprocess.run([BIN / "troupe-coordinator", "--listen", "127.0.0.1:0",
                                       "--data-dir", "/proc/x", "--checkpoint-root", root],
                                      capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(error, done.stderr)

    def test_the_checkpoint_root_is_described_as_that_of_jobs_without_a_file(self):
        done = subprocess.run([BIN / "troupe-coordinator", "--help"], capture_output=True,
                              text=True, timeout=30)
        self.assertIn("in which jobs without a job file (gRPC, or a mapping in Python) save",
                      " ".join(done.stdout.split()))

    def test_a_file_or_folder_that_is_missing_is_bad_input(self):
        lacking = "/no/such/place"
        for arguments in (["plan", lacking], ["plan", self.job, "--profile", lacking],
                          ["checkpoints", "verify", lacking], ["checkpoints", "show", lacking],
                          ["checkpoints", "diff", lacking, lacking],
                          ["checkpoints", "export", lacking, "--to", f"{self.cluster.home}/out"],
                          ["up", "--data-dir", "/proc/x"], ["down", "--data-dir", lacking],
                          ["data", "prepare", "--output", f"{self.cluster.home}/out", lacking]):
            with self.subTest(arguments):
                code, _, err = run(*arguments)
                self.assertEqual(code, 2, err)
                self.assertTrue(lacking in err or "/proc/x" in err, err)
        # The name of a job is no file.
        for command in (["plan", "no-such"], ["data", "show", "no-such", "--step", 1]):
            code, _, err = run(*command)
            self.assertEqual(code, 2, err)
            self.assertIn("if no-such is a job: `troupe describe no-such`", err)
        # A checkpoint is its folder, not a file of it.
        for command in ("show", "verify", "diff", "export"):
            code, _, err = run("checkpoints", command, self.job,
                               *{"diff": [self.job], "export": ["--to", "/tmp"]}.get(command, []))
            self.assertEqual(code, 2, err)
            self.assertIn(f"name the folder of the checkpoint, {self.job.parent}", err)
        # No cluster is another matter.
        code, _, err = run("list", "--data-dir", lacking)
        self.assertEqual(code, 3, err)


class Texts(unittest.TestCase):
    def test_a_path_that_is_not_utf8_is_refused_before_anything_starts(self):
        home = tempfile.mkdtemp(prefix="troupe-test-")
        self.addCleanup(shutil.rmtree, home)
        folder = os.fsdecode(os.fsencode(home) + b"/caf\xe9")
        fault = "is not UTF-8: its byte"
        daemon = ["--data-dir", folder]
        for command in (["troupe", "up", *daemon], ["troupe", "down", *daemon],
                        ["troupe", "data", "prepare", "--output", f"{home}/out", folder],
                        ["troupe-coordinator", "--listen", "127.0.0.1:0", *daemon],
                        ["troupe-worker", "--coordinator", "127.0.0.1:1", "--name", "w",
                         "--devices", "cpu:1", *daemon]):
            self.refuse(fault, command)
        self.refuse(fault, ["troupe", "list"], env={**os.environ, "TROUPE_TLS_DIR": folder,
                                                    "TROUPE_COORDINATOR": "127.0.0.1:1"})
        self.refuse("has the control character U+001B", ["troupe", "list", "\x1b[2J"])
        self.assertEqual(os.listdir(home), [])
        # The folder is a part of a relative path.
        os.mkdir(folder)
        self.refuse(fault, ["troupe", "up", "--data-dir", "c"], cwd=folder)
        self.refuse(fault, ["troupe-worker", "--coordinator", "127.0.0.1:1", "--name", "w",
                            "--devices", "cpu:1", "--data-dir", "c"], cwd=folder)
        self.refuse(fault, ["troupe-coordinator", "--listen", "127.0.0.1:0", "--insecure",
                            "--data-dir", "c"], cwd=folder)
        self.assertEqual(os.listdir(folder), [])

    def test_no_value_begins_a_line_of_an_error(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, home)
        (home / "good.yaml").write_text(GOOD.format(train=training_data()))
        # In double quotes, YAML reads \n as a newline.
        code, _, err = run("plan", home / "good.yaml", "--set", "training.on_nonfinite=ignore",
                           "--set", r'optimizer.name="sgd\ntraining.steps is 5, above 3"')
        self.assertEqual(code, 2, err)
        self.assertIn(r'is "sgd\ntraining.steps is 5, above 3"', err)
        fields = [line.split()[0] for line in err.removeprefix("troupe: ").splitlines()]
        self.assertEqual(sorted(fields), ["optimizer.name", "training.on_nonfinite"], err)

    def test_a_path_with_a_tilde_is_refused_and_makes_no_folder(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-")).resolve()
        self.addCleanup(shutil.rmtree, home)
        job = home / "good.yaml"
        job.write_text(GOOD.format(train=training_data()) + "checkpoint: {folder: ~/runs}\n")
        why = "write the absolute path; ~ is expanded by a shell only at the start of a word"
        self.refuse(f"checkpoint.folder is ~/runs: {why} (good.yaml:6:14)",
                    ["troupe", "plan", job], cwd=home)
        job.write_text(GOOD.format(train=training_data()))
        self.refuse(f"data.train is ~/x: {why} (--set data.train)",
                    ["troupe", "plan", job, "--set", "data.train=~/x"], cwd=home)
        self.refuse(f"--html is ~/x.html: {why}", ["troupe", "plan", job, "--html=~/x.html"],
                    cwd=home)
        self.refuse(f"--data-dir is ~/c: {why}", ["troupe", "up", "--data-dir=~/c"], cwd=home)
        self.refuse(f"argument 1 is ~/x: {why}", ["troupe", "checkpoints", "show", "~/x"], cwd=home)
        self.assertEqual(os.listdir(home), ["good.yaml"])

    def test_many_unknown_keys_are_counted(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, home)
        job = home / "many.yaml"
        job.write_text("".join(f"key_{i}: 1\n" for i in range(20_000)))
        code, out, err = run("plan", job)
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err.count("\n"), 21, err[:2000])
        self.assertTrue(err.endswith("\nand 19980 more\n"), err[-200:])

    def test_a_standard_input_that_is_closed_gets_a_sentence(self):
        self.refuse("standard input: is empty or closed, and - reads the job file from it",
                    ["sh", "-c", f"exec {BIN}/troupe plan - <&-"])

    def test_a_plan_warns_of_data_that_submit_refuses(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-")).resolve()
        self.addCleanup(shutil.rmtree, home)
        (home / "job.yaml").write_text(GOOD.format(train="none"))
        done = subprocess.run([BIN / "troupe", "plan", "job.yaml"], cwd=home, text=True,
                              capture_output=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("mesh: 1 rank", done.stdout)
        self.assertTrue(done.stderr.startswith("warning: data.train is none: "), done.stderr)
        self.assertIn("(job.yaml:4:8); `troupe submit` on this host would refuse", done.stderr)

    def test_words_of_other_tools_get_those_of_this_one(self):
        for command, hint in ((["status"], "`troupe list`"), (["version"], "`troupe --version`"),
                              (["logs", "a", "--follow"], "it is called -f here"),
                              (["logs", "a", "-n", "3"], "it is called --tail here"),
                              (["list", "--stat", "FAILED"], "did you mean --state?")):
            self.refuse(hint, ["troupe", *command])
        for words in (["list"], ["checkpoints", "list"], ["checkpoints"]):
            code, out, err = run("help", *words)
            self.assertEqual((code, err), (0, ""))
            self.assertIn(f"usage: troupe {' '.join(words)}", out)
        code, out, err = run("help", "no-such-command")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("no-such-command: there is no such command", err)

    def refuse(self, fault, command, **options):
        program = command[0] if command[0] == "sh" else BIN / command[0]
        done = subprocess.run([program, *command[1:]], capture_output=True, text=True,
                              timeout=30, check=False, **options)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(fault, done.stderr)
        self.assertTrue(done.stderr.isascii() and "\x1b" not in done.stderr, done.stderr)


_RANDOM = random.Random(3)
GARBAGE = [_RANDOM.randbytes(4096), b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
           _RANDOM.randbytes(512), bytes(4096),
           b"\xff" * 4096, struct.pack("<Q", 1 << 62) + bytes(64), b"x"]


def listens_on(pid):
    """Returns the addresses (host, port) on which the process listens, from its descriptors and the
    kernel's table."""
    inodes = set()
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(descriptor)
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    addresses = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{table}") as file:
            for line in list(file)[1:]:
                fields = line.split()
                if fields[3] != "0A" or fields[9] not in inodes:
                    continue
                host, port = fields[1].split(":")
                # Words are in the host's byte order; a listener on any address is reached through
                # loopback.
                packed = b"".join(struct.pack("=I", int(host[i:i + 8], 16))
                                  for i in range(0, len(host), 8))
                mapped = len(packed) == 16 and packed[:12] == bytes(10) + b"\xff\xff"
                packed = packed[12:] if mapped else packed
                host = "127.0.0.1" if not any(packed) else socket.inet_ntop(
                    socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
                addresses.add((host, int(port, 16)))
    return sorted(addresses)


def throw(address, garbage):
    with socket.create_connection(address, timeout=5) as connection:
        connection.settimeout(0.5)  # some peers wait for more and answer nothing
        with contextlib.suppress(OSError):
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(4096)


class Strangers(ClusterCase):
    def test_garbage_on_every_port_disturbs_nothing(self):
        # The ranks communicate with each other during the test. A busy machine may delay them for
        # longer than a second, which is not what is tested.
        with Cluster(workers=2, detection_seconds=5.0,
                     environment={"TROUPE_FAILPOINTS": "step.begin=delay:20"}) as cluster:
            job = cluster.submit("steady", steps=100000, interval=50)
            cluster.wait_for_step(job, 1)
            info = cluster.info()
            ranks = cluster.describe(job)["ranks"]
            processes = {"coordinator": info["coordinator"]["pid"],
                         **{w["name"]: w["pid"] for w in info["workers"]},
                         **{f"rank {r['rank']}": r["pid"] for r in ranks}}
            listening = {name: listens_on(pid) for name, pid in processes.items()}
            for name in ("coordinator", "worker-0", "worker-1"):
                self.assertTrue(listening[name], f"{name} listens nowhere")
            host, port = info["coordinator"]["address"].rsplit(":", 1)
            self.assertIn((host, int(port)), listening["coordinator"])
            addresses = [address for several in listening.values() for address in several]
            for address in addresses:
                for garbage in GARBAGE:
                    throw(address, garbage)
            # Connections that stay open and send nothing or an incomplete message.
            held = [socket.create_connection(address, timeout=5) for address in addresses]
            try:
                for connection in held[::2]:
                    connection.sendall(b"\0\0\1")
                cluster.wait_for_step(job, cluster.describe(job)["step"] + 20)
                self.assertEqual(cluster.troupe("cancel", job, "--checkpoint")[0], 0)
                done = cluster.wait_for_state(job, "CANCELLED")
            finally:
                for connection in held:
                    connection.close()
            self.assertEqual((done["restarts"], done["group_epoch"]), (0, 1))
            for name in ("coordinator", "worker-0", "worker-1"):
                self.assertTrue(alive(processes[name]), f"{name} died")
            self.assert_committed_checkpoints_verify(cluster, job)

    def test_a_second_worker_of_the_same_name_is_refused(self):
        with Cluster(workers=1, detection_seconds=5.0) as cluster:
            job = cluster.submit("steady", steps=400, interval=0,
                                 parallelism="tensor_parallel_degree: 1")
            cluster.wait_for_step(job, 1)
            twin = subprocess.Popen(
                [BIN / "troupe-worker", "--coordinator", cluster.info()["coordinator"]["address"],
                 "--name", "worker-0", "--devices", "cpu:1", "--data-dir", cluster.home / "twin"],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                done = cluster.wait_for_state(job, "SUCCEEDED")
                self.assertEqual(done["restarts"], 0)
                self.assertEqual(len(cluster.json("workers")["workers"]), 1)
                log = (cluster.directory / "logs" / "coordinator.log").read_text()
                self.assertRegex(log,
                                 r'worker "worker-0" on host .*, incarnation \d+, .* is refused: '
                                      r".*worker worker-0 is still alive as incarnation \d+")
            finally:
                twin.kill()
                _, err = twin.communicate(timeout=10)
            self.assertIn("worker-0", err)

    def test_a_second_coordinator_on_the_same_directory_is_refused(self):
        with Cluster(workers=1) as cluster:
            done = subprocess.run([BIN / "troupe-coordinator", "--listen", "127.0.0.1:0",
                                   "--data-dir",
                                   cluster.directory / "coordinator"],
                                  capture_output=True, text=True, timeout=30)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("lock", done.stderr.lower())
            self.assertEqual(cluster.troupe("list")[0], 0)


class Examples(unittest.TestCase):
    def test_an_example_that_lacks_something_reports_it_in_a_sentence(self):
        for script, arguments, words in (
                ("submit_and_watch.py", [], "pip install -r"),
                ("read_checkpoint.py", [], "usage: read_checkpoint.py DIR"),
                ("read_checkpoint.py", ["/no/such/place"], "no manifest.json")):
            with self.subTest(script, arguments=arguments):
                # -S: without the packages that are installed here.
                done = subprocess.run([sys.executable, "-I", "-S", "-B",
                                       ROOT / "examples/python" / script, *arguments],
                                      capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
