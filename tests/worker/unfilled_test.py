"""A parameter that a model leaves as its layer made it."""

from real_worker import PLANTED, WorkerTest


class Unfilled(WorkerTest):
    def reason(self, forgets, **more):
        result = self.run_worker(model=f"forgetful,forgets={forgets}", **more)
        return result["status"], result["reason"]

    def test_each_layer_that_is_made_uninitialised(self):
        for name in ("embedding.weight", "linear.weight", "linear.bias", "conv.weight", "conv.bias"):
            with self.subTest(name):
                self.assertEqual(self.reason(name), (
                    "crashed", f"{PLANTED.with_name('unfilled.so')}: forgetful has never initialised its parameter {name}: nn:: layers make "
                    "uninitialised memory, which the model fills (nn.h; fill_normal in initialise.h)"))  # fmt: skip

    def test_what_is_filled_or_made_with_values(self):
        for name in ("", "norm.weight", "norm.bias"):
            self.assertEqual(self.reason(name), ("ok", ""))

    def test_in_the_throughput_worker(self):
        self.assertEqual(self.reason("linear.bias", mode="throughput", warmup=1)[0], "crashed")
