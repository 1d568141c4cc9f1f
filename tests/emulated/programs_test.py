"""Programs of stock PyTorch that an emulated card must take as a real one does: factorisations, recurrent networks, tensors shared
between processes. They run to their end, nothing is refused, and what is not modelled is named.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from given import ORACLE, PEAKBENCH

FACTORISATIONS = """
import torch
for dtype in (torch.float32, torch.float64, torch.complex64):
    for shape in ((8, 8), (64, 64), (4, 16, 16), (2, 3, 40, 40)):
        a = torch.randn(shape, device="cuda", dtype=dtype, requires_grad=True)
        b = torch.randn(shape, device="cuda", dtype=dtype)
        torch.linalg.cholesky_ex(a)
        torch.linalg.svd(a)
        for driver in ("gesvd", "gesvdj", "gesvda"):
            torch.linalg.svd(a.detach(), driver=driver, full_matrices=False)
        torch.linalg.qr(a)[0].abs().sum().backward()
        torch.linalg.eigh(a)
        torch.linalg.eigvalsh(a)
        torch.linalg.lstsq(a, b)
        torch.linalg.solve_ex(a, b)
        torch.linalg.inv_ex(a)
        torch.linalg.lu_factor_ex(a)
        torch.linalg.ldl_factor_ex(a)
        torch.linalg.slogdet(a)
        torch.linalg.det(a)
        torch.linalg.householder_product(b, torch.randn(shape[:-1], device="cuda", dtype=dtype))
    for n in (8, 64):
        a = torch.randn(n, n, device="cuda", dtype=dtype)
        torch.linalg.cholesky(a), torch.linalg.solve(a, a), torch.linalg.inv(a)
"""

RECURRENT = """
import torch
from torch import nn
for kind, options in ((nn.LSTM, {}), (nn.LSTM, {"proj_size": 8}), (nn.GRU, {}), (nn.RNN, {}), (nn.LSTM, {"bias": False}),
                      (nn.GRU, {"bidirectional": True, "dropout": 0.5})):
    net = kind(24, 16, num_layers=2, **options).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(2):
        out, state = net(torch.randn(12, 4, 24, device="cuda"))
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    net.eval()(torch.randn(12, 4, 24, device="cuda"))
packed = nn.utils.rnn.pack_padded_sequence(torch.randn(12, 3, 24, device="cuda"), [12, 7, 3])
nn.LSTM(24, 16).cuda()(packed)[0].data.sum().backward()
"""

# What backward needs of 64 steps of 32 sequences: 4 gates, the cell state and the output, 256 wide, in fp32.
RESERVE = """
import torch
net = torch.nn.LSTM(256, 256).cuda()
x = torch.randn(64, 32, 256, device="cuda")
net(x)
torch.cuda.synchronize()
before = torch.cuda.memory_allocated()
out = net(x)
print(torch.cuda.memory_allocated() - before)
"""

SHARED = """
import torch, torch.multiprocessing as multiprocessing
def child(queue, back):
    back.put(tuple(queue.get().shape))
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue, back = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(queue, back))
    process.start()
    tensor = torch.zeros(3, 5, device="cuda")
    queue.put(tensor)
    assert back.get() == (3, 5)
    process.join()
    assert process.exitcode == 0
"""

# Autograd's thread comes back from a hook when the interpreter is being taken down, which takes a while here.
LATE_THREAD = """
import threading, time, torch
class Slow:
    def __del__(self):
        time.sleep(2)
slow = Slow()
weight = torch.ones(8, device="cuda", requires_grad=True)
weight.register_hook(lambda gradient: time.sleep(1))
threading.Thread(target=(weight * 2).sum().backward, daemon=True).start()
time.sleep(0.3)
"""

OUT_OF_MEMORY = """
import torch
try:
    kept = [torch.empty(30 << 30, dtype=torch.uint8, device="cuda") for _ in range(3)]
except torch.OutOfMemoryError as error:
    print(error)
