"""Mistakes that authors of plugins made: what the plugin does wrong, the outcome, and the exact message.

PATH stands for the plugin's library.
"""

from real_worker import DECODER, PLANTED, PLUGINS, WorkerTest

# Stack, outcome, message.
RECIPE = [
    ("secret-slot", "crashed", 'PATH: secret-slot changes the slot micro_batches, which its manifest does not declare: put "micro_batches" into "slots" of plugin.json'),
    ("secret-wrapper", "crashed", 'PATH: secret-wrapper adds to step_contexts, which its manifest does not declare: put "step_contexts" into "wrappers" of plugin.json'),
    ("secret-updates", "crashed", 'PATH: secret-updates updates inside backward, which its manifest does not declare: put "updates_in_backward" into "capabilities" of plugin.json'),
    ("idle-slot", "no_effect", "idle-slot takes the slot loss_head and leaves it as it was"),
    ("same-grouping", "no_effect", "same-grouping takes the slot kernel_grouping and leaves it as it was"),
    ("micro,parts=1", "no_effect", "micro takes the slot micro_batches and leaves it as it was"),
    ("idle-wrapper", "no_effect", "idle-wrapper declares update_rule_wrappers and adds nothing to it"),
    ("clears-rule", "crashed", "PATH: clears-rule clears the slot update_rule, which baseline had filled; put another object there, or leave it"),
    ("clears-schedule", "crashed", "PATH: clears-schedule clears the slot schedule, which baseline had filled; put another object there, or leave it"),
    ("null-context", "crashed", "PATH: null-context adds a null pointer to step_contexts"),
    ("null-blocks", "crashed", "PATH: null-blocks adds a null pointer to block_wrappers"),
    ("empty-freezing", "crashed", "PATH: empty-freezing adds an empty function to freezing"),
    ("empty-hook", "crashed", "PATH: empty-hook registers an empty function with on_gradient"),
    ("clip removes", "crashed", "PATH: removes removes from gradient_transforms what another strategy put there; add to the list, and change nothing of others"),
    ("freezes-in-apply", "crashed", "PATH: freezes-in-apply changes the model's parameters, or which of them are trained, in apply; put a ModelTransform into a slot, or a function into `freezing`"),
    ("freezes-nothing", "no_effect", "freezes-nothing has no effect: it freezes no parameter"),
    ("null-pack", "no_effect", "null-pack has no effect: what it put into saved_tensor_hooks was never called in 3 steps"),
    ("freezes-all", "unsupported", "no parameter is left to train"),
    ("lora thaws", "crashed", "a strategy changed requires_grad of class_token itself: it is trained now and was frozen. Use the recipe's `freezing`, which is decided before the first step, or Training::set_trainable when a step begins"),
    ("never-steps", "no_effect", "no update in 3 steps: the schedule of never-steps called neither update nor update_all"),
    ("idle-rule", "no_effect", "no update in 3 steps: the update rule of idle-rule was called and changed no parameter"),
    ("updates-nothing", "no_effect", "no update in 3 steps: the update rule of baseline was given no parameter that has a gradient"),
    ("fused-in-backward idle-rule", "no_effect", "no update in 3 steps: the update rule of idle-rule was called and changed no parameter"),
    ("fused-in-backward clip", "no_effect", "clip has no effect: what it put into gradient_transforms was never called in 3 steps"),
    ("skips,steps=3", "no_effect", "no step updated anything: skips skipped the update in each of 3 steps (GradientTransform::apply returned false). Return true for an update, or measure more steps (--steps) until there is one"),
    ("unread,depth=2", "no_effect", "unread has no effect with the option depth: its manifest declares it and its code never read it"),
    ("micro,parts=0", "crashed", "PATH: micro asks for 0 micro-batches; a step has 1 or more"),
    ("micro,parts=-1", "crashed", "PATH: micro asks for -1 micro-batches; a step has 1 or more"),
    ("micro,parts=8", "unsupported", "a batch of 4 cannot be split into 8 micro-batches"),
]  # fmt: skip

