"""Jobs are read as `troupe submit` reads them."""

import os
import pathlib
import tempfile
import unittest

import troupe
from troupe._job_file import read_job, read_overrides

ROOT = pathlib.Path(__file__).resolve().parents[2]


class JobFileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def read(self, text, overrides=None):
        path = self.folder / "job.yaml"
        path.write_text(text)
        return read_job(path, overrides or {})

    def violations(self, text, overrides=None):
        with self.assertRaises(troupe.InvalidJob) as caught:
            self.read(text, overrides)
        return [(each.field, each.description.replace(f"{self.folder}/", ""))
                for each in caught.exception.violations]

    def test_values_are_read_by_the_type_of_their_key(self):
        spec = self.read("""
name: 2024
training: {steps: 2e3, max_norm: 1e-3, seed: 010}
parallelism: {reshard_after_forward: true, pipeline_parallel_split_points: [2, 4]}
optimizer: {lr: 3, no_weight_decay: ["*.bias"]}
data:
  blend:
    - {path: a, weight: .5}
    - {path: /b}
""")
        self.assertEqual(spec.name, "2024")
        self.assertEqual((spec.training.steps, spec.training.max_norm, spec.training.seed),
                         (2000, 0.001, 10))
        self.assertEqual(spec.parallelism.reshard_after_forward, "true")
        self.assertEqual(list(spec.parallelism.pipeline_parallel_split_points), [2, 4])
        self.assertEqual(spec.optimizer.lr, 3)
        self.assertEqual([entry.path for entry in spec.data.blend], [f"{self.folder}/a", "/b"])
        self.assertFalse(spec.training.HasField("micro_batch_size"))

    def test_paths_are_relative_to_the_job_file(self):
        spec = self.read("data: {train: ../x/data}\ncheckpoint: {initial_load: /c}")
        self.assertEqual(spec.data.train, f"{self.folder.parent}/x/data")
        self.assertEqual(spec.checkpoint.initial_load, "/c")
        self.assertEqual(spec.checkpoint.folder, f"{self.folder}/checkpoints")
        self.assertEqual(self.read('checkpoint: {folder: ""}').checkpoint.folder, "")

    def test_paths_of_a_mapping_are_relative_to_the_working_directory(self):
        spec = read_job({"data": {"train": pathlib.Path("data")}}, {})
        self.assertEqual(spec.data.train, f"{os.getcwd()}/data")
        self.assertFalse(spec.checkpoint.HasField("folder"))  # the coordinator decides

    def test_overrides_set_keys_in_the_file_or_not(self):
        spec = self.read("training: {steps: 5}", {"training.steps": 7, "training.float8.recipe":
                                                  "none", "data.train": "x"})
        self.assertEqual(spec.training.steps, 7)
        self.assertEqual(spec.training.float8.recipe, "none")
        self.assertEqual(spec.data.train, f"{self.folder}/x")
        self.assertEqual(self.violations("", {"training.step": 7, "name.x": 1}), [
            ("training.step", "is an unknown key; the nearest known key is training.steps"),
            ("name.x", "is an unknown key")])
        self.assertEqual(read_overrides({"data.train": "x"}).data.train, f"{os.getcwd()}/x")

    def test_every_error_is_named_with_its_line_and_column(self):
        self.assertEqual(self.violations("""training: {stepz: 3, sequence_length: 1.5}
name: [a]
name: b
optimizer:
  lr: .nan
  beta1: "0.9"
data: 3
checkpoint: {interval: 99999999999999999999}
model: {tie_word_embeddings: yes}
devices:
"""), [
            ("training.stepz", "is an unknown key; the nearest known key is training.steps "
                               "(job.yaml:1:12)"),
            ("training.sequence_length", "is 1.5, not a whole number (job.yaml:1:22)"),
            ("name", "is a list, not text (job.yaml:2:1)"),
            ("name", "is a duplicate key (job.yaml:3:1)"),
            ("optimizer.lr", "is .nan, not a finite number (job.yaml:5:3)"),
            ("optimizer.beta1", 'is the text "0.9", not a number (job.yaml:6:3)'),
            ("data", "is 3, not a mapping of keys (job.yaml:7:1)"),
            ("checkpoint.interval",
             "is 99999999999999999999, out of the range of int64 (job.yaml:8:14)"),
            ("model.tie_word_embeddings", "is yes, not true or false (job.yaml:9:9)"),
            ("devices", "is empty, not text (job.yaml:10:1)")])

    def test_the_column_is_that_of_the_key_in_bytes(self):
        self.assertEqual(self.violations("""data: {train: "é", trian: x}
parallelism:
  pipeline_parallel_split_points: [1,
                                   x]
"""), [("data.trian", "is an unknown key; the nearest known key is data.train (job.yaml:1:21)"),
       ("parallelism.pipeline_parallel_split_points[1]",
        "is x, not a whole number (job.yaml:4:36)")])
        self.assertEqual(self.violations("- a"), [
            ("job", "is a list, not a mapping of keys (job.yaml:1:1)")])
        [(_, text)] = self.violations("name: a\nmodel: b: c")
        self.assertTrue(text.endswith("(job.yaml:2:9)"), text)

    def test_the_places_of_the_keys_are_recorded(self):
        path = self.folder / "job.yaml"
        path.write_text("training: {steps: 5,\n  seed: 1}\ndata: {blend: [{path: a, weight: 1}]}")
        places = {}
        read_job(path, {"training.steps": 7}, places)
        self.assertEqual({key: place.replace(f"{path}", "") for key, place in places.items()}, {
            "": "", "training": ":1:1", "training.steps": "", "training.seed": ":2:3",
            "data": ":3:1", "data.blend": ":3:8", "data.blend[0].path": ":3:17",
            "data.blend[0].weight": ":3:26"})
        self.assertEqual(places[""], str(path))
        places = {}
        read_job(path, {"data": {"blend": [{"path": "b"}]}}, places)
        self.assertEqual(places["data.blend[0].path"], "")
        self.assertNotIn("data.blend[0].weight", places)
        # A key that an override sets has no place in the file.
        self.assertEqual(self.violations("training: {steps: 5}", {"training.steps": "x"}),
                         [("training.steps", 'is the text "x", not a whole number')])

    def test_an_empty_list_is_refused(self):
        leave_out = "is an empty list; leave the key out"
        self.assertEqual(self.violations("name: a", {
            "data.blend": [], "parallelism.pipeline_parallel_split_points": [], "xla.options": [],
            "optimizer.no_weight_decay": []}), [
                ("data.blend", leave_out),
                ("parallelism.pipeline_parallel_split_points", leave_out),
                ("xla.options", leave_out),
                ("optimizer.no_weight_decay", "is an empty list, which means its default; for a "
                 'list that names nothing, state [""]')])
        spec = self.read("data: {blend: [{path: a}]}", {"data.blend": [], "data.train": "b"})
        self.assertEqual(len(spec.data.blend), 0)

    def test_a_file_that_is_no_job_is_refused(self):
        for text in ("{", "a: b: c", "--- {}\n--- {}", "&a [*a]", "\0"):
            self.assertEqual(self.violations(text)[0][0], "job", text)
        with self.assertRaisesRegex(troupe.InvalidJob, "none.yaml"):
            read_job(self.folder / "none.yaml", {})
        with self.assertRaises(troupe.InvalidJob):
            read_job(self.folder, {})

    def test_a_path_that_is_no_small_regular_file_is_refused_at_once(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        large = self.folder / "large"
        with open(large, "wb") as file:
            file.truncate(10 << 30)
        link = self.folder / "link"
        link.symlink_to(fifo)
        for path, cause in ((fifo, "not a regular file"), (link, "not a regular file"),
                            (pathlib.Path("/dev/zero"), "not a regular file"),
                            (self.folder, "not a regular file"), (large, "more than 1048576"),
                            (self.folder / "nul\0", "null byte")):
            with self.subTest(path), self.assertRaisesRegex(troupe.InvalidJob, cause):
                read_job(path, {})

    def test_wrong_values_of_a_mapping_are_named(self):
        with self.assertRaises(troupe.InvalidJob) as caught:
            read_job({"training": {"steps": "20", "max_norm": float("nan")},
                      "model": {"tie_word_embeddings": 1}}, {})
        self.assertEqual([each.field for each in caught.exception.violations],
                         ["training.steps", "training.max_norm", "model.tie_word_embeddings"])
        with self.assertRaisesRegex(TypeError, "not set"):
            read_job({"name": {"a"}}, {})

    def test_a_path_that_is_not_utf8_is_refused(self):
        path = os.fsdecode(b"/caf\xe9")
        for job, overrides in (({"data": {"train": path}}, {}), ({}, {"data.train": path})):
            with self.assertRaises(troupe.InvalidJob) as caught:
                read_job(job, overrides)
            self.assertEqual(caught.exception.violations,
                             (("data.train", "is '/caf\\udce9', not UTF-8"),))
        folder = os.path.join(self.folder, os.fsdecode(b"caf\xe9"))
        os.mkdir(folder)
        job_file = pathlib.Path(folder, "job.yaml")
        job_file.write_text("name: a")
        with self.assertRaisesRegex(troupe.InvalidJob, "folder .*udce9.*, which is not UTF-8"):
            read_job(job_file, {})

    def test_the_configuration_of_a_model_from_a_directory_is_copied(self):
        fixture = ROOT / "tests/interop/fixtures/tied-grouped-llama3"
        relative = os.path.relpath(fixture, self.folder)
        model = self.read(f"model: {{from: {relative}}}").model
        self.assertEqual(getattr(model, "from"), str(fixture))
        self.assertEqual(model.vocab_size, 259)
        self.assertEqual(self.violations("model: {from: llama}"), [
            ("model.from", "is llama: there is no such directory; a model of the Hugging Face hub "
                           "is downloaded first: `hf download NAME --local-dir DIR` "
                           "(job.yaml:1:9)")])

    def test_the_examples_are_read(self):
        jobs = sorted((ROOT / "examples").glob("*.yaml"))
        self.assertGreater(len(jobs), 3)
        for job in jobs:
            read_job(job, {})


if __name__ == "__main__":
    unittest.main()
