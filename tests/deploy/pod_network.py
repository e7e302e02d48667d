"""Pods as processes of this machine, without Kubernetes: each has network, mount, PID and IPC
namespaces of its own, a /dev/shm of its own, and an address on a bridge. They ask a name server
for the coordinator, as pods of a cluster do.

The bridge is in a network namespace too, so the network of this machine does not change.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import harness

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ("ip", "mount", "nsenter", "setpriv", "taskset", "unshare")
NODE_ADDRESS = "10.77.0.1"
RESOLVER = f"""nameserver {NODE_ADDRESS}
search troupe.svc.cluster.local svc.cluster.local cluster.local
options ndots:5
"""
# The processes end with the thread that started them, whatever it ends by.
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
CONTAINER = """set -e
mount -t tmpfs -o size=64m tmpfs /dev/shm
mount --bind "$1/resolv.conf" /etc/resolv.conf
mount --bind "$1/hosts" /etc/hosts
echo "$2" >/proc/sys/kernel/hostname
cpu=$3
shift 3
exec taskset --cpu-list "$cpu" "$@"
"""


def obstacle():
    """Returns why there can be no pods here; None if nothing is in the way."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"missing here: {', '.join(missing)}"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "sh", "-c",
         "mount -t tmpfs tmpfs /dev/shm && mount --bind /etc/hosts /etc/resolv.conf && "
         "ip link add name bridge type bridge && ip link add name a type veth peer name eth0"],
        capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"no namespaces here: {tried.stderr.strip()}"


def make_namespace():
    """Returns a process that does nothing but keep a network namespace of its own."""
    process = subprocess.Popen([*WITH_PARENT, "unshare", "--net", "sleep", "infinity"],
                               stdin=subprocess.DEVNULL)
    harness.wait_until(lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n",
                       "a network namespace")
    return process


def inside(holder, *command):
    return ["nsenter", f"--net=/proc/{holder.pid}/ns/net", *map(str, command)]


def configure(holder, *lines):
    for line in lines:
        subprocess.run(inside(holder, "ip", *line.split()), check=True)


def end(process):
    process.kill()
    process.wait(timeout=harness.LIMIT_SECONDS)


class Network:
    """A bridge, and the name server of its pods."""

    def __init__(self, folder):
        self.folder = folder
        self.names = folder / "names"
        self.names.touch()
        self.count = 1  # of addresses
        self.node = make_namespace()
        # Without a stated address the bridge changes its own with the pods that come and go.
        configure(self.node, "link set lo up",
                  "link add name bridge address 02:00:00:00:00:01 type bridge",
                  f"addr add {NODE_ADDRESS}/16 dev bridge", "link set bridge up")
        self.server = subprocess.Popen(
            [*WITH_PARENT, *inside(self.node, sys.executable, "-B",
                                   HERE / "name_server.py", NODE_ADDRESS,
                                   self.names)], stdout=subprocess.PIPE, text=True)
        if self.server.stdout.readline() != "ready\n":
            raise AssertionError("the name server of the pods did not start")

    def close(self):
        for process in (self.server, self.node):
            end(process)
        self.server.stdout.close()

    def set_address(self, name, address):
        """Makes the name stand for the address."""
        new = self.folder / "names.new"
        new.write_text(f"{name}.cluster.local {address}\n")
        new.replace(self.names)


class Pod:
    """An address, and the process in its container."""

    def __init__(self, network, name):
        network.count += 1
        number = network.count
        self.name = name
        self.address = f"10.77.{number >> 8}.{number & 255}"
        self.folder = network.folder / f"pod-{number}"
        self.folder.mkdir()
        (self.folder / "resolv.conf").write_text(RESOLVER)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{self.address} {name}\n")
        self.log = network.folder / f"{name}.log"
        self.container = None
        self.holder = make_namespace()
        configure(network.node,
                  f"link add name pod{number} type veth peer name eth0 netns {self.holder.pid}",
                  f"link set pod{number} master bridge up")
        configure(self.holder, "link set lo up", f"addr add {self.address}/16 dev eth0",
                  "link set eth0 up")

    def command(self, *words, cpu=None):
        """Returns the command line by which this machine executes words in the pod."""
        cpus = f"0-{os.cpu_count() - 1}" if cpu is None else str(cpu)
        return [*WITH_PARENT, *inside(
            self.holder, "unshare", "--mount", "--ipc", "--pid", "--uts", "--fork", "--mount-proc",
            "--kill-child", "sh", "-c", CONTAINER, "sh", self.folder, self.name, cpus, *words)]

    def start(self, *words, cpu=None, environment=None):
        """Starts the container, whose first process executes words."""
        with open(self.log, "ab") as log:
            self.container = subprocess.Popen(self.command(*words, cpu=cpu), stdout=log,
                                              stderr=log, stdin=subprocess.DEVNULL,
                                              env={**os.environ, **(environment or {})})

    def first_process(self):
        """Returns the pid of the container's first process outside its namespace."""
        pid = self.container.pid
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def terminate(self):
        os.kill(self.first_process(), signal.SIGTERM)

    def kill(self):
        """Kills everything in the container at once."""
        with contextlib.suppress(ValueError, OSError):
            os.kill(self.first_process(), signal.SIGKILL)
            # It ends after the last process of its namespace.
            self.container.wait(timeout=harness.LIMIT_SECONDS)
        end(self.container)

    def remove(self):
        """Ends the pod: its address is gone too."""
        if self.container is not None:
            self.kill()
        end(self.holder)
