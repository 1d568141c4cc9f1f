"""Where the peaks are and what they are made of, on an emulated card: what the tutorial and the reference figures show, why
strategies help or do not, what each part of a stack saves, and exports that PyTorch's own viewer accepts.

usage: anatomy_test.py PEAKBENCH TORCH_DIR
"""

import json
import pathlib
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

PEAKBENCH, TORCH_DIR = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1))
GIB = 1 << 30


class AnatomyTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-anatomy-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def peakbench(self, *arguments, exit_code=0):
        done = subprocess.run([str(PEAKBENCH), *map(str, arguments)], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done

    def run_cases(self, model, *stacks, options=("--no-report",)):
        """The cases by stack, or by stack and batch size where there are several."""
        out = self.folder / "run"
        strategies = [part for stack in stacks for part in ("--strategy", stack)]
        self.peakbench("run", "--model", model, "--device", "emulated:h100-80gb", "--out", out, "--quiet", *strategies, *options)
        cases = json.loads((out / "run.json").read_text(encoding="utf-8"))["cases"]
        for case in cases:
            self.assertEqual(case["status"], "ok", case["reason"])
        return {(case["id"].split("/")[1], case["batch_size"]): case for case in cases}

    def peak(self, case):
        """The peak as trace and run.json agree on it: phase, how far into the phase (0 to 1), bytes asked for by category."""
        with sqlite3.connect(self.folder / "run" / case["ranks"][0]["trace"]) as trace:
            event, allocated = trace.execute("SELECT event, allocated_bytes FROM peaks WHERE space = 0").fetchone()
            phase, step = trace.execute("SELECT phase, step FROM events_in_words WHERE id = ?", (event,)).fetchone()
            first, last = trace.execute("SELECT min(id), max(id) FROM events_in_words WHERE phase = ? AND step = ?",
                                        (phase, step)).fetchone()
            parts = dict(trace.execute("SELECT category, sum(requested_bytes) FROM alive_at_peak WHERE space = 'cuda:0' "
                                       "GROUP BY category"))
        memory = case["memory"]
        self.assertEqual((phase, step, allocated),
                         (memory["peak_phase"], memory["peak_step"], memory["peak_allocated_bytes"]))
        self.assertEqual(sum(memory["at_peak"].values()), allocated)
        for category, size in parts.items():
            self.assertEqual(memory["at_peak"].get(category, 0), size, category)
        return phase, (event - first) / (last - first), parts

    def near(self, value, expected, share=0.02):
        self.assertLessEqual(abs(value - expected), share * expected, f"{value:,} against {expected:,}")

    def test_the_tutorials_three_cases(self):
        cases = self.run_cases("vit-l-16", "baseline", "foreach-off", "fused-in-backward")
        phase, _, parts = self.peak(cases["baseline", 1])
        self.assertEqual(phase, "optimizer_step")
        self.near(parts["temporary"], parts["parameter"])
        self.near(parts["gradient"], parts["parameter"])
        phase, _, parts = self.peak(cases["foreach-off", 1])
        self.assertEqual(phase, "optimizer_step")
        self.assertLess(parts["temporary"], 0.05 * parts["parameter"])
        phase, place, parts = self.peak(cases["fused-in-backward", 1])
        self.assertEqual(phase, "backward")
        self.assertLess(place, 0.05)
        self.assertLess(parts["gradient"], 0.05 * parts["parameter"])

    def test_the_peak_moves_with_the_batch(self):
        """Qwen2.5-1.5B, fp32, 256 tokens: Hugging Face's "Visualize and understand GPU memory in PyTorch"."""
        cases = self.run_cases("qwen2.5-1.5b", "baseline", options=("--seq", "256", "--batch", "2,16", "--no-report"))
        self.assertEqual(self.peak(cases["baseline", 2])[0], "optimizer_step")
        phase, place, parts = self.peak(cases["baseline", 16])
        self.assertEqual(phase, "backward")
        self.assertLess(place, 0.05)
        self.assertGreater(parts["activation"], parts["parameter"])

    def test_why_checkpointing_helps_at_batch_8_and_not_at_1(self):
        options = ("--batch", "1,8")
        cases = self.run_cases("vit-l-16", "baseline", "checkpointing", "fused-in-backward", "fused-in-backward+checkpointing",
                               options=options)
        both = "checkpointing+fused-in-backward"
        saved = {key: 1 - case["memory"]["peak_allocated_bytes"] / cases["baseline", key[1]]["memory"]["peak_allocated_bytes"]
                 for key, case in cases.items()}
        self.assertLess(abs(saved["checkpointing", 1]), 0.001)
        self.assertLess(abs(saved["fused-in-backward", 8]), 0.005)
        self.near(saved[both, 8], 0.37)
        report = (self.folder / "run/report/report.md").read_text(encoding="utf-8")
        self.assertIn("checkpointing has as much of everything: the peak stays at", report)
        self.assertIn("What it saves lies in forward", report)

    def test_the_parts_of_a_stack_are_told_apart(self):
        cases = self.run_cases("vit-l-16,layers=2", "baseline", "fused-in-backward+checkpointing", options=())
        added = {stack for (stack, _), case in cases.items() if case["added_for"] == "shares"}
        self.assertEqual(added, {"checkpointing", "fused-in-backward"})
        report = (self.folder / "run/report/report.md").read_text(encoding="utf-8")
        self.assertIn("**What each part of a stack saves**", report)
        self.assertIn("· 2 cases", report)
        page = (self.folder / "run/report/index.html").read_text(encoding="utf-8")
        self.assertIn("the parts alone, added up", page)
        shutil.rmtree(self.folder / "run")
        cases = self.run_cases("vit-l-16,layers=2", "baseline", "fused-in-backward+checkpointing",
                               options=("--no-report", "--no-shares"))
        self.assertEqual(len(cases), 2)

    def test_exports_are_what_other_tools_read(self):
        self.run_cases("vit-l-16,layers=2", "baseline", "foreach-off")
        snapshot, chrome = self.folder / "snapshot.pickle", self.folder / "chrome.json"
        self.peakbench("export", "run", "foreach-off", "--out", snapshot)
        self.peakbench("export", "run/run.json", "foreach-off", "--format", "chrome", "--out", chrome)
        with open(snapshot, "rb") as file:
            self.assertIn("device_traces", pickle.load(file))
        viewer = TORCH_DIR / "cuda/_memory_viz.py"
        if viewer.exists():
            for command in (["stats", snapshot], ["trace", snapshot], ["segment_plot", snapshot, "-o", "segments.html"],
                            ["trace_plot", snapshot, "-o", "plot.html"]):
                done = subprocess.run([sys.executable, viewer, *command], capture_output=True, text=True, cwd=self.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
        events = json.loads(chrome.read_text(encoding="utf-8"))
        self.assertIn("emulated", json.dumps(events["otherData"]))
        phases = {event["name"].split(" ")[0] for event in events["traceEvents"] if event["ph"] in "XB"}
        self.assertTrue(phases)
        counters = [event for event in events["traceEvents"] if event["ph"] == "C"]
        self.assertGreater(len(counters), 1000)

    def test_which_case_to_export_must_be_said(self):
        self.run_cases("vit-l-16,layers=2", "baseline", "foreach-off")
        said = self.peakbench("export", "run", exit_code=2).stderr
        self.assertIn("say which case", said)
        self.assertIn("vit-l-16,layers=2/foreach-off/emulated:h100-80gb/fp32/b1", said)
        self.assertIn('no case "foreach-of"', self.peakbench("export", "run", "foreach-of", exit_code=2).stderr)
        self.assertIn("/nowhere/x.pickle: cannot be written",
                      self.peakbench("export", "run", "baseline", "--out", "/nowhere/x.pickle", exit_code=2).stderr)
        for trace in (self.folder / "run/cases").glob("*/trace.sqlite"):
            trace.unlink()
        self.assertIn("trace.sqlite", self.peakbench("export", "run", "baseline", exit_code=2).stderr)


if __name__ == "__main__":
    unittest.main()
