"""The emulated card's workspaces for attention held to NVIDIA's cuDNN, which says them without a device (cudnn_itself/).

usage: cudnn_itself_test.py PEAKBENCH FORWARD.so IDLE_DRIVER.so [--all]     --all: every configuration, three minutes

cuDNN is looked for in PEAKBENCH_CUDNN and where CUDA's toolkit has it. PyPI's package does as well, with NVRTC and cuBLAS beside it:
`pip install --target DIR nvidia-cudnn-cu13==9.19.0.56 nvidia-cublas nvidia-cuda-nvrtc`, PEAKBENCH_CUDNN=DIR/nvidia/cudnn/lib.
"""

import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ALL = "--all" in sys.argv[1:] and not sys.argv.remove("--all")
PEAKBENCH, FORWARD, IDLE_DRIVER = (pathlib.Path(argument).resolve() for argument in (sys.argv.pop(1) for _ in range(3)))
PYTHON = os.environ.get("PEAKBENCH_ORACLE")
FOUND = [os.environ["PEAKBENCH_CUDNN"]] if os.environ.get("PEAKBENCH_CUDNN") else sorted(glob.glob("/usr/local/cuda*/lib*"), reverse=True)
FOLDER = next((folder for folder in FOUND if os.path.exists(f"{folder}/libcudnn_graph.so.9")), None)
# Those whose workspaces are modelled (emulator/cudnn/attention.cpp).
VERSIONS = range(91300, 92200)

if not PYTHON:
    print("skipped: ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python")
    sys.exit(77)
if not FOLDER:
    print("skipped: no libcudnn_graph.so.9 in PEAKBENCH_CUDNN or /usr/local/cuda*/lib*")
    sys.exit(77)


def run(card, every, *before):
    command = [PEAKBENCH, "emulate", "--no-lines", "--card", card, "--", *before, PYTHON, "-B", HERE / "cudnn_itself/attention.py", every]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise AssertionError(done.stderr[-3000:])
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}, done.stderr


def by_cudnn_itself(card, every):
    folder = f"PEAKBENCH_CUDNN={FOLDER}"
    # The launcher preloads its libraries before those of its own environment.
    shell = 'LD_PRELOAD="$0:$LD_PRELOAD" exec "$@"'
    rows, said = run(card, every, "env", folder, f"PEAKBENCH_IDLE_DRIVER={IDLE_DRIVER}", "sh", "-c", shell, FORWARD)
    version = int(re.search(r"cuDNN itself: (\d+)", said).group(1))
    if version not in VERSIONS:
        raise unittest.SkipTest(f"{FOLDER} has cuDNN {version}, whose workspaces are not modelled")
    return rows


class Attention(unittest.TestCase):
    def compare(self, card, every):
        theirs = by_cudnn_itself(card, every)
        ours, said = run(card, every)
        self.assertEqual(ours, theirs)
        done = [row for row in ours.values() if "error" not in row]
        self.assertGreater(len(done), len(ours) * 0.8)
        return said

    def test_hopper_takes_what_cudnn_says(self):
        said = self.compare("h200-141gb", 1 if ALL else 27)
        self.assertIn("Verdict: exact", said)

    @unittest.skipUnless(ALL, "--all")
    def test_so_does_another_with_fewer_multiprocessors(self):
        self.compare("h20-96gb", 3)

    def test_where_none_is_known_the_figure_is_a_bound(self):
        rows, said = run("a100-80gb", 40)
        self.assertTrue(rows)
        self.assertIn("Verdict: lower bound", said)


if __name__ == "__main__":
    unittest.main()
