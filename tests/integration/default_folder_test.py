"""`troupe up` and `troupe down` without --data-dir: the folder of the last `up`, and the newest
cluster that is running."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import TROUPE

# A cluster that runs elsewhere on this machine is not seen: `troupe down` would stop it.
ISOLATED = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
# A user who may not do so may where a namespace of users of its own comes first.
WAYS = (ISOLATED, (*ISOLATED, "--user", "--map-root-user"))
LIMIT_SECONDS = 200

# Prints a line for each step; the programs' messages go to a file.
SCRIPT = r"""
export HOME=$1
unset XDG_STATE_HOME
exec 2> "$HOME/messages"
up() { "$0" up --workers 1 --detection-seconds 1 "$@" | grep ^folder || echo failed; }
down() { "$0" down "$@" || echo failed; }
echo "up: $(up)"
echo "other: $(up --data-dir "$HOME/other")"
echo "last: $(up)"
echo "down: $(down)"
echo "down: $(down)"
echo "down: $(down -o json)"
echo "after down: $(up)"
echo "down: $(down -o json)"
rm -r "$HOME/other"
echo "without other: $(up)"
echo "elsewhere: $(TROUPE_COORDINATOR=127.0.0.1:1 down)"
echo "down: $(down)"
echo "slash: $(up --data-dir "$HOME/other/")"
echo "down: $(down -o json)"
echo "lost: $(up --data-dir "$HOME/lost")"
read -r supervisor _ < "$HOME/lost/supervisor.lock"
# It would make files in a folder that is gone.
kill -STOP "$supervisor"
mv "$HOME/lost" "$HOME/moved"
echo "down: $(down -o json)"
mv "$HOME/moved" "$HOME/lost"
echo "down: $(down)"
"""


def isolation():
    """Returns the way that is permitted; empty if none is."""
    for way in WAYS:
        if subprocess.run([*way, "true"], capture_output=True, timeout=10,
                          check=False).returncode == 0:
            return way
    return ()


@unittest.skipUnless(isolation(), "this user may not make a namespace of processes (unshare)")
class DefaultFolder(unittest.TestCase):
    maxDiff = None

    def test_up_continues_the_last_folder_and_down_stops_the_newest_cluster(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-")).resolve()
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        done = subprocess.run([*isolation(), "bash", "-c", SCRIPT, TROUPE, home],
                              capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        messages = (home / "messages").read_text()
        default, other = f"{home}/.local/state/troupe/default", f"{home}/other"
        self.assertEqual(done.stdout.splitlines(), [
            f"up: folder {default}",
            f"other: folder {other}",
            f"last: folder {other}",
            f"down: stopped the cluster in {other}",
            f"down: stopped the cluster in {default}",
            'down: {"folder":null,"stopped":false}',
            f"after down: folder {other}",
            f'down: {{"folder":"{other}","stopped":true}}',
            f"without other: folder {default}",
            "elsewhere: failed",
            f"down: stopped the cluster in {default}",
            f"slash: folder {other}",
            f'down: {{"folder":"{other}","stopped":true}}',
            f"lost: folder {home}/lost",
            'down: {"folder":null,"stopped":false}',
            f"down: stopped the cluster in {home}/lost"], messages + done.stderr)
        self.assertEqual(messages.splitlines(), [
            f"2 local clusters are running; this command stops the newest, in {other}",
            "no local cluster is running",
            "troupe: TROUPE_COORDINATOR is 127.0.0.1:1, which is the coordinator of no local "
            "cluster of this user: give --data-dir DIR, or unset the variable",
            "no local cluster is running"])


class NoHome(unittest.TestCase):
    def test_without_a_home_the_folder_must_be_stated(self):
        done = subprocess.run([TROUPE, "up"], capture_output=True, text=True, timeout=30,
                              check=False, env={"PATH": "/usr/bin:/bin", "HOME": "home"})
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("give --data-dir DIR", done.stderr)


if __name__ == "__main__":
    unittest.main()
