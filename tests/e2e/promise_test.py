"""Promises held against the right reference, with real workers on the CPU."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from given import PEAKBENCH as PROGRAM

MODEL = "vit-b-16,layers=2,width=48,mlp=64,image=32"


class Promises(unittest.TestCase):
    def cases(self, *stacks):
        with tempfile.TemporaryDirectory() as folder:
            strategies = [text for stack in stacks for text in ("--strategy", stack)]
            done = subprocess.run([PROGRAM, "run", "--model", MODEL, *strategies, "--repetitions", "0", "--no-report",
                                   "--out", "out"], cwd=folder, capture_output=True, text=True, timeout=300)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            cases = json.loads((pathlib.Path(folder) / "out/run.json").read_text())["cases"]
            self.assertEqual(list(pathlib.Path(folder).rglob("parameters.tmp")), [])
        self.assertEqual([case["status"] for case in cases], ["ok"] * len(stacks), cases)
        return cases

    def equivalences(self, *stacks):
        cases = self.cases(*stacks)
        for case in cases:
            case["equivalence"]["reference"] = case["equivalence"]["reference_case"].split("/")[1:2]
        return [case["equivalence"] for case in cases]

    def test_stacks_train_on_one_batch(self):
        # Adapters begin as zero and draw random numbers: with the same weights and batch the first loss is the baseline's.
        first = {case["losses"][0] for case in self.cases("baseline", "lora", "lora,rank=4", "sgd")}
        self.assertEqual(len(first), 1, first)

    def test_each_stack_is_held_against_its_own_reference(self):
        expected = {  # stack: reference, promise, verdict, trains another problem
            "lora+checkpointing": (["lora"], "bit_identical", "held", True),
            "foreach-off": (["baseline"], "bit_identical", "held", False),
            "lora": ([], "different_problem", "not_checked", True),
            "baseline": (["baseline"], "bit_identical", "not_checked", False),
            "baseline,lr=0.01": (["baseline,lr=0.01"], "bit_identical", "not_checked", False),
            "baseline,lr=0.01+fused-in-backward": (["baseline,lr=0.01"], "bit_identical", "held", False),
            "lora+foreach-off": (["lora"], "bit_identical", "held", True),
            "lora,rank=4+checkpointing": ([], "bit_identical", "not_checked", True),
        }
        found = self.equivalences(*expected)
        for stack, one in zip(expected, found):
            with self.subTest(stack):
                self.assertEqual((one["reference"], one["promise"], one["verdict"], one["different_problem"]), expected[stack], one)
                self.assertEqual(one["max_abs_difference"], 0 if one["verdict"] == "held" else None)
        reasons = {stack: one["reason"] for stack, one in zip(expected, found)}
        self.assertEqual(reasons["lora"], "the strategy changes what is trained")
        self.assertEqual(reasons["lora,rank=4+checkpointing"], "the run has no case lora,rank=4 to compare with")
        self.assertEqual(reasons["baseline,lr=0.01"], "this case is the reference")
