"""What a program is told of its kernels, and what PyTorch sizes by it.

Truth: the temporary storage of torch.sort from CUB's source (dispatch_radix_sort.cuh, tuning_radix_sort.cuh), with registers and shared
memory as `cuobjdump -res-usage` prints them of PyTorch 2.11's own library; and of kernels compiled here, what ptxas says (-Xptxas -v).

Without the oracle (ci/oracle makes it, PEAKBENCH_ORACLE names its Python) or nvcc, the tests that need them are left out.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from given import PEAKBENCH

PYTHON = os.environ.get("PEAKBENCH_ORACLE")
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")

# Multiprocessors; of each of them: threads, shared memory, what is reserved of it in a block, blocks.
CARDS = {
    "a100-80gb": (108, 2048, 167936, 1024, 32),
    "t4-16gb": (40, 1024, 65536, 0, 16),
    "rtx-4090-24gb": (128, 1536, 102400, 1024, 24),
    "h100-80gb": (132, 2048, 233472, 1024, 32),
    "rtx-5090-32gb": (170, 1536, 102400, 1024, 24),
}
REGISTERS = 65536
# Of the downsweep kernels of the radix sort: (registers, shared memory) of the alternate tuning and of the primary one.
DOWNSWEEP = {
    ("a100-80gb", "bfloat16"): ((171, 47104), (98, 45056)),
    ("a100-80gb", "uint8"): ((168, 23552), (110, 45056)),
    ("t4-16gb", "bfloat16"): ((175, 47104), (103, 45056)),
    ("t4-16gb", "uint8"): ((254, 23552), (122, 45056)),
    ("rtx-4090-24gb", "bfloat16"): ((170, 47104), (100, 45056)),
    ("rtx-4090-24gb", "uint8"): ((168, 23552), (110, 45056)),
}

# Sizes are asked for in this process one after another: each is the peak of its own.
SORT = """
import json, sys, torch
peaks = []
for n in map(int, sys.argv[1].split(",")):
    x = torch.zeros(n, device="cuda", dtype=getattr(torch, sys.argv[2]))
    torch.cuda.reset_peak_memory_stats()
    values, order = x.sort()
    peaks.append(torch.cuda.max_memory_allocated())
    del x, values, order
print(json.dumps(peaks))
"""

KERNELS = r"""
#include <cuda_runtime.h>
__global__ void __launch_bounds__(256) shared_memory(float* p) {
  __shared__ float s[3000];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  for (int i = 0; i < 1000; i++) p[i] = s[i] + s[255 - threadIdx.x];
}
__global__ void small(int* p) { *p = 1; }
__global__ void on_stack(float* p, int k) {
  float a[200];
  for (int i = 0; i < 200; i++) a[i] = p[i * 7];
  for (int i = 0; i < 200; i++) a[(i * k) % 200] += a[(k + i) % 200];
  p[0] = a[k];
}
__global__ void many_registers(float* p) {
  float a[150];
#pragma unroll
  for (int i = 0; i < 150; i++) a[i] = p[i * 32 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 150; i++) p[(149 - i) * 64 + threadIdx.x] = a[i] * a[(i * 7) % 150];
}
static const void* kernels[] = {(const void*)shared_memory, (const void*)small, (const void*)on_stack, (const void*)many_registers};
extern "C" int ask(int kernel, int threads, int* out) {
  cudaFuncAttributes a;
  int code = cudaFuncGetAttributes(&a, kernels[kernel]);
  out[0] = a.numRegs; out[1] = (int)a.sharedSizeBytes; out[2] = (int)a.localSizeBytes; out[3] = a.binaryVersion;
  return code ? code : cudaOccupancyMaxActiveBlocksPerMultiprocessor(&out[4], kernels[kernel], threads, 0);
}
"""
NAMES = ("shared_memory", "small", "on_stack", "many_registers")
ASK = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
out = (ctypes.c_int * 5)()
answers = []
for kernel in range(4):
    for threads in (32, 128, 256):
        code = library.ask(kernel, threads, out)
        answers.append([code, kernel, threads, *out])
print(json.dumps(answers))
"""

# As Triton asks: CU_FUNC_ATTRIBUTE_NUM_REGS and _SHARED_SIZE_BYTES.
LOAD = """
import ctypes, json, pathlib, sys
driver, module, function, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
assert driver.cuInit(0) == 0 and driver.cuModuleLoadData(ctypes.byref(module), pathlib.Path(sys.argv[1]).read_bytes()) == 0
answers = []
for name in sys.argv[2:]:
    assert driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0
    for which in (4, 1):
        assert driver.cuFuncGetAttribute(ctypes.byref(value), which, function) == 0
        answers.append(value.value)
print(json.dumps([answers[i:i + 2] for i in range(0, len(answers), 2)]))
"""


