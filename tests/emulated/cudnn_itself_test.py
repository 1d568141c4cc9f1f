"""The emulated card's workspaces for attention held to NVIDIA's cuDNN, which says them without a device (cudnn_itself/).

cuDNN is looked for in PEAKBENCH_CUDNN and where CUDA's toolkit has it. PyPI's package does as well, with NVRTC and cuBLAS beside it:
`pip install --target DIR nvidia-cudnn-cu13==9.19.0.56 nvidia-cublas nvidia-cuda-nvrtc`, PEAKBENCH_CUDNN=DIR/nvidia/cudnn/lib.
"""

import ctypes
import glob
import json
import os
import pathlib
import subprocess
import unittest

import pytest

import operators
from given import ALL, CUDNN_FORWARD as FORWARD, CUDNN_IDLE_DRIVER as IDLE_DRIVER, ORACLE as PYTHON, PEAKBENCH

HERE = pathlib.Path(__file__).resolve().parent
# Whose workspaces are modelled (emulator/cudnn/graph.cpp), and the release of PyTorch that comes with it.
CUDNN, PYTORCH = 91900, "2.11."


def skip(why):
    pytest.skip(why, allow_module_level=True)


def find_cudnn():
    told = os.environ.get("PEAKBENCH_CUDNN")
    for folder in [told] if told else sorted(glob.glob("/usr/local/cuda*/lib*"), reverse=True):
        beside = [f"{folder}/{{}}", f"{folder}/../../cu13/lib/{{}}"]
        needed = all(any(os.path.exists(place.format(name)) for place in beside) for name in ("libcublasLt.so.13", "libnvrtc.so.13"))
        library = f"{folder}/libcudnn_graph.so.9"
        if needed and os.path.exists(library) and ctypes.CDLL(library).cudnnGetVersion() == CUDNN:
            return folder
    skip(f"no cuDNN {CUDNN // 10000}.{CUDNN // 100 % 100}.{CUDNN % 100} with NVRTC and cuBLASLt of CUDA 13 in PEAKBENCH_CUDNN or /usr/local/cuda*/lib*")


if not operators.torch_version().startswith(PYTORCH):
    skip(f"PyTorch {operators.torch_version()} has another cuDNN than {PYTORCH}x")
FOLDER = find_cudnn()


def run(card, which, *before):
    command = [PEAKBENCH, "emulate", "--details", "--no-lines", "--card", card, "--", *before, PYTHON, "-B", HERE / "cudnn_itself/attention.py", which]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        raise AssertionError(done.stderr[-3000:])
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}, done.stderr


class Attention(unittest.TestCase):
    def compare(self, card, which):
        # The launcher preloads its libraries before those of its own environment.
        preloaded = ["sh", "-c", 'LD_PRELOAD="$0:$LD_PRELOAD" exec "$@"', FORWARD]
        theirs, said = run(card, which, "env", f"PEAKBENCH_CUDNN={FOLDER}", f"PEAKBENCH_IDLE_DRIVER={IDLE_DRIVER}", *preloaded)
        self.assertIn(f"cuDNN itself: {CUDNN}\n", said)
        ours, said = run(card, which)
        self.assertEqual(ours, theirs)
        done = [row for row in ours.values() if "error" not in row]
        self.assertGreater(len(done), len(ours) * 0.95)
        self.assertIn("Verdict: exact\n", said)

    def test_an_h200_takes_what_cudnn_says(self):
        self.compare("h200-141gb", "all" if ALL else "some")

    @unittest.skipUnless(ALL, "--all")
    def test_so_does_an_h20_with_fewer_multiprocessors(self):
        self.compare("h20-96gb", "all")
