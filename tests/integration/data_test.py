"""JSON lines that are prepared; blends, llm.c's token files and tokenizers, as used by a job."""

import json
import os
import pathlib
import struct
import tempfile
import unittest

from harness import ROOT, Cluster, ClusterCase, kill, run, training_data, wait_until

TOKENIZER = ROOT / "data/testdata/gpt2_tokenizer.json"  # 1,457 tokens


def write_llmc(path):
    """Writes 12,000 tokens in GPT-2's format, with a pattern to learn."""
    tokens = [(7 * i + i * i % 13) % 500 for i in range(12_000)]
    header = struct.pack("<3i", 20240520, 1, len(tokens)) + bytes(4 * 253)
    path.write_bytes(header + struct.pack(f"<{len(tokens)}H", *tokens))


def link(source, prefix):
    for end in (".idx", ".bin"):
        os.symlink(f"{source}{end}", f"{prefix}{end}")


def unlink(prefix):
    for end in (".idx", ".bin"):
        os.unlink(f"{prefix}{end}")


class Prepare(unittest.TestCase):
    def test_json_lines_are_documents_and_are_refused_under_another_name(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
            (folder / "a.json").write_text('{"body": "one"}\n{"body": "two"}\n')
            prepare = ("data", "prepare", "--output", folder / "out", "-o", "json")
            code, out, err = run(*prepare, folder / "a.jsonl")
            self.assertEqual((code, err), (0, ""))
            result = json.loads(out)
            self.assertEqual((result["documents"], result["tokens"], result["text_bytes"]),
                             (2, 8, 6))
            self.assertGreater(result["seconds"], 0)
            self.assertGreater(result["tokens_per_second"], 0)
            for arguments, error in (
                    ([], f"{folder / 'a.json'} looks like JSON lines"),
                    (["--json-key", "text"], f'{folder / "a.json"}:1: the line has no key "text"'),
                    (["--json-key", "body", "--json-as-text"], "contradict each other")):
                code, _, err = run(*prepare, folder / "a.json", *arguments)
                self.assertEqual(code, 2)
                self.assertIn(error, err)
            for arguments, documents in ((["--json-key", "body"], 2), (["--json-as-text"], 1)):
                code, out, err = run(*prepare, folder / "a.json", *arguments)
                self.assertEqual((code, json.loads(out)["documents"]), (0, documents), err)


class Data(ClusterCase):
    def blended(self, cluster, name, steps):
        words = cluster.home / "words"
        if not words.with_suffix(".idx").exists():
            code, _, err = run("data", "prepare", "--output", words, "--tokenizer", TOKENIZER,
                               ROOT / "base")
            self.assertEqual(code, 0, err)
            write_llmc(cluster.home / "llmc.bin")
        job = cluster.write_job(name, steps=steps, interval=0,
                                parallelism="tensor_parallel_degree: 1")
        blend = (f"[{{path: {training_data()}, weight: 0.2}}, {{path: words, weight: 0.5}}, "
                 "{path: llmc.bin, weight: 0.3}]")
        text = job.read_text().replace(f"train: {training_data()}",
                                       f"blend: {blend}, validation_fraction: 0")
        job.write_text(text.replace("vocab_size: 259", "vocab_size: 1457"))
        return job

    def test_a_blended_job_reports_its_shares_and_continues_the_same_on_another_layout(self):
        with Cluster(workers=2) as cluster:
            decay = "--set=lr_schedule.decay_steps=12"
            whole = cluster.json("submit", self.blended(cluster, "whole", 12), decay)["name"]
            half = cluster.json("submit", self.blended(cluster, "half", 6), decay)["name"]
            for job in (whole, half):
                cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual([(entry["path"].rpartition("/")[2], entry["share"]) for entry in
                              cluster.describe(whole)["data"]][1:],
                             [("words", 0.5), ("llmc.bin", 0.3)])
            cluster.json("resume", half, "--set=training.steps=12",
                         "--set=parallelism.data_parallel_replicate_degree=2")
            cluster.wait_for_state(half, "SUCCEEDED")
            expected, got = cluster.losses(whole), cluster.losses(half)
            self.assertEqual(sorted(got), list(range(1, 13)))
            for step, (loss, _) in got.items():
                self.assertAlmostEqual(float(loss) / float(expected[step][0]), 1, delta=1e-6,
                                       msg=f"loss of step {step}")

            # `data show` prints the shares of 5 steps of 8 samples, and tokens of the right
            # dataset.
            shown = []
            for step in range(1, 6):
                code, out, err = run("data", "show", self.blended(cluster, "shown", 6), "--step",
                                     step, "-o", "json")
                self.assertEqual(code, 0, err)
                shown += json.loads(out)["samples"]
            by_file = [sample["dataset"].rpartition("/")[2] for sample in shown]
            self.assertEqual([by_file.count(name) for name in ("data", "words", "llmc.bin")],
                             [8, 20, 12])
            for sample in shown:
                if sample["dataset"].endswith("llmc.bin"):
                    first = 32 * sample["row"]
                    self.assertEqual(sample["tokens"], [(7 * i + i * i % 13) % 500
                                                        for i in range(first, first + 32)])

            # A model with a vocabulary smaller than the tokenizer's is refused when it is
            # submitted.
            code, _, err = cluster.troupe("submit", self.blended(cluster, "small", 6),
                                          "--set=model.vocab_size=1456")
            self.assertEqual(code, 2)
            self.assertIn("model.vocab_size is 1456, which is below the 1457", err)

    def test_data_that_are_away_are_waited_for_and_other_data_end_the_job(self):
        slow = {"TROUPE_FAILPOINTS": "step.begin=delay:20"}
        with Cluster(workers=2, environment=slow) as cluster:
            link(training_data(), cluster.home / "set")
            code, _, err = run("data", "prepare", "--output", cluster.home / "other", "--tokenizer",
                               "bytes", ROOT / "proto")
            self.assertEqual(code, 0, err)
            path = cluster.write_job("kept", steps=40)
            path.write_text(path.read_text().replace(f"train: {training_data()}", "train: set"))
            job = cluster.json("submit", path)["name"]
            wait_until(lambda: cluster.checkpoints(job), "a first commit")

            unlink(cluster.home / "set")
            kill(cluster.describe(job)["ranks"][1]["pid"])
            described = wait_until(
                lambda: [d for d in [cluster.describe(job)] if d["restarts"] >= 3],
                "two starts without data")[0]
            self.assertIn(described["state"], ("RECOVERING", "STARTING"), described)
            self.assertEqual(described["last_failure"]["cause"], "STORAGE", described)
            self.assertIn("data.train cannot be read", described["last_failure"]["message"])
            link(training_data(), cluster.home / "set")
            cluster.wait_for_state(job, "SUCCEEDED")

            unlink(cluster.home / "set")
            link(cluster.home / "other", cluster.home / "set")
            cluster.json("resume", job, "--set=training.steps=44")
            failed = wait_until(
                lambda: [d for d in [cluster.describe(job)] if d["state"] == "FAILED"],
                "the refusal of other data")[0]
            self.assertEqual(failed["failure"]["cause"], "DATA")
            self.assertRegex(failed["failure"]["message"],
                             r"data.train .*/set is not the same data: the job began with 8 "
                             r"documents, \d+ tokens, .*; host \S+ has \d+ documents, \d+ tokens, ")
            unlink(cluster.home / "set")
            link(training_data(), cluster.home / "set")
            cluster.json("resume", job)
            self.assertEqual(cluster.wait_for_state(job, "SUCCEEDED")["step"], 44)


if __name__ == "__main__":
    unittest.main()