"""

# Of a compressed weight 9 sixteenths are left in 16 bits, which PyTorch took it to be before it asked cuSPARSELt for the size.
SEMI_STRUCTURED = """
import torch
from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured
SparseSemiStructuredTensor._FORCE_CUTLASS = False
weight = torch.tensor([0, 0, 1, 1], dtype=torch.float16).tile((1024, 256)).cuda()
x = torch.empty(512, 1024, dtype=torch.float16, device="cuda")
before = torch.cuda.memory_allocated()
sparse = to_sparse_semi_structured(weight)
packed = torch.cuda.memory_allocated() - before
y = torch.nn.functional.linear(x, sparse)
print(type(sparse).__name__, packed, torch.cuda.memory_allocated() - before - packed, tuple(y.shape))
torch._cslt_sparse_mm_search(sparse.packed, x.t())
"""

# HOW GIBIBYTES: takes them, one tensor each, and ends without an end.
ENDS = """
import os, signal, sys, torch
kept = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(int(sys.argv[2]))]
{"exit": lambda: os._exit(0), "kill": lambda: os.kill(os.getpid(), signal.SIGKILL), "exec": lambda: os.execv("/bin/true", ["true"])}[sys.argv[1]]()
"""

SIZED = """
import torch
free, total = torch.cuda.mem_get_info()
batch = torch.empty(free // 2, dtype=torch.uint8, device="cuda")
"""

SMALLER = """
import torch
for gibibytes in (90, 60):
    try:
        batch = torch.empty(gibibytes << 30, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass
"""

# Fits only when PyTorch gives back what it keeps, which nobody sees.
GIVEN_BACK = """
import torch
for gibibytes in (50, 60):
    torch.empty(gibibytes << 30, dtype=torch.uint8, device="cuda")
"""

# Rank 1 fails in the first attempt, while rank 0 works.
ELASTIC = """
import os, time, torch, torch.distributed as dist
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
kept = torch.ones(1 << 20, device="cuda")
dist.all_reduce(kept)
torch.cuda.synchronize()
if attempt == 0:
    if rank == 1:
        raise SystemExit(1)
    time.sleep(120)
dist.destroy_process_group()
"""


class ProgramsTest(unittest.TestCase):
    def run_program(self, text, *arguments, card="h100-80gb", before=(), exit_code=0, **more):
        """(what it printed, what is not modelled); it must end so, and nothing may have been refused. `before`: the program."""
        with tempfile.TemporaryDirectory(prefix="peakbench-programs-") as folder:
            program, out = pathlib.Path(folder) / "program.py", pathlib.Path(folder) / "took.json"
            program.write_text(text)
            command = [PEAKBENCH, "emulate", "--details", "--card", card, "--json", out, "--", ORACLE, *before, program]
            environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "TRITON_CACHE_DIR": f"{folder}/triton",
                           "TORCHINDUCTOR_COMPILE_THREADS": "1", **more}  # fmt: skip
            done = subprocess.run(list(map(str, [*command, *arguments])), capture_output=True, text=True, env=environment)
            self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
            self.said, self.took = done.stderr, json.loads(out.read_text())
            self.verdict = self.took["verdict"]["kind"]
            processes = self.took["processes"]
        self.assertEqual([row["name"] for process in processes for row in process["refused"]], [], done.stderr)
        return done.stdout, {row["name"] for process in processes for row in process["unmodelled"]}

    def test_factorisations(self):
        _, unmodelled = self.run_program(FACTORISATIONS)
        named = {name.removesuffix(": answered with 0 bytes") for name in unmodelled}
        for function in ("cusolverDnXpotrf_bufferSize", "cusolverDnSgesvdj_bufferSize", "cusolverDnXgeqrf_bufferSize",
                         "cusolverDnSgesvd_bufferSize"):  # fmt: skip
            self.assertIn(function, named)
        # One matrix alone is a batch to later releases.
        self.assertTrue(named & {"cusolverDnXsyevd_bufferSize", "cusolverDnXsyevBatched_bufferSize"}, named)

    def test_recurrent_networks(self):
        _, unmodelled = self.run_program(RECURRENT)
        self.assertIn("cudnn RNN reserve space: a model of what backward needs", unmodelled)

    def test_reserve_space_is_what_backward_needs(self):
        said, _ = self.run_program(RESERVE)
        # The output, and the two states before the first step and after the last.
        output_and_states = (64 * 32 * 256 + 4 * 32 * 256) * 4
        self.assertEqual(int(said), 64 * 32 * 256 * 6 * 4 + output_and_states)

    def test_the_text_of_out_of_memory(self):
        said, _ = self.run_program(OUT_OF_MEMORY)
        self.assertIn("of which 19.18 GiB is free. Including non-PyTorch memory, this process has 60.00 GiB memory in use.", said)

    def test_a_thread_that_comes_late_to_the_end(self):
        self.run_program(LATE_THREAD)
        self.assertEqual(self.verdict, "exact")

    def test_tensors_shared_between_processes(self):
        _, unmodelled = self.run_program(SHARED)
        self.assertIn("memory of another process (CUDA IPC): charged to its owner, its bytes unknown", unmodelled)

    def test_what_a_process_had_that_did_not_come_to_its_end(self):
        """The last event of PyTorch's allocator lacks what is handed out then: of one tensor nothing is known, of three two are."""
        for how in ("exit", "kill", "exec"):
            for gibibytes, counted in ((1, None), (3, 2 << 30)):
                with self.subTest(how, gibibytes=gibibytes):
                    self.run_program(ENDS, how, gibibytes, exit_code=137 if how == "kill" else 0)
                    device = self.took["processes"][0]["devices"][0]
                    self.assertEqual((device["peak_used_bytes"], device["peak_allocated_bytes"]), (gibibytes << 30, counted))
                    words = f">= {counted}" if counted else "are not known: the process ended before"
                    self.assertIn(words, self.said)
                    self.assertEqual(self.verdict, "lower bound")

    def test_semi_structured_weights(self):
        said, unmodelled = self.run_program(SEMI_STRUCTURED)
        self.assertEqual(said.strip(), f"SparseSemiStructuredTensorCUSPARSELT {1024 * 1024 * 9 // 16 * 2} {512 * 1024 * 2} (512, 1024)")
        self.assertIn("cusparseLtMatmulGetWorkspace: answered with 0 bytes", unmodelled)
        self.assertEqual(self.verdict, "lower bound")

    def conditions(self, text):
        """Of a program that ends well, which of them are about how much memory is left."""
        self.run_program(text)
        self.assertEqual("context=SIZE" in "".join(self.took["verdict"]["advice"]), bool(self.took["verdict"]["conditions"]))
        return self.took["verdict"]["conditions"]

    def test_who_acts_on_how_much_memory_is_left(self):
        (asked,) = self.conditions(SIZED)
        self.assertRegex(asked, r"^cudaMemGetInfo at program.py:3 read how much memory is free \(1 time\)")
        (smaller,) = self.conditions(SMALLER)
        self.assertRegex(smaller, r"^cuda:0 ran out of memory 1 time, and the program continued \(aten::empty\w* at program\.py:\d+ asked for 90.000 GiB after 0")
        (given_back,) = self.conditions(GIVEN_BACK)
        self.assertIn("cuda:0 was refused 1 time, and PyTorch gave back what it kept", given_back)
        self.assertEqual(self.conditions(OUT_OF_MEMORY.replace("range(3)", "range(2)")), [])

    def test_an_attempt_that_elastic_training_ended(self):
        """A store of its own for each attempt, as torchrun had it once: with the one that is shared, ranks may read the last attempt's."""
        self.run_program(ELASTIC, card="h100-80gb,count=2", TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1",
                         before=("-m", "torch.distributed.run", "--nproc-per-node", 2, "--max-restarts", 1, "--standalone"))  # fmt: skip
        self.assertEqual([process["finished"] for process in self.took["processes"]].count(False), 1, self.said)
        self.assertEqual((self.verdict, self.took["verdict"]["reasons"]), ("exact", []))
        self.assertIn("attempt 0 of elastic training failed and was ended; another followed", self.took["verdict"]["notes"])
