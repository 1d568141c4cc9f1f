"""The plugin of pytest (python/peakbench/pytest_plugin.py) and examples/pytest, without a GPU. Figures are held against what the tests read of
PyTorch themselves, and against closed forms.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
import unittest
import xml.etree.ElementTree
from pathlib import Path

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "examples/pytest"
CI = ("CI", "BUILD_NUMBER")  # where one is set, pytest repeats whole messages in its summary
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in CI} | {
    "PATH": f"{PEAKBENCH.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}  # fmt: skip
NAMES = ("building_takes_the_parameters_and_nothing_more", "training_with_sgd", "inference_keeps_no_activations")


def install(site):
    """The package as the wheel installs it: with the entry points of pyproject.toml."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    (site / "peakbench").symlink_to(REPOSITORY / "python/peakbench")
    information = site / "peakbench-0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: peakbench\nVersion: 0\n")
    lines = [f"{name} = {what}" for name, what in project["entry-points"]["pytest11"].items()]
    (information / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines]) + "\n")


def setUpModule():
    global WARM
    WARM = warm_python.served(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"]], ENVIRONMENT, (*warm_python.TRAINING, "pytest"))


class Repository(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench-pytest-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name, "repository")
        self.folder.mkdir()
        self.site = Path(scratch.name, "site-packages")
        self.site.mkdir()
        install(self.site)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def example(self):
        shutil.copytree(EXAMPLE, self.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))

    def pytest(self, *arguments, code=0, card="h100-80gb", environment=None, values=False):
        """What pytest said. ``card`` None: without an emulated card. ``values``: of small tensors, as by default, which takes longer."""
        before = [PEAKBENCH, "emulate", *([] if values else ["--no-compute"]), "--card", card, "--"] if card else []
        paths = [str(self.site), os.environ.get("PYTHONPATH", "")]
        with_it = ENVIRONMENT | {"PYTHONPATH": ":".join(filter(None, paths))}
        done = subprocess.run([*before, WARM if card else PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml", "junit.xml", *arguments], cwd=self.folder,
                              env=with_it | (environment or {}), capture_output=True, text=True)  # fmt: skip
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        if code == 4:  # pytest's, for its settings
            return done.stderr
        return done.stdout.split("\nFits ")[0].split("\nFailed on ")[0]

    def properties(self):
        """Of each test: what JUnit's XML has of it."""
        cases = xml.etree.ElementTree.parse(self.folder / "junit.xml").iter("testcase")
        return {case.get("name").removeprefix("test_"): {one.get("name"): one.get("value") for one in case.iter("property")} for case in cases}

    def figures(self, what="allocated"):
        return {name: int(said[f"device_memory_{what}_bytes"]) for name, said in self.properties().items()}


class Example(Repository):
    def test_it_passes_in_any_order_and_beside_others_with_the_bytes_of_closed_forms(self):
        self.example()
        width, batch, parameter = 256, 64, 4 * 256 * 256 * 4
        state = 2 * parameter
        hidden = 4 * width * batch
        # Behind relu: the input, both activations, and three results that were kept (512 bytes are the smallest block).
        inference = state // 2 + 2 * (width * batch + 2 * hidden) + 3 * 512
        self.pytest()
        allocated, reserved = self.figures(), self.figures("reserved")
        self.assertEqual((allocated[NAMES[0]], allocated[NAMES[2]]), (state, inference))
        self.assertGreaterEqual(allocated[NAMES[1]], 2 * state)  # parameters and their gradients
        tests = [f"test_memory.py::test_{name}" for name in NAMES]
        for arguments in (tests[::-1], [tests[1]], ["-n", "2"]):
            with self.subTest(arguments):
                self.pytest(*arguments)
                ran = self.figures()
                self.assertEqual(ran, {name: allocated[name] for name in ran})
                self.assertEqual(self.figures("reserved"), {name: reserved[name] for name in ran})

    def test_one_tensor_more_that_is_kept_fails_at_its_line(self):
        self.example()
        file = self.folder / "test_memory.py"
        kept = file.read_text().replace('device="cuda")).sum())', 'device="cuda")))')
        file.write_text(kept)
        line = 1 + next(number for number, text in enumerate(kept.splitlines()) if "kept.append" in text)
        forward = 1 + next(number for number, text in enumerate((self.folder / "model.py").read_text().splitlines()) if "self.down(" in text)
        more = 3 * (2 * 256 * 64 - 512)
        bytes_of = set()
        for arguments in ([], ["-k", "inference"], ["-n", "2"]):
            with self.subTest(arguments):
                said = self.pytest(*arguments, code=1)
                self.assertIn(f"model.py:{forward}, called at test_memory.py:{line}\n", said)
                bytes_of.add(self.figures()[NAMES[2]])
        self.assertEqual(bytes_of, {1345024 + more})


MEASURED = '''
import pytest, torch

def own(record, work):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    record("own_allocated", torch.cuda.max_memory_allocated() - before)
    record("own_reserved", torch.cuda.max_memory_reserved() - before)

def training():
    model = torch.nn.Linear(300, 500, device="cuda")
    model(torch.zeros(10, 300, device="cuda")).sum().backward()

@pytest.fixture(scope="module")
def kept():
    return torch.zeros(3_000_001, device="cuda")

@pytest.mark.device_memory("1 GiB")
def test_own(record_property, kept):
    own(record_property, training)

@pytest.mark.device_memory("1 GiB", workspaces="include")
def test_include(record_property, kept):
    own(record_property, training)

@pytest.mark.device_memory("1 GiB")
def test_closed(kept):
    a = torch.zeros(1000, device="cuda"); b = torch.zeros(3_000_000, device="cuda"); del a; c = torch.zeros(1, device="cuda")

lazy = []
@pytest.mark.device_memory(512, warmup=1)
def test_warm():
    if not lazy: lazy.append(torch.zeros(1000, device="cuda"))
    torch.zeros(1, device="cuda")

@pytest.mark.device_memory("1 KiB")
def test_parts():
    x = torch.zeros(1000, device="cuda")
    y = [torch.zeros(2000, device="cuda") for _ in range(3)]

@pytest.mark.device_memory("1 KiB")
def test_backward():
    model = torch.nn.Linear(300, 500, device="cuda")
    loss = model(torch.zeros(10, 300, device="cuda")).sum()
    loss.backward()

@pytest.mark.device_memory
def test_benchmark(benchmark):
    benchmark(lambda: torch.zeros(1000, device="cuda"))
'''  # fmt: skip


class Figures(Repository):
    def test_they_are_pytorchs_own(self):
        self.write("test_it.py", MEASURED)
        self.write("pytest.ini", "[pytest]\naddopts = --strict-markers\n")
        said = self.pytest("--benchmark-json", "benchmark.json", "--benchmark-max-time=0.01", "--benchmark-min-rounds=1", code=1)
        properties = self.properties()
        for name in ("own", "include"):
            for what in ("allocated", "reserved"):
                self.assertEqual(properties[name][f"device_memory_{what}_bytes"], properties[name][f"own_{what}"], name)
        allocated = self.figures()
        self.assertGreater(allocated["include"], allocated["own"] + (32 << 20))  # the workspaces of an H100
        # 4,000 bytes rounded to 512; 12,000,000 have a segment of whole 2 MiB, whose rest is too small to be split off.
        self.assertEqual(allocated["closed"], 4096 + (12 << 20))
        self.assertEqual(allocated["warm"], 512)
        # Lines, at the peak, to the byte: 4,096 and 3 x 8,192.
        text = MEASURED.splitlines()
        x, y = (1 + next(number for number, line in enumerate(text) if line.startswith(f"    {name} = ")) for name in "xy")
        self.assertEqual(allocated["parts"], 4096 + 3 * 8192)
        self.assertRegex(said, rf"24\.000 KiB  test_it\.py:{y}\n +4\.000 KiB  test_it\.py:{x}\n")
        # What autograd's own thread allocates belongs to the line of the forward.
        self.assertRegex(said, r"By line, at the peak of allocated memory:\n +\S+ KiB  test_it.py:\d+\n")
        self.assertIn("parameter", said)
        self.assertIn("gradient", said)
        with open(self.folder / "benchmark.json", encoding="utf-8") as file:
            extra = json.load(file)["benchmarks"][0]["extra_info"]["peakbench"]
        self.assertEqual(extra["allocated_bytes"], allocated["benchmark"])
        self.assertEqual(re.findall(r"FAILED (\S+)", said), ["test_it.py::test_parts", "test_it.py::test_backward"])

    def test_a_marked_test_that_takes_nothing(self):
        self.write("test_it.py", "import pytest, torch\n\n@pytest.mark.device_memory('1 MiB')\ndef test_on_the_host():\n"
                                 "    torch.zeros(1 << 24).square().mean()\n\n@pytest.mark.device_memory('1 MiB')\n"
                                 "def test_on_the_card():\n    torch.zeros(8, device='cuda')\n")
        said = self.pytest()
        self.assertEqual(said.count("the test took no device memory, so its mark checks nothing"), 1)
        self.assertIn("test_it.py::test_on_the_host", said)

    def test_the_summary_has_the_figures_of_a_test_that_fails(self):
        self.write("test_it.py", "import pytest, torch\n\n@pytest.mark.device_memory('1 MiB')\ndef test_much():\n"
                                 "    torch.zeros(4 << 20, device='cuda')\n")
        self.assertRegex(self.pytest(code=1), r"(?m)^FAILED test_it\.py::test_much - Failed: 16\.000 MiB, limit 1\.000 MiB")

    def test_a_default_for_tests_without_a_mark(self):
        self.write("test_it.py", "import torch\n\ndef test_much():\n    torch.zeros(1000, device='cuda')\n")
        self.write("pytest.ini", "[pytest]\ndevice_memory_default = warn 1 KiB\n")
        self.assertIn("PytestWarning: 4.000 KiB, limit 1.000 KiB: at its peak the test had 4096 bytes of device memory allocated, 3072 more than the limit (h100-80gb, ", self.pytest())
        self.write("pytest.ini", "[pytest]\ndevice_memory_default = 1 KiB\n")
        self.assertIn("allocated, 3072 more than the limit (", self.pytest(code=1))
        self.write("pytest.ini", "[pytest]\ndevice_memory_default = a lot\n")
        self.assertIn("device_memory_default has the limit 'a lot', which is no size", self.pytest(code=1))


RESET = """
import peakbench, pytest, torch

@pytest.mark.device_memory("1 MiB")
@pytest.mark.parametrize("reset", [peakbench.step, torch.cuda.reset_peak_memory_stats, torch.accelerator.reset_peak_memory_stats])
def test_it(reset):
    torch.zeros(1 << 20, device="cuda")
    reset()
    torch.zeros(1000, device="cuda")

def test_resets_are_pytorchs_again():
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()
"""

UNKNOWN = """
import pytest, torch

@pytest.mark.device_memory("60 MiB")
def test_rows():
    kept = int((torch.randn(2048, 2048, device="cuda") > -9).sum())
    torch.zeros(kept * 4, device="cuda")

@pytest.mark.device_memory("60 MiB")
def test_loss():
    assert isinstance(torch.randn(2048, 2048, device="cuda").square().mean().item(), float)

@pytest.mark.device_memory("60 MiB")
def test_known():
    torch.zeros(int(torch.ones(8, device="cuda").sum()), device="cuda")
"""

ACCURACY = """
@pytest.mark.device_memory("60 MiB")
def test_accuracy():
    right = int((torch.randn(2048, 2048, device="cuda").argmax(1) == 7).sum())
    torch.zeros(1024 if right >= 0 else 1, device="cuda")

@pytest.mark.device_memory("60 MiB")
def test_asserts():
    assert int((torch.randn(2048, 2048, device="cuda") > 0).sum()) < 2048 * 2048
"""


class Told(Repository):
    """What would make a figure wrong, or hide it."""

    def test_a_reset_of_the_peaks_hides_nothing(self):
        self.write("test_it.py", RESET)
        said = self.pytest(code=1)
        self.assertEqual(said.count("4194304 bytes of device memory allocated"), 3)
        self.assertIn("3 failed, 1 passed", said)

    def test_values_that_are_not_known(self):
        self.write("test_it.py", UNKNOWN)
        said = self.pytest("--peakbench-base", "base.json", "--peakbench-accept", code=1, values=True)
        self.assertIn("device_memory: test_it.py:6 read integer values (1 time), which an emulated card does not know", said)
        self.assertIn("test_it.py::test_loss: exact if nothing that it allocates rests on this: test_it.py:11 read floating values (1 time)", said)
        self.assertEqual(re.findall(r"FAILED (\S+)", said), ["test_it.py::test_rows"])
        self.write("pytest.ini", "[pytest]\ndevice_memory_unknown = warn\n")
        said = self.pytest("--peakbench-base", "base.json", "--peakbench-accept", values=True)
        self.assertIn("PytestWarning: device_memory: test_it.py:6 read integer values", said)
        self.assertIn("test_it.py::test_rows: not accepted: test_it.py:6 read integer values", said)
        accepted = json.loads((self.folder / "base.json").read_text())["tests"]
        self.assertEqual(sorted(accepted), ["test_it.py::test_known", "test_it.py::test_loss"])

    def test_other_values_that_take_the_same_are_accepted(self):
        self.write("test_it.py", UNKNOWN + ACCURACY)
        said = self.pytest("--peakbench-second-guess", "2", "--peakbench-base", "base.json", "--peakbench-accept", code=1, values=True)
        self.assertRegex(said, r"test_it.py::test_accuracy: the same with other values \(3 runs\): test_it.py:\d+ read integer values \(1 time\)")
        self.assertRegex(said, r"FAILED test_it.py::test_rows.*\n?")
        self.assertRegex(said, r"with other values it took \d+ bytes allocated and \d+ reserved, not \d+ and \d+")
        self.assertRegex(said, r"with other values it failed: test_it.py:\d+: AssertionError")
        self.assertEqual(re.findall(r"FAILED (\S+)", said), ["test_it.py::test_rows", "test_it.py::test_asserts"])
        accepted = json.loads((self.folder / "base.json").read_text())["tests"]
        self.assertEqual(sorted(accepted), ["test_it.py::test_accuracy", "test_it.py::test_known", "test_it.py::test_loss"])
        self.assertIn("--peakbench-second-guess N", self.pytest("--peakbench-second-guess", "-1", code=4))


GATED = """
import pytest, torch

@pytest.mark.device_memory
@pytest.mark.parametrize("size", [1000, 2000])
def test_it(size):
    torch.zeros(size + {more}, device="cuda")

def test_unmarked():
    pass
"""


class Base(Repository):
    def test_accepted_and_held_to_the_byte(self):
        self.write("test_it.py", GATED.format(more=0))
        gate, accept = ("--peakbench-base", "base.json"), ("--peakbench-base", "base.json", "--peakbench-accept")
        self.assertEqual(self.pytest(*gate, code=1).count("base.json is not there: --peakbench-accept makes it"), 2)
        self.pytest(*accept, "-k", "1000 or unmarked")
        said = self.pytest(*gate)
        self.assertIn("test_it[2000]: not held against the base: it has none of this test; this is h100-80gb, torch ", said)
        self.pytest(*accept, "-k", "2000", "-n", "2")  # the other entry stays
        self.assertNotIn("not held", self.pytest(*gate, "-n", "2"))
        self.assertIn("it has figures for h100-80gb, torch ", self.pytest(*gate, card="a100-40gb"))
        self.write("test_it.py", GATED.format(more=100))
        said = self.pytest(*gate, "-n", "2", code=1)
        self.assertIn("4608 bytes of device memory allocated, 512 more than accepted (h100-80gb, torch ", said)
        self.assertIn(").\nBy line", said)
        self.write("test_it.py", GATED.format(more=-500))
        self.assertIn("2048 bytes less than accepted", self.pytest(*gate))
        self.pytest(*accept)
        self.assertNotIn("less than accepted", self.pytest(*gate))
        self.assertEqual([file.name for file in self.folder.glob("base*")], ["base.json"])

    def test_a_base_that_cannot_be_used(self):
        self.write("test_it.py", GATED.format(more=0))
        for text, sentence in (("{", "cannot be read"), ('{"tests": {}}', "is no file of accepted figures"),
                               ('{"device_memory_schema": 1, "tests": {"a": {"b": 3}}}', "is no file of accepted figures")):  # fmt: skip
            with self.subTest(text):
                self.write("base.json", text)
                said = self.pytest("--peakbench-base", "base.json", "--peakbench-accept", code=1)
                self.assertIn(sentence, said)
                self.assertIn("2 failed, 1 passed", said)
                self.assertEqual((self.folder / "base.json").read_text(), text)
        os.mkfifo(self.folder / "pipe.json")
        for name, text in (("deep.json", "[" * 100_000), ("large.json", '{"tests": ' + "9" * 5000 + "}"), ("pipe.json", None), ("/dev/null", None)):
            with self.subTest(name):
                if text:
                    self.write(name, text)
                self.assertIn(f"{name} cannot be read", self.pytest("--peakbench-base", name, "--peakbench-accept", code=1))
        (self.folder / "elsewhere").mkdir()
        (self.folder / "link.json").symlink_to("elsewhere/base.json")
        self.pytest("--peakbench-base", "link.json", "--peakbench-accept")
        self.assertTrue((self.folder / "link.json").is_symlink())
        self.pytest("--peakbench-base", "elsewhere/base.json")
        said = self.pytest("--peakbench-base", "/proc/base.json", "--peakbench-accept", code=1)
        self.assertIn("the accepted figures could not be written: [Errno", said)
        self.assertIn("3 passed", said)
        self.pytest("--peakbench-accept", code=4)


WRONG = {
    '"2 GB!"': "the mark has the limit '2 GB!', which is no size: write it as \"2 GiB\"",
    "-1": "the mark has the limit -1, which is no size",
    '"1 GiB", card="h100"': 'unknown card "h100"; did you mean "h100-80gb"?',
    '"1 GiB", card="a100-40gb"': None,
    '"1 GiB", wramup=1': 'the mark has no "wramup"; did you mean "warmup"?',
    '"1 GiB", ranks=0': "ranks=0: expected a number of processes, 1 or more",
    '"1 GiB", ranks=2': "ranks=2 needs 2 cards, and one is here: peakbench emulate --card CARD,count=2 -- python3 -m pytest",
    '"1 GiB", at="peak"': "at='peak' is neither \"allocated\" nor \"reserved\"",
    '"1 GiB", workspaces="none"': "workspaces='none' is neither",
    '"1 GiB", warmup="1"': "warmup='1' is no number of runs",
    '"1 GiB", "2 GiB"': "the mark takes one limit",
    "'9' * 309 + ' GiB'": "the mark has the limit '999",
    "10 ** 5000": "the mark has the limit <a int whose repr raises ValueError>, which is more than any card has",
    "Odd()": "the mark has the limit <a Odd whose repr raises ZeroDivisionError>, which is no size",
    '"1 GiB", at=Odd()': "at=<a Odd whose repr raises ZeroDivisionError> is neither",
    '"1 GiB", card="\\33[31mred"': r'unknown card "\x1b[31mred"',
    '"1 GiB", **{"\\33[31m": 1}': r'the mark has no "\x1b[31m"',
}  # fmt: skip
ODD = """
class Odd:
    def __repr__(self):
        return 1 / 0
    __eq__ = __hash__ = __repr__
"""
# A test may record anything, under any name.
RECORDED = ODD + """
import pytest, torch

@pytest.mark.device_memory("1 GiB"{ranks})
def test_odd(record_property, request):
    record_property("object", object())
    record_property("odd", Odd())
    record_property(7, 8)
    deep = []
    for _ in range(100000):
        deep = [deep]
    record_property("deep", deep)
    record_property("keys", {{(1, 2): 3}})
    torch.zeros(1000, device="cuda")

@pytest.mark.device_memory("1 GiB"{ranks})
def test_ours(record_property):
    for name in ("allocated_bytes", "other_bytes", "ranks", "key", "note", "doubt"):
        record_property("device_memory_" + name, "{{")
    record_property("device_memory_exceeds", True)
    torch.zeros(1000, device="cuda")

def test_unmarked(record_property):
    record_property("device_memory_key", "mine")
    record_property("device_memory_allocated_bytes", "many")
"""
STARTS = """
import pytest, subprocess, sys

@pytest.mark.device_memory("1 GiB")
def test_starts():
    subprocess.run([sys.executable, "-c", "import torch; torch.zeros(1000, device='cuda')"], check=True)

@pytest.mark.device_memory("100 GiB")
def test_out_of_memory():
    import torch
    kept = [torch.zeros(30 << 28, device="cuda") for _ in range(4)]

@pytest.mark.device_memory("1 GiB")
def test_starts_one_without_a_card():
    subprocess.run([sys.executable, "-c", "import torch; torch.zeros(1000)"], check=True)
"""


RANKS = """
import os
import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

@pytest.fixture(scope="module")
def kept():
    return torch.zeros(1 << 20, device="cuda")

@pytest.fixture
def group():
    dist.init_process_group("nccl")
    yield
    dist.destroy_process_group()

@pytest.mark.device_memory("64 MiB", ranks=2)
def test_own(record_property, kept, group):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    model = DistributedDataParallel(torch.nn.Linear(1000, 1000, device="cuda"))
    model(torch.zeros(8, 1000, device="cuda")).sum().backward()
    more = torch.zeros(int({more} * dist.get_rank()), device="cuda")
    record_property("own_allocated", torch.cuda.max_memory_allocated() - before)

@pytest.mark.device_memory("64 MiB")
def test_one(kept):
    assert "RANK" not in os.environ
    torch.zeros(1000, device="cuda")
"""
BY_HAND = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
kept = torch.zeros(1 << 20, device="cuda")
w = torch.zeros(8, 8, device="cuda", requires_grad=True)  # cuBLAS's workspaces
torch.nn.functional.linear(w @ w, w, torch.zeros(8, device="cuda")).sum().backward()
del w
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
model = DistributedDataParallel(torch.nn.Linear(1000, 1000, device="cuda"))
model(torch.zeros(8, 1000, device="cuda")).sum().backward()
more = torch.zeros(1_000_000 * dist.get_rank(), device="cuda")
with open(f"by_hand_{dist.get_rank()}", "w") as file:
    file.write(str(torch.cuda.max_memory_allocated() - before))
dist.destroy_process_group()
"""
RANKS_THAT_FAIL = """
import os, signal, time
import pytest, torch
import torch.distributed as dist

RANK = int(os.environ.get("RANK", -1))

@pytest.mark.device_memory("1 GiB", ranks=2)
def test_one_raises_while_the_other_waits():
    dist.init_process_group("nccl")
    if RANK == 1:
        raise ValueError("of rank one")
    dist.barrier()
    time.sleep(600)

@pytest.mark.device_memory("1 GiB", ranks=2)
def test_one_is_killed():
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)

