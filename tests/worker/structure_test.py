"""What the steps did to parameters and samples, seen without any value: promises that it refutes, and trainings that are none
the worse for being unusual."""

import json
import os
import shutil
import subprocess
import unittest

from real_worker import MODEL, PLANTED, WorkerTest

# Stack -> why it does not train as the baseline does.
REFUTED = {
    "half-of-the-parameters": "16 of 32 trained parameters got a gradient and no update in step 1, among them conv_proj.weight",
    "rule-twice": "32 of 32 trained parameters were updated more than once in step 1, among them class_token",
    "updates-again": "32 of 32 trained parameters were updated more than once in step 1, among them class_token",
    "every-second-step": "32 of 32 trained parameters got a gradient and no update in step 2, among them class_token",
    "takes-gradients-away": "15 of 32 trained parameters got a gradient and no update in step 1, among them conv_proj.bias",
    "half-of-the-loss": "half-of-the-loss makes its loss of 2 of 4 samples",
    "picks-samples": "picks-samples makes its loss of 2 of 4 samples",
    "detached": "detached makes its loss of 0 of 4 samples",
    "leaves-out": "leaves-out leaves block 1 out",
    "half-of-a-block": "half-of-a-block runs block 1 on 2 of 4 samples",
    "leaves-mlp-out": "leaves-mlp-out leaves mlp of block 1 out",
    "half-of-an-mlp": "half-of-an-mlp runs mlp of block 1 on 8 of 20 positions",
    "adds-up": "32 of 32 trained parameters had the gradients of more than one pass through the batch added up in step 1, "
               "among them class_token",
    "pauses": "pauses pauses class_token, which the baseline trains",
    "freezes-some": "freezes-some freezes parameters that the baseline trains",
}  # fmt: skip
AS_THE_BASELINE = ("same", "twice", "loss-in-parts", "block-in-parts", "mlp-in-tiles", "micro,parts=3", "fused-in-backward", "every-wrapper")


class Structure(WorkerTest):
    def equivalence(self, *stack, **options):
        result = self.run_worker(*stack, **options)
        self.assertEqual(result["status"], "ok", result["reason"])
        return result["equivalence"]

    def test_promises_that_the_steps_refute(self):
        # Nothing to compare with: on a card it is the same.
        for stack, reason in REFUTED.items():
            with self.subTest(stack):
                found = self.equivalence(stack)
                self.assertEqual((found["verdict"], found["reason"]), ("broken", reason))

    def test_they_refute_them_on_an_emulated_card(self):
        plugins = self.folder / "plugins"
        plugins.mkdir()
        shutil.copy(PLANTED.with_name("unlike_baseline.so"), plugins)
        stacks = ["baseline", *REFUTED, "loss-in-parts", "block-in-parts", "mlp-in-tiles"]
        done = subprocess.run(
            [os.environ["PEAKBENCH"], "run", "--plugins", plugins, "--model", MODEL, "--batch", "4", "--device", "emulated:a100-80gb",
             "--no-ablation", "--repetitions", "0", "--out", self.folder / "run",
             *(part for stack in stacks for part in ("--strategy", stack))], capture_output=True, text=True)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        cases = json.loads((self.folder / "run/run.json").read_text())["cases"]
        found = {case["id"].split("/")[1]: case["equivalence"] for case in cases}
        self.assertEqual({stack: one["reason"] for stack, one in found.items() if one["verdict"] == "broken"}, REFUTED)
        self.assertIn("not bit-identical", done.stdout)

    def test_promises_that_they_do_not_refute(self):
        for stack in AS_THE_BASELINE:
            with self.subTest(stack):
                self.assertEqual(self.equivalence(stack, promise={"reference_case": "another"})["verdict"], "not_checked")

    def test_a_stack_that_says_that_it_trains_otherwise_is_not_refuted(self):
        for stack in ("half-of-the-parameters", "updates-again", "adds-up"):
            found = self.equivalence(stack, promise={"promise": "different_problem"})
            self.assertEqual(found["verdict"], "not_checked")

    def test_within_a_tolerance_that_values_alone_keep(self):
        reference = self.folder / "parameters"
        self.run_worker(write=reference)
        promise = {"promise": "within_tolerance", "tolerance": 1000.0}
        found = self.equivalence("half-of-the-parameters", read=reference, promise=promise)
        self.assertLess(found["max_abs_difference"], 1000)
        self.assertEqual((found["verdict"], found["reason"]), ("broken", REFUTED["half-of-the-parameters"]))

    def test_what_is_the_references_to_the_bit_is_held(self):
        # Whatever the reference did itself.
        reference = self.folder / "parameters"
        self.run_worker("half-of-the-parameters", write=reference, promise={"promise": "different_problem"})
        self.assertEqual(self.equivalence("half-of-the-parameters", read=reference)["verdict"], "held")

    def test_rules_that_no_version_counter_tells(self):
        for mode in ("memory", "throughput"):
            for stack in ("through-data", "prepares-first", "mezo", "keeps-signs"):
                with self.subTest(stack, mode=mode):
                    result = self.run_worker(stack, mode=mode, warmup=1 if mode == "throughput" else 0)
                    self.assertEqual(result["status"], "ok", result["reason"])
        losses = self.run_worker("through-data")["losses"]
        self.assertEqual(len(set(losses)), 3)  # it does train

    def test_what_is_around_a_rule_that_is_given_nothing_has_no_effect(self):
        around = {"ema": "update_rule_wrappers", "clip": "gradient_transforms", "through-data": "update_rule"}
        for name, place in around.items():
            with self.subTest(name):
                result = self.run_worker("mezo", name)
                self.assertEqual(result["status"], "no_effect", result["reason"])
                self.assertEqual(result["reason"],
                                 f"{name} has no effect: what it put into {place} was given no parameter that has a gradient in 3 steps")  # fmt: skip

    def test_a_rule_that_only_prepares_has_updated_nothing(self):
        result = self.run_worker("prepares-first", steps=1)
        self.assertEqual((result["status"], result["reason"]),
                         ("no_effect", "no update in 1 step: the update rule of prepares-first was called and changed no parameter"))  # fmt: skip

    def test_an_idle_rule_beside_a_runner_that_moves_parameters(self):
        result = self.run_worker("sam", "idle-rule")
        self.assertEqual(result["status"], "no_effect", result["reason"])

    def test_two_passes_where_parameters_are_updated_inside_backward(self):
        for runner in ("twice", "adds-up"):
            for mode in ("memory", "throughput"):
                result = self.run_worker("fused-in-backward", runner, mode=mode)
                path = PLANTED if runner == "twice" else PLANTED.with_name("unlike_baseline.so")
                self.assertEqual(result["status"], "crashed")
                self.assertEqual(result["reason"],
                                 f"{path}: {runner} runs forward and backward again in a step in which fused-in-backward has updated "
                                 'parameters inside backward: they would be updated twice. Put "needs_all_gradients" into "capabilities" '
                                 "of its plugin.json, and the two are never stacked")  # fmt: skip


if __name__ == "__main__":
    unittest.main()