def rounded(value, unit):
    return -(-value // unit) * unit


def occupancy(card, threads, registers, shared):
    """NVIDIA's rule: registers are handed to warps in units of 256, the warps of a block to four parts of the multiprocessor."""
    _, most_threads, shared_memory, reserved, most_blocks = CARDS[card]
    warps = rounded(threads, 32) // 32
    warp = rounded(registers * 32, 256)
    if warp * rounded(warps, 4) > REGISTERS:
        return 0
    blocks = min(most_threads // (warps * 32), most_blocks, REGISTERS // 4 // warp * 4 // warps)
    in_block = rounded(shared + reserved, 128 if reserved else 256)
    return min(blocks, shared_memory // in_block) if in_block else blocks


def peak_of_sort(card, dtype, n):
    key = {"bfloat16": 2, "uint8": 1}[dtype]
    digits = 128 if key > 1 else 32
    alternate, primary = DOWNSWEEP[card, dtype]
    most = max(occupancy(card, 256 if key > 1 else 128, *alternate), occupancy(card, 512, *primary))
    spine = most * CARDS[card][0] * 5 * digits + 512 * 11
    temporary = rounded(spine * 8, 256) + rounded(n * key, 256) + rounded(n * 8, 256) + 255
    return 2 * rounded(n * key, 512) + 2 * rounded(n * 8, 512) + rounded(temporary, 512)


def emulate(card, *command, python=None):
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/answer.json"
        words = [PEAKBENCH, "emulate", "--details", "--card", card, "--json", file, "--", python or sys.executable, *command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[0]), json.loads(pathlib.Path(file).read_text())


class Occupancy(unittest.TestCase):
    @unittest.skipUnless(PYTHON, "PEAKBENCH_ORACLE is not set")
    def test_sorting_takes_what_cub_asks_for(self):
        sizes = [5000, 151936, 1 << 20]
        for card, dtype in DOWNSWEEP:
            with self.subTest(card=card, dtype=dtype):
                peaks, answer = emulate(card, "-c", SORT, ",".join(map(str, sizes)), dtype, python=PYTHON)
                self.assertEqual(peaks, [peak_of_sort(card, dtype, n) for n in sizes])
                self.assertEqual(answer["verdict"]["kind"], "exact")

    @unittest.skipUnless(NVCC, "no nvcc")
    def test_kernels_are_as_ptxas_says(self):
        ways = (("size", "-compress-mode=size"), ("speed", "-Xfatbin", "-compress-all", "-compress-mode=speed"), ("none", "-compress-mode=none"))
        cards = (("t4-16gb", 75), ("a100-80gb", 80), ("rtx-4090-24gb", 89), ("h100-80gb", 90), ("rtx-5090-32gb", 120))
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "kernels.cu")
            source.write_text(KERNELS)
            for name, *way in ways:
                library = f"{folder}/{name}.so"
                code = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for _, arch in cards]
                build = [NVCC, "-shared", "-cudart", "shared", "-Xcompiler", "-fPIC", "-Xptxas", "-v", *way, *code, source, "-o", library]
                said = subprocess.run(build, capture_output=True, text=True, check=True).stderr
                for card, arch in cards:
                    with self.subTest(way=name, card=card):
                        self.compare(card, arch, library, said)

    def compare(self, card, arch, library, said):
        answers, answer = emulate(card, "-c", ASK, library)
        for code, kernel, threads, registers, shared, local, version, blocks in answers:
            one = re.search(rf"entry function '\w*{NAMES[kernel]}\w*' for 'sm_{arch}'\n.*\n\s*(\d+) bytes stack frame.*\n.*Used (\d+) registers(.*)", said)
            in_shared = re.search(r"(\d+) bytes smem", one[3])
            truth = [int(one[2]), int(in_shared[1]) if in_shared else 0, int(one[1]), arch]
            self.assertEqual((code, [registers, shared, local, version]), (0, truth), NAMES[kernel])
            self.assertEqual(blocks, occupancy(card, threads, registers, shared), (NAMES[kernel], threads))
        self.assertNotIn("registers", json.dumps(answer["verdict"]))

    @unittest.skipUnless(NVCC, "no nvcc")
    def test_a_module_that_is_loaded_is_as_ptxas_says(self):
        with tempfile.TemporaryDirectory() as folder:
            source, cubin = pathlib.Path(folder, "kernels.cu"), f"{folder}/kernels.cubin"
            source.write_text(KERNELS)
            said = subprocess.run([NVCC, "-cubin", "-arch=sm_80", "-Xptxas", "-v", source, "-o", cubin], capture_output=True, text=True, check=True)
            names = re.findall(r"entry function '(\w+)'", said.stderr)
            answers, answer = emulate("a100-80gb", "-c", LOAD, cubin, *names)
            used = [int(count) for count in re.findall(r"Used (\d+) registers", said.stderr)]
            self.assertEqual(answers, [[registers, 3000 * 4 if "shared_memory" in name else 0] for registers, name in zip(used, names)])
            self.assertEqual(len(answers), 4)
            self.assertNotIn("registers", json.dumps(answer["verdict"]))

    @unittest.skipUnless(NVCC, "no nvcc")
    def test_a_kernel_without_code_for_the_card_is_a_condition(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = pathlib.Path(folder, "kernels.cu"), f"{folder}/ptx.so"
            source.write_text(KERNELS)
            build = [NVCC, "-shared", "-cudart", "shared", "-Xcompiler", "-fPIC", "-gencode=arch=compute_80,code=compute_80", source, "-o", library]
            subprocess.run(build, check=True)
            _, answer = emulate("a100-80gb", "-c", ASK, library)
            self.assertIn("no machine code for this card", json.dumps(answer["verdict"]["conditions"]))
