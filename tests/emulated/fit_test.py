"""`peakbench fit` against `peakbench run`: what it names runs, the next does not, and neither does 2 MiB less.
AgainstBruteForce: 60 random cells, each beside a run of every batch size, and the least memory of 20, beside every limit below it.
Programs need the oracle: ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python.
"""

import csv
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

import given
from given import PEAKBENCH

ORACLE = os.environ.get("PEAKBENCH_ORACLE")
PATIENCE_S = 600
MIB = 1 << 20
STEP = 2 * MIB  # the allocator's granularity
MODEL = "vit-b-16,layers=2"

# Memory grows with the batch; from 6 on the script fails of its own accord, and with "kill" it is killed.
TRAIN = """
import os, signal, sys, torch
batch, how = int(sys.argv[1]), sys.argv[2]
if how != "well" and batch >= 6:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGSEGV)
    raise ValueError("the script's own mistake")
x = [torch.empty(20 << 20, dtype=torch.uint8, device="cuda") for _ in range(batch)]
"""

CHUNKS = """
import sys, torch
n = int(sys.argv[1])
for _ in range(n):
    torch.empty((400 << 20) // n, dtype=torch.uint8, device="cuda")
"""


# Whose memory is known to the byte.
OWN_CONVOLUTIONS = ("--cudnn", "off")


