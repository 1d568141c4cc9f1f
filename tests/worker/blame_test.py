"""Who is named where one plugin's code fails on what another gave it, and where a signal ends the worker.

PATH and BLAMED stand for the libraries of the strategies, MODEL for the model's.
"""

import json
import subprocess

from given import PEAKBENCH
from real_worker import MODEL, PLANTED, PLUGINS, WorkerTest


# Stack; the beginning of the message, and what must be in the rest.
GIVEN = [
    ("wrong-stand-ins", "BLAMED: wrong-stand-ins threw in update, step 1 of 3, optimizer_step", ["it gave baseline the gradient of ", "fp32 [2, 3, 5] on cpu", "and baseline failed in update: "]),
    ("wrong-gradient", "BLAMED: wrong-gradient threw in on_gradient, step 1 of 3, optimizer_step", ["it gave baseline the gradient of heads.head.weight as fp32 [2, 3, 5] on cpu", "and baseline failed in update: "]),
    ("wrong-gradients", "BLAMED: wrong-gradients threw in GradientTransform::apply, step 1 of 3, optimizer_step", ["heads.head.weight as fp32 [2, 3, 5]", "and baseline failed in update: "]),
    ("wrong-gradient fused-in-backward", "BLAMED: wrong-gradient threw in on_gradient, step 1 of 3, backward", ["heads.head.weight as fp32 [2, 3, 5]"]),
    ("wrong-gradient throw-update", "BLAMED: wrong-gradient threw in on_gradient, step 1 of 3, optimizer_step", ["it gave throw-update the gradient of heads.head.weight"]),
    ("wrong-input", "PATH: wrong-input threw in run, step 1 of 3, forward, module encoder.layers.encoder_layer_0", ["it gave vit-b-16 an input of [4, 5, 7] (it was given [4, 5, 48]), and vit-b-16 failed in block: "]),
    ("wrong-unpack", "LibTorch, step 1 of 3, backward, module ", []),
    ("wrong-unpack runs-once", "LibTorch, step 1 of 3, backward, module ", []),
    ("wrong-adapter", "MODEL: vit-b-16 threw in hidden_states, step 1 of 3, forward, module ", ["(changed by wrong-adapter), operator aten::view: "]),
]  # fmt: skip

# Strategy; what the message begins with, and what must be in the rest.
SIGNALS = [
    ("faults-in-run", "the worker was killed by SIGSEGV (segmentation fault) in BLAMED: faults-in-run, in run, step 1 of 3, forward; at ", ["touch_nothing() (blamed.so+0x", "FaultsInRun::run("]),
    ("faults-in-hook", "the worker was killed by SIGSEGV (segmentation fault) in BLAMED: faults-in-hook, in on_gradient, step 1 of 3, backward; at ", ["touch_nothing() (blamed.so+0x"]),
    ("aborts-at-begin", "the worker was killed by SIGABRT (aborted) in BLAMED: aborts-at-begin, in on_step_begin, step 2 of 3, forward; at ", ["AbortsAtBegin::on_step_begin("]),
    ("throws-at-exit", "the worker was killed by SIGABRT (aborted) in BLAMED: throws-at-exit, in LossTransform::apply, step 1 of 3, forward; at ", ["[worker.log: terminate called", "out of a destructor"]),
    ("divides", "the worker was killed by SIGFPE (floating point exception) in BLAMED: divides, in GradientTransform::apply, step 1 of 3, optimizer_step; at ", ["Divides::apply("]),
]  # fmt: skip

BLAMED = PLANTED.with_name("blamed.so")


def words(text):
    return text.replace("BLAMED", str(BLAMED)).replace("PATH", str(PLANTED)).replace("MODEL", str(PLUGINS / "vit.so"))


class Blame(WorkerTest):
    def test_what_one_plugin_gave_another(self):
        for stack, begin, parts in GIVEN:
            with self.subTest(stack):
                result = self.run_worker(*stack.split())
                self.assertEqual(result["status"], "crashed")
                self.assertTrue(result["reason"].startswith(words(begin)), result["reason"])
                for part in parts:
                    self.assertIn(part, result["reason"])

    def test_a_signal_names_the_plugin_the_call_and_the_place(self):
        for device in ("cpu", "emulated:h100-80gb"):
            self.run_program(device)

    def run_program(self, device):
        out = self.folder / device.partition(":")[0]
        strategies = [text for name, *_ in SIGNALS for text in ("--strategy", name)]
        done = subprocess.run(
            [PEAKBENCH, "run", "--plugins", BLAMED.parent, "--model", MODEL, *strategies, "--steps", "3", "--repetitions", "0",
             "--device", device, "--no-report", "--no-ablation", "--out", out],
            capture_output=True, text=True, timeout=200)  # fmt: skip
        self.assertEqual(done.returncode, 3, done.stderr)
        cases = {case["strategies"][0]["id"]: case for case in json.loads((out / "run.json").read_text())["cases"]}
        for name, begin, parts in SIGNALS:
            with self.subTest(name, device=device):
                case = cases[name]
                self.assertEqual(case["status"], "crashed")
                self.assertTrue(case["reason"].startswith(words(begin)), case["reason"])
                for part in parts:
                    self.assertIn(part, case["reason"])
                self.assertNotIn("peakbench-worker+0x", case["reason"])  # the log has the rest
                logs = [path.read_text() for path in out.glob(f"cases/*{name}*/worker.log")]
                self.assertEqual(len(logs), 1)
                self.assertIn("peakbench-worker: ended by SIG", logs[0])
                backtrace = logs[0].partition("\nBacktrace, the innermost first")[2]
                self.assertIn("  blamed.so+0x", backtrace)
                self.assertIn("  peakbench-worker+0x", backtrace)
