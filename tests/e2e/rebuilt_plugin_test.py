"""A plugin that is built anew between a run and its `--resume`, with real workers: a fresh run is the truth.

PEAKBENCH_PLANTED_BEFORE and _AFTER are folders with one plugin, before and after a change that costs 512 bytes.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from given import PEAKBENCH as PROGRAM, PLANTED_AFTER, PLANTED_BEFORE

BEFORE, AFTER = PLANTED_BEFORE / "planted.so", PLANTED_AFTER / "planted.so"
MODEL = "vit-b-16,layers=2,width=48,mlp=64,image=32"
EMULATED = "emulated:h100-80gb"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class RebuiltPlugin(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-rebuilt-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.plugin = self.folder / "plugins/planted.so"
        self.plugin.parent.mkdir()

    def build(self, library):
        """As a linker does it: a new file under the old name."""
        shutil.copy(library, self.folder / "linked")
        os.replace(self.folder / "linked", self.plugin)

    def peakbench(self, *arguments, exit_code=0):
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, text=True, capture_output=True, timeout=200,
                              check=False)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def run_cases(self, out, *more, device=EMULATED, stacks=("baseline", "planted-bytes")):
        strategies = [text for stack in stacks for text in ("--strategy", stack)]
        return self.peakbench("run", "--model", MODEL, *strategies, "--device", device, "--plugins", self.plugin.parent,
                              "--repetitions", "0", "--no-report", "--out", out, *more)

    def cases(self, out):
        run = json.loads((self.folder / out / "run.json").read_text(encoding="utf-8"))
        self.assertEqual(run["pending"], [])
        return {"+".join(one["id"] for one in case["strategies"]): case for case in run["cases"]}

    def peaks(self, out):
        return {stack: case["memory"]["peak_requested_bytes"] for stack, case in self.cases(out).items()}

    def test_resume_measures_again_what_the_plugin_was_part_of(self):
        self.build(BEFORE)
        self.run_cases("run")
        before = self.peaks("run")
        self.build(AFTER)
        self.run_cases("fresh")
        fresh = self.peaks("fresh")
        self.assertEqual(fresh["planted-bytes"] - before["planted-bytes"], 1)
        said = self.run_cases("run", "--resume")
        self.assertEqual(self.peaks("run"), fresh)
        self.assertIn(f"1 case is measured again: planted.so is another build (sha256 {sha256(BEFORE)[:12]} then, "
                      f"{sha256(AFTER)[:12]} now)", said)
        # The same again: nothing is measured, nothing is said.
        self.assertNotIn("measured again", self.run_cases("run", "--resume"))

    def test_a_copy_of_the_same_build_is_the_same_plugin(self):
        self.build(BEFORE)
        self.run_cases("run")
        trace = next(self.folder.glob("run/cases/*planted*/trace.sqlite")).stat().st_mtime_ns
        self.build(BEFORE)
        self.assertNotIn("measured again", self.run_cases("run", "--resume"))
        self.assertEqual(next(self.folder.glob("run/cases/*planted*/trace.sqlite")).stat().st_mtime_ns, trace)

    def test_a_promise_is_checked_again_though_its_reference_was_kept(self):
        self.build(BEFORE)
        self.run_cases("run", device="cpu")
        self.build(AFTER)
        self.run_cases("run", "--resume", device="cpu")
        found = self.cases("run")["planted-bytes"]
        self.assertEqual(found["equivalence"]["verdict"], "held", found["equivalence"])
        self.assertEqual(found["plugins"][-1]["sha256"], sha256(AFTER))
        self.assertEqual(list(self.folder.rglob("parameters.tmp")), [])

    def test_a_run_of_before_hashes_is_measured_again_and_says_so(self):
        self.build(BEFORE)
        self.run_cases("run")
        path = self.folder / "run/run.json"
        run = json.loads(path.read_text(encoding="utf-8"))
        run["schema_version"] = "1.3.0"
        for case in run["cases"]:
            del case["plugins"]
        path.write_text(json.dumps(run), encoding="utf-8")
        said = self.run_cases("run", "--resume")
        self.assertIn("2 cases are measured again: the run does not record the builds of their plugins", said)
        self.assertEqual(self.cases("run")["planted-bytes"]["plugins"][-1]["sha256"], sha256(BEFORE))

    def test_the_hashes_are_the_files_and_merge_and_compare_look_at_them(self):
        self.build(BEFORE)
        self.run_cases("before", stacks=["planted-bytes"])
        self.run_cases("other", stacks=["planted-bytes"], device=f"{EMULATED},memory=60GiB")
        self.build(AFTER)
        self.run_cases("after", stacks=["planted-bytes"])
        self.run_cases("third", stacks=["planted-bytes"], device=f"{EMULATED},memory=40GiB")
        found = self.cases("before")["planted-bytes"]["plugins"]
        self.assertEqual([(one["kind"], one["id"], one["file"]) for one in found],
                         [("model", "vit-b-16", "vit.so"), ("strategy", "baseline", "baseline.so"),
                          ("strategy", "planted-bytes", "planted.so")])
        bundled = pathlib.Path(PROGRAM).parents[1] / "lib/peakbench/plugins"
        self.assertEqual([one["sha256"] for one in found],
                         [sha256(bundled / "vit.so"), sha256(bundled / "baseline.so"), sha256(BEFORE)])
        said = self.peakbench("merge", "before", "third", "--out", "merged", exit_code=2)
        self.assertIn(f"before and third cannot be one run: the plugin planted.so is another build in one than in the other "
                      f"(sha256 {sha256(BEFORE)[:12]} and {sha256(AFTER)[:12]})", said)
        self.peakbench("merge", "before", "other", "--out", "joined")
        compared = self.peakbench("compare", "before", "after")
        self.assertIn("plugin planted.so", compared)
        self.assertIn(sha256(AFTER)[:12], compared)
        self.assertNotIn("vit.so", compared)
