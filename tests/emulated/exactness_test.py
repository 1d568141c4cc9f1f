"""What an emulated card answers otherwise than a real one would, though no value is unknown: when work is done, what another process
writes, how a driver packs small allocations. No program that rests on it is `exact`; those beside it that do not, are.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

# READ: what the other process does with the tensor `t`, whose values are 3 and 5000.
SHARED = """
import torch, torch.multiprocessing as mp
def read(queue, back):
    t = queue.get()
    back.put(READ)
    del t
if __name__ == "__main__":
    mp.set_start_method("spawn")
    queue, back = mp.Queue(), mp.Queue()
    process = mp.Process(target=read, args=(queue, back))
    process.start()
    x = torch.tensor([3, 5000], device="cuda") + 1
    queue.put(x)
    back.get(timeout=100)
    process.join()
    torch.zeros(8, device="cuda")
"""

# A buffer is used again where the card is done with it: on a card, that depends on how fast it is.
ASKS = """
import torch
stream, event = torch.cuda.Stream(), torch.cuda.Event()
x = torch.zeros(1 << 20, device="cuda")
def busy():
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        x.add_(1)
    event.record(stream)
    WAIT
busy()
print(ASK)
torch.zeros(8, device="cuda")
"""

TIMES = """
import torch
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
torch.zeros(1 << 20, device="cuda").add_(1)
end.record()
end.synchronize()
print(start.elapsed_time(end))
torch.zeros(8, device="cuda")
"""

# Blocks of 64 MiB that a second stream uses.
RECORDED = """
import torch
stream = torch.cuda.Stream()
for i in range(4):
    block = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        block.add_(1)
    block.record_stream(stream)
    del block
    WAIT
"""

PINNED = """
import torch
big = torch.ones(8 << 20, dtype=torch.uint8)
for i in range(4):
    host = big.pin_memory()
    x = host.to("cuda", non_blocking=True)
    del host
"""

# COUNT allocations of BYTES each.
SMALL = """
import torch
kept = [torch.empty(BYTES, dtype=torch.uint8, device="cuda") for _ in range(COUNT)]
"""

# A tensor of the card whose storage is page-locked memory of the host: a kernel would change the host's bytes.
MAPPED = """
import torch
host = torch.tensor([1, 2, 3, 4]).pin_memory()
class View:
    __cuda_array_interface__ = {"shape": (4,), "typestr": "<i8", "data": (host.data_ptr(), False), "version": 3}
view = torch.as_tensor(View(), device="cuda")
host[3] = 70
assert view[3].item() == 70
CHANGE
torch.cuda.synchronize()
torch.zeros(int(host[3]), 1000, device="cuda")
"""

# A copy to page-locked memory; the card is busy, so the host reads what was there before.
ASYNC = """
import torch
flag, side = torch.zeros(2, dtype=torch.long, pin_memory=True), torch.cuda.Stream()
numbers, event = torch.tensor([5, 6]).cuda(), torch.cuda.Event()
COPY
WAIT
torch.zeros(READ, 1024, device="cuda")
"""
COPIES = {"copy_": "flag.copy_(numbers, non_blocking=True)", "to": "flag = numbers.to('cpu', non_blocking=True)",
          "side": "with torch.cuda.stream(side):\n    flag.copy_(numbers, non_blocking=True)\n    event.record()"}  # fmt: skip

# A kernel of an image that is loaded at run time, as Triton's are: it is given the address of one tensor, and writes it.
LOADED = """
import ctypes, struct, torch
from torch.utils._python_dispatch import TorchDispatchMode
names, info = b"\\0.shstrtab\\0.nv.info.step\\0", struct.pack("<IIHHI", 0x000C1704, 0, 0, 0, 8 << 18 | 0x1F000)
section = lambda name, offset, size: struct.pack("<IIQQQQIIQQ", name, 0, 0, 0, offset, size, 0, 0, 0, 0)
head = struct.pack("<16sHHIQQQIHHHHHH", b"\\x7fELF\\x02", 0, 190, 0, 0, 0, 64 + len(names) + len(info), 0, 0, 0, 0, 64, 3, 1)
image = head + names + info + section(0, 0, 0) + section(1, 64, len(names)) + section(11, 64 + len(names), len(info))
driver, module, kernel = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
counter, other = torch.tensor([3]).cuda(), torch.tensor([4]).cuda()
table = torch.tensor([counter.data_ptr()]).cuda()
assert driver.cuModuleLoadData(ctypes.byref(module), image) == 0
assert driver.cuModuleGetFunction(ctypes.byref(kernel), module, b"step") == 0
def launch(given=counter):
    address = ctypes.c_uint64(given.data_ptr())
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(address))
    assert driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None) == 0
