"""The packages of ./run package: the package of Debian installed into a new root of debootstrap,
where its programs run and from where it is removed; the wheel in a new environment.

    ./run test package

The root of debootstrap is kept in build/package-test; remove this folder to make it anew.
"""

import hashlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import unittest
import zipfile

import harness
import program_flags

FOLDER = harness.ROOT / "build/package-test"
PACKAGES = harness.ROOT / "build/package"
SERVICES = ("coordinator", "worker")
UNITS = {f"usr/lib/systemd/system/troupe-{service}.service" for service in SERVICES}
LIMIT_SECONDS = 300
BASE_LIMIT_SECONDS = 1800
MISSING = [name for name in ("debootstrap", "setpriv", "unshare") if shutil.which(name) is None]
# The user of a job, and the one of the services.
TRAINER, TROUPE = 1000, 64100

# Executed by a user in the root, in the home folder.
JOB = """
set -eu
cd
troupe data prepare --output text --tokenizer bytes /usr/share/doc/*/copyright
troupe up --workers 2 --devices-per-worker 2 --data-dir cluster
troupe submit /usr/share/doc/troupe/examples/tiny.yaml --data-dir cluster --wait \\
  --set data.train=$HOME/text --set training.steps=6 --set training.validation_interval=3 \\
  --set lr_schedule.warmup_steps=2 --set checkpoint.folder=$HOME/checkpoints \\
  --set checkpoint.interval=3
troupe checkpoints verify checkpoints/tiny/step-00000006-*
troupe down --data-dir cluster
"""
COMPLETE = r"""
source /usr/share/bash-completion/completions/troupe
COMP_WORDS=(troupe submi)
COMP_CWORD=1
_troupe
printf '%s\n' "${COMPREPLY[@]}"
complete -p troupe
"""
# Installs the package anew over changed settings, removes it, purges it, and lists the files that
# are left. Users keep their folders.
REMOVE = """
set -eu
echo '# changed' >>/etc/default/troupe-worker
install -d -o troupe -g troupe /var/lib/troupe-worker
dpkg --force-confold -i /opt/troupe.deb >/dev/null
grep -q changed /etc/default/troupe-worker
dpkg --remove troupe >/dev/null
test ! -e /usr/bin/troupe
grep -q changed /etc/default/troupe-worker
dpkg --purge troupe >/dev/null
find / -xdev ! -path '/home/*' ! -path '/tmp/*' -name '*troupe*'
"""


def only(pattern):
    """Returns the one file of ./run package whose name matches."""
    found = list(PACKAGES.glob(pattern))
    if len(found) != 1:
        raise AssertionError(f"{PACKAGES} has {len(found)} files {pattern}, not one; call "
                             "./run package")
    return found[0]


def output_of(*words, limit=LIMIT_SECONDS):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=limit, check=False)
    if done.returncode != 0:
        text = (done.stdout + done.stderr)[-4000:]
        raise AssertionError(f"{words[0]}: exit code {done.returncode}: {text}")
    return done.stdout


def entering(root, script, user=0, home="/root"):
    """Returns the command that runs a script in a root directory, with mounts and processes of its
    own, which end with the command."""
    root = shlex.quote(str(root))
    outside = f"""
        set -eu
        mount --make-rprivate /
        mount --bind {root} {root}
        mount -t proc proc {root}/proc
        mount --rbind /dev {root}/dev
        mount -t tmpfs -o mode=1777 tmpfs {root}/dev/shm
        exec chroot {root} setpriv --reuid={user} --regid={user} --clear-groups env -i \\
          HOME={home} LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \\
          PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c "$1"
    """
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", outside, "sh",
            script]


