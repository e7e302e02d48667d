"""Violations name the places of keys in the job file, as `troupe submit` does."""

import unittest

import troupe
from troupe._key_places import placed_violations, with_places

PLACES = {"": "job.yaml", "name": "job.yaml:1:1", "model": "job.yaml:2:1",
          "model.hidden_size": "job.yaml:2:9", "training": "job.yaml:3:1",
          "training.steps": "", "data": "job.yaml:4:1", "data.blend": "job.yaml:5:3",
          "data.blend[0].path": "job.yaml:6:7",
          "parallelism": "job.yaml:8:1",
          "parallelism.data_parallel_replicate_degree": "job.yaml:8:15"}


def place_of(field, description="is bad"):
    """Returns what was added to the description."""
    [placed] = placed_violations([troupe.Violation(field, description)], PLACES)
    assert placed.field == field and placed.description.startswith(description)
    return placed.description[len(description):]


class KeyPlacesTest(unittest.TestCase):
    def test_a_key_that_is_stated_has_its_place(self):
        self.assertEqual(place_of("model.hidden_size"), " (job.yaml:2:9)")
        self.assertEqual(place_of("data.blend[0].path", "is no name"), " (job.yaml:6:7)")
        self.assertEqual(place_of("training.steps"), "", "an override states it")

    def test_a_key_that_is_not_stated_has_the_place_of_the_nearest_that_is(self):
        self.assertEqual(place_of("data.blend[1]"), " (job.yaml:5:3)")
        self.assertEqual(place_of("data.blend[3].path", "is not hidden_size"), " (job.yaml:5:3)")
        self.assertEqual(place_of("data.train", "is no name"), " (job.yaml:4:1)")
        self.assertEqual(place_of("checkpoint.folder"), " (job.yaml)")
        self.assertEqual(place_of("optimizer"), " (job.yaml)")
        self.assertEqual(place_of("request_id"), "", "it is no key of a job")

    def test_a_relation_has_the_place_of_the_stated_key_that_it_names(self):
        self.assertEqual(place_of("training.global_batch_size",
                                  "is 16, not a multiple of data_parallel_replicate_degree = 3"),
                         " (job.yaml:8:15)")
        self.assertEqual(place_of("model.head_dim", "is 3, not model.hidden_size = 8"),
                         " (job.yaml:2:9)")
        self.assertEqual(place_of("model.vocab_size", "is 3, not moe_hidden_size"),
                         " (job.yaml:2:1)")
        self.assertEqual(place_of("checkpoint.interval", "is 3 steps"), " (job.yaml)")

    def test_a_mapping_has_no_places(self):
        violation = troupe.Violation("training.steps", "is 0")
        for places in ({}, {"training": "", "training.steps": ""}, {"training": ""}):
            self.assertEqual(placed_violations([violation], places), (violation,))

    def test_the_message_of_an_error_has_the_places_too(self):
        violations = (troupe.Violation("name", "is a"), troupe.Violation("training.steps", "is 0"),
                      troupe.Violation("name", "is a"), troupe.Violation("model", "is cut"))
        message = "in vain: name is a\ntraining.steps is 0\nname is a\nmodel is …"
        error = with_places(troupe.FailedPrecondition(message, violations), PLACES)
        self.assertIsInstance(error, troupe.FailedPrecondition)
        self.assertEqual(error.code, "FAILED_PRECONDITION")
        self.assertEqual(error.message, "in vain: name is a (job.yaml:1:1)\ntraining.steps is 0\n"
                                        "name is a (job.yaml:1:1)\nmodel is …")
        self.assertEqual([each.description for each in error.violations],
                         ["is a (job.yaml:1:1)", "is 0", "is a (job.yaml:1:1)",
                          "is cut (job.yaml:2:1)"])


if __name__ == "__main__":
    unittest.main()
