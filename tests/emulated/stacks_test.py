"""Every strategy alone, every pair and torchtune's whole stack, on an emulated card: each case ends ok, or is a conflict that
manifests declare, or lacks what a model's manifest says it lacks. A stack is never without effect, none ends a worker, and no
promise is refuted by what the steps did.
"""

import itertools
import json
import pathlib
import subprocess
import tempfile
import unittest

from given import ALL, PEAKBENCH

TORCHTUNE = ("checkpointing", "fused-in-backward", "activation-offload", "adamw-8bit", "chunked-cross-entropy")
TORCHTUNE_ADAPTERS = ("checkpointing", "activation-offload", "lora", "qlora", "adamw-8bit", "chunked-cross-entropy")
# So many at a time, that a run folder stays small.
AT_ONCE = 1000
MODEL = "qwen2.5-0.5b,layers=2,width=64,mlp=96,heads=4,kv_heads=2,vocabulary=512"
SHAPE = ["--batch", "4", "--seq", "32"]
# With options where the defaults are for larger models, or for adapters in another dtype than the model.
AS = {
    "galore": "galore,rank=4",
    "freeze": "freeze,modules=*layers.0*",
    "lora": "lora,adapter_dtype=model",
    "dora": "dora,adapter_dtype=model",
}
# Weights are bf16, but where gradients must be fp32.
FP32 = {"loss-scaling"}


def ask(*arguments):
    done = subprocess.run([PEAKBENCH, *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Stacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ids = [one["id"] for one in ask("list", "strategies") if one["id"] != "baseline"]
        cls.described = {name: ask("describe", name) for name in cls.ids}

    def needed(self, *names):
        """Strategies that take what these require."""
        wanted = {slot for name in names for slot in self.described[name]["requires"]}
        taken = {slot for name in names for slot in self.described[name]["slots"]}
        return ["lora"] if "adapters" in wanted - taken else []

    def conflict(self, *names):
        return next((f"{a} and {b}" for a, b in itertools.combinations(names, 2)
                     if any(one["id"] == b for one in self.described[a]["conflicts_with"])), None)  # fmt: skip

    def stacks(self):
        found = {}
        sizes = (1, 2, 3) if ALL else (1, 2)
        asked = [names for size in sizes for names in itertools.combinations(self.ids, size)]
        for names in [*asked, TORCHTUNE, TORCHTUNE_ADAPTERS]:
            stack = sorted({*names, *self.needed(*names)})
            if names in (TORCHTUNE, TORCHTUNE_ADAPTERS):
                self.assertIsNone(self.conflict(*stack))
            if not self.conflict(*stack):
                found["+".join(AS.get(name, name) for name in stack)] = stack
        return found

    def run_cases(self, dtype, stacks):
        with tempfile.TemporaryDirectory() as folder:
            command = [PEAKBENCH, "run", "--model", MODEL, "--device", "emulated:a100-80gb", *SHAPE, "--dtype", dtype, "--no-ablation",
                       "--no-report", "--quiet", "--repetitions", "0", "--out", folder + "/run"]  # fmt: skip
            command += [part for stack in stacks for part in ("--strategy", stack)]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(pathlib.Path(folder, "run/run.json").read_text())["cases"]

    def test_every_pair_runs_or_is_a_declared_conflict(self):
        stacks = self.stacks()
        self.assertGreater(len(stacks), len(self.ids))
        cases = []
        for dtype in ("bf16", "fp32"):
            chosen = [stack for stack, names in stacks.items() if bool(FP32 & set(names)) == (dtype == "fp32")]
            for first in range(0, len(chosen), AT_ONCE):
                cases += self.run_cases(dtype, chosen[first : first + AT_ONCE])
        self.assertEqual(len(cases), len(stacks))
        bad = [f"{case['id'].split('/')[1]}: {case['status']}: {case['reason']}" for case in cases if case["status"] != "ok"]
        bad += [f"{case['id'].split('/')[1]}: {case['equivalence']['reason']}" for case in cases
                if case["equivalence"]["verdict"] == "broken"]  # fmt: skip
        if bad:
            self.fail(f"{len(bad)} of {len(cases)}:\n" + "\n".join(bad))
        print(f"{len(self.ids)} strategies, {len(stacks)} stacks ok")