@pytest.mark.device_memory("1 KiB", ranks=2)
def test_one_takes_too_much():
    kept = torch.zeros(1000 * RANK + 1, device="cuda")

@pytest.mark.skipif(True, reason="of the skip")
@pytest.mark.device_memory("1 GiB", ranks=2)
def test_skipped():
    pass

@pytest.mark.device_memory("1 GiB", ranks=2)
def test_of_another_card():
    torch.zeros(1000, device="cuda:1")

@pytest.mark.device_memory("1 GiB", ranks=3)
def test_of_three():
    pass

def test_others_go_on():
    assert RANK == -1
"""


RANKS_THAT_DIFFER = """
import os, random, threading, time, warnings
import pytest, torch

EARLY = torch.empty(512, dtype=torch.uint8, device="cuda")
RANK = int(os.environ.get("RANK", 0))

def take(mib):
    return torch.empty(mib << 20, dtype=torch.uint8, device="cuda")

@pytest.mark.device_memory("3 MiB", ranks=2)
def test_option(pytestconfig):
    torch.empty(1 << 20, dtype=pytestconfig.getoption("--dtype"), device="cuda")

@pytest.mark.device_memory("5 MiB", ranks=2)
def test_both_exceed():
    time.sleep(2 * RANK)
    take(10 if RANK == 0 else 40)

