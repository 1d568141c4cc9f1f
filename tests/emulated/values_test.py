"""Values of small tensors on an emulated card, and the verdict that a result ends in: what comes from the host is what the CPU says,
and what does not is known to be unknown.
"""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import unittest.mock

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

CASES = pathlib.Path(__file__).resolve().parent / "values_cases.py"


def float32(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def buckets(count, width):
    """How many of 0, 1, 2, ... lie in each, by products with the reciprocal in float32: two factors of 24 bits are exact in a double."""
    places = [int(float32(x * float32(1 / width))) for x in range(count)]
    return [places.count(place) for place in range(places[-1] + 1)]


def line(count):
    """From 0 to 1: the first half from the start, the second from the end."""
    step = float32(1 / (count - 1))
    return [float32(step * i) if i < count // 2 else float32(1 - step * (count - i - 1)) for i in range(count)]


def setUpModule():
    global WARM
    WARM = warm_python.served(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"]], imports=("torch", "torchvision"))


class ValuesTest(unittest.TestCase):
    def emulate(self, *kinds, options=(), python=None, status=0):
        """What the program printed, if it ended well; the verdict is kept."""
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "took.json")
            command = [PEAKBENCH, "emulate", "--details", *options, "--json", out, "--", python or WARM, CASES, *kinds]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.said = done.stderr
            record = json.loads(out.read_text(encoding="utf-8"))
        self.verdict, self.processes = record["verdict"], record["processes"]
        self.assertIn(f"Verdict: {self.verdict['kind']}", self.said)
        return json.loads(done.stdout) if status == 0 else None

    def conditions(self):
        """Those that are not of how a card rounds: of numbers that are read as they are, it is one."""
        return [one for one in self.verdict["conditions"] if not one.endswith("how a card rounds is not specified")]

    def emulate_one(self, kind, *options):
        return self.emulate(kind, options=options)[kind]

    def test_what_comes_from_the_host_is_what_the_cpu_says(self):
        for name, (cpu, card) in self.emulate_one("known").items():
            with self.subTest(name):
                self.assertEqual(cpu, card)
        self.assertEqual(self.verdict | {"conditions": self.conditions()},
                         {"kind": "exact if", "reasons": [], "conditions": [], "notes": [], "advice": [], "workspace_room_bytes": None})  # fmt: skip
        self.assertEqual(self.processes[0]["computing"], "on")

    def test_memory_of_pools_has_values(self):
        """PyTorch's allocator of cudaMallocAsync tells nobody what it hands out: the emulated pools do."""
        with unittest.mock.patch.dict(os.environ, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync"):
            for name, (cpu, card) in self.emulate_one("known").items():
                with self.subTest(name):
                    self.assertEqual(cpu, card)
            self.assertEqual(self.processes[0]["computing"], "on")
            self.assertEqual((self.verdict["kind"], len(self.conditions())), ("exact if", 1), self.said)
            self.assertIn("memory pools (cudaMallocAsync)", self.conditions()[0])
            self.assertEqual(self.emulate_one("stale"), {"same block": True, "values": [0, 0, 0, 0]})
            self.assertEqual(self.verdict["kind"], "unreliable", self.said)

    def test_what_only_the_card_has_is_computed_by_what_the_cpu_has(self):
        for name, (cpu, card) in self.emulate_one("known_by_cudnn").items():
            with self.subTest(name):
                self.assertEqual(cpu, card)
        self.assertEqual((self.verdict["kind"], self.conditions()), ("lower bound", []), self.said)
        self.assertTrue(all(re.search("workspace|NVIDIA's library|scratch memory", reason) for reason in self.verdict["reasons"]), self.said)

    def test_a_backward_pass_that_dropped_something_is_not_known(self):
        for kind in ("dropped_by_a_recurrent_network", "dropped_by_attention"):
            with self.subTest(kind):
                self.emulate_one(kind)
                self.assertEqual(self.verdict["kind"], "unreliable", self.said)
                self.assertIn("read integer values that are not known (1 time)", " ".join(self.verdict["reasons"]))

    def test_the_product_of_sparse_matrices_that_are_not_known(self):
        self.emulate_one("product_of_drawn_edges")
        self.assertEqual(self.verdict["kind"], "unreliable")
        self.assertTrue(any(reason.startswith("aten::_sparse_sparse_matmul at values_cases.py") and " read a size " in reason
                            for reason in self.verdict["reasons"]), self.said)  # fmt: skip
        self.assertEqual(self.emulate_one("product_of_drawn_edges", "--assume", "nonzero=all"), {"entries": 400})

    def test_modes_of_long_rows(self):
        on_cpu, on_card = self.emulate_one("modes_of_rows")
        self.assertEqual(on_cpu, on_card)
        self.assertEqual((self.verdict["kind"], {one.split(",")[0] for one in self.conditions()}), ("exact if", {"aten::mode"}), self.said)

    def test_long_rows_that_are_not_known(self):
        made = self.emulate_one("rows_of_the_card")
        self.assertEqual(made.pop("isin"), [[2, 1 << 18], 0])
        self.assertEqual(made, {name: [[2, 2], 0] for name in made}, self.said)
        self.assertEqual(self.verdict["kind"], "unreliable", self.said)
        self.assertTrue(any(reason.startswith("aten::mode at values_cases.py") and " read a size " in reason for reason in self.verdict["reasons"]), self.said)

    def test_a_size_that_is_not_known(self):
        self.emulate_one("mask")
        self.assertEqual(self.verdict["kind"], "unreliable")
        self.assertRegex(self.verdict["reasons"][0], r"^aten::nonzero at values_cases.py:\d+ read a size")
        self.assertIn("--assume nonzero=all", self.verdict["advice"][0])

    def test_assumptions_give_bounds(self):
        self.assertEqual(self.emulate_one("mask", "--assume", "nonzero=all"), {"rows": 1 << 20})
        self.assertEqual(self.verdict["kind"], "upper bound")
        most = self.processes[0]["devices"][0]["peak_allocated_bytes"]
        self.assertEqual(self.emulate_one("mask", "--assume", "nonzero=none"), {"rows": 0})
        self.assertEqual(self.verdict["kind"], "lower bound")
        # Later releases take the memory of every row beforehand.
        self.assertLessEqual(self.processes[0]["devices"][0]["peak_allocated_bytes"], most)

    def test_assumptions_leave_known_sizes_alone(self):
        for name, (cpu, card) in self.emulate_one("known", "--assume", "nonzero=all").items():
            with self.subTest(name):
                self.assertEqual(cpu, card)
        self.assertEqual((self.verdict["kind"], self.conditions()), ("exact if", []))

    def test_a_number_that_is_only_printed(self):
        said = self.emulate_one("printed")
        self.assertEqual(self.verdict["kind"], "exact if")
        self.assertRegex(self.verdict["conditions"][0], r"at values_cases.py:\d+ read floating values that are not known")
        self.assertEqual((said["loss"], said["kept"]), (1.0, [0.0, 1.0, 0.0]))
        self.assertNotIn(0.0, said["losses"])

    def test_what_looks_at_a_number_that_is_not_known_is_not_known(self):
        self.emulate_one("looked_at")
        self.assertEqual(self.verdict["kind"], "unreliable")
        self.assertRegex(self.verdict["reasons"][0], r"read integer values that are not known \(9 times\)")

    def test_a_size_on_the_host(self):
        self.about_half(self.emulate_one("mask_on_the_host"))
        self.assertEqual(self.verdict["kind"], "unreliable")
        self.assertRegex(self.verdict["reasons"][0], r"^aten::nonzero at values_cases.py:\d+ read a size")
        self.assertEqual(self.emulate_one("mask_on_the_host", "--assume", "nonzero=all"), {"rows": 200_000, "selected": 200_000})
        self.assertEqual(self.verdict["kind"], "upper bound")
        self.assertEqual(self.emulate_one("mask_on_the_host", "--assume", "nonzero=none"), {"rows": 0, "selected": 0})
        self.assertEqual(self.verdict["kind"], "lower bound")

    def about_half(self, counts):
        for name, count in counts.items():
            self.assertTrue(90_000 < count < 110_000, f"{name}: {count}")

    def test_decisions_on_the_host(self):
        self.emulate_one("decisions_on_the_host")
        self.assertEqual(self.verdict["kind"], "unreliable")
        said = " ".join(self.verdict["reasons"])
        # Two truths, of the host's tensor and of the card's to which the numbers went back; two integers.
        self.assertEqual([said.count(f"read {kind} values") for kind in ("bool", "integer")], [2, 1], self.said)
        self.assertEqual(len(self.verdict["reasons"]), 3, self.said)

    def test_a_number_that_is_made_an_integer(self):
        self.emulate_one("made_integers")
        self.assertEqual(self.verdict["kind"], "unreliable")
        kinds = sorted(re.findall(r"read (\w+) values", " ".join(self.verdict["reasons"])))
        self.assertEqual(kinds, ["bool", "integer", "integer", "integer"], self.said)

    def test_what_is_known_stays_so_beside_what_is_not(self):
        self.assertEqual(self.emulate_one("pieces"), {"counts": 2, "means": 2, "total": 6})
        self.assertEqual(self.verdict["kind"], "exact", self.said)

    def test_which_of_equal_values(self):
        self.emulate_one("ties")
        self.assertEqual(self.verdict["kind"], "exact if")
        self.assertRegex(self.verdict["conditions"][0], r"^aten::topk, read at values_cases.py:\d+: which of equal values is taken is not specified$")
        self.assertEqual(len(self.verdict["conditions"]), 1)
        self.emulate_one("no_ties")
        self.assertEqual(self.verdict["kind"], "exact", self.said)

    def test_the_order_of_equal_keys(self):
        self.emulate_one("sorted_equals")
        self.assertEqual(self.verdict["kind"], "exact if", self.said)
        self.assertRegex(self.verdict["conditions"][0], r"^aten::sort, read at values_cases.py:\d+: the order of equal keys is not specified$")
        said = self.emulate_one("sorted_different")
        self.assertEqual((said["indices"], said["values"], said["placed"]), ([1, 2, 0], [0, 1, 1], [2, 0, 1]))
        self.assertEqual(self.verdict["kind"], "exact", self.said)

    def test_one_of_several_results(self):
        kinds = ("scatter_", "index_put_", "index_copy_", "put_", "max_unpool2d", "median", "mode", "kthvalue", "topk", "eigh", "svd", "cumsum")
        for together in (kinds, ("scatter_ into new memory",)):  # whose condition says the same
            self.emulate(*("of " + kind for kind in together))
            self.assertEqual(len(self.conditions()), len(set(together) - {"cumsum"}), self.said)
            for kind in together:
                with self.subTest(kind):
                    self.assertTrue(any(kind.split("_ ")[0].rstrip("_") in one and one.endswith("is not specified") and "values_cases.py" in one
                                        for one in self.verdict["conditions"]), self.said)  # fmt: skip
            self.assertNotEqual(self.verdict["kind"], "exact", self.said)

    def in_processes(self, kind):
        """What each process of a kind said, and its record."""
        said = self.emulate_one(kind)
        records = {record["pid"]: record for record in self.processes}
        return [(name, one["said"], records[one["process"]]) for name, one in said.items()]

    def test_an_index_beyond_stops_the_card(self):
        """The CPU refuses each of these; a card finds out when the host waits for it, and does nothing afterwards."""
        stopped = "CUDA error: device-side assert triggered"
        for name, said, record in self.in_processes("beyond"):
            with self.subTest(name):
                self.assertNotEqual(said["cpu"], "went on")
                self.assertEqual((said["cuda"], said.get("afterwards"), said.get("asked")), (stopped, stopped, 8))
                operator = {"one_hot": "scatter", "computed": "index"}.get(name, name)
                self.assertEqual(len(record["faults"]), 1)
                self.assertRegex(record["faults"][0]["name"], rf"^device-side assert in aten::_?{operator}_?\w* at values_cases.py:\d+: ")
        self.assertEqual(self.verdict["kind"], "unreliable", self.said)
        said = " ".join(self.verdict["reasons"])
        for what in ("index 100 of 100", "index -1 of 3", "index 4 of 3", "index 99 of 4", "not from 0 to 1", "2 places for 1 values", "nothing is left"):
            self.assertIn(": " + what, said)

    def test_a_check_that_fails_where_every_launch_is_waited_for(self):
        with unittest.mock.patch.dict(os.environ, CUDA_LAUNCH_BLOCKING="1"):
            said = self.emulate_one("label_beyond_is_caught")
        self.assertEqual(said, {"stopped at": "operator", "said": "CUDA error: device-side assert triggered"})
        self.assertEqual(self.emulate_one("label_beyond_is_caught")["stopped at"], "wait")

    def test_a_program_that_a_card_stops(self):
        self.emulate("label_beyond", status=1)
        self.assertIn("CUDA error: device-side assert triggered", self.said)
        self.assertRegex(self.said, r"peakbench emulator: device-side assert in aten::nll_loss_forward at values_cases.py:\d+: index 3 of 3")
        self.assertEqual(self.verdict["kind"], "unreliable", self.said)

    def test_checks_that_a_card_does_not_make(self):
        for kind in ("indices_that_are_not_known", "captured"):
            with self.subTest(kind):
                self.assertEqual(self.emulate_one(kind), {"went on": True})
                self.assertEqual(self.verdict["kind"], "exact", self.said)

    def test_integers_that_cannot_hold_a_number(self):
        for name, _, record in self.in_processes("beyond_integers"):
            with self.subTest(name):
                unknown = [read["kind"] for read in record["read_backs"] if read["substitute_calls"] == 1]
                self.assertEqual(unknown, ["size" if name == "a size" else "integer"])
                why = ["", *(one["name"] for one in record["unmodelled"])]
                if name != "into a part":
                    self.assertRegex(why[-1], r"^aten::\w+, read at values_cases.py:\d+: an integer beyond its range is not specified$")
        self.assertEqual(self.verdict["kind"], "unreliable", self.said)

    # CUDA's kernels in float32, as PyTorch's sources have them: a product with a reciprocal, a sum with a factor, one fused product and sum.
    CARDS = {
        "divided by a number": lambda: buckets(4100, 41),
        "divided in place": lambda: buckets(200, 41),
        "cut off": lambda: buckets(200, 41),
        "a mean": lambda: 0,
        "means of rows": lambda: [False] * 3,
        "arange": lambda: [int(float32(float32(float32(0.1) * i) * 10)) for i in range(100)],
        "linspace": lambda: [int(float32(place * 49)) for place in line(50)],
    }

    def test_what_a_card_computes_by_another_formula(self):
        """Where it is another than the CPU's, it is the card's; where the whole interval decides alike, it is no condition."""
        for name, (cpu, card), record in self.in_processes("rounded"):
            with self.subTest(name):
                self.assertEqual(card, self.CARDS[name]() if name in self.CARDS else cpu)
                self.assertNotEqual(cpu, card) if name not in ("arange", "linspace") and name in self.CARDS else None
                self.assertEqual([one["name"] for one in record["unmodelled"] if one["name"].endswith("is not specified")], [])
                self.assertEqual([read for read in record["read_backs"] if read["substitute_calls"]], [])
        self.assertEqual(self.verdict["kind"], "exact if", self.said)  # several processes on one card
        self.assertFalse([one for one in self.verdict["conditions"] if "rounds" in one], self.said)

    def test_what_hangs_on_how_a_card_rounds(self):
        for name, _, record in self.in_processes("undecided"):
            with self.subTest(name):
                said = [one["name"] for one in record["unmodelled"]]
                self.assertTrue([one for one in said if one.endswith("how a card rounds is not specified") and "read at values_cases.py:" in one], said)
        self.assertEqual(self.verdict["kind"], "exact if", self.said)

    def test_a_value_for_which_the_host_has_no_memory(self):
        self.assertEqual(self.emulate_one("no_memory_of_the_host"), {"read": True})
        self.assertEqual(self.verdict["kind"], "unreliable", self.said)
        self.assertRegex(" ".join(self.verdict["reasons"]), "a value could not be computed: ")

    def test_products_that_tf32_rounds(self):
        self.emulate_one("rounded_to_tf32")
        self.assertEqual(self.verdict["kind"], "exact if", self.said)
        self.assertRegex(self.verdict["conditions"][0], r"^aten::mm, read at values_cases.py:\d+: what TF32 rounds off is not specified$")
        self.emulate_one("exact_in_tf32")
        self.assertEqual(self.verdict["kind"], "exact", self.said)
        self.emulate_one("rounded_to_tf32", "--card", "t4-16gb")  # older than TF32
        self.assertEqual(self.verdict["kind"], "exact", self.said)

    def test_gradients_are_taken_to_be_finite(self):
        self.assertEqual(self.emulate_one("overflow"), {"overflow": False, "any": False})
        self.assertEqual(self.verdict["kind"], "exact if", self.said)
        self.assertTrue(all("finite" in one for one in self.verdict["conditions"]), self.said)

    def test_what_decides_nothing_is_a_condition(self):
        self.assertEqual(self.emulate_one("checkpoint"), {"finite": True, "saved": True})
        self.assertEqual(self.verdict["kind"], "exact if", self.said)
        said = " ".join(self.verdict["conditions"])
        self.assertIn("read whether values are finite, which they are taken to be", said)
        self.assertIn("read storages whose bytes are not known", said)

    def test_an_integer_after_a_checkpoint(self):
        self.emulate_one("after_a_checkpoint")
        self.assertRegex(self.verdict["reasons"][0], r"read integer values that are not known \(200 times\)")

    def test_symbolic_sizes(self):
        self.assertEqual(self.emulate_one("symbolic"), {"rows": 16})

    def test_what_jit_traces_is_the_programs_own(self):
        on_cpu, on_card = self.emulate_one("jit")
        self.assertEqual(on_cpu.count("aten::relu_"), 70)
        self.assertEqual(on_card, on_cpu)

    def test_no_stale_values(self):
        for options in ((), ("--no-compute",)):
            with self.subTest(options):
                self.assertEqual(self.emulate_one("stale", *options), {"same block": True, "values": [0, 0, 0, 0]})
                self.assertEqual(self.verdict["kind"], "unreliable")

    def test_programs_that_need_plausible_values(self):
        said = self.emulate("scaler", "checks", "generator")
        self.assertEqual(said["scaler"], {"scale": 65536.0})
        self.assertEqual(said["checks"], {"checks": "passed"})
        self.assertEqual(said["generator"], {"untouched": True})

    def test_what_is_written_unseen_is_not_known(self):
        for kind in ("statistics", "negated"):
            with self.subTest(kind):
                self.emulate_one(kind)
                self.assertEqual(len(self.verdict["conditions"]), 1, self.said)

    def test_after_a_kernel_that_no_operator_launched_nothing_is_certain(self):
        self.assertEqual(self.emulate_one("foreign_kernel"), {"launched": 0, "before": [4, 5], "after": [4, 5]})
        self.assertEqual(self.verdict["kind"], "unreliable")
        self.assertEqual(len(self.verdict["reasons"]), 1)

    def test_computing_takes_no_memory_of_the_card(self):
        computed = self.emulate_one("step")
        self.assertEqual(self.verdict["kind"], "exact")
        self.counts_are(computed)
        self.assertEqual(self.emulate_one("step", "--no-compute"), computed)
        self.counts_are(computed)
        self.assertEqual(self.verdict["notes"], ["values were not computed: --no-compute"])

    def counts_are(self, said):
        """PyTorch's own peaks, though the program reset them afterwards."""
        device = self.processes[0]["devices"][0]
        self.assertEqual(device["peak_allocated_bytes"], said["allocated_bytes"])
        self.assertEqual(device["peak_reserved_bytes"], said["reserved_bytes"])
        self.assertIn(f" {said['allocated_bytes']} ", self.said)

    def test_out_of_memory_says_what_would_have_been_needed(self):
        self.assertEqual(self.emulate_one("too_much"), {"had": 30 << 30})
        device = self.processes[0]["devices"][0]
        self.assertEqual(device["largest_needed_bytes"], 90 << 30)
        self.assertIn("PyTorch would have needed 90.000 GiB at least", self.said)
        # Of the last one, which asked for less.
        self.assertEqual(device["last_needed_bytes"], 85 << 30)
        source = CASES.read_text(encoding="utf-8").splitlines()
        first, last = (next(number for number, line in enumerate(source, 1) if f"torch.empty({size} << 30" in line) for size in (60, 55))
        places = self.processes[0]["out_of_memory"]
        self.assertEqual([(row["place"], row["calls"]) for row in places], [(f"values_cases.py:{first}", 2), (f"values_cases.py:{last}", 4)])
        line = self.said.splitlines()[1]
        self.assertRegex(line, r"^Ran out of memory of h100-80gb 3 times and continued: asked for 55\.000 GiB \(aten::empty\S* "
                               rf"at values_cases\.py:{last}\) with 30\.\d+ GiB in use; peak 30\.")

    def other_torch(self):
        """The oracle's PyTorch as if it were another version: its files, but for version.py."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-values-"))
        self.addCleanup(shutil.rmtree, folder)
        find = "import os, torch; print(os.path.realpath(os.path.dirname(torch.__file__)))"
        torch = pathlib.Path(subprocess.run([PYTHON, "-c", find], capture_output=True, text=True, check=True).stdout.strip())
        for part in ("torch", "torch/lib"):
            (folder / part).mkdir()
            for path in (torch.parent / part).iterdir():
                (folder / part / path.name).symlink_to(path) if path.name not in ("lib", "version.py") else None
        text = (torch / "version.py").read_text()
        (folder / "torch/version.py").write_text(re.sub(r"__version__ = '.*'", "__version__ = '2.99.0'", text))
        (folder / "nvidia").symlink_to(torch.parent / "nvidia")
        return folder

    def test_values_for_another_version_are_compiled_once(self):
        folder = self.other_torch()
        environment = {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
        without = {"PATH": str(folder), "CXX": ""}
        python = subprocess.run([PYTHON, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True).stdout.strip()
        with unittest.mock.patch.dict(os.environ, {**environment, **without}):
            self.emulate("loss", python=python)
        self.assertEqual(self.processes[0]["computing"], "unavailable")
        note = "values were not computed: none are compiled for PyTorch 2.99.0: there is no C++ compiler (c++, g++, or what CXX names)"
        self.assertEqual(self.verdict["notes"], [note])
        with unittest.mock.patch.dict(os.environ, environment):
            for once in (True, False):
                for name, (cpu, card) in self.emulate("known", python=python)["known"].items():
                    self.assertEqual(cpu, card, name)
                self.assertEqual((self.verdict["kind"], self.conditions()), ("exact if", []), self.said)
                self.assertEqual("compiling the values library for PyTorch 2.99.0 (once" in self.said, once)
                self.assertIn(f"PyTorch 2.99.0, in {folder}/torch", self.said)

    def test_bad_words(self):
        for options, said in ((["--assume", "nonzero=some"], "expected nonzero=all or nonzero=none"),
                              (["--assume", "nonzero=all", "--no-compute"], "leave one out")):  # fmt: skip
            done = subprocess.run([PEAKBENCH, "emulate", "--details", *options, "--", "true"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
