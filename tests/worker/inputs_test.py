"""What a model says beyond a text and its labels: a loss of its own, tensors by name, another batch in each step, embeddings that a
strategy changes. The truths are the same model written otherwise, and closed forms."""

import contextlib
import sqlite3

from real_worker import PLANTED, WorkerTest

PATH = PLANTED.with_name("inputs.so")
AROUND = PLANTED.with_name("around_inputs.so")
BATCH, TOKENS, LONG = 4, 6, 8  # LONG: bytes of an int64


def tokens(length):
    return BATCH * length * LONG


class Inputs(WorkerTest):
    def ran(self, model, *stack, **options):
        result = self.run_worker(*stack, model=model, batch=BATCH, **options)
        self.assertEqual(result["status"], "ok", result["reason"])
        return result

    def ends(self, status, reason, model, *stack, **options):
        result = self.run_worker(*stack, model=model, batch=BATCH, **options)
        self.assertEqual((result["status"], result["reason"]), (status, reason))

    def inputs(self):
        """(name, step it was made in, its event, the event that freed it) of what the trace calls an input."""
        with contextlib.closing(sqlite3.connect(self.folder / "trace.sqlite")) as trace:
            return trace.execute("""
                SELECT n.name, e.step, a.event, a.released_event, e.requested_bytes FROM allocations a JOIN events e ON e.id = a.event
                JOIN categories c ON c.id = a.category JOIN names n ON n.id = a.name WHERE c.name = 'input'
                ORDER BY a.event""").fetchall()  # fmt: skip

    def test_a_loss_that_the_model_adds_is_part_of_it(self):
        """Whether blocks run again, the batch is split, or another makes the loss: as if the term were in the model's own loss."""
        inside = self.ran("router-inside")["losses"]
        for stack in ([], ["checkpointing"], ["checkpointing,segments=sqrt"], ["own-head"], ["own-head", "checkpointing"], ["twice"]):
            with self.subTest(stack):
                self.assertEqual(self.ran("router", *stack)["losses"], inside)
        for parts in (2, 4):
            self.assertEqual(self.ran("router", f"micro,parts={parts}")["losses"], self.ran("router-inside", f"micro,parts={parts}")["losses"])
        # And the term is there.
        plain = self.ran("embeds")["losses"]
        self.assertGreater(inside[0] - plain[0], 0.01)

    def test_its_parameters_are_trained_by_it(self):
        reference = self.folder / "parameters"
        self.ran("router-inside", write=reference)
        for stack in (["checkpointing"], ["own-head"]):
            found = self.ran("router", *stack, read=reference)["equivalence"]
            self.assertEqual((found["verdict"], found["max_abs_difference"]), ("held", 0), found)

    def test_an_auxiliary_loss_is_a_scalar(self):
        self.ends("crashed", f"{PATH}: vector-router threw in auxiliary_loss, step 1 of 3, forward: it must return a scalar tensor, or an "
                  "undefined one", "vector-router")  # fmt: skip

    def test_the_paths_of_blocks_are_those_of_the_blocks_that_run(self):
        """A rule that is for blocks' parameters would find none of them, and have the figure of the rule beneath it."""
        self.ends("crashed", f'{PATH}: wrong-blocks names blok_0 in block_paths(), which is not in its module tree; did you mean "block_0"?', "wrong-blocks")
        self.ends("crashed", f"{PATH}: same-blocks names block_0 twice in block_paths()", "same-blocks")
        for stack in ([], ["checkpointing"]):
            self.ends("crashed", f"{PATH}: few-blocks threw in hidden_states, step 1 of 3, forward: run_block runs block 1, counted from 0, and "
                      "block_paths() names 1: name every block, in the order they run", "few-blocks", *stack)  # fmt: skip

    def test_a_loss_is_a_scalar(self):
        self.ends("crashed", f"{PATH}: two-losses threw in loss, step 1 of 3, forward: it must return a scalar tensor, not one of [2]", "two-losses")

    def test_what_is_trained_is_registered(self):
        """Else nothing updates it. Whatever stands around the blocks."""
        for stack in ([], ["checkpointing"], ["micro,parts=2"]):
            self.ends("crashed", f"{PATH}: the loss of stray trains a tensor of [1] that is no parameter of its module tree, so that nothing "
                      "updates it: make it one with register_parameter", "stray", *stack)  # fmt: skip

    def test_parameters_are_as_many_as_the_manifest_says(self):
        # Three matrices: an embedding and a head of 16 tokens, and 8 by 8 between them.
        self.ends("crashed", f"{PATH}: miscounted has {2 * 16 * 8 + 8 * 8} parameters, and its manifest says 321: put 320 into "
                  '"parameters" of plugin.json', "miscounted")  # fmt: skip

    def test_tensors_by_name_are_inputs(self):
        at_peak = self.ran("two-texts")["memory"]["at_peak"]
        self.assertEqual(at_peak["input"], 3 * tokens(TOKENS) + TOKENS * 4)
        self.assertEqual([(name, size) for name, _, _, _, size in self.inputs()],
                         [("input", tokens(TOKENS)), ("target", tokens(TOKENS)), ("other", tokens(TOKENS)), ("mask", TOKENS * 4)])  # fmt: skip

    def test_they_are_split_with_the_samples(self):
        whole = self.ran("two-texts")["losses"]
        for parts in (2, 3, 4):
            for one, other in zip(self.ran("two-texts", f"micro,parts={parts}")["losses"], whole, strict=True):
                self.assertAlmostEqual(one / other, 1, delta=1e-5)

    def test_names_and_shapes_that_are_none(self):
        self.ends("crashed", f'{PATH}: bad-named threw in make_batch: the batch\'s tensor "mask" has 6 along its first dimension, and '
                  "the batch has 4 samples; say per_sample = false of one that is not split with them", "bad-named")  # fmt: skip
        self.ends("crashed", f'{PATH}: named-twice threw in make_batch: the batch has two tensors of the name "other"', "named-twice")

    def test_the_peak_is_over_all_batches(self):
        memory = self.ran("lengths")["memory"]
        self.assertEqual((memory["peak_step"], memory["at_peak"]["input"]), (1, 2 * tokens(4 * TOKENS)))
        # The second step alone has the same peak: nothing of the first is left.
        made = [(name, step, size) for name, step, _, _, size in self.inputs()]
        lengths = (TOKENS, 4 * TOKENS, 2 * TOKENS)
        self.assertEqual(made, [(name, None if step == 0 else step, tokens(length)) for step, length in enumerate(lengths)
                                for name in ("input", "target")])  # fmt: skip
        self.assertEqual(self.ran("lengths", steps=1)["memory"]["peak_step"], 0)

    def test_the_batch_before_is_released_first(self):
        for model, first in (("lengths", True), ("lengths-kept", False)):
            with self.subTest(model):
                self.ran(model)
                inputs = self.inputs()
                for before, after in zip(inputs, inputs[2:]):
                    self.assertEqual(before[3] < after[2], first, (before, after))
        self.assertEqual(self.ran("lengths")["losses"], self.ran("lengths-kept")["losses"])

    def test_every_stack_is_given_the_same_batches(self):
        reference = self.folder / "parameters"
        plain = self.ran("lengths", write=reference)["losses"]
        self.assertEqual(len(set(plain)), 3)
        found = self.ran("lengths", "checkpointing", read=reference)
        self.assertEqual((found["losses"], found["equivalence"]["verdict"]), (plain, "held"))
        self.assertEqual(found["settings"]["batches"], "another for each step")
        # Whatever a stack draws.
        self.assertEqual(self.ran("lengths", "own-head")["losses"], plain)

    def test_they_are_declared_and_made(self):
        self.ends("crashed", f"{PATH}: lengths-unsaid makes another batch for the second step, which its manifest does not declare: put "
                  '"changes_batch" into "facts" of plugin.json', "lengths-unsaid")  # fmt: skip
        self.ends("crashed", f"{PATH}: lengths-none declares changes_batch and makes no batch for step 2: next_batch returned none", "lengths-none")
        self.ends("crashed", f"{PATH}: more-samples threw in next_batch, step 2 of 3, forward: it makes 5 samples, and the first batch has 4; "
                  "lengths may differ from step to step, the number of samples may not", "more-samples")  # fmt: skip
        self.ends("unsupported", "lengths declares changes_batch, and a strategy of the stack repeats what the first step did", "lengths", "replays")

    def test_a_median_step_of_several_lengths_has_no_number_of_tokens(self):
        for model, has_tokens in (("embeds", True), ("lengths", False)):
            throughput = self.ran(model, mode="throughput", warmup=1, length=TOKENS)["throughput"]
            self.assertEqual(throughput["tokens_per_second"] is not None, has_tokens)
            self.assertGreater(throughput["samples_per_second"], 0)

    def test_trained_vectors_before_the_sequence(self):
        """Prompt tuning: three vectors of 8 floats, trained alone. What they add to each sequence is held against nothing."""
        self.ran("embeds", "prompts")
        with contextlib.closing(sqlite3.connect(self.folder / "trace.sqlite")) as trace:
            state = trace.execute("""SELECT DISTINCT n.name, n.shape FROM names n JOIN roles r ON r.id = n.role
                                     WHERE r.name = 'gradient'""").fetchall()  # fmt: skip
            (longest,) = trace.execute("SELECT max(requested_bytes) FROM events WHERE operator IN "
                                       "(SELECT id FROM operators WHERE name = 'aten::cat')").fetchone()  # fmt: skip
        self.assertEqual([name for name, _ in state], ["prompt"])
        self.assertEqual(longest, BATCH * (3 + TOKENS) * 8 * 4)
        whole = self.ran("embeds", "prompts")["losses"]
        self.assertEqual(len(set(whole)), 3)
        for stack in (["checkpointing"], ["own-head"]):
            self.assertEqual(self.ran("embeds", "prompts", *stack)["losses"], whole)
        for one, other in zip(self.ran("embeds", "prompts", "micro,parts=2")["losses"], whole, strict=True):
            self.assertAlmostEqual(one / other, 1, delta=1e-5)

    def test_wrappers_that_return_nothing(self):
        self.ends("crashed", f"{AROUND}: null-embedding threw in EmbeddingWrapper::run, step 1 of 3, forward: it must return the embeddings",
                  "embeds", "null-embedding")  # fmt: skip
        self.ends("crashed", f"{AROUND}: no-outputs threw in run, step 1 of 3, forward: it must return what the block would: one tensor at "
                  "least", "embeds", "no-outputs")  # fmt: skip
