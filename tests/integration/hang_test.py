"""A rank that hangs on a healthy host is detected within seconds at a short step time, and
named."""

import os
import signal
import time
import unittest

from harness import Cluster, ClusterCase, wait_until

SLOW = {"TROUPE_FAILPOINTS": "step.begin=delay:50"}
STEPS = 60


class Hang(ClusterCase):
    def test_a_stopped_rank_is_noticed_within_seconds_and_named_though_others_wait_for_it(self):
        with Cluster(3, SLOW, detection_seconds=2) as cluster:
            job = cluster.submit("hangs", steps=STEPS, interval=5,
                                 parallelism="data_parallel_replicate_degree: 2")
            cluster.wait_for_step(job, 12)
            rank = cluster.describe(job)["ranks"][1]
            start = time.monotonic()
            os.kill(rank["pid"], signal.SIGSTOP)
            wait_until(lambda: cluster.describe(job)["restarts"] == 1, "the hang is noticed")
            # The expected time is twice the detection time, plus half of it for the reports of the
            # ranks; it was once a minute.
            self.assertLess(time.monotonic() - start, 20)
            done = cluster.wait_for_state(job, "SUCCEEDED")
            self.assertEqual(done["restarts"], 1)
            lost = [e["message"] for e in cluster.watched(job) if e["type"] == "event" and
                    e["event"] == "RANK_LOST"]
            self.assertEqual(len(lost), 1, lost)
            self.assertIn(f"HANG: rank 1 on {rank['worker']}: rank 1 did not enter operation",
                          lost[0])
            self.assertIn("in which rank 0 has been blocked for", lost[0])
            self.assertIn("does not answer", lost[0])


if __name__ == "__main__":
    unittest.main()
