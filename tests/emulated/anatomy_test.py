"""Where the peaks are and what they are made of, on an emulated card: what the tutorial and the reference figures show, why
strategies help or do not, what each part of a stack saves, and exports that PyTorch's own viewer accepts.
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

from given import PEAKBENCH, TORCH as TORCH_DIR

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
        # In backward by the workspace, with releases of PyTorch that take cuBLAS's anew for each operator.
        self.assertIn(phase, ("optimizer_step", "backward"))
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
        self.assertIn("checkpointing uses about the same memory, so the peak stays at", report)
        self.assertIn("It saves memory in forward, whose own peak falls from", report)

    def test_the_parts_of_a_stack_are_told_apart(self):
        cases = self.run_cases("vit-l-16,layers=2", "baseline", "fused-in-backward+checkpointing", options=())
        added = {stack for (stack, _), case in cases.items() if case["added_for"] == "ablation"}
        self.assertEqual(added, {"checkpointing", "fused-in-backward"})
        report = (self.folder / "run/report/report.md").read_text(encoding="utf-8")
        self.assertIn("**What each part of a stack saves**", report)
        self.assertIn("· 2 cases", report)
        page = (self.folder / "run/report/index.html").read_text(encoding="utf-8")
        self.assertIn("the parts alone, added up", page)
        shutil.rmtree(self.folder / "run")
        cases = self.run_cases("vit-l-16,layers=2", "baseline", "fused-in-backward+checkpointing",
                               options=("--no-report", "--no-ablation"))
        self.assertEqual(len(cases), 2)

    def test_a_step_that_ran_out_of_memory_names_what_filled_it(self):
        """The first update makes two states a parameter: memory for one and a half. The trace ends where it failed."""
        self.run_cases("vit-l-16,layers=2", "foreach-off")
        with sqlite3.connect(next(self.folder.glob("run/cases/*/trace.sqlite"))) as trace:
            before = trace.execute("SELECT max(id) FROM events_in_words WHERE phase = 'backward' AND step = 0").fetchone()[0]
            held = trace.execute("SELECT sum(block_bytes) FROM events e JOIN allocations a ON a.event = e.id JOIN spaces s "
                                 "ON s.id = e.space WHERE s.name = 'cuda:0' AND a.event <= ? AND a.last_event > ?",
                                 (before, before)).fetchone()[0]
            weights = trace.execute("SELECT sum(requested_bytes) FROM alive_at_peak WHERE category = 'parameter'").fetchone()[0]
        shutil.rmtree(self.folder / "run")
        memory = held + 3 * weights // 2 + (32 << 20)  # what segments of 20 MiB leave idle
        self.peakbench("run", "--model", "vit-l-16,layers=2", "--strategy", "foreach-off", "--device",
                       f"emulated:h100-80gb,memory={memory >> 20}MiB", "--out", "run", "--quiet", "--no-report", exit_code=3)
        case = json.loads((self.folder / "run/run.json").read_text(encoding="utf-8"))["cases"][0]
        self.assertEqual((case["status"], case["out_of_memory"]["phase"]), ("out_of_memory", "optimizer_step"), case["reason"])
        with sqlite3.connect(self.folder / "run" / case["ranks"][0]["trace"]) as trace:
            kind, asked = trace.execute("SELECT kind, requested_bytes FROM events_in_words ORDER BY id DESC LIMIT 1").fetchone()
            self.assertEqual((kind, asked), ("out_of_memory", case["out_of_memory"]["requested_bytes"]))
            alive = dict(trace.execute(
                "SELECT c.name, sum(e.requested_bytes) FROM allocations a JOIN events e ON e.id = a.event JOIN trace t "
                "JOIN categories c ON c.id = a.category WHERE a.last_event = t.events AND e.space = t.own_space GROUP BY c.name"))
            blocks = trace.execute("SELECT sum(e.block_bytes) FROM allocations a JOIN events e ON e.id = a.event JOIN trace t "
                                   "WHERE a.last_event = t.events AND e.space = t.own_space").fetchone()[0]
        self.assertEqual(blocks, case["out_of_memory"]["allocated_bytes"], "what the allocator counts at the failure")
        self.assertEqual(alive["parameter"], weights)
        self.near(alive["gradient"], weights)  # a little more: the class token's is a view of a larger one
        self.near(alive["optimizer_state"], 3 * weights / 2, share=0.2)
        # cuBLAS's workspace, where PyTorch keeps it, and the first of two states, if memory ran out for the second.
        asked = case["out_of_memory"]["requested_bytes"]
        self.assertIn(alive.get("temporary", 0), (0, asked, (32 << 20) + asked))

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
        self.assertIn("/nowhere/x.pickle: cannot write",
                      self.peakbench("export", "run", "baseline", "--out", "/nowhere/x.pickle", exit_code=2).stderr)
        for trace in (self.folder / "run/cases").glob("*/trace.sqlite"):
            trace.unlink()
        self.assertIn("trace.sqlite", self.peakbench("export", "run", "baseline", exit_code=2).stderr)
