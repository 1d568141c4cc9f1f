"""An emulated card held to what a real one took (tests/emulated/real_card): peaks, what runs out of memory, captures, operators, cuDNN's
workspaces. Those for convolutions are in the card's file, too, as far as the record tells passes apart.
What docs/evidence/real_card.md says of it is compared with the record.

docs/evidence/real_card.md says what was measured and how.
"""

import concurrent.futures
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import operators
from given import ALL, PEAKBENCH

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = os.environ.get("PEAKBENCH_ORACLE")
RECORD = json.loads((HERE / "real_card/h200-141gb.json").read_text(encoding="utf-8"))
CARD = f"emulated:{RECORD['emulated_card']}"
# What a process of PyTorch took there beside its tensors, by `peakbench doctor --context`: a training's.
CONTEXT_BYTES = 804257792
TOTAL_BYTES = 150109945856
KINDS = ("requested", "allocated", "reserved")
# What ran there beside the cases: their bytes under emulation are in EXPECTED, which tests/programs/programs_test.py compares.
EXPECTED = json.loads((HERE.parent / "programs/expected.json").read_text(encoding="utf-8"))
PAGE = HERE.parents[1] / "docs/evidence/real_card.md"
# Another release of PyTorch takes other bytes.
RECORDED_WITH = ".".join(RECORD["torch"].split(".")[:2]) + "."


def setting_of(case):
    """vit-l-16,layers=2/lora/bf16/b1[/s256] -> (model, dtype, batch, sequence), stack"""
    model, stack, dtype, batch, *sequence = case.split("/")
    return (model, dtype, batch[1:], sequence[0][1:] if sequence else None), stack


def less_there(case):
    """The emulated card's peaks less the real one's, of each kind. A workspace that is not modelled is missing at the peak, or lies elsewhere
    than the blocks around it and moves them."""
    return RECORD["emulated_less_there"].get(case, [0, 0, 0])


def equal(cases, kind):
    return sum(less_there(case)[KINDS.index(kind)] == 0 for case in cases)


def grouped(cases):
    groups = {}
    for case in cases:
        setting, stack = setting_of(case)
        groups.setdefault(setting, []).append(stack)
    return groups


class Record(unittest.TestCase):
    """What the page says is what the record has, without running anything."""

    def test_programs_took_what_they_take_here(self):
        unlike = [name for name, one in RECORD["programs"].items() if EXPECTED[name]["peak"]["allocated_bytes"] != one["allocated"]]
        self.assertEqual(unlike, RECORD["programs_of_another_release"])
        self.assertEqual([name for name, one in RECORD["programs"].items() if not one["allocated"]], [])

    def test_what_is_exact_was_allocated_so(self):
        self.assertEqual([case for case in RECORD["exact"] if any(less_there(case)[:2])], [])
        self.assertEqual([name for name, one in RECORD["programs"].items() if one["emulated_less_there"][1]], [])

    def test_no_lower_bound_asks_for_more(self):
        self.assertEqual([case for case in RECORD["emulated_less_there"] if less_there(case)[0] > 0], [])

    def test_page(self):
        cases, exact, programs = RECORD["cases"], RECORD["exact"], RECORD["programs"]
        reserved = sum(one["emulated_less_there"][2] == 0 for one in programs.values())
        rows = [[len(cases), equal(cases, "requested")], [len(cases), equal(cases, "allocated")], [len(exact), equal(exact, "allocated")],
                [len(exact), equal(exact, "reserved")], [len(programs), len(programs)], [len(programs), reserved]]
        page = PAGE.read_text(encoding="utf-8")
        said = [[int(cell.replace(",", "")) for cell in line.split("|")[2:4]] for line in page.splitlines() if line.startswith("| ") and " peak " in line]
        self.assertEqual(said, rows)
        allocated, kept = len(exact) + len(programs), equal(exact, "reserved") + reserved
        self.assertIn(f"Peak allocated was equal in {allocated} of {allocated}, peak reserved in {kept}.", page)


