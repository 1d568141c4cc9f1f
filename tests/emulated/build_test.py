"""What a model takes while it is built: a quantised one is never there whole, and the same steps follow."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from given import PEAKBENCH

WIDTH, MLP, LAYERS, VOCABULARY = 512, 2048, 24, 512
MODEL = f"qwen2.5-0.5b,layers={LAYERS},width={WIDTH},mlp={MLP},heads=8,kv_heads=8,vocabulary={VOCABULARY}"
VALUES = 4 * WIDTH * WIDTH + 3 * WIDTH * MLP  # of the linear layers of a block


class Build(unittest.TestCase):
    def case(self, model, stack, device="emulated:h100-80gb", exit_code=0):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PEAKBENCH, "run", "--model", model, "--strategy", stack, "--dtype", "bf16", "--device", device,
                                   "--repetitions", "0", "--no-report", "--no-ablation", "--out", "out"],
                                  cwd=folder, capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
            self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
            return json.loads((pathlib.Path(folder) / "out/run.json").read_text(encoding="utf-8"))["cases"][0]

    def test_a_quantised_model_is_built_layer_by_layer(self):
        case = self.case(MODEL, "qlora+lora")
        built = case["memory"]["phases"]["build"]["peak_requested_bytes"]
        # A block's weights, as in docs/reference/strategies/qlora.md, with biases of q, k and v and two norms; embeddings, which the head shares.
        block = VALUES // 2 + VALUES // 64 + 2 * (VALUES // 16384 + 7 * 17) + 2 * (3 * WIDTH + 2 * WIDTH)
        model = LAYERS * block + 2 * (VOCABULARY * WIDTH + WIDTH)
        adapters = 64 << 20
        largest = WIDTH * MLP  # values of one layer: whole, and what its values take while it is quantised
        self.assertGreater(built, model)
        self.assertLess(built, model + (2 + 18 * 2 + 8) * largest + adapters)
        self.assertLess(built, 2 * LAYERS * VALUES, "less than the layers in bf16 alone")
        self.assertEqual(case["settings"]["base_weights"], "layer by layer")

    def test_a_model_that_makes_its_weights_at_once_says_so(self):
        self.assertEqual(self.case("vit-b-16,layers=2", "qlora+lora")["settings"]["base_weights"], "whole model first")
        self.assertNotIn("base_weights", self.case("vit-b-16,layers=2", "lora")["settings"])

    def test_a_card_that_could_not_hold_the_model_whole(self):
        """4 layers of Llama 3.1 8B and its embeddings: 3.58 GiB in bf16."""
        model, card = "llama-3.1-8b,layers=4", "emulated:t4-16gb,memory=3300MiB"
        self.assertEqual(self.case(model, "lora", card, exit_code=3)["out_of_memory"]["phase"], "build")
        self.assertEqual(self.case(model, "qlora+lora+checkpointing", card)["status"], "ok")
