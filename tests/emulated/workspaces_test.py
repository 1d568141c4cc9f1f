"""Workspaces of convolutions: those that an H200 took are those of its emulated card, and `peakbench doctor --workspaces` writes them into a
card file. The card that it measures here is an emulated one whose file has made-up workspaces: what is measured must be those."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from given import ORACLE as PYTHON, PEAKBENCH

HERE = pathlib.Path(__file__).resolve().parent
RECORD = HERE / "real_card/h200-141gb.json"
CARDS = HERE.parents[1] / "emulator/cards"
ENVIRONMENT = {**os.environ, "PEAKBENCH_PYTHON": PYTHON, "PYTHONPATH": str(HERE.parents[1] / "python"),
               "PATH": f"{pathlib.Path(PEAKBENCH).parent}:{os.environ['PATH']}"}  # fmt: skip
PASSES = ("forward", "backward_data", "backward_weight")
# Two convolutions, the second without a gradient of its input's; and another size on demand.
PROGRAM = """
import sys, torch
torch.backends.cudnn.benchmark = "benchmark" in sys.argv
torch.backends.cudnn.deterministic = "deterministic" in sys.argv
edge = 24 if "other" in sys.argv else 16
made = {"device": "cuda", "dtype": torch.bfloat16}
if "ieee" in sys.argv:
    made["dtype"], torch.backends.cudnn.conv.fp32_precision = torch.float32, "ieee"
first, second = (torch.nn.Conv2d(8, 8, 3, bias=False, **made) for _ in range(2))
if "one" in sys.argv:
    second = torch.nn.Identity()
