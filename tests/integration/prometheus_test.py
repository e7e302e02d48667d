"""`troupe up --monitoring`: Prometheus scrapes the local cluster and ends with it."""

import json
import os
import pathlib
import shutil
import tempfile
import unittest
import urllib.parse
import urllib.request

from harness import alive, kill, run, wait_until

# Programs that take the place of Prometheus.
OLD = "echo 'prometheus, version 2.24.1+ds (branch: HEAD)'\n"
ENDS = """case $1 in
  --version) echo 'prometheus, version 2.53.0 (branch: HEAD)' ;;
  *) echo 'level=info msg="Starting Prometheus"'; echo 'level=error err="no space left"'; exit 1 ;;
esac
"""
# It answers as a Prometheus that is ready, from a process of its own.
SCRIPT = """case $1 in
  --version) echo 'prometheus, version 2.53.0 (branch: HEAD)' ;;
  *) python3 -c "
import http.server, os, sys
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
with http.server.HTTPServer(('127.0.0.1', int(sys.argv[1].rpartition(':')[2])), Ready) as server:
    open(os.path.join(os.path.dirname(sys.argv[2]), '../started'), 'w').write(str(os.getpid()))
    server.serve_forever()
" "$3" "$0" ;;
esac
"""


class Folder(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.directory = self.home / "cluster"
        self.addCleanup(self.down)

    def up(self, *flags, path=None):
        environment = {"PATH": path} if path is not None else None
        return run("up", "--data-dir", self.directory, *flags, environment=environment)

    def down(self):
        return run("down", "--data-dir", self.directory)

    def info(self):
        return json.loads((self.directory / "cluster.json").read_text())


class WithoutPrometheusTest(Folder):
    """What the command answers where Prometheus is missing, too old or ends."""

    def program(self, text):
        """Returns a folder with a program that takes the place of Prometheus."""
        folder = self.home / "bin"
        folder.mkdir()
        program = folder / "prometheus"
        program.write_text("#!/bin/sh\n" + text)
        program.chmod(0o755)
        return str(folder)

    def test_a_missing_prometheus_is_an_error_before_anything_starts(self):
        code, out, err = self.up("--monitoring", path=str(self.home))
        self.assertEqual((code, out), (1, ""))
        self.assertIn("apt-get install prometheus", err)
        self.assertFalse((self.directory / "cluster.json").exists())
        self.assertFalse((self.directory / "logs/supervisor.log").exists())
        code, _, err = self.up(path=str(self.home))
        self.assertEqual(code, 0, err)
        self.assertNotIn("prometheus", self.info())

    def test_one_that_is_too_old_is_named_before_anything_starts(self):
        folder = self.program(OLD)
        code, out, err = self.up("--monitoring", path=f"{folder}:{os.environ['PATH']}")
        self.assertEqual((code, out), (1, ""))
        self.assertIn(f"{folder}/prometheus is Prometheus 2.24.1+ds, which is too old", err)
        self.assertFalse((self.directory / "cluster.json").exists())
        self.assertFalse((self.directory / "logs/supervisor.log").exists())

    def test_one_that_ends_at_once_is_named_with_the_end_of_its_log(self):
        folder = self.program(ENDS)
        code, _, err = self.up("--monitoring", path=f"{folder}:{os.environ['PATH']}")
        self.assertEqual(code, 1)
        self.assertIn("prometheus ends each time it is started", err)
        self.assertIn(f"{self.directory}/logs/prometheus.log", err)
        self.assertIn("Starting Prometheus", err)
        self.assertIn("no space left", err)
        self.assertFalse((self.directory / "cluster.json").exists())


    def test_a_running_cluster_goes_on_without_one_that_ends_at_once(self):
        code, _, err = self.up()
        self.assertEqual(code, 0, err)
        folder = self.program(ENDS)
        code, _, err = self.up("--monitoring", path=f"{folder}:{os.environ['PATH']}")
        self.assertEqual(code, 1)
        self.assertIn("prometheus ends each time it is started", err)
        self.assertIn(f"the cluster in {self.directory} goes on without prometheus", err)
        code, out, err = self.up()
        self.assertEqual(code, 0, err)
        self.assertNotIn("prometheus", out)
        wait_until(lambda: "prometheus" not in self.info(), "the supervisor leaves it")

    def test_what_a_script_has_started_ends_with_the_cluster(self):
        folder = self.program(SCRIPT)
        started = self.home / "started"
        code, out, err = self.up("--monitoring", path=f"{folder}:{os.environ['PATH']}")
        self.assertEqual(code, 0, out + err)
        process = int(started.read_text())
        self.addCleanup(lambda: alive(process) and kill(process))
        self.down()
        wait_until(lambda: not alive(process), "its end", 10)


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed (Debian: prometheus)")
class WithPrometheusTest(Folder):
    def get(self, path, **parameters):
        url = f"{self.info()['prometheus']['url']}/api/v1/{path}"
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{url}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def count_up(self):
        found = self.get("query", query='count(up{job=~"troupe.*"} == 1)')["result"]
        return int(found[0]["value"][1]) if found else 0

    def test_it_scrapes_the_cluster_and_ends_with_it(self):
        code, out, err = self.up("--workers", "1")
        self.assertEqual(code, 0, err)
        self.assertNotIn("prometheus", out)
        # A running cluster gets its Prometheus, and more workers after that.
        code, out, err = self.up("--monitoring")
        self.assertEqual(code, 0, err)
        url = self.info()["prometheus"]["url"]
        self.assertTrue(url.startswith("http://127.0.0.1:"))
        self.assertIn(f"prometheus {url} (pid ", out)
        code, out, err = self.up("--workers", "2")
        self.assertEqual(code, 0, err)
        self.assertIn(f"prometheus {url} (pid ", out)
        wait_until(lambda: self.count_up() == 3, "the coordinator and two workers are scraped")
        groups = [group["name"] for group in self.get("rules")["groups"]]
        self.assertIn("troupe-alerts", groups)
        # The supervisor restarts it on its port.
        process = self.info()["prometheus"]["pid"]
        kill(process)
        wait_until(lambda: self.info()["prometheus"]["pid"] not in (0, process), "its restart")
        self.assertEqual(self.info()["prometheus"]["url"], url)
        pids = [self.info()["prometheus"]["pid"], self.info()["supervisor"]["pid"]]
        code, _, err = self.down()
        self.assertEqual(code, 0, err)
        self.assertEqual([alive(pid) for pid in pids], [False, False])
        # The next cluster of the folder has it only if it is wanted again, at the same address.
        code, out, err = self.up()
        self.assertEqual(code, 0, err)
        self.assertNotIn("prometheus", out)
        self.down()
        code, out, err = self.up("--monitoring")
        self.assertEqual(code, 0, err)
        self.assertIn(f"prometheus {url} (pid ", out)


if __name__ == "__main__":
    unittest.main()
