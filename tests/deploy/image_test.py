"""The image: built by buildah from deploy/image/Dockerfile on a base of debootstrap, and a whole
job in it, as user 64100 without capabilities and with a read-only root file system.

    ./run test image

It takes as long as a first build, less where the compiler's cache is warm. The base and the image
are kept in build/image; remove this folder to build them anew.
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import unittest

import harness

ROOT = harness.ROOT
FOLDER = ROOT / "build/image"
BASE = "docker.io/library/debian:12"
IMAGE = "localhost/troupe:test"
# The compiler's cache, which the build in the image shares with those of this checkout.
CACHE = pathlib.Path(os.environ.get("CCACHE_DIR", pathlib.Path.home() / ".cache/ccache"))
BUILD_LIMIT_SECONDS = 3600
JOB_LIMIT_SECONDS = 300
# Executed in the image.
JOB = """
set -eu
cd /var/lib/troupe
test "$(id -u):$(id -g)" = 64100:64100
! touch /opt/troupe/file 2>/dev/null
yes 'all the world is a stage, and all the men and women merely players.' | head -n 400 >text.txt
troupe data prepare --output text text.txt
cat >job.yaml <<'YAML'
{job}
YAML
troupe up --workers 2 --data-dir cluster
troupe submit --data-dir cluster --wait job.yaml
troupe checkpoints verify checkpoints/inside/step-00000020-*
troupe down --data-dir cluster
"""
MISSING = [name for name in ("buildah", "debootstrap", "setpriv", "unshare")
           if shutil.which(name) is None]


def run_in(root, script):
    """Runs a script in a root directory as a pod's container runs: its own mounts and processes, a
    read-only root, the user of the image, and no capabilities."""
    root = shlex.quote(str(root))
    outside = f"""
        set -eu
        mount --make-rprivate /
        mount --bind {root} {root}
        mount -o remount,bind,ro {root}
        mount -t proc proc {root}/proc
        mount --rbind /dev {root}/dev
        mount -t tmpfs -o mode=1777 tmpfs {root}/dev/shm
        mount -t tmpfs -o mode=1777 tmpfs {root}/tmp
        mount -t tmpfs -o uid=64100,gid=64100 tmpfs {root}/var/lib/troupe
        exec chroot {root} setpriv --reuid=64100 --regid=64100 --clear-groups --bounding-set=-all \\
          --inh-caps=-all --no-new-privs env -i HOME=/tmp \\
          PATH=/opt/troupe/bin:/usr/local/bin:/usr/bin:/bin sh -c "$1"
    """
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                           outside, "sh", script], capture_output=True, text=True,
                          timeout=JOB_LIMIT_SECONDS, check=False, stdin=subprocess.DEVNULL)


def buildah(*words, limit=BUILD_LIMIT_SECONDS):
    """Runs buildah with storage of its own and without daemons; returns its output."""
    storage = ["--root", FOLDER / "storage", "--runroot", FOLDER / "run", "--storage-driver", "vfs"]
    done = subprocess.run(["buildah", *storage, *words], capture_output=True, text=True,
                          timeout=limit, check=False, cwd=ROOT,
                          env=os.environ | {"BUILDAH_ISOLATION": "chroot"})
    if done.returncode != 0:
        raise AssertionError(f"buildah {words[0]}: {done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


def has_image(name):
    return bool(buildah("images", "--quiet", "--filter", f"reference={name}"))


@unittest.skipIf(MISSING, f"{', '.join(MISSING)} missing")
@unittest.skipUnless(os.getuid() == 0, "only root can build the image")
class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        FOLDER.mkdir(parents=True, exist_ok=True)
        if not has_image(BASE):
            cls.make_base()
        CACHE.mkdir(parents=True, exist_ok=True)
        buildah("bud", "--pull-never", "--volume", f"{CACHE}:/var/cache/ccache", "--file",
                ROOT / "deploy/image/Dockerfile", "--target", "runtime", "--tag", IMAGE, ROOT)
        cls.container = buildah("from", "--pull-never", IMAGE)
        cls.addClassCleanup(buildah, "rm", cls.container)
        cls.root = pathlib.Path(buildah("mount", cls.container))

    @staticmethod
    def make_base():
        root = FOLDER / "base"
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", root], check=True,
                       capture_output=True, timeout=BUILD_LIMIT_SECONDS)
        container = buildah("from", "scratch")
        buildah("add", container, root, "/")
        buildah("commit", container, BASE)
        buildah("rm", container)
        shutil.rmtree(root)

    def test_a_whole_job_runs_in_the_image(self):
        job = harness.JOB.format(name="inside", train="/var/lib/troupe/text", steps=20,
                                 folder="/var/lib/troupe/checkpoints", interval=10,
                                 parallelism="data_parallel_replicate_degree: 2")
        done = run_in(self.root, JOB.format(job=job))
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-4000:])
        self.assertIn("SUCCEEDED", done.stdout)

    def test_its_user_is_a_number(self):
        config = buildah("inspect", "--format", "{{.OCIv1.Config.User}}", self.container)
        self.assertEqual(config, "64100:64100")

    def test_every_program_starts(self):
        for program in ("troupe", "troupe-coordinator", "troupe-worker"):
            done = run_in(self.root, f"{program} --version")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_image_has_no_compiler_and_no_sources(self):
        for path in ("src", "usr/bin/g++", "usr/bin/cmake"):
            self.assertFalse((self.root / path).exists(), path)


if __name__ == "__main__":
    unittest.main()