second(first(torch.zeros(4, 8, edge, edge, **made))).sum().backward()
print("PEAK", torch.cuda.max_memory_allocated())
"""


def convolution(edge, **bytes_of):
    return {"input": [4, 8, edge, edge], "weight": [8, 8, 3, 3], "stride": [1, 1], "padding": [0, 0], "dilation": [1, 1],
            "dtype": "bfloat16", "layout": "channels first", **bytes_of}  # fmt: skip


MADE_UP = [convolution(16, forward=30 << 20, backward_weight=123456), convolution(14, forward=0, backward_data=7 << 20, backward_weight=1 << 10)]


class Workspaces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="peakbench-workspaces-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "train.py"
        self.program.write_text(PROGRAM)

    def card(self, name, convolutions, cudnn="9.19.0"):
        """A card file of an A100, of which nothing is measured, with these."""
        profile = json.loads((CARDS / "a100-40gb.json").read_text(encoding="utf-8"))
        profile["convolution_workspaces"] = [{"cudnn": cudnn, "source": "made up", "convolutions": convolutions}]
        path = self.folder / name
        path.write_text(json.dumps(profile), encoding="utf-8")
        return path

    def run_it(self, *command):
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, env=ENVIRONMENT, timeout=300)

    def emulate(self, card, *command):
        took = self.folder / "took.json"
        done = self.run_it(PEAKBENCH, "emulate", "--no-lines", f"--json={took}", "--card", card, "--", *command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(took.read_text(encoding="utf-8")), done.stdout

    def verdict(self, card, *arguments):
        took, said = self.emulate(card, PYTHON, self.program, *arguments)
        return took["verdict"], int(said.split("PEAK ")[1])

    def teach(self, card, to, *arguments, code=0):
        """What is said of a program on a card, and written into the file."""
        command = [PEAKBENCH, "doctor", "--workspaces", "--to", to, "--", PYTHON, self.program, *arguments]
        done = self.run_it(PEAKBENCH, "emulate", "--no-lines", "--card", card, "--", *command)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_an_h200s_are_those_of_its_emulated_card(self):
        rows = {row["name"]: row for row in map(json.loads, self.emulate("h200-141gb", PYTHON, HERE / "cudnn_itself/convolution.py", RECORD)[1].splitlines())}
        recorded = json.loads(RECORD.read_text(encoding="utf-8"))["cudnn_workspaces_of_convolution"]
        profile = json.loads((CARDS / "h200-141gb.json").read_text(encoding="utf-8"))
        told_apart = sum("backward_weight" in one for one in profile["convolution_workspaces"][0]["convolutions"])
        alike = [name for name, (forward, backward) in recorded.items()
                 if rows[name]["forward"] == sum(forward) and [size for size in (rows[name][one] for one in PASSES[1:]) if size] == backward]  # fmt: skip
        self.assertEqual((len(recorded), len(alike)), (72, told_apart))
        self.assertEqual([name for name, (forward, _) in recorded.items() if rows[name]["forward"] != sum(forward)], [])

    def test_what_is_measured_is_what_cudnn_takes(self):
        made_up, taught = self.card("made-up.json", MADE_UP), self.folder / "taught.json"
        said = self.teach(made_up, taught)
        self.assertIn(f"5 new workspaces of convolutions, in {taught}.", said)
        [measured] = json.loads(taught.read_text(encoding="utf-8"))["convolution_workspaces"]
        self.assertEqual(sorted(map(json.dumps, measured["convolutions"])), sorted(map(json.dumps, MADE_UP)))
        self.assertIn("an EMULATED card, which shows nothing about a real one", measured["source"])
        self.assertIn("0 new workspaces", self.teach(made_up, taught))
        (ours, peak), (theirs, same) = self.verdict(taught), self.verdict(made_up)
        self.assertEqual((ours["reasons"], ours["estimate"], peak), (theirs["reasons"], theirs["estimate"], same))

    def test_what_is_measured_raises_the_peak_and_is_no_estimate(self):
        verdict, peak = self.verdict(self.card("made-up.json", MADE_UP))
        self.assertGreater(peak, 30 << 20)
        self.assertIn("was measured", verdict["reasons"][0])
        self.assertEqual(verdict["estimate"]["more_bytes"], peak // 100)
        none = [convolution(16, forward=0, backward_weight=0), convolution(14, forward=0, backward_data=0, backward_weight=0)]
        verdict, peak = self.verdict(self.card("none.json", none))
        self.assertEqual((verdict["kind"], verdict["reasons"]), ("exact", []))
        self.assertIn("cuDNN's workspaces of convolutions were measured on such a card: made up", verdict["notes"])
        self.assertLess(peak, 1 << 20)

    def test_another_size_or_release_is_estimated(self):
        for card, arguments in ((self.card("a.json", MADE_UP), ["other"]), (self.card("b.json", MADE_UP, "9.10.2"), [])):
            verdict, _ = self.verdict(card, *arguments)
            self.assertEqual(verdict["kind"], "estimate")
            self.assertIn("is estimated", verdict["reasons"][0])
            self.assertTrue(any("doctor --workspaces" in advice for advice in verdict["advice"]))

    def test_what_cudnn_chooses_otherwise_is_unknown_and_left_out(self):
        made_up = self.card("made-up.json", MADE_UP)
        for asked, why in (("benchmark", "chosen by timing (torch.backends.cudnn.benchmark)"), ("deterministic", "chosen among deterministic algorithms")):
            with self.subTest(asked):
                self.assertEqual(self.verdict(made_up, asked)[0]["kind"], "lower bound")
                said = self.teach(made_up, self.folder / "taught.json", asked)
                self.assertIn(f"Left out: {why} (", said)
                self.assertIn("0 new workspaces", said)

    def test_single_precision_is_told_from_tf32(self):
        taught = self.folder / "taught.json"
        self.teach("a100-40gb", taught, "ieee")
        [measured] = json.loads(taught.read_text(encoding="utf-8"))["convolution_workspaces"]
        self.assertEqual([(one["dtype"], one.get("tf32", False)) for one in measured["convolutions"]], [("float32", False)] * 2)

    def test_without_memory_for_a_workspace_another_engine_is_taken(self):
        """As PyTorch does on a card. What that engine takes is not known: from nothing to what the first one takes."""
        card = f"{self.card('large.json', [convolution(16, forward=900 << 20, backward_weight=0)])},memory=512MiB,context=0"
        verdict, peak = self.verdict(card, "one")
        self.assertLess(peak, 1 << 20)
        self.assertGreaterEqual(verdict["estimate"]["more_reserved_bytes"], 900 << 20)
        self.assertNotIn(verdict["kind"], ("exact", "exact if"))

    def test_a_file_that_says_otherwise_stays(self):
        other = self.card("other.json", [convolution(16, forward=1)])
        before = other.read_text(encoding="utf-8")
        said = self.teach(self.card("made-up.json", MADE_UP), other, "one", code=2)
        self.assertIn(f"took {30 << 20} bytes (forward) for a convolution of which the file says 1: ", said)
        self.assertEqual(other.read_text(encoding="utf-8"), before)

    def test_wrong_use(self):
        for words, said in ((["--workspaces"], "--to FILE"), (["--workspaces", "--to", "x.json"], "-- COMMAND"), (["--to", "x.json"], "--to says where")):
            done = self.run_it(PEAKBENCH, "doctor", *words)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(said, done.stderr)
