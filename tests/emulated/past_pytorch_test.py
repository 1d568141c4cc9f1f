"""What a program asks of CUDA itself, past PyTorch's operators: copies and fills, graphs, other processes, wrong arguments.

Truth: what CUDA does with the same calls by its documentation. Each program asserts the values that a card would give.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

ASKED = """
import ctypes, torch
p, n = ctypes.c_void_p, ctypes.c_size_t
runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
driver = ctypes.CDLL("libcuda.so.1")
host = torch.arange(1, 31)
other = host.cuda()
x = torch.zeros(30, dtype=torch.int64, device="cuda")
torch.cuda.synchronize()
assert CALL == 0
torch.cuda.synchronize()
"""
# Each writes 1 to 30 into x.
WRITES = {
    "cudaMemcpy": "runtime.cudaMemcpy(p(x.data_ptr()), p(host.data_ptr()), n(240), 1)",
    "cudaMemcpy, direction by the addresses": "runtime.cudaMemcpy(p(x.data_ptr()), p(host.data_ptr()), n(240), 4)",
    "cudaMemcpyAsync": "runtime.cudaMemcpyAsync(p(x.data_ptr()), p(host.data_ptr()), n(240), 1, p(0))",
    "cudaMemcpyAsync within the card": "runtime.cudaMemcpyAsync(p(x.data_ptr()), p(other.data_ptr()), n(240), 3, p(0))",
    "cudaMemcpyPeer": "runtime.cudaMemcpyPeer(p(x.data_ptr()), 0, p(other.data_ptr()), 0, n(240))",
    "cudaMemcpy2D": "runtime.cudaMemcpy2D(p(x.data_ptr()), n(80), p(host.data_ptr()), n(80), n(80), n(3), 1)",
    "cuMemcpyHtoD": "driver.cuMemcpyHtoD_v2(p(x.data_ptr()), p(host.data_ptr()), n(240))",
    "cuMemcpyDtoDAsync": "driver.cuMemcpyDtoDAsync_v2(p(x.data_ptr()), p(other.data_ptr()), n(240), p(0))",
    "cuMemcpy": "driver.cuMemcpy(p(x.data_ptr()), p(other.data_ptr()), n(240))",
}
# And these bytes of 1 into the first four of them.
FILLS = {
    "cudaMemset": "runtime.cudaMemset(p(x.data_ptr()), 1, n(32))",
    "cudaMemsetAsync": "runtime.cudaMemsetAsync(p(x.data_ptr()), 1, n(32), p(0))",
    "cudaMemset2D": "runtime.cudaMemset2D(p(x.data_ptr()), n(16), 1, n(16), n(2))",
    "cuMemsetD8": "driver.cuMemsetD8_v2(p(x.data_ptr()), 1, n(32))",
    "cuMemsetD16": "driver.cuMemsetD16_v2(p(x.data_ptr()), 0x101, n(16))",
    "cuMemsetD32Async": "driver.cuMemsetD32Async(p(x.data_ptr()), 0x1010101, n(8), p(0))",
}
# In a function of autograd, as wrappers of kernels have it.
IN_A_FUNCTION = """
class Fills(torch.autograd.Function):
    @staticmethod
    def forward(context, y):
        runtime.cudaMemset(p(x.data_ptr()), 0, n(240))
        return y.clone()
Fills.apply(torch.zeros(2, device="cuda", requires_grad=True))
assert int(x.sum()) == 0
"""

CAPTURED = """
import torch
counter = torch.zeros((), dtype=torch.int64, device="cuda")
table = torch.zeros(64, dtype=torch.bool, device="cuda")
inputs, static = torch.arange(64).pin_memory(), torch.zeros(64, dtype=torch.int64, device="cuda")
weights = [torch.zeros(8, device="cuda") for _ in range(2)]
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    counter += 7
    table.fill_(True)
    static.copy_(inputs, non_blocking=True)
    torch._foreach_add_(weights, 1)
    table2 = table.logical_not()
assert (int(counter), table.nonzero().shape[0], int(static.sum()), float(weights[1].sum())) == (0, 0, 0, 0)
"""

ZERO_TANGENT = """
import torch, torch.autograd.forward_ad as forward
x = torch.ones(4, device="cuda")
with forward.dual_level():
    dual = forward.make_dual(x, torch._efficientzerotensor(4, device="cuda"))
    primal, tangent = forward.unpack_dual(dual * 2 + dual.sin())