def end_namespace(process):
    """Ends a command of entering() and all that it has started. --kill-child does not end a child
    that has become another user, because the kernel then forgets the signal."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    for child in children.read_text().split():
        os.kill(int(child), signal.SIGKILL)  # the first process of the namespace
    process.kill()


def make_base():
    """Makes the root that the others are copies of, unless it is there."""
    base = FOLDER / "base"
    if not base.exists():
        unfinished = FOLDER / "base.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        output_of("debootstrap", "--variant=minbase", "--include=man-db", "bookworm",
                  unfinished, limit=BASE_LIMIT_SECONDS)
        unfinished.rename(base)
    return base


def copy_root(source, name):
    target = FOLDER / name
    shutil.rmtree(target, ignore_errors=True)
    output_of("cp", "-a", "--reflink=auto", source, target)
    return target


def settings_of(text):
    """Returns the variables of a file that systemd reads as an EnvironmentFile."""
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def commands_of(unit, settings):
    """Returns the command lines of ExecStartPre= and ExecStart= of a unit, as systemd runs them:
    ${NAME} is part of a word, $NAME becomes words."""
    lines = re.findall(r"^ExecStart(?:Pre)?=(.*)$", unit.replace("\\\n", " "), re.MULTILINE)
    commands = []
    for line in lines:
        words = []
        for word in line.replace("%H", "a-host").split():
            if re.fullmatch(r"\$\w+", word):
                words += settings[word[1:]].split()
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda match: settings[match[1]], word))
        commands.append(words)
    return commands


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


class DebTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.package = only("troupe_*.deb")
        folder = tempfile.TemporaryDirectory(prefix="troupe-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.tree = pathlib.Path(folder.name)
        output_of("dpkg-deb", "--raw-extract", cls.package, cls.tree)
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", cls.package],
                              stdout=subprocess.PIPE) as process, \
                tarfile.open(fileobj=process.stdout, mode="r|") as archive:
            cls.members = {member.name.removeprefix("./"): member for member in archive}
        cls.files = {name for name, member in cls.members.items() if member.isfile()}

    def control(self, name):
        return (self.tree / "DEBIAN" / name).read_text()

    def field(self, name):
        return re.search(rf"^{name}: (.*)$", self.control("control"), re.MULTILINE)[1]

    def test_every_file_has_its_place_owner_and_mode(self):
        programs = {f"usr/bin/{name}" for name in program_flags.PROGRAMS}
        self.assertLessEqual(programs | UNITS, self.files)
        for name, member in self.members.items():
            self.assertRegex(f"{name}/", r"^(\.?/$|usr/(?!local)|etc/)")
            self.assertEqual((member.uid, member.gid), (0, 0), name)
            expected = 0o755 if member.isdir() or name in programs else 0o644
            self.assertEqual(member.mode, expected, name)
            self.assertTrue(member.isdir() or member.isfile(), name)

    def test_sums_and_settings_are_listed(self):
        settings = {f"/{name}" for name in self.files if name.startswith("etc/")}
        self.assertEqual(settings, {f"/etc/default/troupe-{service}" for service in SERVICES})
        self.assertEqual(set(self.control("conffiles").splitlines()), settings)
        sums = {name: digest for digest, name in
                (line.split("  ", 1) for line in self.control("md5sums").splitlines())}
        self.assertEqual(set(sums), {name for name in self.files if not name.startswith("etc/")})
        for name, digest in sums.items():
            self.assertEqual(hashlib.md5((self.tree / name).read_bytes()).hexdigest(), digest, name)

    def test_programs_are_stripped_and_name_no_folder_of_libraries(self):
        for name in program_flags.PROGRAMS:
            program = self.tree / "usr/bin" / name
            sections = output_of("readelf", "--wide", "--sections", program)
            self.assertNotRegex(sections, r" \.(symtab|debug_info) ")
            self.assertNotRegex(output_of("readelf", "-d", program), r"\((RPATH|RUNPATH)\)")

    def test_it_depends_on_packages_of_debian_without_headers(self):
        names = set(re.findall(r"(?:^|, |\| )([a-z0-9.+-]+)", self.field("Depends")))
        self.assertLessEqual({"libc6", "libgrpc++1.51", "librocksdb7.8", "libucx0"}, names)
        self.assertEqual({name for name in names if name.endswith("-dev")}, set())
        self.assertEqual(self.field("Version"), harness.run("--version")[1].split()[1])

    def test_it_contains_no_plugin_of_xla(self):
        self.assertEqual({name for name in self.files if ".so" in name}, set())

    def test_its_scripts_start_nothing(self):
        for name in ("postinst", "prerm", "postrm"):
            output_of("sh", "-n", self.tree / "DEBIAN" / name)
            self.assertNotRegex(self.control(name), r"systemctl.* (enable|start|restart)\b")

    def test_units_name_only_what_the_package_has(self):
        for name in UNITS:
            unit = (self.tree / name).read_text()
            self.assertNotIn("/opt/", unit)
            paths = re.findall(r"^(?:ExecStart(?:Pre)?|EnvironmentFile)=-?/(\S+)", unit,
                               re.MULTILINE)
            self.assertGreaterEqual(len(paths), 2)
            self.assertLessEqual(set(paths), self.files)

    def test_the_settings_give_flags_that_exist(self):
        for service in SERVICES:
            unit = (self.tree / f"usr/lib/systemd/system/troupe-{service}.service").read_text()
            settings = settings_of((self.tree / f"etc/default/troupe-{service}").read_text())
            commands = commands_of(unit, settings)
            self.assertGreater(len(commands), 0)
            for command in commands:
                self.assertEqual(program_flags.problems([pathlib.Path(command[0]).name,
                                                         *command[1:]]), [])


@unittest.skipIf(MISSING, f"{', '.join(MISSING)} missing")
@unittest.skipUnless(os.getuid() == 0, "only root can make a root directory")
class RootTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = copy_root(make_base(), "root")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        shutil.copy(only("troupe_*.deb"), cls.root / "opt/troupe.deb")
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", cls.root / "etc" / name)
        cls.run_in_root("apt-get update -qq && apt-get install -y -qq --no-install-recommends "
                        "/opt/troupe.deb", limit=BASE_LIMIT_SECONDS)
        cls.run_in_root(f"useradd --uid {TRAINER} --create-home trainer")

    @classmethod
    def run_in_root(cls, script, root=None, limit=LIMIT_SECONDS, **options):
        """Returns the standard output of a script in the root."""
        return output_of(*entering(root or cls.root, script, **options), limit=limit)

    def test_it_is_installed_with_its_dependencies(self):
        self.assertEqual(self.run_in_root("dpkg --audit"), "")
        state = self.run_in_root("dpkg-query -W -f '${db:Status-Abbrev}' troupe")
        self.assertEqual(state.strip(), "ii")
        self.assertEqual(self.run_in_root("dpkg --verify troupe"), "")
        for program in program_flags.PROGRAMS:
            version = output_of(harness.BIN / program, "--version")
            self.assertEqual(self.run_in_root(f"{program} --version"), version)

    def test_the_user_of_the_services_exists_and_no_service_is_enabled(self):
        self.assertEqual(self.run_in_root("id -u troupe; id -g troupe").split(), ["64100"] * 2)
        self.assertEqual(list((self.root / "etc/systemd").rglob("*troupe*")), [])

    def test_manual_pages_are_found_and_shown(self):
        for program in program_flags.PROGRAMS:
            self.assertEqual(self.run_in_root(f"man -w {program}").strip(),
                             f"/usr/share/man/man1/{program}.1.gz")
            self.assertIn(program, self.run_in_root(f"man -P cat {program}"))

    def test_bash_loads_the_completion(self):
        words, registered = self.run_in_root(COMPLETE).split("\n", 1)
        self.assertEqual(words, "submit")
        self.assertIn("_troupe", registered)

    def test_a_job_of_the_examples_trains_for_a_user(self):
        done = self.run_in_root(JOB, user=TRAINER, home="/home/trainer")
        self.assertIn("SUCCEEDED", done)

    def test_the_services_run_as_their_units_start_them(self):
        port = str(free_port())
        commands = []
        for service in SERVICES:
            unit = self.root / f"usr/lib/systemd/system/troupe-{service}.service"
            settings = settings_of((self.root / f"etc/default/troupe-{service}").read_text())
            commands += [shlex.join(words).replace(":7070", f":{port}")
                         for words in commands_of(unit.read_text(), settings)]
        coordinator, burn_in, worker = commands
        self.run_in_root("install -d -o troupe -g troupe -m 0700 "
                         "/var/lib/troupe-coordinator /var/lib/troupe-worker")
        log = FOLDER / "services.log"
        with log.open("w") as out, subprocess.Popen(
                entering(self.root, f"{coordinator} & {burn_in} && {worker}", user=TROUPE,
                         home="/nonexistent"),
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT) as process:
            try:
                harness.wait_until(
                    lambda: "a-host" in harness.run("workers", "--coordinator",
                                                    f"127.0.0.1:{port}")[1],
                    f"a worker of the package: {log}")
            finally:
                end_namespace(process)

    def test_it_leaves_only_state_when_it_is_removed(self):
        root = copy_root(self.root, "removed")
        self.addCleanup(shutil.rmtree, root)
        left = set(self.run_in_root(REMOVE, root=root).split())
        state = {f"/var/lib/troupe-{service}" for service in SERVICES}
        self.assertEqual(left - state - {"/opt/troupe.deb"}, set())
        self.assertIn("/var/lib/troupe-worker", left)


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wheel = only("troupe-*.whl")
        folder = tempfile.TemporaryDirectory(prefix="troupe-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.venv = pathlib.Path(folder.name) / "venv"
        output_of("/usr/bin/python3", "-m", "venv", cls.venv)
        output_of(cls.venv / "bin/pip", "-q", "--disable-pip-version-check", "install", cls.wheel)

    def test_its_version_is_that_of_the_programs(self):
        version = output_of(self.venv / "bin/python", "-I", "-c",
                            "import troupe; print(troupe.__version__)")
        self.assertEqual(harness.run("--version")[1], f"troupe {version}")

    def test_it_has_the_protocol_types_and_the_licence(self):
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
        for name in ("troupe/py.typed", "troupe/messages.py", "troupe/v1/service_pb2_grpc.py",
                     "troupe/v1/service_pb2.pyi"):
            self.assertIn(name, names)
        self.assertTrue(any(re.fullmatch(r"troupe-[^/]*\.dist-info/(licenses/)?LICENSE", name)
                            for name in names), names)
        self.assertEqual([name for name in names if "test" in name], [])


if __name__ == "__main__":
    unittest.main()
