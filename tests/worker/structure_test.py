"""What the steps did to parameters and samples, seen without any value: promises that it refutes, and trainings that are none
the worse for being unusual."""

import json
import shutil
import subprocess

from given import PEAKBENCH
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
    "half-without-autograd": "half-without-autograd runs block 0 with autograd on 2 of 4 samples",
    "leaves-mlp-out": "leaves-mlp-out leaves mlp of block 1 out",
    "half-of-an-mlp": "half-of-an-mlp runs mlp of block 1 on 8 of 20 positions",
    "adds-up": "32 of 32 trained parameters had the gradients of more than one pass through the batch added up in step 1, "
               "among them class_token",
    "pauses": "pauses pauses class_token, which the baseline trains",
    "freezes-some": "freezes-some freezes parameters that the baseline trains",
}  # fmt: skip
# Seen beside the reference alone: before the second block are a token, a convolution and its bias, positions, and 12 of a block.
WITHOUT_GRADIENT = {stack: "some step gives no gradient to class_token, conv_proj.weight, conv_proj.bias and 13 more; in the reference "
                           "case each does" for stack in ("cuts-graph", "cuts-graph-later", "no-autograd")}  # fmt: skip
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

    def run_on_emulated_card(self, stacks, *arguments):
        """What is printed, and of each stack its `equivalence`."""
        plugins = self.folder / "plugins"
        plugins.mkdir(exist_ok=True)
        shutil.copy(PLANTED.with_name("unlike_baseline.so"), plugins)
        done = subprocess.run(
            [PEAKBENCH, "run", "--plugins", plugins, "--model", MODEL, "--batch", "4", "--device", "emulated:a100-80gb",
             "--no-ablation", "--repetitions", "0", "--out", self.folder / "run", *arguments,
             *(part for stack in stacks for part in ("--strategy", stack))], capture_output=True, text=True)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        cases = json.loads((self.folder / "run/run.json").read_text())["cases"]
        return done.stdout, {case["id"].split("/")[1]: case["equivalence"] for case in cases}

    def test_they_refute_them_on_an_emulated_card(self):
        said, found = self.run_on_emulated_card(["baseline", *REFUTED, *WITHOUT_GRADIENT, "loss-in-parts", "block-in-parts", "mlp-in-tiles"])
        self.assertEqual({stack: one["reason"] for stack, one in found.items() if one["verdict"] == "broken"}, {**REFUTED, **WITHOUT_GRADIENT})
        self.assertIn("not bit-identical", said)

    def test_the_reference_may_be_named_last_or_be_there_already(self):
        stacks = ["cuts-graph", "baseline"]
        for missing in (None, *stacks):
            with self.subTest(missing):
                if missing is not None:  # as if the run had been ended before
                    path = self.folder / "run/run.json"
                    run = json.loads(path.read_text())
                    gone = [case["id"] for case in run["cases"] if case["id"].split("/")[1] == missing]
                    run.update(status="interrupted", pending=gone, cases=[case for case in run["cases"] if case["id"] not in gone])
                    for case in run["cases"]:
                        case["equivalence"]["verdict"] = "not_checked"
                    path.write_text(json.dumps(run))
                _, found = self.run_on_emulated_card(stacks, *(["--resume"] if missing else []))
                self.assertEqual((found["cuts-graph"]["verdict"], found["cuts-graph"]["reason"]), ("broken", WITHOUT_GRADIENT["cuts-graph"]))
                self.assertEqual(found["baseline"]["verdict"], "not_checked")

    def test_a_stack_is_compared_with_what_its_reference_trains(self):
        # Where only adapters are trained, and inside the blocks, nothing is missing before the first of them.
        stacks = ["lora", "lora+cuts-graph", "lora+checkpointing", "mezo", "mezo+checkpointing", "fused-in-backward", "baseline"]
        _, found = self.run_on_emulated_card(stacks)
        broken = {stack: one["reason"] for stack, one in found.items() if one["verdict"] == "broken"}
        self.assertEqual(set(broken), {"lora+cuts-graph"})
        self.assertRegex(broken["lora+cuts-graph"], "some step gives no gradient to encoder\\.layers\\.encoder_layer_0\\..*; in the reference case")

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
