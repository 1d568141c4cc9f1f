"""Steps whose passes a runner chooses itself, what is told of them, and the memory that parts of a recipe hold."""

import re
import sqlite3

from real_worker import DECODER, LAYERS, PLANTED, WorkerTest

PATH = PLANTED.with_name("passes.so")
KIBIBYTE = 1024


class Passes(WorkerTest):
    def ok(self, *stack, **options):
        result = self.run_worker(*stack, **options)
        self.assertEqual(result["status"], "ok", result["reason"])
        return result

    def query(self, text):
        with sqlite3.connect(self.folder / "trace.sqlite") as trace:
            return trace.execute(text).fetchall()

    def named(self, role):
        """Name -> shape, of everything that has the role."""
        rows = self.query(f"SELECT n.name, n.shape FROM names n JOIN roles r ON r.id = n.role WHERE r.name = '{role}'")
        return {name: [int(number) for number in re.findall(r"\d+", shape)] for name, shape in rows}

    def bytes_at_peak(self, category):
        return sum(size for size, in self.query(f"SELECT requested_bytes FROM alive_at_peak WHERE category = '{category}'"))

    def test_all_parts_are_told_of_the_pass(self):
        self.ok("tells-passes", "every-kind", "micro,parts=2", steps=1)
        told = re.findall(r"(forward|loss|gradient) pass (.*)", self.log)

        def of(what):
            return [words for kind, words in told if kind == what]

        one = [f"{number} micro-batch {part}" for number in ("0", "1", "2 last") for part in ("0", "1 last")]
        self.assertEqual(of("forward"), one)
        # Without backward there is neither; apart from forward there is one for all micro-batches.
        self.assertEqual(of("loss"), one[3:])
        self.assertEqual(of("gradient"), one[3:])

    def test_a_single_pass_is_the_last(self):
        self.ok("tells-passes", steps=1)
        self.assertEqual(re.findall(r"gradient pass (.*)", self.log), ["0 last micro-batch 0 last"])

    def test_passes_of_each_kind_train_as_one_does(self):
        reference = self.folder / "parameters"
        self.run_worker(write=reference)
        self.assertEqual(self.ok("every-kind", read=reference)["equivalence"]["verdict"], "held")

    def test_a_runner_keeps_its_word_on_the_last_pass(self):
        wrong = {
            "pass-after-last": "optimizer_step: a pass follows one that was the step's last: ask for each pass but the last with {.last = false}",
            "owes-a-pass": "optimizer_step: its last pass of the step was asked for with {.last = false}",
        }
        for stack, words in wrong.items():
            with self.subTest(stack):
                result = self.run_worker(stack)
                self.assertEqual((result["status"], result["reason"]),
                                 ("crashed", f"{PATH}: {stack} threw in StepRunner::run, step 1 of 3, {words}"))  # fmt: skip

    def test_an_update_that_nothing_tells_is_counted_by_the_runner(self):
        result = self.run_worker("writes-itself")
        self.assertEqual(result["status"], "no_effect", result["reason"])
        self.assertEqual(len(set(self.ok("counts-its-update")["losses"])), 3)

    def test_sophia(self):
        for mode in ("memory", "throughput"):
            self.ok("sophia", model=DECODER, mode=mode)
        self.ok("sophia", model=DECODER)
        shapes = self.named("parameter")
        state = {f"{name}.{what}": shape for name, shape in shapes.items() for what in ("exp_avg", "hessian")}
        state |= {f"{name}.step": [] for name in shapes}
        self.assertEqual(self.named("optimizer_state"), state)

    def test_soap(self):
        self.assertEqual(len(set(self.ok("soap", model=DECODER, steps=4)["losses"])), 3)  # the first step only prepares
        state = {}
        for name, shape in self.named("parameter").items():
            state |= {f"{name}.exp_avg": shape, f"{name}.exp_avg_sq": shape}
            if len(shape) == 2:
                sides = {"left": shape[0], "right": shape[1], "left_basis": shape[0], "right_basis": shape[1]}
                state |= {f"{name}.{what}": [side, side] for what, side in sides.items()}
        self.assertEqual(self.named("optimizer_state"), state)
        self.assertEqual(self.run_worker("soap", model=DECODER, steps=1)["status"], "no_effect")

    def test_what_the_reference_does_too_refutes_no_promise(self):
        # On an emulated card no value says that the promise is held: what is seen of the steps must not say otherwise.
        for stack in (["soap", "tells-passes"], ["by-turns", "tells-passes"], ["mezo", "same"], ["sophia", "tells-passes"]):
            with self.subTest(stack):
                result = self.ok(*stack, model=DECODER, promise={"reference_case": "another"})
                self.assertEqual(result["equivalence"]["verdict"], "not_checked", result["equivalence"])
        for stack, reason in {
            "soap": "were updated more than once in step 1",
            "by-turns": "were updated more than once in step 1",
        }.items():
            found = self.ok(stack, "rule-twice", model=DECODER, promise={"reference_case": "another"})["equivalence"]
            self.assertEqual(found["verdict"], "broken")
            self.assertIn(reason, found["reason"])
        found = self.ok("soap", "half-of-the-parameters", model=DECODER, promise={"reference_case": "another"})["equivalence"]
        self.assertIn("got a gradient and no update in step 2", found["reason"])

    def test_saved_tensors_are_told_where_they_come_from(self):
        """The same with a recorder and without."""
        said = []
        for mode in ("memory", "throughput"):
            self.ok("tells-where", mode=mode, steps=1)
            said.append(re.findall("^saved (.*)", self.log, re.MULTILINE))
        self.assertEqual(*said)
        block = "encoder.layers.encoder_layer_0"
        self.assertIn(f"{block}.ln_1 aten::native_layer_norm", said[0])
        self.assertIn(f"{block}.ln_1 aten::native_layer_norm weight", said[0])
        self.assertIn(f"{block}.mlp.0 aten::addmm weight", said[0])
        self.assertIn(f"{block}.mlp aten::gelu", [line for line in said[0] if "gelu" in line])
        self.assertEqual([line for line in said[0] if line.startswith(" ")], [])

    def test_memory_of_every_kind_of_part_has_its_name(self):
        self.ok("holds")
        names = {name: shape for name, shape in self.named("kept").items()}
        self.assertEqual(names, {f"holds.part_{number}": [number * KIBIBYTE] for number in range(1, 13)})
        self.assertEqual(self.bytes_at_peak("kept"), sum(range(1, 13)) * KIBIBYTE)

    def test_mezo_beside_a_listener_that_holds_memory(self):
        self.ok("mezo", "holds-listener")
        self.assertEqual(self.named("kept"), {"holds-listener.part_3": [3 * KIBIBYTE]})
        self.assertEqual((self.bytes_at_peak("kept"), self.bytes_at_peak("gradient"), self.bytes_at_peak("optimizer_state")),
                         (3 * KIBIBYTE, 0, 0))  # fmt: skip

    def test_memory_that_bundled_strategies_hold(self):
        self.ok("sam")
        copies = {f"sam.{name}.copy": shape for name, shape in self.named("parameter").items()}
        self.assertEqual({name: shape for name, shape in self.named("optimizer_state").items() if name.startswith("sam.")}, copies)
        self.assertEqual(len(copies), 8 + 12 * LAYERS)
        # The first micro-batch's gradients wait on the host while the second is run.
        self.ok("micro,parts=2", "gradient-offload")
        waiting = {f"gradient-offload.{name}": shape for name, shape in self.named("parameter").items()}
        self.assertEqual({name: shape for name, shape in self.named("gradient").items() if name.startswith("gradient-offload.")}, waiting)
        self.ok("loss-scaling")
        state = self.named("optimizer_state")
        self.assertEqual([name for name in state if name.startswith("loss-scaling.")], ["loss-scaling.loss_scale", "loss-scaling.growth_tracker"])
