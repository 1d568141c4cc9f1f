"""How far the figures of a case on an emulated card can be relied on: in run.json, the terminal, the reports, comparisons and gates.
The truth is stock PyTorch under `peakbench emulate`, and on the CPU.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from given import PEAKBENCH, ROUTED as PLUGINS

ORACLE = os.environ.get("PEAKBENCH_ORACLE")

# What routed/routed.cpp is, as one writes it in PyTorch. The batch is drawn where the model is, as the plugin's is.
TWIN = """
import sys, torch
from torch import nn
device = sys.argv[1]
WIDTH, INNER, EXPERTS, TOKENS = 256, 1024, 16, 512

class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.ModuleList(nn.Linear(WIDTH, INNER) for _ in range(EXPERTS))
        self.down = nn.ModuleList(nn.Linear(INNER, WIDTH) for _ in range(EXPERTS))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for i in range(EXPERTS):
            row, rank = torch.nonzero(chosen == i, as_tuple=True)
            rows.append(len(row))
            out = out.index_add(0, row, self.down[i](torch.relu(self.up[i](x[row]))) * weights[row, rank].unsqueeze(-1))
        return out

torch.manual_seed(0)
with torch.device(device):
    model = Routed()
    batch = torch.randn(TOKENS, WIDTH)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    rows = []
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(sum(rows), torch.cuda.memory_stats()["requested_bytes.all.peak"] if device == "cuda" else 0)
"""


class CasesVerdictTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-verdict-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def peakbench(self, *arguments, exit_code=0):
        done = subprocess.run([PEAKBENCH, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def run_case(self, *options, out="out", exit_code=0):
        folder = self.folder / out
        self.text = self.peakbench("run", "--out", folder, "--no-ablation", *options, exit_code=exit_code)
        self.record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        return self.record["cases"][0]

    def run_routed(self, *options, out="out"):
        return self.run_case("-m", "routed", "-s", "baseline", "--device", "emulated:h100-80gb", "--plugins", PLUGINS, *options, out=out)

    def verdict(self, case):
        return case["emulation"]["verdict"]

    def twin(self, device, *before):
        script = self.folder / "twin.py"
        script.write_text(TWIN, encoding="utf-8")
        done = subprocess.run([*map(str, before), ORACLE, script, device], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return map(int, done.stdout.split())

    @unittest.skipUnless(ORACLE, "PEAKBENCH_ORACLE names no Python with PyTorch")
    def test_sizes_that_rest_on_values(self):
        """Every token takes two experts, whatever the router says: the CPU counts 1,024 rows, and stock PyTorch on the same card asks
        for as much as the case. Which expert takes how many is not known, and said."""
        case = self.run_routed()
        rows, _ = self.twin("cpu")
        self.assertEqual(rows, 2 * 512)
        rows, requested = self.twin("cuda", PEAKBENCH, "emulate", "--details", "--card", "h100-80gb", "--")
        self.assertEqual(rows, 2 * 512)
        ours = case["memory"]["peak_requested_bytes"]
        self.assertLess(abs(ours - requested) / requested, 0.01, f"{ours:,} against {requested:,}")
        verdict = self.verdict(case)
        self.assertEqual(verdict["kind"], "unreliable")
        self.assertIn("aten::nonzero", " ".join(verdict["reasons"]))
        self.assertTrue(case["emulation"]["read_backs"])
        self.assertIn("unreliable (baseline): a card may take more or less; aten::nonzero", " ".join(self.text.split()))

    def test_an_assumption_gives_bounds(self):
        sizes = {}
        for assumed, kind in {"none": "lower bound", "all": "upper bound"}.items():
            case = self.run_routed("--assume", f"nonzero={assumed}", out=assumed)
            self.assertEqual(self.verdict(case)["kind"], kind, self.verdict(case))
            self.assertEqual(self.record["settings"]["assume"], f"nonzero={assumed}")
            sizes[assumed] = case["memory"]["peak_requested_bytes"]
        likely = self.run_routed(out="likely")["memory"]["peak_requested_bytes"]
        self.assertLess(sizes["none"], likely)
        self.assertLess(likely, sizes["all"])

    def run_counted(self, at_zero, *options, of="host", out="out", exit_code=0):
        stack = f"counted-sgd,at_zero={at_zero},of={of}"
        return self.run_case("-m", "qwen2.5-0.5b,layers=1", "-s", stack, "--device", "emulated:a100-40gb", "--seq", "64", "--plugins",
                             PLUGINS, *options, out=out, exit_code=exit_code)

    def test_a_failure_that_rests_on_zeros_is_none(self):
        """The count is 6 on every card. Where nothing is computed it is 0, and the case throws, has no effect, aborts, or never ends."""
        for at_zero in ("throw", "skip", "abort", "wait"):
            with self.subTest(at_zero=at_zero):
                case = self.run_counted(at_zero, "--timeout", "20", out=at_zero)
                self.assertEqual(case["status"], "ok", case["reason"])
                self.assertEqual(self.verdict(case)["kind"], "exact", self.verdict(case))

    def test_a_failure_that_rests_on_what_nobody_knows_says_so(self):
        case = self.run_counted("throw", of="weights", exit_code=3)
        self.assertEqual(case["status"], "crashed")
        self.assertIn("no samples in this batch; a real card may continue, because values read here are unknown: aten::", case["reason"])
        self.assertEqual(self.verdict(case)["kind"], "unreliable")
        self.assertTrue(case["emulation"]["read_backs"])

    def test_what_reads_nothing_is_exact(self):
        case = self.run_case("-m", "qwen2.5-0.5b,layers=1", "-s", "baseline", "-s", "lora", "--device", "emulated:a100-40gb", "--seq", "64")
        self.assertEqual(self.verdict(case)["kind"], "exact", self.verdict(case))
        self.assertEqual(self.verdict(case)["reasons"] + self.verdict(case)["conditions"], [])
        self.assertIn("the allocator's own bytes, exact; no times", self.text)

    def test_finite_gradients_are_a_condition(self):
        case = self.run_case("-m", "qwen2.5-0.5b,layers=1", "-s", "loss-scaling", "--device", "emulated:a100-40gb", "--seq", "64")
        self.assertEqual(self.verdict(case)["kind"], "exact if", self.verdict(case))
        self.assertIn("whether values are finite", " ".join(self.verdict(case)["conditions"]))

    def test_gradients_that_are_small_enough_to_be_drawn_are_finite_too(self):
        """They have plausible values then, which overflow where the weights are tiny: no step may be skipped for that."""
        tiny = "qwen2.5-0.5b,layers=2,width=64,mlp=96,heads=4,kv_heads=2,vocabulary=512"
        case = self.run_case("-m", tiny, "-s", "lora+loss-scaling", "--device", "emulated:a100-80gb", "--seq", "16")
        self.assertEqual(case["status"], "ok", case["reason"])
        conditions = self.verdict(case)["conditions"]
        self.assertEqual(len(conditions), 1, conditions)
        self.assertIn("whether values are finite", conditions[0])

    def test_offloading_decides_nothing(self):
        """Tokens and activations that go to the host and come back as they are; nobody asks a size of them there."""
        case = self.run_case("-m", "qwen2.5-0.5b,layers=1", "-s", "save-on-cpu", "--device", "emulated:a100-40gb", "--seq", "64")
        self.assertEqual(self.verdict(case)["kind"], "exact if", self.verdict(case))
        self.assertRegex(self.verdict(case)["conditions"][0], "aten::copy_ read values that are not known, onto the host")

    def test_values_change_no_figure(self):
        """Computing happens on the host, and is none of the case: of a step, the host holds scales and losses alone."""
        case = self.run_case("-m", "qwen2.5-0.5b,layers=1", "-s", "loss-scaling", "--device", "emulated:a100-40gb", "--seq", "64")
        self.assertTrue(case["emulation"]["read_backs"])
        self.assertLess(case["memory"]["spaces"]["cpu"]["peak_allocated_bytes"], 1024)

    def test_a_convolutions_workspace_is_measured_or_estimated(self):
        """The peak is in the optimizer's step: what a convolution may take more is free then."""
        stack = ("-m", "vit-b-16,layers=2", "-s", "baseline", "--device")
        measured = self.verdict(self.run_case(*stack, "emulated:h200-141gb"))
        self.assertEqual((measured["kind"], len(measured["notes"])), ("exact", 1), measured)
        elsewhere = self.verdict(self.run_case(*stack, "emulated:h100-80gb", out="elsewhere"))
        self.assertEqual((elsewhere["kind"], len(elsewhere["conditions"])), ("exact if", 1), elsewhere)
        case = self.run_case(*stack, "emulated:a100-80gb", out="estimated")
        estimated, peak = self.verdict(case), case["memory"]["peak_allocated_bytes"]
        self.assertEqual(estimated["kind"], "estimate")
        self.assertEqual([estimated["estimate"][name] for name in ("less_bytes", "more_bytes")], [peak // 100] * 2)
        without = self.run_case(*stack, "emulated:a100-80gb", "--cudnn", "off", out="off")
        self.assertEqual(self.verdict(without)["kind"], "exact", self.verdict(without))

    def test_workspaces_of_a_solver_are_in_the_table(self):
        case = self.run_case("-m", "qwen2.5-0.5b,layers=1", "-s", "galore", "--device", "emulated:a100-40gb", "--seq", "64")
        self.assertEqual(self.verdict(case)["kind"], "lower bound", self.verdict(case))
        self.assertIn("lower bound", self.text)
        self.assertIn("cusolver", self.text)

    def test_reports_comparison_and_gate(self):
        self.run_case("-m", "qwen2.5-0.5b,layers=1", "-s", "baseline", "--device", "emulated:a100-40gb", "--seq", "64", out="base")
        self.run_case("-m", "qwen2.5-0.5b,layers=1", "-s", "baseline", "--device", "emulated:a100-40gb", "--seq", "64", out="new")
        page = (self.folder / "base/report/report.md").read_text(encoding="utf-8")
        self.assertIn("exact", page)
        record = self.folder / "new/run.json"
        run = json.loads(record.read_text(encoding="utf-8"))
        run["cases"][0]["emulation"]["verdict"].update(kind="unreliable", reasons=["aten::nonzero read a size"])
        record.write_text(json.dumps(run), encoding="utf-8")
        self.peakbench("gate", self.folder / "base", self.folder / "base/../new", "--verdict", "pass")
        said = self.peakbench("gate", self.folder / "base", self.folder / "new", exit_code=4)
        self.assertIn("the figures can be relied on less: unreliable, was exact: aten::nonzero read a size", " ".join(said.split()))
        compared = json.loads(self.peakbench("compare", self.folder / "base", self.folder / "new", "--json"))
        self.assertEqual(compared["cases"][0]["figures"]["verdict"], "worse")
        self.peakbench("gate", self.folder / "new", self.folder / "base")
