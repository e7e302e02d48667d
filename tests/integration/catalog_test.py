"""Checkpoints that are damaged, pinned, compared, and found again without the catalog."""

import array
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from harness import ROOT, Cluster, ClusterCase, run, wait_until

SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:20"}
# So that the number of steps affects only the end.
CONSTANT = "--set=lr_schedule.decay_type=constant"


def shard(checkpoint, rank=0):
    return pathlib.Path(checkpoint["path"]) / f"rank-{rank:05}.safetensors"


def flip(path, at=-1):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def cut(path, by=20):
    path.write_bytes(path.read_bytes()[:-by])


class Catalog(ClusterCase):
    def train(self, cluster, name, steps, *more):
        path = cluster.write_job(name, steps=steps, interval=4)
        job = cluster.json("submit", path, CONSTANT, *more)["name"]
        return job, cluster.wait_for_state(job, "SUCCEEDED")

    def diff(self, a, b):
        code, out, err = run("checkpoints", "diff", a, b, "-o", "json")
        self.assertIn(code, (0, 1), err)
        found = json.loads(out)
        self.assertEqual(code, 0 if found["equal"] else 1)
        return found

    def metric(self, cluster, name, job):
        with urllib.request.urlopen(cluster.info()["coordinator"]["metrics"],
                                    timeout=10) as response:
            lines = response.read().decode().splitlines()
        found = [line for line in lines if line.startswith(name + "{") and
                 f'job_name="{job}"' in line]
        return float(found[0].rsplit(" ", 1)[1]) if found else None

    def test_a_bad_newest_checkpoint_is_quarantined_and_the_one_before_it_taken(self):
        spoils = {"bit": lambda checkpoint: flip(shard(checkpoint, 1)),
                  "header": lambda checkpoint: flip(shard(checkpoint), 20),
                  "tail": lambda checkpoint: cut(shard(checkpoint, 1)),
                  "missing": lambda checkpoint: shard(checkpoint, 1).unlink(),
                  "manifest": lambda checkpoint: flip(
                      pathlib.Path(checkpoint["path"]) / "manifest.json", 40),
                  "manifest-tail": lambda checkpoint: cut(
                      pathlib.Path(checkpoint["path"]) / "manifest.json")}
        with Cluster(workers=2) as cluster:
            self.train(cluster, "whole", 12)
            for name, spoil in spoils.items():
                with self.subTest(name):
                    job, done = self.train(cluster, name, 8)
                    good, bad = done["checkpoints"]
                    spoil(bad)
                    code, _, err = run("checkpoints", "verify", bad["path"])
                    # A manifest alone cannot show that one of its digits was changed; the catalog's
                    # digest does.
                    if name != "manifest":
                        self.assertEqual(code, 1, err)
                    self.assertEqual(run("checkpoints", "verify", bad["path"], "--digest",
                                         bad["digest"])[0], 1)
                    cluster.json("resume", job, "--set=training.steps=12")
                    done = cluster.wait_for_state(job, "SUCCEEDED")
                    self.assertEqual(done["restarts"], 1)
                    shown = {c["path"]: c for c in done["checkpoints"]}
                    self.assertEqual(shown[bad["path"]]["state"], "QUARANTINED")
                    self.assertTrue(shown[bad["path"]]["reason"])
                    self.assertEqual(shown[good["path"]]["state"], "COMMITTED")
                    self.assertTrue(pathlib.Path(bad["path"]).exists(),
                                    "a bad checkpoint is kept for a look at it")
                    self.assertEqual(self.metric(cluster, "troupe_checkpoint_quarantined_total",
                                                 name), 1)
                    events = [e for e in cluster.watched(job) if e["type"] == "event"]
                    reasons = [e["message"] for e in events
                               if e["event"] == "CHECKPOINT_QUARANTINED"]
                    self.assertEqual(len(reasons), 1)
                    self.assertIn(bad["path"], reasons[0])
                    recovered = [e["message"] for e in events if e["event"] == "RECOVERED"]
                    self.assertIn("run from step 5", recovered[-1])
                    self.assertEqual(cluster.losses(job), cluster.losses("whole"))
                    listed = cluster.checkpoints(job)
                    self.assertNotIn(bad["path"], [c["path"] for c in listed])
                    listed = cluster.json("checkpoints", "list", job, "--all")["checkpoints"]
                    self.assertIn(bad["path"], [c["path"] for c in listed])
                    self.assert_committed_checkpoints_verify(cluster, job)

    def test_a_job_whose_catalog_is_lost_is_found_again_and_goes_on(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        try:
            with Cluster(workers=2, directory=home) as cluster:
                self.train(cluster, "whole", 12)
                whole = cluster.losses("whole")
                _, done = self.train(cluster, "lost", 8)
                before = done["checkpoints"]
            shutil.rmtree(home / "cluster")
            with Cluster(workers=2, directory=home) as cluster:
                self.assertEqual(cluster.json("list")["jobs"], [])
                shutil.rmtree(home / "checkpoints" / "whole")
                (home / "checkpoints" / "lost" / "step-00000012-epoch-1-attempt-9-at-5").mkdir()
                code, out, err = cluster.troupe("checkpoints", "rebuild-catalog",
                                                home / "checkpoints")
                self.assertEqual(code, 0, err)
                self.assertIn("jobs/lost: CANCELLED at step 8, 2 checkpoints", out)
                self.assertIn("never committed", err)
                found = cluster.checkpoints("lost")
                same = ("path", "step", "digest", "bytes", "layout", "attempt", "group_epoch",
                        "state")
                self.assertEqual([{k: c[k] for k in same} for c in found],
                                 [{k: c[k] for k in same} for c in before])
                self.assertTrue(all(c["pinned"] for c in found))
                again = cluster.json("checkpoints", "rebuild-catalog",
                                     home / "checkpoints" / "lost")
                self.assertEqual(again["jobs"], [])
                self.assertIn("already", again["left_out"][-1]["reason"])
                cluster.json("resume", "lost", "--set=training.steps=12")
                cluster.wait_for_state("lost", "SUCCEEDED")
                self.assertEqual(cluster.losses("lost"), {s: v for s, v in whole.items() if s > 8})
                self.assertEqual([c["step"] for c in cluster.checkpoints("lost")], [4, 8, 12])
                self.assert_committed_checkpoints_verify(cluster, "lost")
                job, _ = self.train(cluster, "loaded", 12,
                                    f"--set=checkpoint.initial_load={before[0]['path']}")
                self.assertEqual(cluster.losses(job), {s: v for s, v in whole.items() if s > 4})
                code, _, err = cluster.troupe("checkpoints", "rebuild-catalog", home / "cluster")
                self.assertEqual(code, 2, err)
        finally:
            shutil.rmtree(home, ignore_errors=True)

    def test_a_pinned_checkpoint_outlives_retention_until_it_is_unpinned(self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            # The job takes seconds to the commit that would supersede the first one.
            path = cluster.write_job("pinned", steps=320, interval=80)
            job = cluster.json("submit", path, "--set=checkpoint.keep_latest_k=2")["name"]
            first = wait_until(lambda: cluster.checkpoints(job), "the first commit")[0]
            pinned = cluster.json("checkpoints", "pin", job, first["step"])
            self.assertEqual((pinned["path"], pinned["pinned"]), (first["path"], True))
            again = cluster.json("checkpoints", "pin", job,
                                 f"{job.removeprefix('jobs/')}@{first['step']}")
            self.assertEqual(again["path"], first["path"])
            code, _, err = cluster.troupe("checkpoints", "pin", job, 4)
            self.assertEqual(code, 4, err)
            cluster.wait_for_state(job, "SUCCEEDED")
            # The last commit is verified before retention removes the commits that it supersedes.
            kept = [first["step"], 240, 320]
            wait_until(lambda: [c["step"] for c in cluster.checkpoints(job)] == kept, "retention")
            self.assert_committed_checkpoints_verify(cluster, job)
            cluster.json("checkpoints", "unpin", job, first["path"])
            wait_until(lambda: not pathlib.Path(first["path"]).exists(), "retention took it")
            self.assertEqual([c["step"] for c in cluster.checkpoints(job)], [240, 320])

    def test_retention_reads_newer_commits_back_and_keeps_what_a_damaged_one_would_have_superseded(
            self):
        with Cluster(workers=2, environment=SLOW) as cluster:
            path = cluster.write_job("kept", steps=2000, interval=0)
            job = cluster.json("submit", path, "--set=checkpoint.keep_latest_k=2")["name"]

            def steps(*, all=False, key="state", value="COMMITTED"):
                listed = cluster.json("checkpoints", "list", job,
                                      *(["--all"] if all else []))["checkpoints"]
                return [c["step"] for c in listed if c[key] == value]

            wait_until(lambda: cluster.describe(job)["step"] >= 1, "the first step")
            old, bad = (cluster.json("checkpoints", "create", job) for _ in range(2))
            self.assertEqual((old["verified"], bad["verified"]), (False, False),
                             "nothing could be deleted")
            flip(shard(bad, 1))
            newer = cluster.json("checkpoints", "create", job)
            wait_until(lambda: steps(all=True, value="QUARANTINED") == [bad["step"]]
                       and steps(key="verified", value=True) == [newer["step"]],
                       "both were read back")
            self.assertEqual(steps(), [old["step"], newer["step"]])
            self.assertEqual(run("checkpoints", "verify", old["path"], "--digest",
                                 old["digest"])[0], 0)
            # With a second intact newer commit the oldest is removed; the damaged one stays.
            newest = cluster.json("checkpoints", "create", job)
            wait_until(lambda: not pathlib.Path(old["path"]).exists(), "retention took the oldest")
            self.assertEqual(steps(), [newer["step"], newest["step"]])
            self.assertEqual(steps(key="verified", value=True), [newer["step"], newest["step"]])
            kept = {c["step"]: c for c in cluster.describe(job)["checkpoints"]}
            self.assertEqual(kept[bad["step"]]["state"], "QUARANTINED")
            self.assertIn("rank-00001.safetensors", kept[bad["step"]]["reason"])
            self.assertTrue(pathlib.Path(bad["path"]).exists())
            self.assertEqual(self.metric(cluster, "troupe_checkpoint_quarantined_total", "kept"), 1)
            self.assertEqual(cluster.describe(job)["restarts"], 0)
            self.lift_once_it_is_intact(cluster, job, bad)
            self.assertEqual(steps(), [bad["step"], newer["step"], newest["step"]])
            self.assertEqual(steps(key="pinned", value=True), [bad["step"]])
            self.assertEqual(cluster.troupe("cancel", job, "--now")[0], 0)
            self.assert_committed_checkpoints_verify(cluster, job)

    def lift_once_it_is_intact(self, cluster, job, bad):
        """Lifts the quarantine of a checkpoint whose shard 1 was flipped."""
        path = pathlib.Path(bad["path"])

        def lift(folder, *more):
            # Relative to the current folder, while the coordinator knows absolute paths only.
            return run("checkpoints", "verify", folder.name, "--lift", *more, "--data-dir",
                       cluster.directory, cwd=folder.parent)

        code, out, err = lift(path)
        self.assertEqual((code, out), (1, ""), "a damaged one is not lifted")
        self.assertIn("rank-00001.safetensors", err)
        self.assertNotIn(bad["step"], [c["step"] for c in cluster.checkpoints(job)])
        flip(shard(bad, 1))
        code, _, err = lift(path, "--digest", f"{bad['digest'][:-1]}x")
        self.assertEqual(code, 1, "another digest than the manifest's")
        elsewhere = cluster.home / "elsewhere" / path.name
        shutil.copytree(path, elsewhere)
        code, _, err = lift(elsewhere)
        self.assertEqual(code, 4, err)
        self.assertIn("no job has such a checkpoint", err)
        self.assertNotIn(bad["step"], [c["step"] for c in cluster.checkpoints(job)])
        code, out, err = lift(path)
        self.assertEqual(code, 0, err)
        self.assertIn(f"step {bad['step']}, ", out)
        self.assertIn(f"step {bad['step']} of ", err)
        self.assertIn("is a committed checkpoint of its job, and pinned", err)
        self.assertEqual(lift(path)[0], 0, "it may be repeated")

    def test_diff_names_the_tensors_that_differ_whatever_the_layouts(self):
        with Cluster(workers=2) as cluster:
            _, two = self.train(cluster, "two", 8)
            _, one = self.train(cluster, "one", 8, "--set=parallelism.tensor_parallel_degree=1")
            paths = [c["path"] for c in two["checkpoints"] + one["checkpoints"]]
            code, out, err = run("checkpoints", "diff", paths[0], paths[0])
            self.assertEqual((code, out.splitlines()[-1][-9:]), (0, "all equal"), err)
            rounding = self.diff(paths[1], paths[3])
            self.assertTrue(all(t["max_absolute"] < 1e-5 for t in rounding["tensors"]), rounding)
            trained = self.diff(paths[0], paths[3])
            self.assertFalse(trained["equal"])
            self.assertEqual(trained["steps"], [4, 8])
            self.assertEqual(len(trained["tensors"]), trained["tensors_compared"])
            self.assertTrue(any(t["max_absolute"] > 1e-4 for t in trained["tensors"]))

    def test_a_job_and_a_step_name_a_checkpoint(self):
        with Cluster(workers=2) as cluster:
            _, done = self.train(cluster, "one", 8)
            first, last = (checkpoint["path"] for checkpoint in done["checkpoints"])
            for name, path in (("one", last), ("jobs/one", last), ("one@4", first),
                               ("jobs/one@8", last)):
                self.assertEqual(cluster.json("checkpoints", "verify", name)["path"], path)
                self.assertEqual(cluster.troupe("checkpoints", "show", name)[1],
                                 run("checkpoints", "show", path)[1])
            code, out, err = cluster.troupe("checkpoints", "diff", "one@4", "one", "-o", "json")
            self.assertEqual((code, json.loads(out)["steps"]), (1, [4, 8]), err)
            self.assertIn(f"jobs/one, step 4: {first}\n", err)
            exported = cluster.home / "exported"
            code, _, err = cluster.troupe("checkpoints", "export", "one", "--to", exported)
            self.assertEqual(code, 0, err)
            self.assertTrue((exported / "model.safetensors").exists())
            # A directory is a path, unless the name begins with jobs/.
            for folder in ("one", "jobs/one"):
                (cluster.home / "here" / folder).mkdir(parents=True)
            here = {"cwd": cluster.home / "here"}
            address = ("--data-dir", cluster.directory)
            code, _, err = run("checkpoints", "show", "one", *address, **here)
            self.assertEqual(code, 2, err)
            self.assertIn("one has no manifest.json", err)
            code, out, err = run("checkpoints", "verify", "jobs/one", *address, **here)
            self.assertEqual(code, 0, err)
            self.assertIn(last, out)
            for name, error in (("jobs/none", "none"), ("none", "none is not a directory, so it"),
                                ("one@5", "its commits are of step 4, 8")):
                code, _, err = cluster.troupe("checkpoints", "export", name, "--to",
                                              cluster.home / "nothing")
                self.assertEqual(code, 4, err)
                self.assertIn(error, err)
            pathlib.Path(last).rename(cluster.home / "elsewhere")
            code, _, err = cluster.troupe("checkpoints", "verify", "one")
            self.assertEqual(code, 2, err)
            self.assertIn(f"is {last}, which is not on this host", err)
            # Another checkpoint in its place, as on a host that has other disks there.
            shutil.copytree(first, last)
            code, _, err = cluster.troupe("checkpoints", "show", "one")
            self.assertEqual(code, 2, err)
            self.assertIn("the folder on this host is not the checkpoint one", err)
            code, out, err = cluster.troupe("checkpoints", "verify", "one")
            self.assertEqual((code, out), (1, ""), err)
            self.assertIn("the committed one", err)

    def test_the_example_reader_puts_tensors_together_and_refuses_damage(self):
        sys.path.insert(0, str(ROOT / "examples" / "python"))
        import read_checkpoint

        with Cluster(workers=4) as cluster:
            _, one = self.train(cluster, "one", 4, "--set=parallelism.tensor_parallel_degree=1")
            _, four = self.train(cluster, "four", 4, "--set=parallelism.pipeline_parallel_degree=2")
            path = four["checkpoints"][-1]["path"]
            manifest, tensors = read_checkpoint.read(path)
            self.assertEqual((manifest["job"], int(manifest["state"]["step"])), ("four", 4))
            _, expected = read_checkpoint.read(one["checkpoints"][-1]["path"])
            self.assertEqual(sorted(tensors), sorted(expected))
            for name, (dtype, shape, data) in expected.items():
                self.assertEqual(tensors[name][:2], (dtype, shape), name)
                pairs = zip(array.array("f", data), array.array("f", tensors[name][2]))
                self.assertLess(max(abs(a - b) for a, b in pairs), 1e-5, name)
            reader = [sys.executable, "-B", read_checkpoint.__file__, path, "model.norm.weight"]
            shown = subprocess.run(reader, capture_output=True, text=True, timeout=60)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertIn("job four, step 4, 32 samples", shown.stdout)
            self.assertRegex(shown.stdout, r"\nmodel.norm.weight F32 \[64\] [01]\.")
            flip(shard(four["checkpoints"][-1], 2))
            with self.assertRaisesRegex(ValueError, "rank-00002.safetensors: the content differs "
                                                    "from what was written"):
                read_checkpoint.read(path)


if __name__ == "__main__":
    unittest.main()