class Cases(unittest.TestCase):
    def run_cases(self, cases, device):
        """-> {case without its device: case}"""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-real-card-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        ended = {}
        for number, ((model, dtype, batch, sequence), stacks) in enumerate(grouped(cases).items()):
            command = [PEAKBENCH, "run", "-m", model, "--dtype", dtype, "--batch", batch, "--device", device, "--repetitions", "0", "--no-ablation"]
            command += ["--seq", sequence] if sequence else []
            command += [part for stack in stacks for part in ("-s", stack)]
            out = folder / str(number)
            done = subprocess.run([*command, "--no-report", "--quiet", "--out", out], capture_output=True, text=True)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            run = json.loads((out / "run.json").read_text(encoding="utf-8"))
            if not run["environment"]["libtorch"].startswith(RECORDED_WITH):
                self.skipTest(f"the record is of PyTorch {RECORD['torch']}")
            for case in run["cases"]:
                ended[case["id"].replace(f"/{device}/", "/")] = case
        return ended

    def test_peaks(self):
        chosen = {case: peaks for case, peaks in RECORD["cases"].items() if ALL or ",layers=" not in case}
        ended = self.run_cases(chosen, CARD)
        exact = []
        for case, there in chosen.items():
            with self.subTest(case):
                ours = ended[case]
                self.assertEqual(ours["status"], "ok", ours["reason"])
                less = [ours["memory"][f"peak_{kind}_bytes"] - size for kind, size in zip(KINDS, there, strict=True)]
                self.assertEqual(less, less_there(case))
                verdict = ours["emulation"]["verdict"]
                if verdict["kind"] in ("exact", "exact if"):
                    exact.append(case)
                elif verdict["kind"] == "estimate":
                    self.assertLessEqual(-verdict["estimate"]["more_bytes"], less[1])
                    self.assertLessEqual(less[1], verdict["estimate"]["less_bytes"])
                else:
                    self.assertEqual(verdict["kind"], "lower bound")
        self.assertEqual(exact, [case for case in RECORD["exact"] if case in chosen])

    def test_what_runs_out_of_memory(self):
        ended = self.run_cases(RECORD["runs_out"], f"{CARD},context={CONTEXT_BYTES}")
        ran_out = {case for case, one in ended.items() if one["status"] == "out_of_memory"}
        self.assertEqual([case for case in ran_out if not RECORD["runs_out"][case]], [])
        self.assertEqual(len(ran_out), 2)
        self.assertEqual([case for case, there in RECORD["runs_out"].items() if there and not self.may_run_out(ended[case])], [])

    @staticmethod
    def may_run_out(case):
        """By the upper end of an estimate: at these batch sizes no workspace of a convolution was measured."""
        if case["status"] == "out_of_memory":
            return True
        more = case["emulation"]["verdict"]["estimate"]["more_reserved_bytes"]
        return case["memory"]["peak_reserved_bytes"] + more + CONTEXT_BYTES > TOTAL_BYTES


@unittest.skipUnless(PYTHON, "ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python")
class Programs(unittest.TestCase):
    def emulated(self, *arguments):
        command = [PEAKBENCH, "emulate", "--no-lines", "--card", RECORD["emulated_card"], "--", PYTHON, "-B", *arguments]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stdout

    def skip_with_another_release(self):
        if not operators.torch_version().startswith(RECORDED_WITH):
            self.skipTest(f"the record is of PyTorch {RECORD['torch']}, this is {operators.torch_version()}")

    def test_what_a_capture_permits(self):
        took = {}
        for line in self.emulated(HERE / "real_card/captures.py").splitlines():
            took.update(json.loads(line))
        self.assertEqual(took, RECORD["captures"])

    def test_workspaces_of_attention(self):
        self.skip_with_another_release()
        took = {}
        for line in self.emulated(HERE / "cudnn_itself/attention.py", HERE / "real_card/h200-141gb.json").splitlines():
            row = json.loads(line)
            size = dict(part.split("=") for part in row["name"].split(",") if "=" in part)
            values = math.prod(int(size[key]) for key in ("B", "H", "S_q"))
            # Behind the output, the statistics and the two numbers of a random state; the gradients of query, keys and values. Backward
            # cudnn-frontend adds the queries' gradient in 32 bits and a sum for each of their rows.
            forward, backward = sum(row["forward"][4:]), sum(row["backward"][3:]) - values * (int(size["D"]) + 1) * 4
            took[row["name"]] = [forward, backward]
        self.assertEqual(took, RECORD["cudnn_workspaces_of_attention"])

    def test_operators(self):
        self.skip_with_another_release()
        with tempfile.TemporaryDirectory() as folder:
            # In as many parts as on the card: what is allocated once, such as a workspace of cuBLASLt, is the first operator's that needs it.
            outs = [pathlib.Path(folder, f"{part}.jsonl") for part in range(2)]
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda part: self.emulated(HERE / "real_card/operators_memory.py", outs[part], part, 2), range(2)))
            rows = [json.loads(line) for out in outs for line in out.read_text(encoding="utf-8").splitlines()]
        took = {}
        for row in rows:
            if "error" not in row:
                took.setdefault(row["op"], {})[str(row["sample"])] = [row[part] for part in ("fwd", "bwd") if part in row]
        self.assertEqual(took.keys(), RECORD["operators"].keys())
        unlike = sorted(name for name, samples in took.items() if samples != RECORD["operators"][name])
        self.assertEqual(unlike, sorted(RECORD["operators_with_workspaces"]))
        for name in unlike:
            for sample, parts in took[name].items():
                for ours, there in zip(parts, RECORD["operators"][name][sample], strict=True):
                    self.assertTrue(all(one <= other for one, other in zip(ours, there)), (name, sample, ours, there))
