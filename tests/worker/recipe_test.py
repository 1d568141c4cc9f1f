"""The recipe, carried out by the real worker: every wrapper at its place, as often as there are steps."""

import contextlib
import sqlite3

from real_worker import DECODER, LAYERS, MODEL, WorkerTest

LARGER = f"vit-b-16,layers={LAYERS},width=96,mlp=128,image=64"


class Recipe(WorkerTest):
    def counts(self):
        words = self.log.split()
        return {name: int(number) for name, number in zip(words[::2], words[1::2])}

    def expected(self, steps):
        return {"contexts": steps, "forwards": steps, "packs": 1, "transforms": steps, "updates": steps, "begins": steps,
                "losses": steps, "gradients": steps, "complete": steps, "runs": steps * LAYERS}  # fmt: skip

    def test_every_wrapper_in_the_memory_worker(self):
        self.assertEqual(self.run_worker("every-wrapper")["status"], "ok")
        self.assertEqual(self.counts(), self.expected(3))

    def test_every_wrapper_in_the_throughput_worker(self):
        result = self.run_worker("every-wrapper,steps=5", mode="throughput", steps=3, warmup=2)
        self.assertEqual(result["status"], "ok", result["reason"])
        self.assertEqual(self.counts(), self.expected(5))

    def test_running_out_of_memory_is_told_with_its_place(self):
        limit = 8 << 20
        result = self.run_worker(batch=64, model=LARGER, memory_limit=limit)
        failure = result["out_of_memory"]
        self.assertEqual(result["status"], "out_of_memory")
        self.assertEqual(failure["limit_bytes"], limit)
        self.assertGreater(failure["requested_bytes"] + failure["allocated_bytes"], limit)
        gib = {key: f"{failure[key] / 2**30:.3f} GiB" for key in ("requested_bytes", "allocated_bytes")}
        self.assertEqual(result["reason"], f"asked for {gib['requested_bytes']} in {failure['phase']}, {failure['module']}, "
                         f"{failure['op']}, with {gib['allocated_bytes']} allocated of 0.008 GiB")  # fmt: skip

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
            self.assertEqual(self.run_worker("skips,steps=2", mode=mode)["status"], "ok")
        result = self.run_worker("skips,steps=2", "every-wrapper")
        self.assertEqual(self.counts(), {**self.expected(3), "transforms": 1, "updates": 1})
        self.assertGreater(result["memory"]["at_peak"]["optimizer_state"], 0)

    def test_a_gradient_that_is_replaced_is_a_gradient(self):
        parameters = self.run_worker("replaces")["memory"]["at_peak"]["parameter"]
        with contextlib.closing(sqlite3.connect(self.folder / "trace.sqlite")) as trace:
            (replaced,) = trace.execute("""
                SELECT sum(e.requested_bytes) FROM allocations a JOIN events e ON e.id = a.event
                JOIN categories c ON c.id = a.category JOIN phases p ON p.id = e.phase
                WHERE c.name = 'gradient' AND p.name = 'optimizer_step' AND e.step = 0""").fetchone()
        self.assertEqual(replaced, parameters)

    def test_micro_batches_each_have_a_forward(self):
        self.assertEqual(self.run_worker("micro,parts=3", "every-wrapper")["status"], "ok")
        self.assertEqual(self.counts(), {**self.expected(3), "forwards": 9, "losses": 9, "gradients": 9, "runs": 9 * LAYERS})

    def test_a_runner_has_as_many_passes_as_it_likes(self):
        once = self.run_worker()
        twice = self.run_worker("twice", "every-wrapper")
        self.assertEqual(twice["status"], "ok", twice["reason"])
        self.assertEqual(self.counts(), {**self.expected(3), "forwards": 6, "losses": 6, "gradients": 6, "complete": 6,
                                         "runs": 6 * LAYERS})  # fmt: skip
        self.assertEqual(self.run_worker("twice")["losses"], once["losses"])

    def test_what_is_trained_may_change_from_step_to_step(self):
        result = self.run_worker("alternates", steps=2)
        self.assertEqual(result["status"], "ok", result["reason"])
        with contextlib.closing(sqlite3.connect(self.folder / "trace.sqlite")) as trace:
            rows = trace.execute("""
                SELECT e.step, n.name FROM names n JOIN events e ON e.id = n.event JOIN roles r ON r.id = n.role
                WHERE r.name = 'gradient'""").fetchall()
        heads = {step: {name.startswith("heads.") for at, name in rows if at == step} for step in (0, 1)}
        self.assertEqual(heads, {0: {True}, 1: {False}})

    def test_micro_batches_train_as_the_whole_batch(self):
        # 4 samples in 3 parts: 2, 1, 1. Weighted equally, the first two count half as much; Adam hides the size of a
        # gradient, not its direction, and the reported loss is another one.
        for model in (MODEL, DECODER):
            whole = self.run_worker(model=model)["losses"]
            for parts in (2, 3, 4):
                losses = self.run_worker(f"micro,parts={parts}", model=model)["losses"]
                for one, other in zip(losses, whole, strict=True):
                    self.assertAlmostEqual(one / other, 1, delta=2e-4, msg=f"{model} {parts}: {losses}, {whole}")