class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        launch()
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        launch()
        return function(*arguments, **(options or {}))
x = torch.ones(2, device="cuda", requires_grad=True)
RUN
torch.zeros(int(READ), 1024, device="cuda")
"""
LAUNCHES = {"alone": "launch()", "function": "Function.apply(x)", "hook": "x.register_hook(lambda gradient: launch())\n(x * 2).sum().backward()",
            "mode": "with Mode():\n    x.detach() + 1", "table": "launch(table)"}  # fmt: skip

TOGETHER = """
import torch, torch.multiprocessing as mp
def take(i, barrier):
    x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    barrier.wait()
if __name__ == "__main__":
    mp.start_processes(take, args=(mp.get_context("spawn").Barrier(COUNT),), nprocs=COUNT, start_method="spawn")
"""

NCCL = """
import os, torch, torch.distributed as dist
os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(torch.ones(4, device="cuda"))
torch.cuda.synchronize()
dist.destroy_process_group()
"""


# A matrix above 1 MiB has no values.
UNKNOWN = """
import torch
x = torch.randn(64, 1024, device="cuda") @ torch.randn(1024, 1024, device="cuda")
"""

# The host reads an index that argsort leaves open, COUNT times, and then calls cuDNN.
MANY = """
import torch
scores = torch.zeros(4, device="cuda")
READS
torch.fft.rfft2(torch.randn(1, 8, 64, 64, device="cuda"))
"""


def setUpModule():
    global WARM
    WARM = warm_python.served(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"]])


class ExactnessTest(unittest.TestCase):
    def emulate(self, text, card="h100-80gb", options=(), name="program.py", **environment):
        """The kind of the verdict; the record is kept."""
        with tempfile.TemporaryDirectory(prefix="peakbench-exactness-") as folder:
            program, out = pathlib.Path(folder, name), pathlib.Path(folder, "took.json")
            program.write_text(text, encoding="utf-8")
            command = [PEAKBENCH, "emulate", "--details", "--card", card, *options, "--json", out, "--", WARM, program]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env={**os.environ, **environment})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.said, record = done.stderr, json.loads(out.read_text(encoding="utf-8"))
        self.verdict, self.answer, self.processes = record["verdict"], record["answer"], record["processes"]
        return self.verdict["kind"]

    def test_what_another_process_wrote_is_not_known(self):
        for read in ("int(t[1])", "t[1].item()", "t.tolist()", "t.cpu().nonzero().shape[0]"):
            with self.subTest(read):
                self.assertEqual(self.emulate(SHARED.replace("READ", read)), "unreliable", self.said)
                self.assertRegex(" ".join(self.verdict["reasons"]), r"at program\.py:5 read (integer|size|a size|bool)")
        rows = SHARED.replace("READ", "t.nonzero().shape[0]")
        self.assertEqual(self.emulate(rows), "unreliable", self.said)
        self.assertEqual(self.emulate(rows, options=("--assume", "nonzero=all")), "upper bound", self.said)

    def test_integers_that_are_only_logged_are_a_condition(self):
        read = UNKNOWN + "right = 0\nfor _ in range(3):\n    right += (x > 0).sum().item()\n    torch.zeros(1 << 20, device='cuda')\n"
        self.assertEqual(self.emulate(read + "print(right)"), "exact if", self.said)
        self.assertRegex(self.verdict["conditions"][0], r"read integer values that are not known and, as its source shows, only logged \(3 times\)")
        self.assertEqual(self.emulate(read + "if right < 0:\n    torch.zeros(1 << 28, device='cuda')"), "unreliable", self.said)

    def test_integers_that_another_file_reads_are_no_condition(self):
        helpers = "import torch\ndef use(run):\n    return torch.zeros(1 << 20, device='cuda') if run.n > 5 else None\n"
        read = UNKNOWN + "import sys\nsys.path.insert(0, FOLDER)\nimport helpers\nclass Run:\n    def step(self):\n        self.n = (x > 0).sum().item()\nrun = Run()\nrun.step()\nprint(run.n)\n"
        with tempfile.TemporaryDirectory(prefix="peakbench-helpers-") as folder:
            pathlib.Path(folder, "helpers.py").write_text(helpers, encoding="utf-8")
            read = read.replace("FOLDER", repr(folder))
            self.assertEqual(self.emulate(read + "torch.zeros(8, device='cuda')"), "exact if", self.said)
            self.assertIn("only logged", self.verdict["conditions"][0])
            self.assertEqual(self.emulate(read + "helpers.use(run)"), "unreliable", self.said)

    def test_numbers_that_are_printed_at_the_end_change_nothing(self):
        for read, kind in (("print('loss', x.mean().item())", "exact"), ("print((x > 0).sum().item())", "exact"),
                           ("v = x.mean().item()\nprint(v)\nif v < 0:\n    torch.zeros(1 << 28, device='cuda')", "exact if"),
                           ("v = (x > 0).sum().item()\nif v < 0:\n    torch.zeros(1 << 28, device='cuda')", "unreliable"),
                           ("print(x.mean().item())\ny = torch.zeros(8, device='cuda')", "exact if")):  # fmt: skip
            with self.subTest(read):
                self.assertEqual(self.emulate(UNKNOWN + read), kind, self.said)

    def test_other_values_are_tried(self):
        options = ("--second-guess", "2")
        self.assertEqual(self.emulate(UNKNOWN + "n = int((x > 0).any())\ntorch.zeros(1 << 20, device='cuda')", options=options), "exact if", self.said)
        guess = self.verdict["second_guess"]
        self.assertEqual((guess["runs"], guess["same"], len(set(guess["peak_bytes"]))), (3, True, 1))
        self.assertIn("the same with other values (3 runs)", self.answer["sentence"])
        self.assertIs(self.answer["fits"], True)
        self.assertEqual(self.emulate(UNKNOWN + "torch.zeros(int((x > 0).sum()), 1 << 16, device='cuda')", options=options), "unreliable", self.said)
        self.assertIs(self.verdict["second_guess"]["same"], False)
        self.assertGreater(len(set(self.verdict["second_guess"]["peak_bytes"])), 1)
        self.assertRegex(" ".join(self.verdict["reasons"]), r"its peaks depend on values that are not known: .* to .* in 3 runs")
        self.emulate(UNKNOWN, options=options)
        self.assertNotIn("second_guess", self.verdict)

    def test_both_sides_of_what_is_compared_are_tried(self):
        unknown = "import torch\nx, y = torch.randn(2048, 2048, device='cuda'), torch.randn(2000, 2000, device='cuda')\n"
        small = "import torch\nx, y = torch.randn(8, device='cuda'), torch.randn(8, device='cuda')\n"
        counts, sizes = "a, b = (x > 0).sum().item(), (y > 0).sum().item()\n", "a, b = len(x[x > 0]), len(y[y > 0])\n"
        for read, condition, runs in ((unknown + counts, "a > b", 3), (unknown + counts, "b > a", 3), (unknown + counts, "a > 0 and a < x.numel()", 3),
                                      (small + counts, "a > b", 3), (small + counts, "b > a", 3), (unknown + sizes, "a > b", 4), (unknown + sizes, "b > a", 4),
                                      (unknown, "x.mean().item() > y.mean().item()", 2), (unknown, "x.mean().item() < y.mean().item()", 2),
                                      (unknown, "x.sum() > y.sum()", 2), (unknown, "not (x.sum() > y.sum())", 2), (unknown, "torch.equal(x, x * 2)", 2)):  # fmt: skip
            with self.subTest(condition, runs=runs, read=read):
                kind = self.emulate(f"{read}if {condition}:\n    torch.zeros(1 << 26, device='cuda')", options=("--second-guess", str(runs)))
                self.assertEqual(kind, "unreliable", self.said)
                self.assertEqual((self.verdict["second_guess"]["same"], self.verdict["second_guess"]["problem"]), (False, ""))
                self.assertGreaterEqual(max(self.verdict["second_guess"]["peak_bytes"]), 1 << 28)
                self.assertLess(min(self.verdict["second_guess"]["peak_bytes"]), 1 << 28)

    def test_too_few_runs_are_not_the_same(self):
        read = UNKNOWN + "a, b = (x > 0).sum().item(), (x > 1).sum().item()\nkept = torch.zeros(8 if a > b else 16, device='cuda')"
        for runs, same in ((1, False), (2, False), (3, True)):
            with self.subTest(runs):
                kind = self.emulate(read, options=("--second-guess", str(runs)))
                self.assertEqual((kind, self.verdict["second_guess"]["same"]), ("exact if" if same else "unreliable", same), self.said)
        self.emulate(read, options=("--second-guess", "2"))
        self.assertEqual(self.verdict["second_guess"]["problem"], "2 further runs do not try both orders of the numbers that it reads, as --second-guess 3 does")
        self.emulate(read)
        self.assertIn("--second-guess 3 runs the program again", self.verdict["advice"][0])

    def test_what_other_values_are_not_made_up_for_is_not_the_same(self):
        for read in ("int((x > -9).sum()) * 4", "int((x > 0).sum(dtype=torch.int32)) * 4", "torch.count_nonzero(x) * 4", "x[x > 0].numel() * 4",
                     "int((x.cpu() > 0).sum())", "int((x * 100).long().max())"):  # fmt: skip
            with self.subTest(read):
                self.emulate(f"import torch\nx = torch.randn(2048, 2048, device='cuda')\ntorch.zeros({read}, device='cuda')", options=("--second-guess", "2"))
                guess = self.verdict["second_guess"]
                self.assertIs(guess["same"], False, self.said)
                self.assertTrue(guess["problem"] or len(set(guess["peak_bytes"])) > 1, guess)

    def test_neither_names_nor_many_reads_decide(self):
        ties = "import torch\nfirst = torch.zeros(4, device='cuda').argsort()[0].item()\nkept = torch.empty(1 << 20, device='cuda')"
        for name in ("train.py", "workspace.py", "alone, the others.py", "is not specified", "unified memory.py", "NCCL: 1.py"):
            with self.subTest(name):
                self.assertEqual(self.emulate(ties, name=name), "exact if", self.said)
                self.assertIn(name, self.verdict["conditions"][0])
        for count in (0, 10, 400):
            with self.subTest(count):
                self.assertEqual(self.emulate(MANY.replace("READS", "scores.argsort()[0].item()\n" * count)), "lower bound", self.said)
                self.assertEqual(self.verdict["workspace_room_bytes"], 0)

    def test_memory_of_another_process_takes_none_and_is_a_condition(self):
        self.assertEqual(self.emulate(SHARED.replace("READ", "tuple(t.shape)")), "exact if", self.said)
        self.assertRegex(self.verdict["conditions"][0], r"^processes share memory of the card \(CUDA IPC\)")
        self.assertEqual(len(self.verdict["conditions"]), 1)
        self.assertEqual(sorted(process["devices"][0]["peak_used_bytes"] for process in self.processes), [0, 2 << 20])

    def test_whether_work_is_done_is_a_condition(self):
        for ask, function in (("stream.query()", "cudaStreamQuery"), ("event.query()", "cudaEventQuery")):
            with self.subTest(ask):
                text = ASKS.replace("ASK", ask)
                self.assertEqual(self.emulate(text.replace("WAIT", "pass")), "exact if", self.said)
                (condition,) = self.verdict["conditions"]
                self.assertRegex(condition, rf"^{function} at program\.py:12 read whether work is done that the host had not waited for \(1 time\)")
                self.assertIn("streams=late", self.verdict["advice"][0])
                for wait in ("stream.synchronize()", "torch.cuda.synchronize()"):
                    self.assertEqual(self.emulate(text.replace("WAIT", wait)), "exact", self.said)
        self.assertEqual(self.emulate(ASKS.replace("ASK", "event.query()").replace("WAIT", "event.synchronize()")), "exact", self.said)

    def test_a_time_that_was_read_is_a_condition(self):
        self.assertEqual(self.emulate(TIMES), "exact if", self.said)
        self.assertRegex(self.verdict["conditions"][0], r"^cudaEventElapsedTime at program\.py:8 read how long work took \(1 time\)")

    def test_blocks_that_wait_for_a_stream(self):
        running, waited = RECORDED.replace("WAIT", "pass"), RECORDED.replace("WAIT", "torch.cuda.synchronize()")
        self.assertEqual(self.emulate(running), "exact if", self.said)
        self.assertRegex(self.verdict["conditions"][0], r"^blocks .* handed out again at once: a card is done with them earlier or later")
        self.assertIn("streams=soon, and streams=late", self.verdict["advice"][0])
        at_once = self.processes[0]["devices"][0]["peak_reserved_bytes"]
        for card, when in (("streams=late", "held until the host waited"), ("streams=soon", "handed out again when the allocator asked for a second time")):
            self.assertEqual(self.emulate(running, f"h100-80gb,{card}"), "exact if", self.said)
            self.assertIn(f"were {when}: ", self.verdict["conditions"][0])
            self.assertGreater(self.processes[0]["devices"][0]["peak_reserved_bytes"], at_once)
        for card in ("h100-80gb", "h100-80gb,streams=soon", "h100-80gb,streams=late"):
            self.assertEqual(self.emulate(waited, card), "exact", self.said)

    def test_pinned_memory_that_waits_is_a_note(self):
        self.assertEqual(self.emulate(PINNED), "exact", self.said)
        self.assertRegex(" ".join(self.verdict["notes"]), r"page-locked host memory .* the card's memory does not depend on it")

    def test_small_allocations_of_cuda_are_an_upper_bound(self):
        def kind(count, size):
            return self.emulate(SMALL.replace("COUNT", str(count)).replace("BYTES", str(size)), PYTORCH_NO_CUDA_MEMORY_CACHING="1")

        self.assertEqual(kind(100, 1000), "upper bound", self.said)
        self.assertRegex(self.verdict["reasons"][0], "small pieces, without PyTorch's caching allocator")
        self.assertEqual(kind(1, 1000), "exact", self.said)
        self.assertEqual(kind(100, 2 << 20), "exact", self.said)
        self.assertEqual(self.emulate(SMALL.replace("COUNT", "100").replace("BYTES", "1000")), "exact", self.said)

    def test_kernels_that_write_memory_of_the_host(self):
        self.assertEqual(self.emulate(MAPPED.replace("CHANGE", "view.add_(1)")), "unreliable", self.said)
        self.assertRegex(self.verdict["reasons"][0], "a kernel writes page-locked host memory")
        self.assertEqual(self.emulate(MAPPED.replace("CHANGE", "")), "exact", self.said)

    def test_copies_that_nobody_waited_for(self):
        waits = {"copy_": ("torch.cuda.synchronize()", "torch.cuda.current_stream().synchronize()", "numbers.sum().item()"),
                 "to": ("torch.cuda.synchronize()", "numbers.cpu()"),
                 "side": ("side.synchronize()", "event.synchronize()", "torch.cuda.current_stream().wait_stream(side); numbers[0].item()")}  # fmt: skip
        too_little = {"copy_": "side.synchronize()", "to": "", "side": "torch.cuda.current_stream().wait_stream(side)"}
        for name, copy in COPIES.items():
            for read in ("int(flag[0])", "flag.nonzero().shape[0]", "(flag + 1).tolist()[0] + int(flag.sum() > 3)"):
                text = ASYNC.replace("COPY", copy).replace("READ", read)
                with self.subTest(copy=name, read=read):
                    self.assertEqual(self.emulate(text.replace("WAIT", too_little[name])), "unreliable", self.said)
                    self.assertRegex(" ".join(self.verdict["reasons"]), r"at program\.py:\d+ read (integer|a size|bool)")
            for wait in waits[name]:
                with self.subTest(copy=name, wait=wait):
                    self.assertEqual(self.emulate(ASYNC.replace("COPY", copy).replace("READ", "int(flag[0])").replace("WAIT", wait)), "exact", self.said)

    def test_numbers_of_copies_that_nobody_waited_for_are_a_condition(self):
        for read in ("flag[0].item()", "flag.tolist()[0]"):
            text = ASYNC.replace("dtype=torch.long, ", "").replace("[5, 6]", "[5.0, 6.0]").replace("COPY", COPIES["copy_"]).replace("WAIT", "")
            self.assertEqual(self.emulate(text.replace("READ", f"1 << ({read} > 1)")), "exact if", self.said)
            self.assertRegex(self.verdict["conditions"][0], r"at program\.py:7 read floating values that are not known")

    def test_a_copy_in_flight_says_nothing_of_its_neighbour(self):
        text = ASYNC.replace("COPY", "flag[:1].copy_(numbers[:1], non_blocking=True)").replace("WAIT", "")
        self.assertEqual(self.emulate(text.replace("READ", "1 + int(flag[1])")), "exact", self.said)
        self.assertEqual(self.emulate(text.replace("READ", "1 + int(flag[0])")), "unreliable", self.said)
        # The card itself comes to it in order.
        back = "int(flag.to('cuda', non_blocking=True)[0])"
        self.assertEqual(self.emulate(ASYNC.replace("COPY", COPIES["copy_"]).replace("WAIT", "").replace("READ", back)), "exact", self.said)

    def test_what_a_kernel_that_was_loaded_at_run_time_writes_is_not_known(self):
        for where, run in LAUNCHES.items():
            with self.subTest(where):
                text = LOADED.replace("RUN", run)
                self.assertEqual(self.emulate(text.replace("READ", "counter")), "unreliable", self.said)
                self.assertIn("read integer values that are not known (1 time)", " ".join(self.verdict["reasons"]))
                self.assertEqual(self.emulate(text.replace("READ", "other")), "exact", self.said)

    def test_the_peak_of_several_processes(self):
        self.assertEqual(self.emulate(TOGETHER.replace("COUNT", "2")), "exact if", self.said)
        self.assertRegex(self.verdict["conditions"][0], "^2 processes had memory of card 0 at the same time: ")
        self.assertEqual(self.emulate(TOGETHER.replace("COUNT", "1")), "exact", self.said)

    def test_the_answer_names_the_buffers_of_nccl(self):
        self.emulate(NCCL)
        self.assertIn("context (0.521 GiB) and NCCL's buffers not included; ", self.answer["sentence"])
        self.emulate(NCCL, "h100-80gb,context=534MiB")
        self.assertIn("context (0.521 GiB) included, NCCL's buffers not; ", self.answer["sentence"])