class Fit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def peakbench(self, *arguments, exit_code=0):
        done = subprocess.run([PEAKBENCH, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S)
        self.assertIn(done.returncode, exit_code if isinstance(exit_code, tuple) else (exit_code,), done.stderr + done.stdout)
        return done

    def fit(self, *arguments, exit_code=0):
        """What --json prints."""
        done = self.peakbench("fit", "--out", "fit", "--overwrite", "--no-report", "--quiet", "--json", *arguments, exit_code=exit_code)
        return json.loads(done.stdout)

    def statuses(self, model, stack, devices, batches=(1,), *more):
        """Of runs, in the order of the devices and batch sizes."""
        options = [word for device in devices for word in ("--device", device)]
        batches = [str(batch) for batch in batches]
        done = subprocess.run(
            [PEAKBENCH, "run", "--model", model, "--strategy", stack, *options, "--batch", ",".join(batches), "--no-ablation",
             "--repetitions", "0", "--no-report", "--json", "--quiet", "--out", "run", "--overwrite", *more], cwd=self.folder,
            capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return [case["status"] for case in json.loads(done.stdout)["cases"]]

    def check_boundary(self, cell, model, stack):
        n = cell["largest"]
        self.assertEqual(self.statuses(model, stack, [cell["device"]], (n, n + 1), *OWN_CONVOLUTIONS), ["ok", "out_of_memory"], cell["id"])

    def check_least(self, cell, model, stack, batch):
        least = cell["memory"]["least_memory_bytes"]
        card = cell["device"].split(",")[0]
        self.assertEqual(self.statuses(model, stack, [f"{card},memory={bytes}B" for bytes in (least, least - STEP)], (batch,), *OWN_CONVOLUTIONS),
                         ["ok", "out_of_memory"], cell["id"])
        self.assertGreaterEqual(least + STEP, cell["memory"]["peak_allocated_bytes"])


class Models(Fit):
    def test_the_largest_runs_and_the_next_does_not(self):
        stacks = ("baseline", "lora+checkpointing")
        found = self.fit("--model", MODEL, "--strategy", stacks[0], "--strategy", stacks[1], "--card",
                         "a100-40gb,memory=800MiB,context=0", "--card", "t4-16gb,memory=700MiB,context=0", "--least", *OWN_CONVOLUTIONS)
        self.assertEqual(len(found["cells"]), 4)
        for cell in found["cells"]:
            stack = "+".join(part["id"] for part in cell["strategies"])
            self.assertEqual(cell["state"], "fits")
            self.assertEqual(cell["against"], [])
            self.check_boundary(cell, MODEL, stack)
            self.check_least(cell, MODEL, stack, cell["largest"])
            self.assertEqual(cell["memory"]["left_bytes"],
                             cell["card_memory_bytes"] - cell["memory"]["least_memory_bytes"])
            self.assertGreater(cell["fails"]["out_of_memory"]["requested_bytes"], 0)
            self.assertIn(cell["fails"]["out_of_memory"]["phase"], ("build", "forward", "backward", "optimizer_step"))
        self.assertLess(found["cells"][0]["largest"], found["cells"][1]["largest"])
        # A run like any other, and the answer beside it.
        run = json.loads((self.folder / "fit/run.json").read_text(encoding="utf-8"))
        self.assertEqual([case["id"] for case in run["cases"]], [cell["id"] for cell in found["cells"]])
        self.assertEqual([case["memory"]["least_memory_bytes"] for case in run["cases"]],
                         [cell["memory"]["least_memory_bytes"] for cell in found["cells"]])
        self.assertEqual(json.loads((self.folder / "fit/fit.json").read_text(encoding="utf-8")), found)
        self.assertEqual(sorted(path.name for path in (self.folder / "fit").iterdir()), ["cases", "fit.json", "run.json"])
        self.peakbench("report", "fit")

    def test_an_estimate_fits_with_its_largest_error(self):
        device = "a100-40gb,memory=800MiB,context=0"
        [cell] = self.fit("--model", MODEL, "--strategy", "baseline", "--card", device)["cells"]
        largest = cell["largest"]
        self.assertEqual(self.statuses(MODEL, "baseline", [f"emulated:{device}"], (largest, largest + 1)), ["ok", "ok"])
        self.assertEqual(cell["verdict"]["kind"], "estimate")
        more = cell["verdict"]["estimate"]["more_reserved_bytes"]
        self.assertLessEqual(cell["memory"]["peak_reserved_bytes"] + more, cell["card_memory_bytes"])
        said = self.peakbench("fit", "--model", MODEL, "--strategy", "baseline", "--card", device, "--no-report", "--out", "told").stdout
        self.assertIn("does not fit with the largest workspaces that cuDNN may take", " ".join(said.split()))

    def test_what_does_not_fit_says_what_it_needs(self):
        done = self.peakbench("fit", "--model", MODEL, "--strategy", "baseline", "--card", "h100-80gb,memory=128MiB,context=0", "--least", "--out", "none",
                              exit_code=3)
        first = done.stdout.splitlines()[0]
        self.assertRegex(first, r"^vit-b-16,layers=2 on h100-80gb,context=0,memory=128MiB: not even batch size 1; baseline needs 0\.\d+ GiB of 0\.125 GiB "
                                r"with no CUDA context set aside\.$")
        self.assertIn("Which allocation fails\n", done.stdout)
        cell = json.loads((self.folder / "none/fit.json").read_text(encoding="utf-8"))["cells"][0]
        self.assertEqual((cell["state"], cell["largest"]), ("does_not_fit", None))
        self.assertLess(cell["memory"]["left_bytes"], 0)
        self.check_least(cell, MODEL, "baseline", 1)
        run = json.loads((self.folder / "none/run.json").read_text(encoding="utf-8"))
        self.assertEqual(run["cases"][0]["out_of_memory"]["least_memory_bytes"], cell["memory"]["least_memory_bytes"])

    def test_one_size_and_the_allocators_settings(self):
        found = self.fit("--model", MODEL, "--strategy", "baseline", "--batch", "2", "--budget", "2GiB", "--allocator", "default",
                         "--allocator", "expandable_segments:True", "--least")
        self.assertEqual([cell["state"] for cell in found["cells"]], ["fits", "fits"])
        self.assertEqual(found["largest"], "")
        for cell, more in zip(found["cells"], ((), ("--allocator", "expandable_segments:True"))):
            least = cell["memory"]["least_memory_bytes"]
            self.assertEqual(self.statuses(MODEL, "baseline", [f"emulated:h100-80gb,memory={size}B" for size in (least, least - STEP)],
                                           (2,), *more), ["ok", "out_of_memory"])

    def test_layers_rank_and_length(self):
        layers = self.fit("--model", "vit-b-16", "--strategy", "baseline", "--card", "h100-80gb,memory=700MiB,context=0", "--largest", "layers")["cells"][0]
        n = layers["largest"]
        for count, status in ((n, "ok"), (n + 1, "out_of_memory")):
            self.assertEqual(self.statuses(f"vit-b-16,layers={count}", "baseline", [layers["device"]]), [status])
        model = "gpt2,layers=1,vocabulary=1000"
        found = self.fit("--model", model, "--strategy", "baseline", "--strategy", "lora", "--card", "h100-80gb,memory=200MiB,context=0", "--largest",
                         "rank")["cells"]
        self.assertEqual((found[0]["state"], found[0]["reason"]), ("not_run", "no part of the stack has a rank"))
        n = found[1]["largest"]
        for rank, status in ((n, "ok"), (n + 1, "out_of_memory")):
            self.assertEqual(self.statuses(model, f"lora,rank={rank}", [found[1]["device"]]), [status])

    def test_the_report_begins_with_the_grid(self):
        self.peakbench("fit", "--out", "fit", "--model", MODEL, "--strategy", "baseline", "--batch", "2", "--card", "a100-40gb", "--budget", "5",
                       exit_code=2)
        self.assertFalse((self.folder / "fit").exists())
        self.peakbench("fit", "--out", "fit", "--model", MODEL, "--strategy", "baseline", "--least", "--card", "a100-40gb,memory=800MiB,context=0")
        page = (self.folder / "fit/report/index.html").read_text(encoding="utf-8")
        largest = json.loads((self.folder / "fit/fit.json").read_text(encoding="utf-8"))["cells"][0]["largest"]
        self.assertLess(page.index("Largest batch size that fits"), page.index('class="group'))
        self.assertIn(f"<strong>{largest}</strong>", page)
        self.assertIn("least that it ran in", page)
        refused = self.peakbench("fit", "--out", "fit", "--model", MODEL, "--strategy", "baseline", "--card", "a100-40gb", exit_code=2)
        self.assertIn("holds a run already. Choose another folder with --out, or delete it with --overwrite.", refused.stderr)
        # A run that takes its folder has nothing of it.
        self.statuses(MODEL, "baseline", ["emulated:a100-40gb"])
        (self.folder / "run/fit.json").write_text((self.folder / "fit/fit.json").read_text(encoding="utf-8"), encoding="utf-8")
        self.peakbench("report", "run")
        self.assertNotIn("Largest batch size", (self.folder / "run/report/index.html").read_text(encoding="utf-8"))
        self.statuses(MODEL, "baseline", ["emulated:a100-40gb"])
        self.assertFalse((self.folder / "run/fit.json").exists())

    def test_a_stack_that_breaks_its_promise_has_no_answer(self):
        plugins = self.folder / "plugins"
        plugins.mkdir()
        shutil.copy(given.PLANTED.with_name("unlike_baseline.so"), plugins)
        found = self.fit("--model", "vit-b-16,layers=2,width=48,mlp=64,image=32", "--strategy", "cuts-graph", "--strategy", "leaves-out", "--strategy",
                         "block-in-parts", "--card", "t4-16gb", "--batch", "4", "--plugins", plugins)
        self.assertEqual([cell["state"] for cell in found["cells"]], ["unknown", "unknown", "fits"])
        self.assertRegex(found["cells"][0]["reason"], "^it does not train as it promises: some step gives no gradient to class_token, ")
        self.assertEqual(found["cells"][1]["reason"], "it does not train as it promises: leaves-out leaves block 1 out")
        self.assertEqual(found["cells"][0]["memory"], None)

    def test_the_smallest_card(self):
        done = self.peakbench("fit", "--model", MODEL, "--strategy", "baseline", "--card", "all", "--format", "csv",
                              "--out", "fit", "--no-report")
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        states = [row["state"] for row in sorted(rows, key=lambda row: int(row["card_memory_bytes"]))]
        self.assertEqual(states.count("fits"), 1)
        self.assertEqual(states[0], "fits")
        self.assertTrue(all("a smaller card does" in row["reason"] for row in rows if row["state"] == "not_run"))
        self.assertIn("the smallest card", json.loads((self.folder / "fit/fit.json").read_text(encoding="utf-8"))["answer"])

    def test_stacks_are_proposed(self):
        found = self.fit("--model", "gpt2,layers=2,vocabulary=2000", "--seq", "128", "--card", "h100-80gb,memory=300MiB,context=0")
        stacks = ["+".join(part["id"] for part in cell["strategies"]) for cell in found["cells"]]
        self.assertEqual(stacks[0], "baseline")
        self.assertGreater(len(stacks), 1)
        self.assertTrue(all(one["reason"] for one in found["left_out"]))
        named = {part.split(",")[0] for stack in stacks for part in stack.split("+")}
        listed = {one["id"] for one in json.loads(self.peakbench("list", "strategies", "--json").stdout)}
        self.assertEqual(named | {one["stack"] for one in found["left_out"]}, listed)

    def test_unusable_input(self):
        for arguments, said in (
                (["--model", MODEL, "--card", "rtx4090"], 'unknown card "rtx4090"'),
                (["--model", MODEL, "--card", "rtx4090"], 'did you mean "rtx-4090-24gb"?'),
                (["--model", MODEL, "--card", "t4-16gb", "--budget", "2GiB"], "--card and --budget both set"),
                (["--model", MODEL, "--budget", "2"], "the unit is missing"),
                (["--model", MODEL, "--budget", "128MiB"], "a CUDA context takes 0.521 GiB, which leaves nothing of the card's memory: "
                                                           "h100-80gb,memory=128MiB,context=0 sets none aside"),
                (["--model", MODEL], "no card is named"),
                (["--card", "t4-16gb"], "no model was named"),
                (["--model", MODEL, "--card", "all,t4-16gb"], "--card all is every card"),
                (["--model", MODEL, "--card", "t4-16gb", "--largest", "bacth"], 'did you mean "batch"?'),
                (["--model", MODEL, "--card", "t4-16gb", "--largest", "seq"], "vit-b-16 has no sequence"),
                (["--model", MODEL, "--card", "t4-16gb", "--batch", "2", "--largest", "batch"], "leave one of them out"),
                (["--model", MODEL, "--card", "t4-16gb", "--device", "cpu"], 'did you mean "--card"?'),
                (["--model", MODEL, "--card", "t4-16gb", "--vary", "batch=1..3"], "--vary is for a program"),
                (["--model", MODEL, "--card", "t4-16gb", "--strategy", "lora+dora"], "both take the slot adapters"),
                (["--card", "t4-16gb", "--vary", "batch=1..64", "--", "sh", "-c", "true"], "there is no {batch} in the command"),
                (["--card", "t4-16gb", "--vary", "batch=9..2", "--", "sh", "{batch}"], "the last value is smaller than the first"),
                (["--card", "t4-16gb", "--vary", "batch", "--", "sh", "{batch}"], "expected NAME=FIRST..LAST"),
                (["--card", "t4-16gb", "--vary", "a=1..2", "--", "sh", "{a}", "{b}"], "nothing gives {b} any"),
                (["--card", "t4-16gb", "--model", MODEL, "--", "sh"], "--model is for models of Peakbench"),
                (["--card", "t4-16gb", "--steps", "1", "--", "sh"], "--steps is for models of Peakbench"),
                (["--card", "t4-16gb", "--cudnn", "off", "--", "sh"], "--cudnn is for models of Peakbench"),
                (["--card", "t4-16gb", "--plugins", ".", "--", "sh"], "--plugins is for models of Peakbench"),
                (["--card", "t4-16gb", "--", "no-such-program"], 'no program "no-such-program" on PATH')):
            done = self.peakbench("fit", "--out", "bad", "--overwrite", *arguments, exit_code=2)
            self.assertIn(said, done.stderr + done.stdout, arguments)
        self.peakbench("fit", "--model", MODEL, "--strategy", "baseline", "--batch", "1", "--budget", "2GiB", "--out", "kept",
                       "--no-report")
        done = self.peakbench("fit", "--model", MODEL, "--budget", "2GiB", "--out", "kept", exit_code=2)
        self.assertIn("holds a run already", done.stderr)


@unittest.skipUnless(ORACLE, "no oracle")
class Programs(Fit):
    def test_a_placeholder_without_values(self):
        done = self.peakbench("fit", "--card", "t4-16gb", "--", "python3", "train.py", "{batch}", exit_code=2)
        self.assertIn("{batch}: nothing gives it values: add --vary batch=1..64", done.stderr)

    def program(self, how, values, *more, exit_code=0):
        (self.folder / "train.py").write_text(TRAIN, encoding="utf-8")
        return self.fit("--card", "t4-16gb,memory=170MiB,context=0", "--vary", f"batch={values}", "--check", "1", *more, "--", ORACLE, "train.py",
                        "{batch}", how, exit_code=exit_code)["cells"][0]

    def test_a_cuda_context_has_to_fit_too(self):
        """7,500 MiB twice, as one tensor: 102 MiB of a T4 are left, and no context that anybody measured is below 256 MiB. Of 15 tensors of
        1 GiB, 13 fit with the largest context that is known (767 MiB), and 14 without one: 14.748 GiB less 0.749 are 13.999."""
        (self.folder / "train.py").write_text("import torch\nx = torch.empty(7500 << 21, dtype=torch.uint8, device='cuda')\n", encoding="utf-8")
        program = ("--", ORACLE, "train.py")
        done = self.peakbench("fit", "--out", "a", "--no-report", "--card", "t4-16gb", *program, exit_code=3)
        self.assertEqual(done.stdout.splitlines()[0],
                         "train.py on t4-16gb: does not fit; it without a limit reserves 14.648 GiB of 14.748 GiB beside a CUDA context of up to 0.749 GiB.")
        done = self.peakbench("fit", "--out", "b", "--no-report", "--card", "t4-16gb,context=0", *program)
        self.assertEqual(done.stdout.splitlines()[0],
                         "train.py on t4-16gb,context=0: fits: reserves 14.648 GiB of 14.748 GiB with no CUDA context set aside.")
        (self.folder / "train.py").write_text("import sys, torch\nx = [torch.empty(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(int(sys.argv[1]))]\n",
                                              encoding="utf-8")
        program = ("--vary", "n=12..15", "--check", "1", "--", ORACLE, "train.py", "{n}")
        cell = self.fit("--card", "t4-16gb", *program)["cells"][0]
        self.assertEqual((cell["largest"], cell["context_bytes"], cell["context_source"]), (13, 767 * MIB, "largest_known"))
        self.assertEqual((cell["card"], cell["device"]), ("t4-16gb", "emulated:t4-16gb,context=767MiB"))
        self.assertEqual(cell["memory"]["left_bytes"], cell["card_memory_bytes"] - 767 * MIB - (13 << 30))
        cell = self.fit("--card", "t4-16gb,context=0", *program)["cells"][0]
        self.assertEqual((cell["largest"], cell["context_bytes"], cell["context_source"]), (14, 0, "option"))

    def test_the_largest(self):
        cell = self.program("well", "1..64", "--least")
        # 8 times 20 MiB are 160; 9 do not fit.
        self.assertEqual((cell["state"], cell["largest"]), ("fits", 8))
        self.assertEqual(cell["memory"]["least_memory_bytes"], 160 * MIB)
        self.assertEqual(cell["fails"]["value"], 9)
        self.assertEqual(cell["fails"]["out_of_memory"]["requested_bytes"], 20 * MIB)
        run = json.loads((self.folder / "fit/run.json").read_text(encoding="utf-8"))
        self.assertEqual([case["model"] for case in run["cases"]], [{"id": "train.py", "options": {"batch": 8}}])

    def test_the_least_memory_is_looked_for_where_it_is_asked_for(self):
        cell = self.program("well", "1..64")
        self.assertEqual((cell["largest"], cell["memory"]["least_memory_bytes"]), (8, None))
        self.assertTrue(all(trial["card_memory_bytes"] is None for trial in cell["trials"]))
        done = self.peakbench("fit", "--no-least", "--card", "t4-16gb", "--", "true", exit_code=2)
        self.assertIn("no option --no-least of `peakbench fit`: leave it out", done.stderr)

    def test_more_that_takes_less(self):
        """N chunks of 400 MiB: one is of 400 MiB, and with 3 one is of 134 MiB; the card has 170."""
        (self.folder / "train.py").write_text(CHUNKS, encoding="utf-8")
        words = ("--card", "t4-16gb,memory=170MiB,context=0", "--vary", "n=1..20", "--check", "1", "--", ORACLE, "train.py", "{n}")
        cell = self.fit(*words)["cells"][0]
        self.assertEqual((cell["state"], cell["largest"], cell["smallest"], cell["fails"]["value"]), ("fits", None, 3, 2))
        values = [trial["value"] for trial in cell["trials"]]
        self.assertEqual(len(values), len(set(values)), "none is run twice")
        done = self.peakbench("fit", "--out", "again", "--no-report", *words)
        self.assertRegex(done.stdout.splitlines()[0], r"^train\.py on t4-16gb,context=0,memory=170MiB: from n 3 on: reserves 0\.\d+ GiB of 0\.166 GiB")
        self.assertIn("more of n takes less memory: 3 is the smallest that runs", " ".join(done.stdout.split()))

    def test_its_own_failures_are_no_want_of_memory(self):
        cell = self.program("well", "1..4")
        self.assertEqual((cell["largest"], cell["at_limit"]), (4, True))
        cell = self.program("raise", "1..64")
        self.assertEqual(cell["state"], "unknown")
        self.assertIn("the script's own mistake", cell["reason"])
        self.assertLess(cell["largest"], 6)
        cell = self.program("kill", "6..64", exit_code=3)
        self.assertEqual((cell["state"], cell["largest"]), ("unknown", None))
        self.assertIn("SIGSEGV", cell["reason"])


class AgainstBruteForce(Fit):
    MODELS = ("vit-b-16,layers=2", "gpt2,layers=2,vocabulary=5000", "qwen2.5-0.5b,layers=1,vocabulary=8000", "resnet-50")
    STACKS = ("baseline", "checkpointing", "fused-in-backward", "lora", "foreach-off", "lora+checkpointing")
    CARDS = ("a100-40gb", "rtx-4090-24gb", "t4-16gb", "h100-80gb")

    def cells(self, count, seed):
        """Models, stacks and cards whose largest batch is small enough to try all."""
        chosen = random.Random(seed)
        while count > 0:
            model, stack, card = (chosen.choice(one) for one in (self.MODELS, self.STACKS, self.CARDS))
            if model == "resnet-50" and ("lora" in stack or "checkpointing" in stack):
                continue
            device = f"{card},memory={chosen.randrange(300, 1600)}MiB,context=0"
            cell = self.fit("--model", model, "--strategy", stack, "--card", device, "--least", exit_code=(0, 3))["cells"][0]
            if cell["state"] != "fits" or cell["largest"] > 60:
                continue
            count -= 1
            yield model, stack, cell

    def test_boundaries(self):
        for model, stack, cell in self.cells(60, 20261125):
            n = cell["largest"]
            statuses = self.statuses(model, stack, [cell["device"]], range(1, n + 4))
            runs = [batch for batch, status in enumerate(statuses, 1) if status == "ok"]
            self.assertEqual(statuses[n - 1:n + 1], ["ok", "out_of_memory"], cell["id"])
            # What is within reach of the check has to be said, and nothing else.
            near = [batch for batch in range(max(1, n - 2), n + 4) if (batch in runs) != (batch <= n)]
            told = [int(one.split()[0]) for one in cell["against"]]
            self.assertEqual([batch for batch in told if abs(batch - n) <= 3], near, cell["id"])
            self.assertTrue(all((batch in runs) != (batch <= n) for batch in told if batch <= n + 3), cell["id"])
            far = [batch for batch in range(1, max(1, n - 2)) if batch not in runs]
            print(f"{cell['id']}: {n} {cell['against'] or ''}{f', and these do not run: {far}' if far else ''}", flush=True)

    def test_least_memory(self):
        for model, stack, cell in self.cells(20, 7):
            least, card = cell["memory"]["least_memory_bytes"], cell["device"].split(",")[0]
            lowest = max(STEP, cell["memory"]["peak_allocated_bytes"] // STEP * STEP - 4 * STEP, least - 100 * STEP)
            limits = list(range(lowest + least % STEP - lowest % STEP, least + 3 * STEP, STEP))
            statuses = self.statuses(model, stack, [f"{card},memory={limit}B" for limit in limits], (cell["largest"],))
            by_limit = dict(zip(limits, statuses))
            self.assertEqual((by_limit[least], by_limit[least - STEP]), ("ok", "out_of_memory"), cell["id"])
            first = min(limit for limit, status in by_limit.items() if status == "ok")
            near = by_limit[least - 2 * STEP] == "ok" or by_limit[least + STEP] != "ok" or by_limit[least + 2 * STEP] != "ok"
            if near:
                self.assertTrue(cell["memory"]["least_memory_note"], f"{cell['id']}: {first} runs, {least} was said")
            print(f"{cell['id']}: {least / MIB:.0f} MiB, {len(limits)} limits {cell['memory']['least_memory_note']}"
                  f"{f', {first / MIB:.0f} MiB run' if first != least else ''}", flush=True)
