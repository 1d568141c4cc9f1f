"""The formulas of lab/predictors/predictors.py against what their publishers print of them."""

import dataclasses
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lab/predictors"))
import run  # noqa: E402
from predictors import GIB, PREDICTORS, Training, deepspeed, eleutherai, hugging_face, llama_factory, megatron  # noqa: E402

# Qwen2.5-1.5B.
TRAINING = Training("", 1_543_714_304, 28, 1536, 8960, 12, 2, 151_936, gated=True, rms=True, tied=True, batch=2, sequence=256, precision="fp32")


def of(**changes):
    return dataclasses.replace(TRAINING, **changes)


class Predictors(unittest.TestCase):
    def test_deepspeeds_documentation_prints_its_estimates(self):
        """docs/code-docs/source/memory.rst: t5-3b, 2851M parameters, 8 GPUs: 15.93GB."""
        self.assertEqual(f"{deepspeed(of(parameters=2_851_000_000, precision='mixed'), cards=8) / GIB:.2f}", "15.93")

    def test_the_blog_posts_two_peaks(self):
        """Batch 2 has its peak in the optimizer step: weights, two moments, gradients and intermediates. Batch 16 in the forward pass, by its line."""
        self.assertEqual(hugging_face(TRAINING), 5 * 4 * TRAINING.parameters)
        line = 4.6894e-4 * TRAINING.parameters + 1.8494e6  # of 5,065,216 activations a token, as the post counts them, it makes 2.6 million
        self.assertAlmostEqual(hugging_face(of(batch=16)), 4 * (3 * TRAINING.parameters + line * 16 * 256), delta=1)

    def test_a_rule_of_thumb_is_its_table(self):
        self.assertEqual(llama_factory(of(precision="bf16")), 8 * TRAINING.parameters)
        self.assertEqual(llama_factory(of(precision="mixed")), 18 * TRAINING.parameters)

    def test_megatron_counts_the_parameters_of_a_model_without_biases(self):
        """Llama-3.2-1B's, to the last one: its table of weights is 18 bytes for each."""
        llama = of(parameters=1_235_814_400, layers=16, width=2048, mlp=8192, heads=32, kv_heads=8, vocabulary=128_256, precision="mixed")
        weights = megatron(llama) - megatron(dataclasses.replace(llama, batch=0))
        self.assertEqual(megatron(dataclasses.replace(llama, batch=0)), 18 * llama.parameters)
        self.assertGreater(weights, 0)

    def test_who_knows_only_one_precision_is_asked_for_no_other(self):
        for ask in (deepspeed, megatron):
            self.assertIsNone(ask(TRAINING))
            self.assertIsNone(ask(of(precision="bf16")))
        self.assertIsNone(eleutherai(of(precision="bf16")))
        self.assertEqual(len({one.name for one in PREDICTORS}), len(PREDICTORS))

    def test_the_page_has_the_recorded_figures_of_the_real_card(self):
        page = run.PAGE.read_text(encoding="utf-8")
        found = [f"| {true:,} | {ours} |" in page for _, true, ours in run.published_records()]
        self.assertEqual(found, [True] * 6)
