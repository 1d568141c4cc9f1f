"""What a step makes a card do: FLOPs against torch.utils.flop_counter on stock PyTorch's own steps, and closed forms."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from given import PEAKBENCH

HERE = pathlib.Path(__file__).resolve().parent
ORACLE = os.environ.get("PEAKBENCH_ORACLE")
STEPS = 3
SEQUENCE = 128

# (device, the oracle's script, model, dtype, stack)
CASES = (
    *(("emulated:h100-80gb", "vit", "vit-b-16,layers=2", "fp32", stack) for stack in ("baseline", "checkpointing", "lora", "lora+checkpointing")),
    ("emulated:h100-80gb", "vit", "vit-b-16,layers=2", "bf16", "baseline"),
    *(("emulated:h100-80gb", "decoder", "llama-3.2-1b,layers=2", "bf16", stack) for stack in ("baseline", "checkpointing", "autocast")),
    ("emulated:h100-80gb", "gpt2", "gpt2,layers=2", "fp32", "baseline"),
    ("emulated:h100-80gb", "gpt2", "gpt2,layers=2", "fp32", "fused-in-backward"),
    ("emulated:h100-80gb", "resnet", "resnet-50", "fp32", "baseline"),
    ("emulated:t4-16gb", "decoder", "llama-3.2-1b,layers=2", "bf16", "baseline"),  # no flash attention
    ("cpu", "vit", "vit-b-16,layers=2", "fp32", "baseline"),
    ("cpu", "resnet", "resnet-50", "fp32", "baseline"),
)  # fmt: skip


def run_json(out, *arguments, steps=STEPS):
    command = [PEAKBENCH, "run", "--out", out, "--steps", steps, "--no-report", *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return json.loads(pathlib.Path(out, "run.json").read_text(encoding="utf-8"))


def ours(folder, device, script, model, dtype, stack):
    shape = [] if script in ("vit", "resnet") else ["--seq", SEQUENCE]
    out = pathlib.Path(folder, f"{abs(hash((device, model, dtype, stack)))}")
    run = run_json(out, "--device", device, "--model", model, "--strategy", stack, "--dtype", dtype, "--repetitions", 0, *shape)
    return next(case for case in run["cases"] if not case["added_for"])


def stock(device, cases, folder):
    listed = pathlib.Path(folder, "cases.json")
    rows = []
    for _, script, model, dtype, stack in cases:
        name, *options = model.split(",")
        sizes = [part for option in options for part in ("--" + option.split("=")[0], option.split("=")[1])]
        shape = [] if script in ("vit", "resnet") else ["--seq", str(SEQUENCE)]
        rows.append([script, "--device", "cpu" if device == "cpu" else "cuda", "--model", name, "--strategy", stack,
                     "--dtype", dtype, "--steps", str(STEPS), *sizes, *shape])  # fmt: skip
    listed.write_text(json.dumps(rows), encoding="utf-8")
    on_card = [] if device == "cpu" else [PEAKBENCH, "emulate", "--card", device.removeprefix("emulated:"), "--"]
    done = subprocess.run([*map(str, on_card), ORACLE, str(HERE / "flops_cases.py"), str(listed)], capture_output=True, text=True,
                          cwd=folder)  # fmt: skip
    if done.returncode:
        raise AssertionError(done.stdout[-3000:] + done.stderr[-3000:])
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[")))


class Stock(unittest.TestCase):
    """Equal, not near."""

    @unittest.skipUnless(ORACLE, "no oracle: ci/oracle makes it, PEAKBENCH_ORACLE names its Python")
    def test_flops_are_those_of_torch_utils_flop_counter(self):
        with tempfile.TemporaryDirectory() as folder:
            known = {}
            for device in dict.fromkeys(case[0] for case in CASES):
                cases = [case for case in CASES if case[0] == device]
                for case, result in zip(cases, stock(device, cases, folder), strict=True):
                    self.assertNotIn("error", result, case)
                    known[case] = result
            for case in CASES:
                with self.subTest(case=case):
                    work = ours(folder, *case)["work"]
                    self.assertEqual(work["flops"] * STEPS, known[case]["flops"], known[case]["operators"])
                    self.assertGreater(work["flops"], 0)
                    self.assertEqual(sum(work["flops_by_precision"].values()), work["flops"])
                    if case[4].endswith("checkpointing"):
                        without = known[(*case[:4], case[4].removesuffix("+checkpointing").replace("checkpointing", "baseline"))]
                        self.assertEqual(work["recomputed_flops"] * STEPS, known[case]["flops"] - without["flops"])
                        self.assertGreater(work["recomputed_flops"], 0)
                    else:
                        self.assertEqual(work["recomputed_flops"], 0)


    @unittest.skipUnless(ORACLE, "no oracle: ci/oracle makes it, PEAKBENCH_ORACLE names its Python")
    def test_launches_and_copies_are_those_of_one_more_step_of_stock_pytorch(self):
        counts = ("kernel_launches", "copies_to_device", "copies_to_host", "copies_in_device", "copies_in_device_bytes")
        with tempfile.TemporaryDirectory() as folder:
            stock_counts = []
            for steps in (STEPS, STEPS + 1):
                said = pathlib.Path(folder, f"{steps}.json")
                script = [ORACLE, HERE.parent / "oracle" / "vit.py", "--device", "cuda", "--model", "vit-b-16", "--layers", 2, "--steps", steps]
                command = [PEAKBENCH, "emulate", "--card", "h100-80gb", "--json", said, "--", *script]
                subprocess.run(list(map(str, command)), check=True, capture_output=True)
                processes = json.loads(said.read_text(encoding="utf-8"))["processes"]
                stock_counts.append({name: sum(process[name] for process in processes) for name in counts})
            work = ours(folder, "emulated:h100-80gb", "vit", "vit-b-16,layers=2", "fp32", "baseline")["work"]
        self.assertEqual({name: work[name] for name in counts}, {name: stock_counts[1][name] - stock_counts[0][name] for name in counts})
        self.assertGreater(work["kernel_launches"], 0)


class Card(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def work(self, stack, *more, device="emulated:h100-80gb", steps=STEPS):
        out = pathlib.Path(self.folder.name, f"{stack}-{device}-{steps}".replace(":", "-"))
        run = run_json(out, "--device", device, "--model", "vit-b-16,layers=2", "--strategy", stack, *more, steps=steps)
        return next(case for case in run["cases"] if not case["added_for"])["work"]

    def test_the_parts_sum_to_the_total(self):
        work = self.work("checkpointing")
        self.assertEqual(work["step"], STEPS - 1)
        self.assertEqual(set(work["phases"]), {"forward", "backward", "optimizer_step"})
        for key in ("operators", "flops", "recomputed_flops", "read_bytes", "written_bytes", "kernel_launches", "copies_in_device"):
            self.assertEqual(sum(phase[key] for phase in work["phases"].values()), work[key], key)
        self.assertEqual(work["phases"]["forward"]["recomputed_flops"], 0)
        self.assertEqual(work["phases"]["optimizer_step"]["flops"], 0)
        self.assertGreaterEqual(work["phases"]["backward"]["recomputed_flops"], 1)

    def test_another_step_is_the_same(self):
        first = self.work("baseline", steps=2)
        second = self.work("baseline", steps=4)
        self.assertEqual(first.pop("step"), 1)
        self.assertEqual(second.pop("step"), 3)
        self.assertEqual(first, second)

    def test_offloading_copies_what_it_keeps_on_the_host(self):
        baseline, offloaded = self.work("baseline"), self.work("save-on-cpu")
        self.assertEqual(baseline["copies_to_host_bytes"], 0)
        self.assertGreater(offloaded["copies_to_host_bytes"], 0)
        self.assertEqual(offloaded["copies_to_host_bytes"], offloaded["copies_to_device_bytes"])
        self.assertEqual(baseline["flops"], offloaded["flops"])

    def test_the_cpu_has_no_launches(self):
        work = self.work("baseline", "--repetitions", 0, device="cpu")
        self.assertNotIn("kernel_launches", work)
        self.assertIsNone(work["bound"])
