"""A suite of 60 cases on an emulated card with real workers: as one array on a Slurm of two nodes, and here with --jobs 2. The same
run.json, and a second call that runs nothing. What the two took is printed, and no reason to fail."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

import cluster
from given import PEAKBENCH
from records import without_volatile

ASK = ("--model", "vit-b-16", "--strategy", "baseline", "--strategy", "lora", "--strategy", "foreach-off", "--strategy",
       "fused-in-backward", "--device", "emulated:h100-80gb", "--batch", ",".join(map(str, range(1, 16))), "--no-report")


class Suite(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-suite-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.slurm = cluster.Cluster(self.folder / "slurm")
        self.addCleanup(self.slurm.close)

    def took(self, out, *more):
        began = time.monotonic()
        subprocess.run([PEAKBENCH, "run", *ASK, "--out", self.folder / out, *more], check=True, timeout=500,
                       env=self.slurm.environment, stdin=subprocess.DEVNULL, capture_output=True)
        return time.monotonic() - began

    def run_json(self, out):
        return json.loads((self.folder / out / "run.json").read_text(encoding="utf-8"))

    def test_60_cases(self):
        there = self.took("slurm", "--executor", "slurm")
        here = self.took("here", "--jobs", "2")
        print(f"{there:.1f} s as an array, {here:.1f} s here: {there / here:.2f}", flush=True)
        self.assertEqual(len(self.run_json("slurm")["cases"]), 60)
        self.assertEqual(without_volatile(self.run_json("slurm")), without_volatile(self.run_json("here")))
        self.assertEqual(len(list((self.folder / "slurm/cases").glob("*/trace.sqlite"))), 60)
        self.took("slurm", "--executor", "slurm", "--resume")
        self.assertEqual([path.name for path in (self.folder / "slurm/queue").iterdir()], ["1"])
