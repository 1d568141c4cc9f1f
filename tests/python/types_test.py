"""The types that the package of Python promises (py.typed): mypy, strictly.

usage: types_test.py
Exit code 77 without mypy: ci/linters makes it, PEAKBENCH_LINTERS names its folder. pytest's own types come with the oracle.
"""

import os
import subprocess
import sys
from pathlib import Path

LINTERS = os.environ.get("PEAKBENCH_LINTERS", "/nowhere")
PYTHON = os.environ.get("PEAKBENCH_ORACLE", "")
PACKAGE = Path(__file__).resolve().parents[2] / "python/peakbench"

if __name__ == "__main__":
    mypy = Path(LINTERS, "mypy")
    if not mypy.exists() or not PYTHON:
        print("SKIP: there is no mypy, or no pytest (PEAKBENCH_LINTERS=$(ci/linters), PEAKBENCH_ORACLE=$(ci/oracle) make them)")
        sys.exit(77)
    sys.exit(subprocess.run([mypy, "--strict", "--python-executable", PYTHON, "--cache-dir", os.devnull, PACKAGE]).returncode)
