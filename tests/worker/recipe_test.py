"""The recipe, carried out by the real worker: every wrapper at its place, as often as there are steps."""

import unittest

from real_worker import DECODER, LAYERS, MODEL, WorkerTest


class Recipe(WorkerTest):
    def counts(self):
        words = self.log.split()
        return {name: int(number) for name, number in zip(words[::2], words[1::2])}

    def expected(self, steps):
        return {"contexts": steps, "packs": 1, "transforms": steps, "befores": steps, "afters": steps,
                "runs": steps * LAYERS}  # fmt: skip

    def test_every_wrapper_in_the_memory_worker(self):
        self.assertEqual(self.run_worker("every-wrapper")["status"], "ok")
        self.assertEqual(self.counts(), self.expected(3))

    def test_every_wrapper_in_the_throughput_worker(self):
        result = self.run_worker("every-wrapper,steps=5", mode="throughput", steps=3, warmup=2)
        self.assertEqual(result["status"], "ok", result["reason"])
        self.assertEqual(self.counts(), self.expected(5))

    def test_progress_of_the_memory_worker(self):
        self.run_worker(steps=2)
        phases = ["forward", "backward", "optimizer_step"]
        self.assertEqual([(line["phase"], line["step"], line["steps"]) for line in self.progress],
                         [("build", 0, 2), *((phase, step, 2) for step in (0, 1) for phase in phases),
                          ("write", 0, 2)])  # fmt: skip
        self.assertEqual(self.progress[0]["allocated_bytes"], 0)
        for line in self.progress[1:]:
            self.assertGreater(line["allocated_bytes"], 0)
            self.assertGreaterEqual(line["peak_bytes"], line["allocated_bytes"])

    def test_a_step_that_is_skipped_counts(self):
        for mode in ("memory", "throughput"):
            self.assertEqual(self.run_worker("skips", mode=mode)["status"], "ok")

    def test_micro_batches_each_have_a_forward(self):
        self.assertEqual(self.run_worker("micro,parts=3", "every-wrapper")["status"], "ok")
        self.assertEqual(self.counts(), {**self.expected(3), "contexts": 9, "runs": 9 * LAYERS})

    def test_micro_batches_train_as_the_whole_batch(self):
        # 4 samples in 3 parts: 2, 1, 1. Weighted equally, the first two count half as much; Adam hides the size of a
        # gradient, not its direction, and the reported loss is another one.
        for model in (MODEL, DECODER):
            whole = self.run_worker(model=model)["losses"]
            for parts in (2, 3, 4):
                losses = self.run_worker(f"micro,parts={parts}", model=model)["losses"]
                for one, other in zip(losses, whole, strict=True):
                    self.assertAlmostEqual(one / other, 1, delta=2e-4, msg=f"{model} {parts}: {losses}, {whole}")


if __name__ == "__main__":
    unittest.main()
