"""What `peakbench run` says of cases on an emulated card: peaks that are known, out of memory, very large models, which
attention a card takes, and that no figure looks like a measurement of a real one.
"""

import json
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

from given import PEAKBENCH

GIB = 1 << 30


class OutcomesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-emulated-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_cases(self, card, model, *stacks, options=(), exit_code=0, out="out"):
        self.out = self.folder / out
        command = [PEAKBENCH, "run", "--model", model, "--device", f"emulated:{card}", "--out", self.out, "--quiet", *options]
        command += [part for stack in stacks for part in ("--strategy", stack)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        self.record = json.loads((self.out / "run.json").read_text(encoding="utf-8"))
        for case in self.record["cases"]:
            self.is_no_measurement(case)
        return self.record["cases"]

    def is_no_measurement(self, case):
        self.assertIs(case["emulated"], True)
        self.assertIsNone(case["throughput"])
        self.assertEqual(case["losses"], [])
        self.assertGreater(case["wall_ns"], 0)

    def ok(self, case):
        self.assertEqual(case["status"], "ok", case["reason"])
        return case

    def operators(self, case):
        with sqlite3.connect(self.out / case["ranks"][0]["trace"]) as trace:
            return {name for name, in trace.execute("SELECT name FROM operators")}

    def within(self, measured, known, share=0.001):
        self.assertLessEqual(abs(measured - known), known * share, f"{measured:,} against {known:,}")

    def test_known_peaks(self):
        """Stock PyTorch 2.11 on an H100's stand-ins, ViT-L/16 in fp32 with Adam, cuDNN off: recorded independently of this program."""
        known = {
            "baseline": (6_156_095_008, 6_162_784_256),
            "foreach-off": (4_972_359_296, 4_978_282_496),
            "fused-in-backward": (4_082_091_624, 4_091_651_072),
        }
        cases = self.run_cases("h100-80gb", "vit-l-16", *known, options=["--cudnn", "off", "--no-report"])
        if not self.record["environment"]["libtorch"].startswith("2.11."):
            self.skipTest("recorded with PyTorch 2.11")
        for case in map(self.ok, cases):
            requested, allocated = known[case["strategies"][0]["id"]]
            self.within(case["memory"]["peak_requested_bytes"], requested)
            self.within(case["memory"]["peak_allocated_bytes"], allocated)
            self.assertNotIn("cudnn engine workspace", case["emulation"]["unmodelled"])
            print(f"{case['id']}: wall {case['wall_ns'] / 1e9:.2f} s")

    def test_cudnn_lists_what_is_not_modelled(self):
        case = self.ok(self.run_cases("a100-80gb", "vit-l-16,layers=2", "baseline", options=["--no-report"])[0])
        self.assertGreater(case["emulation"]["unmodelled"]["cudnn convolution workspace, estimated"], 0)

    def test_reports_say_emulated(self):
        """No `--repetitions 0` here: throughput was asked for, and is refused in words."""
        case = self.ok(self.run_cases("h100-80gb", "vit-l-16,layers=2", "baseline", "lora")[0])
        self.assertIn("emulated", case["throughput_reason"])
        for page in ("report.md", "index.html"):
            text = (self.out / "report" / page).read_text(encoding="utf-8")
            self.assertIn("mulated card", text, page)

    def test_attention_by_card(self):
        cudnn, flash = "aten::_scaled_dot_product_cudnn_attention", "aten::_scaled_dot_product_flash_attention"
        for card, expected in {"h100-80gb": {cudnn}, "a100-80gb": {flash}, "t4-16gb": set()}.items():
            for model in ("vit-l-16,layers=2", "qwen2.5-0.5b,layers=2"):
                with self.subTest(card=card, model=model):
                    options = ["--dtype", "bf16", "--no-report"]
                    case = self.ok(self.run_cases(card, model, "baseline", options=options, out=card + model)[0])
                    found = self.operators(case)
                    # An operator that allocates nothing itself is seen by what it calls.
                    families = {cudnn: "_cudnn_attention", flash: "_flash_attention"}
                    seen = {op for op, word in families.items() if any(word in name for name in found)}
                    self.assertEqual(seen, expected, sorted(name for name in found if "attention" in name))

    def test_out_of_memory_has_its_facts(self):
        case = self.run_cases("a100-40gb", "llama-3.1-8b", "baseline", options=["--no-report"], exit_code=3)[0]
        self.assertEqual(case["status"], "out_of_memory", case["reason"])
        facts = case["out_of_memory"]
        for fact in ("requested_bytes", "allocated_bytes", "reserved_bytes", "largest_free_block_bytes", "phase", "module", "op"):
            self.assertTrue(facts.get(fact) or (fact.startswith("largest") and facts.get(fact) == 0), f"{fact} in {facts}")
        # Weights, gradients and both of AdamW's moments alone: sixteen bytes a parameter.
        self.assertGreater(facts["needed_bytes"], 8_000_000_000 * 16)

    def test_a_driver_that_is_too_old(self):
        """As on a real card with such a driver: the case says so, with both versions and what to do."""
        case = self.run_cases("h100-80gb,driver=12.4", "vit-b-16,layers=1", "baseline", options=["--no-report"], exit_code=3)[0]
        self.assertNotEqual(case["status"], "ok")
        for words in ("driver version is insufficient", "CUDA 12.4", r"LibTorch for CUDA 13\.\d", "update the driver"):
            self.assertRegex(case["reason"], words)

    def test_lora_fits_where_the_baseline_does_not(self):
        case = self.ok(self.run_cases("a100-40gb", "llama-3.1-8b", "lora", options=["--dtype", "bf16", "--no-report"])[0])
        self.assertLess(case["memory"]["peak_reserved_bytes"], 40 * GIB)

    def test_seventy_billion_parameters_take_no_memory_here(self):
        options = ["--dtype", "bf16", "--no-report"]
        case = self.ok(self.run_cases("h200-141gb,memory=1TiB", "llama-3.1-70b", "lora", options=options)[0])
        self.assertGreater(case["memory"]["peak_allocated_bytes"], 70_000_000_000 * 2)
        self.assertLess(case["memory"]["worker_peak_rss_bytes"], 2 * GIB)


    def test_a_captured_generator_cannot_draw_the_same_numbers_twice(self):
        """Dropout in a block that runs again in backward: a replay would drop other values there, with nothing to show for it."""
        stack, short = "checkpointing+cuda-graphs", ("--seq", 64, "--no-report", "--no-ablation")
        with_dropout = self.run_cases("h100-80gb", "gpt2,layers=2", stack, "cuda-graphs", options=short)
        self.assertEqual([case["status"] for case in with_dropout], ["unsupported", "ok"])
        self.assertIn("draws random numbers (dropout)", with_dropout[0]["reason"])
        self.ok(self.run_cases("h100-80gb", "gpt2,layers=2,dropout=0", stack, options=short, out="without")[0])

    def test_a_case_on_the_second_of_two_cards(self):
        """The same bytes as on the first. The job of an emulated case, run on cuda:1 of an emulated pair."""
        on_the_first = self.ok(self.run_cases("h100-80gb", "vit-l-16,layers=2", "baseline", options=["--no-report"])[0])
        job = json.loads(next(self.out.glob("cases/*/memory.job.json")).read_text(encoding="utf-8"))
        job["device"] = "cuda:1"
        job["result_path"], job["trace_path"] = str(self.folder / "result.json"), str(self.folder / "trace.sqlite")
        (self.folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        done = subprocess.run([PEAKBENCH, "emulate", "--details", "--card", "h100-80gb,count=2", "--",
                               PEAKBENCH.parent / "peakbench-worker", self.folder / "job.json"], capture_output=True, text=True)
        result = json.loads((self.folder / "result.json").read_text(encoding="utf-8"))
        self.assertEqual(result["status"], "ok", result["reason"] + done.stderr)
        expected, found = on_the_first["memory"], result["memory"]
        self.assertEqual((expected["space"], found["space"]), ("cuda:0", "cuda:1"))
        for figure in ("peak_allocated_bytes", "peak_requested_bytes", "peak_reserved_bytes", "at_peak", "phases", "peak_phase"):
            self.assertEqual(found[figure], expected[figure], figure)
        self.assertEqual(found["spaces"]["cuda:1"], expected["spaces"]["cuda:0"])
        self.assertEqual(found["spaces"]["cuda:0"]["peak_allocated_bytes"], 0)
        with sqlite3.connect(self.folder / "trace.sqlite") as trace:
            own, allocated = trace.execute("SELECT s.name, p.allocated_bytes FROM trace t JOIN spaces s ON s.id = t.own_space "
                                           "JOIN peaks p ON p.space = t.own_space").fetchone()
        self.assertEqual((own, allocated), ("cuda:1", found["peak_allocated_bytes"]))
