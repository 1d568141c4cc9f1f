"""The timing job of the real worker, on steps that are known to take at least so long."""

from real_worker import DECODER, WorkerTest

MILLISECOND = 1_000_000


class Timing(WorkerTest):
    def test_every_step_is_timed_by_itself(self):
        # Two of warm-up, then three; the fifth step sleeps for 600 ms, the others for 60.
        result = self.run_worker("sleeps", mode="throughput", steps=3, warmup=2)
        times = result["throughput"]["step_times_ns"]
        self.assertEqual(len(times), 3)
        self.assertGreaterEqual(times[2], 600 * MILLISECOND)
        for time in times[:2]:
            self.assertGreaterEqual(time, 60 * MILLISECOND)
            self.assertLess(time, 600 * MILLISECOND)
        step = result["throughput"]["step_ns"]
        self.assertEqual(step, {"min": min(times), "median": sorted(times)[1], "p90": max(times), "count": 3})
        self.assertEqual(result["throughput"]["clock"], "steady_clock")
        self.assertEqual(result["throughput"]["threads"], 1)
        self.assertAlmostEqual(result["throughput"]["samples_per_second"], 4e9 / step["median"])
        self.assertIsNone(result["throughput"]["tokens_per_second"])
        self.assertIsNone(result["memory"])

    def test_warm_up_is_not_timed(self):
        result = self.run_worker("sleeps", mode="throughput", steps=2, warmup=5)
        times = result["throughput"]["step_times_ns"]
        self.assertEqual(len(times), 2)
        self.assertLess(max(times), 600 * MILLISECOND)

    def test_tokens_are_counted_where_there_are_some(self):
        result = self.run_worker(mode="throughput", model=DECODER)["throughput"]
        self.assertAlmostEqual(result["tokens_per_second"], 4 * 8 * 1e9 / result["step_ns"]["median"])
        self.assertAlmostEqual(result["samples_per_second"], 4 * 1e9 / result["step_ns"]["median"])

    def test_progress(self):
        self.run_worker(mode="throughput", steps=3, warmup=2)
        self.assertEqual([(line["phase"], line["step"], line["steps"]) for line in self.progress],
                         [("build", 0, 5), ("warmup", 0, 5), ("warmup", 1, 5), ("step", 2, 5), ("step", 3, 5),
                          ("step", 4, 5)])  # fmt: skip
        self.assertEqual({(line["allocated_bytes"], line["peak_bytes"]) for line in self.progress}, {(0, 0)})

    def test_what_it_ran_with(self):
        result = self.run_worker(mode="throughput")
        self.assertEqual(result["settings"]["threads"], 1)
        self.assertIn("cpu_capability", result["environment"])

    def test_a_memory_job_has_no_times(self):
        self.assertIsNone(self.run_worker("same")["throughput"])