assert int((torch._efficientzerotensor((3,), dtype=torch.int64, device="cuda") + torch.ones(3, dtype=torch.int64, device="cuda")).sum()) == 3
"""

CHILD = """
import os, subprocess, sys, torch
x = torch.zeros(1 << 20, device="cuda")
code = "import torch; y = torch.zeros(1 << 28, device='cuda')"
kept = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
command = [sys.executable, "-c", code]
START
"""
STARTS = {
    "subprocess": "subprocess.run(command, env=kept, check=True)",
    "posix_spawn": "assert os.waitpid(os.posix_spawn(sys.executable, command, kept), 0)[1] == 0",
    "execve": "pid = os.fork()\nif not pid: os.execve(sys.executable, command, kept)\nassert os.waitpid(pid, 0)[1] == 0",
    "deleted variables": "os.environ.clear(); os.environ.update(kept); assert os.spawnv(os.P_WAIT, sys.executable, command) == 0",
    "env -i": "subprocess.run(['/usr/bin/env', '-i', *command], check=True)",
}

WRONG = """
import ctypes, torch
runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
p, n = ctypes.c_void_p, ctypes.c_size_t
x = torch.zeros(64, device="cuda")
for kind, to, source in ((3, x.data_ptr(), 0x1234567000), (3, 0x1234567000, x.data_ptr()), (1, 0x1234567000, 0), (2, 0, 0x1234567000)):
    host = torch.zeros(64)
    assert runtime.cudaMemcpy(p(to or host.data_ptr()), p(source or host.data_ptr()), n(256), kind) == 1, kind
assert runtime.cudaDriverGetVersion(p(0)) == 1 and runtime.cudaRuntimeGetVersion(p(0)) == 1
"""

# Every function of every library, with nothing but null pointers: in a child each, as this is about how it ends.
NULLS = """
import ctypes, os, signal, subprocess, sys
for path in sys.argv[1:]:
    library = ctypes.CDLL(path)
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    for name in (line.split()[-1].split("@")[0] for line in listed.splitlines() if " T " in line):
        if name.startswith("__cuda"):  # nvcc's own, which no program calls
            continue
        pid = os.fork()
        if not pid:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            getattr(library, name)(*[ctypes.c_void_p(0)] * 24)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            print(name, signal.Signals(os.WTERMSIG(status)).name)
"""


READS = """
import subprocess, torch
x = torch.zeros(1 << 20, device="cuda")
subprocess.run(["nvidia-smi", *WHAT], check=True)
"""

PROFILED = """
import torch
with torch.profiler.profile() as profile:
    torch.zeros(1 << 20, device="cuda").add_(1)
