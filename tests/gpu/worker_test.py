"""The real worker on a CUDA card: what it records is what the card's allocator counts (the worker itself compares them in every step), and
steps are timed by the card's own events. Under `peakbench emulate`, where there is no time, the rehearsal."""

import os
import sqlite3
import unittest

from real_worker import DECODER, LAYERS, MODEL, WorkerTest

STACKS = ((), ("fused-in-backward",), ("lora",), ("lora", "fused-in-backward"))
IS_EMULATED = "PEAKBENCH_EMULATED_CARD" in os.environ


class Card(WorkerTest):
    def test_memory_is_what_the_allocator_counts(self):
        for model in (MODEL, DECODER):
            for stack in STACKS:
                with self.subTest(model=model, stack=stack):
                    result = self.run_worker(*stack, model=model, device="cuda:0")
                    self.assertEqual(result["status"], "ok", result["reason"])
                    memory = result["memory"]
                    self.assertEqual(memory["space"], "cuda:0")
                    self.assertEqual(sum(memory["at_peak"].values()), memory["peak_allocated_bytes"])
                    self.assertGreaterEqual(memory["peak_reserved_bytes"], memory["peak_allocated_bytes"])
                    with sqlite3.connect(self.folder / "trace.sqlite") as trace:
                        spaces = {name for (name,) in trace.execute("SELECT name FROM spaces")}
                    self.assertLessEqual({"cuda:0", "cpu"}, spaces)

    def test_every_wrapper_is_called_as_often_as_on_the_cpu(self):
        counts = []
        for device in ("cpu", "cuda:0"):
            self.assertEqual(self.run_worker("every-wrapper", device=device)["status"], "ok")
            counts.append(self.log.split())
        self.assertEqual(*counts)
        self.assertIn(str(3 * LAYERS), counts[0])

    @unittest.skipIf(IS_EMULATED, "an emulated card has no time")
    def test_steps_are_timed_by_the_card(self):
        result = self.run_worker("lora", mode="throughput", steps=5, warmup=2, device="cuda:0")
        self.assertEqual(result["status"], "ok", result["reason"])
        self.assertEqual(result["throughput"]["clock"], "cuda_event")
        self.assertEqual(len(result["throughput"]["step_times_ns"]), 5)
        self.assertGreater(min(result["throughput"]["step_times_ns"]), 0)
