"""`peakbench check` of a strategy that breaks its promise where random numbers are drawn, and beside autocast."""

import json
import shutil
import subprocess

from given import PEAKBENCH
from real_worker import PLANTED, WorkerTest


class Check(WorkerTest):
    def test_it_fails_what_trains_otherwise(self):
        plugins = self.folder / "plugins"
        plugins.mkdir()
        shutil.copy(PLANTED.with_name("segments.so"), plugins)
        done = subprocess.run([PEAKBENCH, "check", plugins, "--json", "--quiet", "--out", self.folder / "check"],
                              capture_output=True, text=True)  # fmt: skip
        self.assertEqual(done.returncode, 5, done.stderr)
        found = json.loads(done.stdout)["findings"]
        failures = {one["question"]: one["failures"] for one in found if one["answer"] == "failed"}
        # Alone: where the model has dropout. In stacks: beside autocast, without dropout too.
        self.assertTrue(failures["promise"])
        for one in failures["promise"]:
            self.assertRegex(one, "^gpt2,.*/segments/cpu/.*: promises bit_identical: differs most in ")
        stacks = {(one.split(",")[0], one.split("/")[1]) for one in failures["stacks"]}
        self.assertIn(("vit-b-16", "autocast+segments"), stacks)
        self.assertIn(("gpt2", "segments+accumulation"), stacks)  # whose own tolerance would hide it
        self.assertNotIn(("vit-b-16", "lora+segments"), stacks)
        unchecked = [one["text"] for one in found if one["answer"] == "not checked"]
        self.assertEqual([text for text in unchecked if "has no case" in text or "left no parameters" in text], [])