print(sum(event.device_time_total for event in profile.key_averages()))
"""

LARGE = """
import torch
torch.empty(40 << 30, dtype=torch.uint8, device="cuda")
"""


def setUpModule():
    global WARM
    WARM = warm_python.served(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"]])


class PastPyTorch(unittest.TestCase):
    def emulate(self, text, *arguments, python=None, card="a100-80gb"):
        with tempfile.TemporaryDirectory(prefix="peakbench-past-") as folder:
            program, out = pathlib.Path(folder, "program.py"), pathlib.Path(folder, "took.json")
            program.write_text(text, encoding="utf-8")
            command = [PEAKBENCH, "emulate", "--details", "--card", card, "--json", out, "--", python or WARM, program, *arguments]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            self.said, self.printed = done.stderr, done.stdout
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.record = json.loads(out.read_text(encoding="utf-8"))
        return self.record["verdict"]["kind"]

    def test_what_the_program_writes_is_known(self):
        for calls, truth in ((WRITES, 30 * 31 // 2), (FILLS, 4 * 0x0101010101010101)):
            for name, call in calls.items():
                with self.subTest(name):
                    self.assertEqual(self.emulate(ASKED.replace("CALL", call) + f"assert int(x.sum()) == {truth}, x"), "exact", self.said)

    def test_what_is_written_below_a_function_of_autograd(self):
        self.assertEqual(self.emulate(ASKED.replace("CALL", WRITES["cudaMemcpy"]) + IN_A_FUNCTION), "exact", self.said)

    def test_a_part_of_a_tensor(self):
        part = "runtime.cudaMemset(p(x.data_ptr() + 40), 1, n(8))"
        after = "assert int(x.sum()) == 0x0101010101010101 and int(x[5]) > 1 and int(x[4]) == 0"
        self.assertEqual(self.emulate(ASKED.replace("CALL", part) + after), "exact", self.said)

    def test_what_comes_of_unknown_bytes_is_not_known(self):
        unknown = ASKED.replace("host.cuda()", "torch.randint(1, 9, (30,), device='cuda')").replace("CALL", WRITES["cuMemcpy"])
        self.assertEqual(self.emulate(unknown + "torch.zeros(int(x.sum()))"), "unreliable", self.said)

    def test_nothing_that_is_captured_has_run(self):
        self.assertEqual(self.emulate(CAPTURED), "exact", self.said)

    def test_what_a_replay_writes_is_not_known(self):
        for read in ("int(counter)", "table.nonzero()", "int(static[3])", "table2.nonzero()"):
            with self.subTest(read):
                self.assertEqual(self.emulate(CAPTURED + f"graph.replay()\n{read}\n"), "unreliable", self.said)
        self.assertEqual(self.emulate(CAPTURED + "table2.nonzero()\n"), "unreliable", "it has no value before the replay")

    def test_a_tangent_of_zeros(self):
        self.assertEqual(self.emulate(ZERO_TANGENT), "exact", self.said)

    def test_a_child_with_an_environment_of_its_own_has_the_card(self):
        for name, start in STARTS.items():
            with self.subTest(name):
                self.emulate(CHILD.replace("START", start), python=PYTHON)
                peaks = sorted(process["devices"][0]["peak_used_bytes"] for process in self.record["processes"] if process["devices"])
                self.assertGreaterEqual(peaks[-1], 1 << 30, self.said)

    def test_a_child_that_is_told_of_no_card_has_none(self):
        start = "kept['PEAKBENCH_EMULATED_CARD'] = ''\nassert subprocess.run(command, env=kept).returncode == 1"
        self.emulate(CHILD.replace("START", start), python=PYTHON)

    def test_addresses_of_nothing_are_errors(self):
        self.emulate(WRONG)

    def test_what_nvidia_smi_says_of_free_memory_is_a_condition(self):
        for what, kind in (("--query-gpu=memory.free,name", "exact if"), ("--query-compute-apps=pid,used_memory", "exact if"), ("--query-gpu=name,memory.total", "exact")):
            with self.subTest(what):
                self.assertEqual(self.emulate(READS.replace("WHAT", repr([what, "--format=csv"]))), kind, self.said)
        self.assertEqual(self.emulate(READS.replace("WHAT", "['-L']")), "exact", self.said)
        self.emulate(READS.replace("WHAT", "[]"))
        self.assertRegex(self.record["verdict"]["conditions"][0], "^nvidia-smi read how much memory is free")

    def test_device_times_of_a_profile_are_a_condition(self):
        self.assertEqual(self.emulate(PROFILED), "exact if", self.said)
        self.assertRegex(self.record["verdict"]["conditions"][0], "^torch.profiler .*its device times are 0")

    def test_a_limit_of_the_host_is_not_the_cards(self):
        with tempfile.TemporaryDirectory(prefix="peakbench-past-") as folder:
            program, out = pathlib.Path(folder, "program.py"), pathlib.Path(folder, "took.json")
            program.write_text(LARGE, encoding="utf-8")
            command = [PEAKBENCH, "emulate", "--details", "--card", "a100-80gb", "--json", out, "--", PYTHON, program]
            done = subprocess.run(["sh", "-c", 'ulimit -v 30000000; exec "$@"', "sh", *map(str, command)], capture_output=True, text=True)
            answer = json.loads(out.read_text(encoding="utf-8"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIsNone(answer["answer"]["fits"], answer["answer"]["sentence"])
        self.assertRegex(" ".join(answer["verdict"]["reasons"]), "this machine refused process .* memory that the card had")

    @unittest.skipUnless(shutil.which("nm"), "no nm")
    def test_null_pointers_end_nothing(self):
        folder = PEAKBENCH.parents[1] / "lib/peakbench/emulator"
        libraries = [path for path in sorted(folder.glob("lib*.so*")) if "peakbench" not in path.name and "nvshmem" not in path.name]
        self.assertGreater(len(libraries), 10)
        self.emulate(NULLS, *libraries, python=sys.executable)
        self.assertEqual(self.printed, "")