HEAD = "module heads.head"
THROWS = [
    ("throw-apply", "PATH: throw-apply threw in apply: on purpose"),
    ("throw-prepare", "PATH: throw-prepare threw in prepare: on purpose"),
    ("throw-freezing", "PATH: throw-freezing threw in freezing: on purpose"),
    ("throw-transform-of-model", "PATH: throw-transform-of-model threw in ModelTransform::apply: on purpose"),
    ("throw-enter", "PATH: throw-enter threw in enter_forward, step 1 of 3, forward: on purpose"),
    ("throw-run", "PATH: throw-run threw in run, step 1 of 3, forward, module encoder: on purpose"),
    ("throw-loss", "PATH: throw-loss threw in loss, step 1 of 3, forward: on purpose"),
    ("throw-hook", "PATH: throw-hook threw in on_gradient, step 1 of 3, backward, module heads.head, operator torch::autograd::AccumulateGrad: on purpose"),
    ("throw-schedule", "PATH: throw-schedule threw in after_backward, step 1 of 3, optimizer_step: on purpose"),
    ("throw-transform", "PATH: throw-transform threw in GradientTransform::apply, step 1 of 3, optimizer_step: on purpose"),
    ("throw-around", "PATH: throw-around threw in update, step 1 of 3, optimizer_step: on purpose"),
    ("null-wrap", "PATH: null-wrap threw in wrap: wrap returned null"),
    ("throw-begin", "PATH: throw-begin threw in on_step_begin, step 1 of 3, forward: on purpose"),
    ("throw-loss-transform", "PATH: throw-loss-transform threw in LossTransform::apply, step 1 of 3, forward: on purpose"),
    ("vector-loss", "PATH: vector-loss threw in LossTransform::apply, step 1 of 3, forward: it must return a scalar tensor"),
    ("throw-gradient-hook", "PATH: throw-gradient-hook threw in on_gradient, step 1 of 3, backward, module heads.head, operator torch::autograd::AccumulateGrad: on purpose"),
    ("runs-nothing", "PATH: runs-nothing threw in StepRunner::run, step 1 of 3, forward: it must ask for a pass, and return a loss"),
    ("throw-runner", "PATH: throw-runner threw in StepRunner::run, step 1 of 3, forward: on purpose"),
    ("throw-update", "PATH: throw-update threw in update, step 2 of 3, optimizer_step: on purpose"),
    ("throw-number", "PATH: throw-number threw in update, step 2 of 3, optimizer_step: something that is no std::exception"),
]  # fmt: skip

# Where LibTorch runs around it: the beginning, and what must be in the rest.
INSIDE_LIBTORCH = [
    ("throw-pack", "PATH: throw-pack threw in pack, step 1 of 3, forward, module ", ": on purpose"),
    ("throw-unpack", "PATH: throw-unpack threw in unpack, step 1 of 3, backward, module ", ": on purpose"),
    ("libtorch-error", "PATH: libtorch-error threw in update, step 2 of 3, optimizer_step, operator aten::view: ", "shape '[7, -1]' is invalid"),
]  # fmt: skip


class Mistakes(WorkerTest):
    def words(self, text):
        return text.replace("PATH", str(PLANTED)).replace("MODEL", str(PLUGINS / "vit.so"))

    def test_a_recipe_that_is_not_the_manifests(self):
        for stack, status, message in RECIPE:
            with self.subTest(stack):
                result = self.run_worker(*stack.split())
                self.assertEqual((result["status"], result["reason"]), (status, self.words(message)))
                self.assertIsNone(result["memory"])

    def test_what_a_plugin_throws(self):
        for stack, message in THROWS:
            with self.subTest(stack):
                result = self.run_worker(stack)
                self.assertEqual((result["status"], result["reason"]), ("crashed", self.words(message)))

    def test_what_is_thrown_inside_libtorch(self):
        for stack, begin, rest in INSIDE_LIBTORCH:
            with self.subTest(stack):
                result = self.run_worker(stack)
                self.assertEqual(result["status"], "crashed")
                self.assertTrue(result["reason"].startswith(self.words(begin)), result["reason"])
                self.assertIn(rest, result["reason"])

    def test_a_weight_that_was_not_asked_for(self):
        """A decoder's linear weights wait until they are needed, where a strategy changes them; a transformer's of torchvision do not."""
        result = self.run_worker("takes-weights", model=DECODER)
        self.assertEqual((result["status"], result["reason"]), (
            "crashed", "after the base weights were changed, model.layers.0.self_attn.q_proj.weight.taken has no memory. A linear layer's "
            "weight may not be made yet when a strategy changes it: ask for dense_weight(), or call make_weight() first"))
        result = self.run_worker("takes-weights")
        self.assertEqual((result["status"], result["settings"]["base_weights"]), ("ok", "whole model first"), result["reason"])

    def test_in_the_throughput_worker(self):
        result = self.run_worker("throw-update", mode="throughput", warmup=1)
        self.assertEqual(result["reason"],
                         self.words("PATH: throw-update threw in update, step 2 of 4, optimizer_step: on purpose"))  # fmt: skip
        for stack in ("never-steps", "fused-in-backward clip"):
            self.assertEqual(self.run_worker(*stack.split(), mode="throughput")["status"], "no_effect")
