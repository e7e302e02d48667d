"""Results show themselves briefly, and as escaped tables in a notebook."""

import unittest

import troupe
from troupe.messages import JobSpec, MeshDegrees, ModelSpec, TrainingSpec

JOB = troupe.Job(
    name="jobs/a", state=troupe.JobState.RUNNING, step=3, steps=5,
    layout=MeshDegrees(pipe=2, tensor=4),
    checkpoints=tuple(troupe.CheckpointRecord(job="jobs/a", step=step, path=f"/k/{step}")
                      for step in range(30)),
    spec=JobSpec(model=ModelSpec(hidden_size=64), training=TrainingSpec(steps=5)))


class ShownTest(unittest.TestCase):
    def test_a_result_is_shown_in_a_line(self):
        self.assertEqual(repr(JOB), "Job(name='jobs/a', state=RUNNING, step=3, steps=5, "
                         "layout=MeshDegrees(pipe=2, tensor=4), "
                         "checkpoints=(30 × CheckpointRecord), spec=JobSpec(…))")
        self.assertEqual(repr(troupe.StepEvent(step=1, loss=0.5)), "StepEvent(step=1, loss=0.5)")
        self.assertEqual(str(troupe.End(troupe.JobState.FAILED)), "End(state=FAILED)")
        event = troupe.JobEvent(event="FAILED", message="x" * 200)
        self.assertEqual(repr(event), f"JobEvent(event='FAILED', message='{'x' * 60}'…)")

    def test_results_with_the_same_fields_stay_equal(self):
        self.assertEqual(troupe.StepEvent(step=1), troupe.StepEvent(step=1))
        self.assertEqual(len({troupe.StepEvent(step=1), troupe.StepEvent(step=1)}), 1)

    def test_a_notebook_shows_a_table(self):
        table = JOB._repr_html_()
        self.assertIn("<caption>Job</caption>", table)
        self.assertIn("<tr><th>state</th><td>RUNNING</td></tr>", table)
        self.assertIn("<td>/k/19</td>", table)
        self.assertNotIn("/k/20", table)
        self.assertIn("… 10 more", table)

    def test_texts_are_escaped_whoever_chose_them(self):
        bad = "<script>alert(1)</script>&\x1b[2J"
        worker = troupe.WorkerStatus(name=bad, jobs=(bad,))
        for message in (worker, troupe.Job(name=bad, checkpoints=(
                troupe.CheckpointRecord(path=bad),))):
            table = message._repr_html_()
            self.assertNotIn("<script", table)
            self.assertNotIn("\x1b", table)
            self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt;&amp;\\u001b[2J", table)
            self.assertNotIn("\x1b", repr(message))

    def test_a_client_shows_its_coordinator_and_no_token(self):
        with troupe.Client("127.0.0.1:1") as client:
            self.assertEqual(repr(client), "Client('127.0.0.1:1')")


if __name__ == "__main__":
    unittest.main()
