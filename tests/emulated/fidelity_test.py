"""`ci/fidelity`, on the emulated card against itself: that what is alike is found alike, that what differs is named, that golden
records hold the emulation to them, and what is said where there is no card.

usage: fidelity_test.py PEAKBENCH
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PEAKBENCH = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class FidelityTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-fidelity-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.page = self.folder / "fidelity.md"

    def fidelity(self, *arguments, exit_code=0):
        command = [ROOT / "ci/fidelity", "--peakbench", PEAKBENCH, "--page", self.page, "--model", "vit-b-16,layers=1", *arguments]
        done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_card_is_like_itself(self):
        golden = self.folder / "golden.json"
        self.fidelity("--card", "h100-80gb", "--against", "emulated:h100-80gb", "--golden", golden)
        page = self.page.read_text(encoding="utf-8")
        rows = [line for line in page.splitlines() if line.startswith("| vit")]
        self.assertEqual(len(rows), 12)
        for row in rows:
            self.assertIn("| 0 | 0 | 0 | identical |", row)
        self.assertIn("Both sides are emulated", page)
        # The records hold later emulation to them, and are not loose.
        self.fidelity("--card", "h100-80gb", "--hold-to", golden)
        record = json.loads(golden.read_text(encoding="utf-8"))
        case = next(iter(record["cases"]))
        record["cases"][case]["peak_allocated_bytes"] = int(record["cases"][case]["peak_allocated_bytes"] * 1.01)
        golden.write_text(json.dumps(record), encoding="utf-8")
        self.assertIn(case, self.fidelity("--card", "h100-80gb", "--hold-to", golden, exit_code=1))

    def test_what_differs_is_named(self):
        self.fidelity("--card", "h100-80gb", "--against", "emulated:t4-16gb")
        rows = [line for line in self.page.read_text(encoding="utf-8").splitlines() if "/bf16/" in line]
        self.assertTrue(any("event " in row for row in rows), rows)

    def test_without_a_card(self):
        if any(pathlib.Path("/proc/driver/nvidia/gpus").glob("*")):
            self.skipTest("this machine has a CUDA card")
        self.assertIn("no CUDA card", self.fidelity("--card", "h100-80gb", exit_code=2))
        self.assertFalse(self.page.exists())


if __name__ == "__main__":
    unittest.main()
