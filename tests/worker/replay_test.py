"""Stacks that replay what their first step did, beside what decides anew in each step: the worker sees what no manifest says."""

from real_worker import PLANTED, WorkerTest

PATH = PLANTED.with_name("replays.so")


class Replay(WorkerTest):
    def test_blocks_that_are_dropped_by_turns(self):
        for stack in (["drops-blocks", "replays"], ["every-wrapper", "drops-blocks", "replays"]):
            result = self.run_worker(*stack)
            self.assertEqual(result["status"], "crashed")
            self.assertEqual(result["reason"],
                             f"{PATH}: drops-blocks decides on the host what a step runs: encoder.layers.encoder_layer_0.ln_1.weight "
                             "got a gradient in one pass of a step and none in another, and replays repeats what the first step "
                             'decided. Put "decides_on_host" into "capabilities" of its plugin.json, and the two are never stacked')  # fmt: skip

    def test_they_are_welcome_where_nothing_is_replayed(self):
        for stack in (["drops-blocks"], ["drops-blocks", "twice"]):
            result = self.run_worker(*stack)
            self.assertEqual(result["status"], "ok", result["reason"])

    def test_memory_that_takes_more_steps_is_said(self):
        self.assertEqual(self.run_worker("drops-blocks", "same")["memory"]["period"], {"strategy": "drops-blocks", "steps": 30})
        self.assertNotIn("period", self.run_worker("same")["memory"])

    def test_a_trained_set_that_changes_is_declared(self):
        for stack in (["changes-set"], ["changes-set", "replays"]):
            result = self.run_worker(*stack)
            self.assertEqual(result["status"], "crashed")
            self.assertEqual(result["reason"],
                             f"{PATH}: changes-set changes which parameters are trained after the first step, which its manifest does not "
                             'declare: put "changes_trained_set" into "capabilities" of plugin.json')  # fmt: skip
        self.assertEqual(self.run_worker("changes-set", steps=2)["status"], "ok")

    def test_a_replay_by_itself_is_as_promised(self):
        result = self.run_worker("replays")
        self.assertEqual(result["status"], "ok", result["reason"])
        self.assertEqual(result["equivalence"]["verdict"], "not_checked")
        self.assertTrue(result["memory"]["replays_steps"])
