"""The coordinator's web page, as a browser without scripts fetches it from real processes."""

import re
import unittest
import urllib.error
import urllib.request

from harness import Cluster, ClusterCase, kill, run, wait_until


def fetch(url, **headers):
    """Returns the (code, text, headers) of the answer; 0 for the code if there is none now."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, headers=headers)
    try:
        with opener.open(request, timeout=20) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers
    except OSError:
        return 0, "", {}


def shown_step(url):
    """Returns the step that the page of a job shows; 0 for none."""
    found = re.search(r"\bstep (\d+) of \d+", fetch(url)[1])
    return int(found.group(1)) if found else 0


def listed_jobs(url):
    """Returns the section of the jobs; that of the workers links jobs too."""
    code, text, _ = fetch(url)
    found = re.search(r'<section id="jobs"[^>]*>(.*?)</section>', text, re.DOTALL)
    if code != 200 or not found:
        raise AssertionError(f"{url} has code {code} and no section of jobs: {text}")
    return found.group(1)


class Page(ClusterCase):
    def test_a_page_shows_a_job_while_it_runs(self):
        with Cluster(workers=2) as cluster:
            page = cluster.info()["coordinator"]["page"]
            self.assertRegex(page, r"^http://127\.0\.0\.1:\d+/$")
            code, out, err = run("up", "--data-dir", cluster.directory)
            self.assertEqual(code, 0, err)
            self.assertIn(f"\npage {page}\n", out)
            job = cluster.submit("live", steps=100_000, interval=50)
            url = page + job
            first = wait_until(lambda: shown_step(url), "a step on the page")
            wait_until(lambda: shown_step(url) > first, "a later step on the page")
            wait_until(lambda: "CHECKPOINT_COMMITTED" in fetch(url)[1], "a commit on the page")
            # Its state is another one while it writes a checkpoint.
            wait_until(lambda: "RUNNING" in fetch(url)[1], "a job that runs on the page")
            code, text, headers = fetch(url)
            self.assertEqual(code, 200)
            self.assertIn("<svg", text)
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertNotIn("Set-Cookie", headers)
            code, text, _ = fetch(page)
            self.assertEqual(code, 200)
            for name in ("worker-0", "worker-1", f'href="/{job}"'):
                self.assertIn(name, text)
            wait_until(lambda: f'href="/{job}"' in listed_jobs(f"{page}?state=RUNNING"),
                       "the job among those that run")
            self.assertNotIn(f'href="/{job}"', listed_jobs(f"{page}?state=QUEUED"))
            for path in ("/logs", "/logs?rank=1"):
                self.assertEqual(fetch(url + path)[0], 200)
                wait_until(lambda: "job=live rank=1 " in fetch(url + path)[1], f"lines of {path}")
            self.assertEqual(cluster.troupe("cancel", job)[0], 0)
            self.assertIn("CANCELLED", fetch(url)[1])

    def test_the_page_has_its_address_after_a_restart_of_the_coordinator(self):
        with Cluster(workers=1) as cluster:
            info = cluster.info()["coordinator"]
            job = cluster.submit("done", steps=3, interval=0, parallelism="")
            cluster.wait_for_state(job, "SUCCEEDED")
            url = info["page"] + job
            self.assertIn("3 of 3", fetch(url)[1])
            kill(info["pid"])
            wait_until(lambda: cluster.info()["coordinator"]["pid"] != info["pid"],
                       "a new coordinator in cluster.json")
            wait_until(lambda: "3 of 3" in fetch(url)[1], "the page of the new coordinator")
            self.assertEqual(cluster.info()["coordinator"]["page"], info["page"])
            self.assertEqual(cluster.down()[0], 0)
            self.assertEqual(fetch(url)[0], 0)
            cluster.up()
            self.assertEqual(cluster.info()["coordinator"]["page"], info["page"])
            self.assertIn("3 of 3", fetch(url)[1])

    def test_other_addresses_and_names_get_nothing(self):
        with Cluster(workers=1) as cluster:
            page = cluster.info()["coordinator"]["page"]
            for path in ("jobs/none", "jobs/none/logs", "nothing", "jobs/%3Cscript%3E"):
                code, text, _ = fetch(page + path)
                self.assertEqual(code, 404, path)
                self.assertNotIn("<script>", text)
            self.assertEqual(fetch(f"{page}?state=none")[0], 400)
            code, text, _ = fetch(page, Host="attacker.example")
            self.assertEqual(code, 421)
            self.assertNotIn("worker-0", text)
            for path in ("style.css", "page.js", "icon.svg"):
                self.assertEqual(fetch(page + path)[0], 200, path)


if __name__ == "__main__":
    unittest.main()