@pytest.mark.device_memory("50 MiB", ranks=2)
def test_one_is_skipped():
    take(4)
    if RANK == 1:
        pytest.skip("not here")

@pytest.mark.xfail(reason="of one")
@pytest.mark.device_memory("50 MiB", ranks=2)
def test_one_fails_as_expected():
    if RANK == 0:
        take(4)
    else:
        raise ValueError

@pytest.mark.device_memory("50 MiB", ranks=2)
def test_card_and_warnings():
    assert EARLY.device.index == torch.cuda.current_device() == RANK
    warnings.warn("of every rank")

@pytest.mark.device_memory("50 MiB", ranks=2)
def test_a_thread_is_left():
    threading.Thread(target=time.sleep, args=(1000,)).start()

@pytest.mark.parametrize("number", [random.random()])
@pytest.mark.device_memory("50 MiB", ranks=2)
def test_names(number):
    pass
"""


class Ranks(Repository):
    TWO = "h100-80gb,count=2"

    def of_ranks(self):
        return {one["key"]: one["allocated_bytes"] for one in json.loads(self.properties()["own"]["device_memory_ranks"])}

    def test_each_has_its_figure_which_is_pytorchs_own(self):
        self.write("test_it.py", RANKS.format(more=1_000_000))
        self.write("pytest.ini", "[pytest]\naddopts = --strict-markers\n")
        self.pytest(card=self.TWO)
        properties, ranks = self.properties()["own"], self.of_ranks()
        self.assertEqual(properties["device_memory_allocated_bytes"], properties["own_allocated"])
        self.assertRegex(properties["device_memory_key"], r"^h100-80gb, rank 1 of 2, torch ")
        self.assertEqual([re.sub(", torch.*", "", key) for key in ranks], ["h100-80gb, rank 0 of 2", "h100-80gb, rank 1 of 2"])
        # The same without pytest: torchrun, and PyTorch's counters.
        self.write("by_hand.py", BY_HAND)
        subprocess.run([PEAKBENCH, "emulate", "--no-compute", "--card", self.TWO, "--", PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2",
                        "by_hand.py"], cwd=self.folder, check=True, capture_output=True)  # fmt: skip
        self.assertEqual(list(ranks.values()), [int((self.folder / f"by_hand_{rank}").read_text()) for rank in range(2)])
        # Beside others, and where torchrun starts pytest.
        self.pytest("-n", "2", card=self.TWO)
        self.assertEqual(self.of_ranks(), ranks)

    def test_ids_of_parameters_that_look_like_paths(self):
        ids = ["http://x/y", "a//b", "../up", "c::d", "e[f]", "x/./y/", "-k", "@file"]
        self.write("test_it.py", f"import pytest\n\n@pytest.mark.device_memory('1 GiB', ranks=2)\n@pytest.mark.parametrize('one', {ids})\n"
                                 "def test_it(one):\n    pass\n")  # fmt: skip
        self.assertIn(f"{len(ids)} passed", self.pytest(card=self.TWO))

    def test_held_to_the_byte_by_rank(self):
        self.write("test_it.py", RANKS.format(more=1_000_000))
        gate = ("--peakbench-base", "base.json")
        self.pytest(*gate, "--peakbench-accept", card=self.TWO)
        accepted = json.loads((self.folder / "base.json").read_text())["tests"]["test_it.py::test_own"]
        self.assertEqual({key: of_rank["allocated_bytes"] for key, of_rank in accepted.items()}, self.of_ranks())
        self.assertNotIn("not held", self.pytest(*gate, card=self.TWO))
        self.write("test_it.py", RANKS.format(more=1_000_000).replace("dist.get_rank()), device", "max(dist.get_rank(), 0.9)), device"))
        said = self.pytest(*gate, code=1, card=self.TWO)  # more on the rank that takes less
        self.assertRegex(said, r", \d+ more than accepted \(h100-80gb, rank 0 of 2, torch \S+\)")

    def test_torchrun_starts_pytest(self):
        self.write("test_it.py", RANKS.format(more=1_000_000).replace('assert "RANK" not in os.environ', "pass"))
        self.pytest(card=self.TWO)
        ranks = self.of_ranks()
        run = [PEAKBENCH, "emulate", "--no-compute", "--card", self.TWO, "--", PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "pytest",
               "-q", "-p", "no:cacheprovider", "--peakbench-base", "base.json", "--peakbench-accept"]  # fmt: skip
        done = subprocess.run(run, cwd=self.folder, env=os.environ | {"PYTHONPATH": str(self.site)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        accepted = json.loads((self.folder / "base.json").read_text())["tests"]
        self.assertEqual({key: of_rank["allocated_bytes"] for key, of_rank in accepted["test_it.py::test_own"].items()}, ranks)
        self.assertEqual(len(accepted["test_it.py::test_one"]), 2)

    def test_plugins_that_limit_its_time_and_a_plugin_that_is_named(self):
        self.write("test_it.py", "import time\nimport pytest\n\n@pytest.mark.device_memory('1 GiB', ranks=2)\ndef test_long():\n    time.sleep(600)\n\n"
                                 "def test_after():\n    pass\n")  # fmt: skip
        self.write("conftest.py", '''
import os, signal
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):  # as pytest-timeout does it
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("Timeout of the suite"))
    signal.alarm(6 if "RANK" not in os.environ else 0)
    try:
        return (yield)
    finally:
        signal.alarm(0)
''')
        (self.site / "peakbench-0.dist-info/entry_points.txt").unlink()
        said = self.pytest("-p", "peakbench.pytest_plugin", code=1, card=self.TWO)
        self.assertIn("Timeout of the suite", said)
        self.assertIn("1 failed, 1 passed", said)

    def test_what_differs_between_them(self):
        self.write("test_it.py", RANKS_THAT_DIFFER)
        self.write("conftest.py", "import torch\n\ndef pytest_addoption(parser):\n    parser.addoption('--dtype', type=lambda name: getattr(torch, name), "
                                  "default=torch.float16)\n")  # fmt: skip
        said = self.pytest("-rA", "--dtype", "float32", "--peakbench-base", "base.json", "--peakbench-accept", code=1, card=self.TWO)
        self.assertRegex(said, r"limit 3\.000 MiB: .* 4194304 bytes .* more than the limit \(h100-80gb, rank \d of 2, ")
        self.assertRegex(said, r"limit 5\.000 MiB: .* 41943040 bytes .* more than the limit \(h100-80gb, rank 1 of 2, ")
        self.assertIn("not here", said)
        self.assertIn("XFAIL test_it.py::test_one_fails_as_expected", said)
        self.assertEqual(said.count("UserWarning: of every rank"), 1)
        self.assertIn("PASSED test_it.py::test_a_thread_is_left", said)
        self.assertRegex(said, r"rank \d of 2 collected no test of this name: names of parameters must be the same in every process")
        self.assertIn("3 failed, 2 passed, 1 skipped, 1 xfailed", said)
        accepted = json.loads((self.folder / "base.json").read_text())["tests"]
        self.assertEqual({name.partition("::test_")[2] for name in accepted}, {"card_and_warnings", "a_thread_is_left"})

    def test_one_that_hangs_is_told_when_the_session_is_interrupted(self):
        self.write("test_it.py", "import os, time\nimport pytest\n\n@pytest.mark.device_memory('1 GiB', ranks=2)\ndef test_long():\n"
                                 "    open(f\"there-{os.environ['RANK']}\", 'w').close()\n    time.sleep(600 * int(os.environ['RANK']))\n")  # fmt: skip
        self.write("conftest.py", """
