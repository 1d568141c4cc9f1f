"""`ci/fidelity`, on the emulated card against itself: that what is alike is found alike, that what differs is named, that golden
records hold the emulation to them, and what is said where there is no card; and `peakbench doctor --context` on an emulated card whose context
is known.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from given import ALL, PEAKBENCH

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PYTHON = os.environ.get("PEAKBENCH_ORACLE")


class FidelityTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-fidelity-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.page = self.folder / "fidelity.md"

    def fidelity(self, *arguments, exit_code=0, programs="", only="cases"):
        command = [ROOT / "ci/fidelity", "--peakbench", PEAKBENCH, "--page", self.page, "--model", "vit-b-16,layers=1", "--programs", programs]
        command += ["--only", only, *arguments]
        own = os.environ | ({"PEAKBENCH_PYTHON": PYTHON} if PYTHON else {})
        done = subprocess.run([sys.executable, *map(str, command)], env=own, capture_output=True, text=True)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_card_is_like_itself(self):
        golden = self.folder / "golden.json"
        program = "moe_router" if PYTHON else ""
        everything = "cases,programs,operators,context,tests" if PYTHON else "cases,tests"
        self.fidelity("--card", "h100-80gb", "--against", "emulated:h100-80gb", "--golden", golden, "--jobs", "2", programs=program, only=everything)
        page = self.page.read_text(encoding="utf-8")
        rows = [line for line in page.splitlines() if line.startswith("| vit")]
        self.assertEqual(len(rows), 12)
        for row in rows:
            self.assertIn("| 0 | 0 | 0 | identical | the same |", row)
        if PYTHON:
            recorded = json.loads((ROOT / "tests/programs/expected.json").read_text(encoding="utf-8"))[program]["peak"]["allocated_bytes"]
            self.assertIn(f"| moe_router | {recorded:,} | 0 | 0 | 0 | the same |", page)
            self.assertRegex(page, r"\n([\d,]+) of \1 samples of [67]\d\d operators took the same bytes in as many allocations")
            self.assertIn("bytes: nvidia-smi's figure less what PyTorch reserved: one tensor", page)
        self.assertIn("Both sides are emulated", page)
        # The records hold later emulation to them, and are not loose.
        self.fidelity("--card", "h100-80gb", "--hold-to", golden)
        record = json.loads(golden.read_text(encoding="utf-8"))
        case = next(iter(record["cases"]))
        record["cases"][case]["peak_allocated_bytes"] = int(record["cases"][case]["peak_allocated_bytes"] * 1.01)
        golden.write_text(json.dumps(record), encoding="utf-8")
        self.assertIn(case, self.fidelity("--card", "h100-80gb", "--hold-to", golden, exit_code=1))

    @unittest.skipUnless(ALL and PYTHON, "--all, and stock Python PyTorch")
    def test_workspaces_are_taught_by_the_card(self):
        self.fidelity("--card", "h100-80gb", "--against", "emulated:h100-80gb", only="workspaces")
        rows = [line for line in self.page.read_text(encoding="utf-8").splitlines() if line.startswith(("| resnet50 ", "| convnext_tiny ", "| unet "))]
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertRegex(row, r"\| [\d,]{9,} \| 0 \| 0 \| 0 \| 0 \|$")

    def test_what_differs_is_named(self):
        self.fidelity("--card", "h100-80gb", "--against", "emulated:t4-16gb")
        rows = [line for line in self.page.read_text(encoding="utf-8").splitlines() if "/bf16/" in line]
        self.assertTrue(any("event " in row for row in rows), rows)

    def test_what_cannot_be_asked(self):
        self.assertIn("--only: case is none of cases, programs, operators, context, workspaces, tests", self.fidelity("--card", "h100-80gb", only="case", exit_code=2))
        self.assertIn("are of the cases", self.fidelity("--card", "h100-80gb", "--golden", self.folder / "g.json", only="context", exit_code=2))

    def test_without_a_card(self):
        if any(pathlib.Path("/proc/driver/nvidia/gpus").glob("*")):
            self.skipTest("this machine has a CUDA card")
        self.assertIn("no CUDA card", self.fidelity("--card", "h100-80gb", exit_code=2))
        self.assertFalse(self.page.exists())


@unittest.skipUnless(PYTHON, "ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python")
class Context(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-fidelity-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def context(self, *arguments, card="h100-80gb,context=534MiB", code=0, **more):
        own = {"PYTHONPATH": str(ROOT / "python"), "PEAKBENCH_PYTHON": PYTHON, "PATH": f"{PEAKBENCH.parent}:{os.environ['PATH']}"}
        environment = os.environ | own | more
        before = [PEAKBENCH, "emulate", "--no-lines", "--card", card, "--"] if card else []
        done = subprocess.run([*before, PEAKBENCH, "doctor", "--context", *arguments], cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_it_is_what_was_set_aside(self):
        measured = json.JSONDecoder().raw_decode(self.context("--json").stdout)[0]
        self.assertEqual(measured["card"], "h100-80gb")
        self.assertEqual([one["bytes"] for one in measured["context_memory"]], [534 << 20] * 2)
        for one in measured["context_memory"]:
            self.assertIn("EMULATED", one["source"])
        # The second card's, though the first one is current at first.
        self.assertRegex(self.context("--device", "1", card="h100-80gb,count=2,context=534MiB").stdout, r"(?m)^ +534 MiB  .*: one tensor$")

    def test_it_joins_a_card_file(self):
        self.context("--to", "mine.json")
        self.assertIn("Added to mine.json.", self.context("--to", "mine.json").stdout)
        card = json.loads((self.folder / "mine.json").read_text(encoding="utf-8"))
        ours = json.loads((ROOT / "emulator/cards/h100-80gb.json").read_text(encoding="utf-8"))
        self.assertEqual(len(card["context_memory"]), len(ours["context_memory"]) + 4)
        self.assertEqual(card["values"], ours["values"])
        done = subprocess.run([PEAKBENCH, "emulate", "--details", "--card", "mine.json", "--", PYTHON, "-c", "import torch; torch.zeros(1, device='cuda')"], cwd=self.folder,
                              capture_output=True, text=True)  # fmt: skip
        self.assertEqual(done.stderr.count("534 MiB were measured on such a card (nvidia-smi's figure less what PyTorch reserved: "), 4, done.stderr)

    def test_why_it_could_not(self):
        (self.folder / "other.json").write_text('{"id": "t4-16gb"}')
        self.assertIn("other.json is not the file of h100-80gb", self.context("--to", "other.json", code=2).stderr)
        self.assertIn("there is no card 3: PyTorch sees 1", self.context("--device", "3", code=2).stderr)
        if not any(pathlib.Path("/proc/driver/nvidia/gpus").glob("*")):
            self.assertRegex(self.context(card=None, code=2).stderr, r"^peakbench: doctor --context: there is no nvidia-smi on PATH")
        self.assertRegex(self.context(card=None, code=2, PYTHONPATH="").stderr, re.escape(f"peakbench: {PYTHON} has no package peakbench: install the wheel"))
