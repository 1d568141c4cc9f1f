"""Micro-batches of models whose loss is no mean of its samples' losses: weighted by what counts, or refused. The truth is the
whole batch's own training."""

from real_worker import WorkerTest

BATCH = 6


class Losses(WorkerTest):
    def losses(self, model, *stack):
        result = self.run_worker(*stack, model=model, batch=BATCH)
        self.assertEqual(result["status"], "ok", result["reason"])
        return result["losses"]

    def assert_apart(self, found, expected, most):
        for one, other in zip(found, expected, strict=True):
            self.assertLess(abs(one / other - 1), most, f"{found}, {expected}")

    def test_a_mean_over_tokens_is_weighted_by_them(self):
        whole = self.losses("masked")
        for parts in (2, 3, 4, 6):
            self.assert_apart(self.losses("masked", f"micro,parts={parts}"), whole, 1e-5)

    def test_it_is_another_training_without_that(self):
        whole, parts = self.losses("masked-unsaid"), self.losses("masked-unsaid", "micro,parts=3")
        self.assertGreater(abs(parts[0] / whole[0] - 1), 1e-3)
        self.assertEqual(whole, self.losses("masked"))

    def test_the_verdict_is_the_values(self):
        for model, verdict in (("masked", "held"), ("masked-unsaid", "broken")):
            reference = self.folder / "parameters"
            self.run_worker(model=model, batch=BATCH, write=reference)
            # Adam moves a weight by its learning rate, however small a gradient is: losses and parameters within 1e-3.
            found = self.run_worker("micro,parts=3", model=model, batch=BATCH, read=reference,
                                    promise={"promise": "within_tolerance", "tolerance": 1e-3})["equivalence"]  # fmt: skip
            self.assertEqual(found["verdict"], verdict, found)

    def test_a_loss_over_the_whole_batch_is_not_split(self):
        result = self.run_worker("micro,parts=3", model="contrastive", batch=BATCH)
        self.assertEqual((result["status"], result["reason"]),
                         ("unsupported", "the loss of contrastive is of the whole batch, which micro-batches do not add up to"))  # fmt: skip
        self.losses("contrastive")
        whole, parts = self.losses("contrastive-unsaid"), self.losses("contrastive-unsaid", "micro,parts=3")
        self.assertGreater(abs(parts[0] / whole[0] - 1), 0.1)
