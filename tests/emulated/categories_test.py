"""What library handles keep is named by PyTorch's own tables; what a plugin keeps is the plugin's."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from given import PEAKBENCH, PLANTED_BEFORE as PLANTED

MODEL = "vit-b-16,layers=2"
# cuBLAS's for the thread of forward and that of backward, 32 MiB each on Hopper, and 1 MiB of cuBLASLt for each that runs a linear layer
# with a bias (backward does with checkpointing).
KEPT = (2 * (32 << 20) + (1 << 20), 2 * (32 << 20) + (2 << 20))
# PyTorch 2.15 keeps none: one at a time is there, while a product is computed.
WORKSPACES = (*KEPT, 32 << 20, 1 << 20, 0)


class Categories(unittest.TestCase):
    def at_peak(self, device, *stacks):
        strategies = [text for stack in stacks for text in ("--strategy", stack)]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PEAKBENCH, "run", "--model", MODEL, *strategies, "--device", device, "--plugins", PLANTED,
                                   "--repetitions", "0", "--no-report", "--out", "out"],
                                  cwd=folder, capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            cases = json.loads((pathlib.Path(folder) / "out/run.json").read_text(encoding="utf-8"))["cases"]
        return [case["memory"]["at_peak"] for case in cases]

    def test_what_backward_makes_and_nobody_frees_is_no_workspace(self):
        for device in ("emulated:h100-80gb", "cpu"):
            with self.subTest(device):
                plain, keeps = self.at_peak(device, "baseline", "keeps-residual")
                self.assertEqual(keeps.get("kept", 0) - plain.get("kept", 0), plain["parameter"], "a copy of each gradient")
                self.assertEqual(keeps.get("workspace", 0), plain.get("workspace", 0))
                self.assertIn(plain.get("workspace", 0), WORKSPACES if device != "cpu" else (0,))

    def test_workspaces_are_the_same_whatever_the_stack(self):
        stacks = ("baseline", "foreach-off", "fused-in-backward", "checkpointing", "lora", "muon")
        self.assertEqual({one.get("workspace", 0) for one in self.at_peak("emulated:h100-80gb", *stacks)} - set(WORKSPACES), set())

    def test_a_workspace_of_one_call_is_one(self):
        """LoRA's peak lies in a product of backward, whichever way this release of PyTorch gives workspaces."""
        (at_peak,) = self.at_peak("emulated:h100-80gb", "lora")
        self.assertIn(at_peak.get("workspace", 0), (*KEPT, 32 << 20))
