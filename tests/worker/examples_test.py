"""The examples for authors that say more than an update rule, in the real worker: a model with a router's loss, and an MLP in tiles.
Their bytes and numbers against stock PyTorch are the parity tests'."""


import real_worker
from given import EXAMPLES
from real_worker import SOURCE, WorkerTest

for _id, _name in (("my-moe", "moe"), ("my-tiled-mlp", "tiled_mlp")):
    real_worker.LIBRARIES[_id] = (EXAMPLES / f"{_name}.so", SOURCE / f"examples/{_name}/plugin.json")

MOE = "my-moe,layers=3,width=32,mlp=48,heads=4,experts=4,vocabulary=97"
LENGTH = 16


class Examples(WorkerTest):
    def ran(self, model, *stack, **options):
        result = self.run_worker(*stack, model=model, **options)
        self.assertEqual(result["status"], "ok", result["reason"])
        return result

    def test_blocks_that_run_again_add_the_routers_loss_once(self):
        reference = self.folder / "parameters"
        plain = self.ran(MOE, length=LENGTH, write=reference)
        for stack in ("checkpointing", "checkpointing,segments=sqrt", "checkpointing,parts=attention", "fused-in-backward"):
            with self.subTest(stack):
                found = self.ran(MOE, stack, length=LENGTH, read=reference)
                self.assertEqual(found["losses"], plain["losses"])
                self.assertEqual(found["equivalence"]["verdict"], "held", found["equivalence"])
                if stack.startswith("checkpointing"):
                    self.assertLess(found["memory"]["at_peak"]["activation"], plain["memory"]["at_peak"]["activation"])

    def test_the_routers_loss_has_its_weight(self):
        """Of tokens spread evenly over experts it is about top_k, so that the loss is about ln(97) + balance * top_k."""
        without, with_it = (self.ran(f"{MOE},balance={balance}", length=LENGTH)["losses"][0] for balance in ("0.0", "1.0"))
        self.assertAlmostEqual(with_it - without, 2, delta=0.3)

    def test_tiles_train_as_the_whole_mlp(self):
        reference = self.folder / "parameters"
        vit = "vit-b-16,layers=2,width=48,mlp=512,image=64"
        plain = self.ran(vit, batch=64, write=reference)
        promise = {"promise": "within_tolerance", "tolerance": 0.006, "relative_tolerance": 0.001}
        found = self.ran(vit, "my-tiled-mlp,tiles=5", batch=64, read=reference, promise=promise)
        self.assertEqual(found["equivalence"]["verdict"], "held", found["equivalence"])
        self.assertLess(found["memory"]["peak_allocated_bytes"], plain["memory"]["peak_allocated_bytes"])

    def test_experts_are_no_mlp_that_is_tiled(self):
        """In planning it is unsupported: the model lacks the fact mlp_part."""
        result = self.run_worker("my-tiled-mlp", model=MOE, length=LENGTH)
        self.assertEqual((result["status"], result["reason"]),
                         ("no_effect", "my-tiled-mlp has no effect: what it put into block_wrappers was never called in 3 steps"))  # fmt: skip
