"""`peakbench advise`: its figures are those of the same stacks under `run`, and what it says follows from them."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import given
from given import PEAKBENCH

PLANTED = given.PLANTED.with_name("unlike_baseline.so")
MODEL = ("--model", "gpt2,layers=2", "--batch", "8", "--seq", "256")
CARD = "emulated:h100-80gb"
CASE = "gpt2,layers=2/{}/" + CARD + "/fp32/b8/s256"


class Advise(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="peakbench-advise-")
        cls.addClassCleanup(cls.scratch.cleanup)

    def peakbench(self, *arguments, code=0):
        done = subprocess.run([str(PEAKBENCH), *map(str, arguments)], cwd=self.scratch.name, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def run_cases(self, out, *more, code=0):
        model = () if "--model" in more else MODEL
        self.peakbench("run", *model, *more, "--no-report", "--no-ablation", "--out", out, code=code)
        record = json.loads(pathlib.Path(self.scratch.name, out, "run.json").read_text(encoding="utf-8"))
        return {case["id"]: case for case in record["cases"]}

    def test_figures_are_those_of_a_run(self):
        stacks = ("baseline", "checkpointing", "chunked-cross-entropy", "autocast")
        cases = self.run_cases("ran", "--device", CARD, *(word for stack in stacks for word in ("--strategy", stack)))
        advice = json.loads(self.peakbench("advise", "ran", CASE.format("baseline"), "--json").stdout)
        peak = cases[CASE.format("baseline")]["memory"]
        self.assertEqual(advice["now"]["peak_allocated_bytes"], peak["peak_allocated_bytes"])
        self.assertEqual(advice["now"]["at_peak"], peak["at_peak"])
        tried = {one["strategy"]: one for one in advice["tried"]}
        for stack in stacks[1:]:
            with self.subTest(stack):
                one, memory = tried[stack], cases[CASE.format(stack)]["memory"]
                self.assertEqual(one["peak_allocated_bytes"], memory["peak_allocated_bytes"])
                self.assertEqual(one["saves_bytes"], peak["peak_allocated_bytes"] - memory["peak_allocated_bytes"])
                self.assertEqual((one["peak_phase"], one["at_peak"]), (memory["peak_phase"], memory["at_peak"]))
        largest = max((one for one in advice["tried"] if "saves_bytes" in one), key=lambda one: one["saves_bytes"])
        self.assertTrue(advice["answer"].startswith(f"{largest['strategy']} saves most: "), advice["answer"])
        # For people: the answer first, then what saves most down to what saves least.
        text = self.peakbench("advise", "ran", CASE.format("baseline"), "--quiet").stdout
        self.assertTrue(" ".join(text.split("\n\n")[0].split()).startswith(f"{largest['strategy']} saves most: "), text)
        rows = [line.split()[1] for line in text.splitlines() if line.startswith("+ ")]
        by_saving = sorted((one for one in advice["tried"] if one.get("saves_bytes", 0) >= peak["peak_allocated_bytes"] / 1000), key=lambda one: -one["saves_bytes"])
        self.assertEqual(rows, [one["strategy"] for one in by_saving])
        # Upon a stack.
        upon = json.loads(self.peakbench("advise", "ran", "checkpointing", "--json").stdout)
        self.assertNotIn("checkpointing", [one["strategy"] for one in upon["tried"]])
        self.assertTrue(all("checkpointing" in one["stack"].split("+") for one in upon["tried"] if not one["why_not"]))

    def test_a_case_that_ran_out_of_memory_or_was_measured_elsewhere(self):
        out_of_memory = self.run_cases("small", "--device", CARD + ",memory=1GiB", "--strategy", "baseline", code=3)
        self.assertEqual([case["status"] for case in out_of_memory.values()], ["out_of_memory"])
        advice = json.loads(self.peakbench("advise", "small", "--json").stdout)
        needed = next(iter(out_of_memory.values()))["out_of_memory"]["needed_allocated_bytes"]
        self.assertEqual(advice["now"]["peak_allocated_bytes"], needed)
        self.assertIs(advice["ran_out_of_memory"], True)

    def test_strategies_of_others_are_tried_and_held_to_their_promise(self):
        plugins = pathlib.Path(self.scratch.name, "plugins")
        plugins.mkdir()
        shutil.copy(PLANTED, plugins)
        self.run_cases("tiny", "--model", "vit-b-16,layers=2,width=48,mlp=64,image=32", "--batch", "4", "--device", CARD, "--strategy", "baseline")
        self.assertNotIn("block-in-parts", [one["strategy"] for one in json.loads(self.peakbench("advise", "tiny", "--json").stdout)["tried"]])
        advice = json.loads(self.peakbench("advise", "tiny", "--plugins", plugins, "--json").stdout)
        tried = {one["strategy"]: one for one in advice["tried"]}
        self.assertIsNone(tried["block-in-parts"]["why_not"])
        self.assertIn("peak_allocated_bytes", tried["block-in-parts"])
        self.assertRegex(tried["cuts-graph"]["why_not"], "^it does not train as it promises: some step gives no gradient to class_token, ")
        self.assertEqual(tried["leaves-out"]["why_not"], "it does not train as it promises: leaves-out leaves block 1 out")

    def test_bad_input(self):
        self.run_cases("cpu", "--model", "gpt2,layers=1,width=32,heads=2,vocabulary=64", "--seq", "8", "--device", "cpu", "--strategy", "baseline", "--repetitions", "0")
        self.assertIn("name one, like --card h100-80gb", self.peakbench("advise", "cpu", code=2).stderr)
        self.assertIn('unknown card "rtx4090"', self.peakbench("advise", "cpu", "--card", "rtx4090", code=2).stderr)
        self.assertIn('no case "lora"', self.peakbench("advise", "cpu", "lora", code=2).stderr)
        self.assertIn("nowhere", self.peakbench("advise", "nowhere", code=2).stderr)