import os, signal, threading, time

def pytest_runtest_logstart():
    def interrupt():
        while not all(os.path.exists(f"there-{rank}") for rank in range(2)):
            time.sleep(0.1)
        time.sleep(2)
        os.kill(os.getpid(), signal.SIGINT)
    if "RANK" not in os.environ:
        threading.Thread(target=interrupt, daemon=True).start()
""")
        said = self.pytest(code=2, card=self.TWO)
        self.assertRegex(said, r"rank 1 of 2 had not ended:\n(.*\n)*.*test_it\.py\"?, line 7 in test_long")
        self.assertNotIn("rank 0 of 2 had not ended", said)

    def test_what_fails_in_one(self):
        self.write("test_it.py", RANKS_THAT_FAIL)
        said = self.pytest("-rs", "-p", "no:unraisableexception", code=1, card=self.TWO)
        self.assertIn("ValueError: of rank one", said)
        self.assertIn("rank 1 of 2 ended by signal 9 before its test did.", said)
        self.assertRegex(said, r"limit 1\.000 KiB: .*, 3072 more than the limit \(h100-80gb, rank 1 of 2, torch \S+\)\.\nBy line")
        self.assertIn("of the skip", said)
        self.assertIn("the test allocated on cuda:1, and only cuda:0 is measured, which was current when it began", said)
        self.assertIn("ranks=3 needs 3 cards, and 2 are here", said)
        self.assertIn("5 failed, 1 passed, 1 skipped", said)


class BadInput(Repository):
    def test_one_sentence_each_and_others_go_on(self):
        marks = "".join(f"@pytest.mark.device_memory({mark})\ndef test_{number}():\n    pass\n" for number, mark in enumerate(WRONG))
        self.write("test_it.py", f"import pytest\n{ODD}\n{marks}\ndef test_unmarked():\n    pass\n")
        said = self.pytest("-rs", code=1)
        self.assertNotIn("\33[31m", said)
        for mark, sentence in WRONG.items():
            self.assertIn(f"device_memory: {sentence}" if sentence else "its limit is for a100-40gb, and this is h100-80gb", said, mark)
        self.assertIn(f"{len(WRONG) - 1} failed, 1 passed, 1 skipped", said)

    def test_what_a_test_records_is_no_figure(self):
        for ranks, card in (("", "h100-80gb"), (", ranks=2", "h100-80gb,count=2")):
            with self.subTest(ranks):
                self.write("test_it.py", RECORDED.format(ranks=ranks))
                base = ("--peakbench-base", f"base{len(ranks)}.json", "--junit-xml=")
                said = self.pytest(*base, "--peakbench-accept", card=card)
                self.assertIn("accepted figures of 2 tests", said)
                self.assertIn("the property device_memory_other_bytes is left out", said)
                tests = json.loads((self.folder / base[1]).read_text())["tests"]
                self.assertEqual(set(tests), {"test_it.py::test_odd", "test_it.py::test_ours"})
                figures = [figure for of_test in tests.values() for figure in of_test.values()]
                self.assertEqual([figure["allocated_bytes"] for figure in figures], [4096] * (4 if ranks else 2))
                self.assertEqual({tuple(figure) for figure in figures}, {("allocated_bytes", "requested_bytes", "reserved_bytes")})
                self.assertNotIn("not held", self.pytest(*base, card=card))

    def test_processes_and_out_of_memory(self):
        self.write("test_it.py", STARTS)
        said = self.pytest(code=1)
        self.assertIn("device_memory: the test started a process that uses the card, and only the test's own process is measured", said)
        self.assertIn("60.000 GiB  test_it.py:11", said)
        self.assertIn("2 failed, 1 passed", said)

    def test_no_card_no_torch(self):
        self.write("test_it.py", 'import pytest\n\n@pytest.mark.device_memory("1 GiB")\ndef test_it():\n    pass\n\ndef test_unmarked():\n    pass\n')
        said = self.pytest(code=1, card=None, environment={"CUDA_VISIBLE_DEVICES": ""})
        self.assertIn("device_memory: there is no CUDA card: start it with `peakbench emulate -- python3 -m pytest`", said)
        self.assertIn("1 failed, 1 passed", said)
        wrong = self.pytest("-o", "device_memory_missing=warn", code=4, card=None, environment={"CUDA_VISIBLE_DEVICES": ""})
        self.assertIn("the ini option device_memory_missing = warn: expected fail or skip", wrong)
        skips = self.pytest("-rs", "-o", "device_memory_missing=skip", card=None, environment={"CUDA_VISIBLE_DEVICES": ""})
        self.assertIn("there is no CUDA card", skips)
        self.write("conftest.py", 'import sys\nsys.modules["torch"] = None\n')
        self.assertIn("this Python has no PyTorch: install one that is built for CUDA", self.pytest(code=1, card=None))
        self.write("conftest.py", 'import sys, types\nsys.modules["torch"] = types.SimpleNamespace(__version__="2.11.0+cpu", version=types.SimpleNamespace(cuda=None))\n')
        self.assertIn("PyTorch 2.11.0+cpu is built without CUDA: install one", self.pytest(code=1, card=None))
