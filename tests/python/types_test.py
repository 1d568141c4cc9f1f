"""The types that the package of Python promises (py.typed): mypy, strictly. pytest's own types come with the oracle."""

import os
import subprocess
from pathlib import Path

import pytest

from given import ORACLE

MYPY = Path(os.environ.get("PEAKBENCH_LINTERS", "/nowhere"), "mypy")
PACKAGE = Path(__file__).resolve().parents[2] / "python/peakbench"


@pytest.mark.skipif(not MYPY.exists(), reason="there is no mypy (PEAKBENCH_LINTERS=$(ci/linters) makes one)")
def test_types():
    subprocess.run([MYPY, "--strict", "--python-executable", ORACLE, "--cache-dir", os.devnull, PACKAGE], check=True)
