"""`peakbench train.py`: whether it fits, the peak, what fills it and one thing to try, in at most 14 lines."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from given import ORACLE, PEAKBENCH
from terminal import on_terminal

PATIENCE_S = 200

TRAIN = """
import sys, torch
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True if "helped" in sys.argv else None)
for _ in range(2):
    model(torch.randn(int(sys.argv[1]), 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(torch.cuda.max_memory_allocated())
"""
LAYERS = """
import sys, torch
from torch.utils.checkpoint import checkpoint
layer = lambda: torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256))
model = torch.nn.ModuleList([layer() for _ in range(8)]).cuda()
for _ in range(2):
    x = torch.randn(4096, 256, device="cuda")
    for block in model:
        x = checkpoint(block, x, use_reentrant=False) if "helped" in sys.argv else block(x)
    x.square().mean().backward()
print(torch.cuda.max_memory_allocated())
"""
# Copies of the weights make forward the fullest phase.
GRADIENTS = """
import sys, torch
class Layer(torch.nn.Linear):
    def forward(self, x):
        with torch.no_grad():
            size = self.weight.abs()
            square = size * size
            (size + square).sum()
        return super().forward(x)
model = torch.nn.Sequential(*[Layer(2048, 2048) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad(set_to_none="helped" in sys.argv)
    model(torch.randn(64, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
print(torch.cuda.max_memory_allocated())
"""
# 1 MiB of activations a step is kept, until the card of 64 MiB is full.
LEAKS = """
import torch
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(100):
    out = model(torch.randn(4096, 256, device="cuda"))
    losses.append(out)
    out.mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
# Right answers are counted for a log; the weights are too large for values.
COUNTS = """
import torch
model = torch.nn.Linear(1024, 1024).cuda()
right = 0
for _ in range(2):
    out = model(torch.randn(64, 1024).cuda())
    out.sum().backward()
    right += (out.argmax(1) == 0).sum().item()
print(right)
"""
FAILS = 'import torch\nx = torch.zeros(1 << 20, device="cuda")\nraise ValueError("the batch is odd\\nand more")\n'
ON_CPU = "import torch\nprint(torch.zeros(8).sum().item())\n"
WITHOUT = "print('no tensors here')\n"


class Script(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-script-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def script(self, text, name="train.py"):
        (self.folder / name).write_text(text, encoding="utf-8")

    def peakbench(self, *words, exit_code=0):
        done = subprocess.run([PEAKBENCH, *words], cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              env={**os.environ, "PEAKBENCH_PYTHON": ORACLE})
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done

    def lines(self, done):
        """By label; lines that go on are joined."""
        said = [line for line in re.sub(r"\n  +", " ", done.stderr).strip().splitlines() if line and not line.startswith("peakbench: ")]
        return [said[0], *[re.match(r"([A-Z][a-z ]+): (.*)", line).groups() for line in said[1:]]]

    def test_the_summary(self):
        self.script(TRAIN)
        done = self.peakbench("--json=took.json", "train.py", "64")
        counted = int(done.stdout)
        took = json.loads((self.folder / "took.json").read_text(encoding="utf-8"))
        self.assertEqual(took["peak"]["peak_allocated_bytes"], counted)
        first, (_, peak), (_, categories), (_, filled), (_, advice) = self.lines(done)
        self.assertRegex(first, r"^Fits h100-80gb \(the default card\): reserves \S+ \S+ of 79\.179 GiB, 78\.\d{3} GiB left beside a CUDA context "
                                r"of 0\.521 GiB; exact\.$")
        self.assertEqual(peak, f"{counted / 2**30:.3f} GiB allocated by tensors, in the optimizer step of step 1")
        self.assertRegex(categories, r"^optimizer state 0\.125 GiB, workspace 65\.0 MiB, parameter 64\.0 MiB, ")
        # AdamW's two averages and foreach's temporary copy are made by the line of its step.
        self.assertRegex(filled, r"^train\.py:7 \d\d% \(optimizer state\), train\.py:")
        self.assertRegex(advice, r"^\d\d% is temporary memory, which fused=True among the optimizer's arguments makes smaller "
                                 r"\(peakbench describe fused-optimizer\)$")
        self.assertIn("\nIn your own script\n  fused=True among", self.peakbench("describe", "fused-optimizer").stdout)
        self.assertLessEqual(len(done.stderr.splitlines()), 14)
        whole = self.peakbench("--details", "--card", "t4-16gb", "train.py", "64").stderr
        self.assertIn("\nprocess  ", whole)
        self.assertIn("\nWhat fills the peak (", whole)
        self.assertEqual(len(self.lines(self.peakbench("--card", "t4-16gb", "--quiet", "--", ORACLE, "train.py", "64"))), 1)

    def test_the_line_that_is_named_helps(self):
        """PyTorch's own count, without the line and with it."""
        for script, line in ((TRAIN, "fused=True"), (LAYERS, "torch.utils.checkpoint.checkpoint("), (GRADIENTS, "zero_grad(set_to_none=True)")):
            self.script(script)
            done = self.peakbench("train.py", "64")
            self.assertIn(line, self.lines(done)[-1][1])
            helped = self.peakbench("train.py", "64", "helped")
            self.assertLess(int(helped.stdout), 0.9 * int(done.stdout), line)
            self.assertNotIn(line, helped.stderr)

    def test_what_makes_a_verdict_surer(self):
        self.script(COUNTS)
        first = self.lines(self.peakbench("train.py"))
        self.assertTrue(first[0].endswith("; exact if."), first)
        self.assertRegex(first[1][1], r"^exact if the program's path does not depend on this: aten::_local_scalar_dense at train\.py:8 read .*\. "
                                      r"To do: --second-guess 2 runs the program again with other values")
        again = self.lines(self.peakbench("--second-guess", "2", "train.py"))
        self.assertTrue(again[0].endswith("; exact if."), again)
        self.assertNotIn("To do", again[1][1])

    def test_json_on_standard_output_is_nothing_else(self):
        self.script(TRAIN)
        for words in (["--json", "train.py", "64"], ["emulate", "--no-lines", "--json", "-", "--", ORACLE, "train.py", "64"]):
            done = self.peakbench(*words)
            self.assertIs(json.loads(done.stdout)["answer"]["fits"], True)
            self.assertRegex(done.stderr, r"(?m)^\d+$")  # what the script prints
            self.assertEqual([path.name for path in self.folder.iterdir()], ["train.py"])

    def test_what_it_ended_with(self):
        self.script(FAILS)
        said = self.peakbench("train.py", exit_code=1).stderr
        self.assertRegex(said, r"\nFailed on h100-80gb \(the default card\) \(exit code 1\), not for lack of its memory: until then\s+peak")
        self.assertIn("\nEnded with: ValueError: the batch is odd\n", said)

    def test_a_leak_is_what_to_look_at(self):
        self.script(LEAKS)
        done = self.peakbench("--card", "t4-16gb,memory=96MiB", "train.py", exit_code=1)
        said = done.stderr[done.stderr.index("Does not fit t4-16gb,memory=96MiB"):]
        self.assertRegex(said, r"\nEnded with: torch\.OutOfMemoryError: CUDA out of memory")
        self.assertRegex(said, r"\nPeak: memory ran out in \S+ of step \d+: \S+ MiB asked for at\s+train\.py:\d+")
        self.assertRegex(said, r"\nTry: Memory grows by 4\.0 MiB a step")
        traced = self.peakbench("trace", "--details", "--card", "t4-16gb,memory=96MiB", "--no-needed", "train.py", exit_code=1).stderr
        self.assertLess(traced.index("Memory grows by 4.0 MiB a step"), traced.index("Memory ran out in"))

    def test_scripts_that_use_no_card(self):
        self.script(ON_CPU)
        self.assertIn("took nothing of the card. Do the model and the batches go to", " ".join(self.peakbench("train.py").stderr.split()))
        self.script(WITHOUT)
        self.assertIn("Why: It did not import PyTorch", self.peakbench("train.py").stderr)

    def test_a_script_that_is_not_there(self):
        self.script(WITHOUT)
        for words in (["trian.py"], ["emulate", "trian.py"], ["trace", "trian.py"], ["fit", "--card", "t4-16gb", "trian.py"]):
            said = self.peakbench(*words, exit_code=2).stderr
            self.assertEqual(said, 'peakbench: trian.py: there is no such file; did you mean "train.py"?\n')

    def test_options_on_the_wrong_side_of_the_script(self):
        self.script("import argparse\nimport torch\nargparse.ArgumentParser().parse_args()\n")
        for words, before in (("train.py --card t4-16gb", "--card CARD"), ("emulate train.py --json", "--json [FILE]"),
                              ("train.py --name=mine", "--name NAME"), ("emulate train.py --quiet", "--quiet")):
            said = " ".join(self.peakbench(*words.split(), exit_code=2).stderr.split())
            self.assertIn(f"Why: {before.split()[0]} follows the program and was passed to it. If it is an option of Peakbench, "
                          f"put it first: peakbench {before} train.py", said)
        self.assertNotIn("follows the program", self.peakbench("train.py", "--batch", "8", exit_code=2).stderr)
        said = self.peakbench("--batch", "16", "train.py", exit_code=2).stderr
        self.assertIn("no option --batch of `peakbench`; if it belongs to the script, put it after it: peakbench train.py --batch", said)

    def test_two_scripts_are_compared_under_one_name(self):
        for name, size in (("a.py", 20), ("b.py", 21)):
            self.script(f'import torch\nx = torch.zeros(1 << {size}, device="cuda")\n', name)
            self.peakbench("--name", "mine", f"--json={name}.json", name)
        self.assertIn("mine", self.peakbench("compare", "a.py.json", "b.py.json").stdout)

    def test_an_edit_moves_lines_and_no_bytes(self):
        """Two comments, and a line of 4 MiB more at the end: only that one differs."""
        text = 'import torch\nx = torch.zeros(1 << 24, device="cuda")\ny = x * 2\n'
        for name, script in (("a", text), ("b", f"# a\n# b\n{text}"), ("c", f'# a\n{text}z = torch.zeros(1 << 20, device="cuda")\n')):
            self.script(script)
            self.peakbench("trace", "--card", "t4-16gb", "--out", name, "train.py")
            self.peakbench("--card", "t4-16gb", "--quiet", f"--json={name}.json", "train.py")
        for end in ("", ".json"):
            self.assertIn("memory: 1 the same", self.peakbench("compare", "a" + end, "b" + end).stdout)
            said = self.peakbench("compare", "a" + end, "c" + end).stdout
            self.assertEqual(re.findall("train.py:[0-9]+.*", said), ["train.py:5: nothing before, 0.004 GiB (4,194,304 bytes) now"])
        self.assertNotIn("what grew is not known", said)
        self.assertIn("at the peak, by category: +0.004 GiB", said)
        said = self.peakbench("advise", "a", "train.py", exit_code=2).stderr
        self.assertIn("no case of this run was measured with a stack of strategies", said)

    def test_within_a_window(self):
        self.script(TRAIN)
        ended, seen = on_terminal([PEAKBENCH, "train.py", "64"], 80, cwd=self.folder, stdout=subprocess.DEVNULL,
                                  env={**os.environ, "TERM": "xterm", "PEAKBENCH_PYTHON": ORACLE})
        self.assertEqual(ended, 0)
        self.assertIn("\x1b[32mFits h100-80gb (the default card)\x1b[0m:", seen)
        for label in ("Peak", "By category", "Filled by", "Try"):
            self.assertIn(f"\n\x1b[36m{label}\x1b[0m: ", seen)
        self.assertLessEqual(max(len(line) for line in re.sub(r"\x1b\[\d+m", "", seen).split("\n")), 80)
