"""Settings of the CUDA allocator: stock PyTorch with PYTORCH_CUDA_ALLOC_CONF and Peakbench with --allocator, on the same emulated card,
have the same peaks of requested and allocated bytes, and reserve the same but for a segment (measured: to the byte); and what a shell has
set reaches no case.
"""

import json
import os
import pathlib
import subprocess
import tempfile

import parity_test as parity
from given import ORACLE, PEAKBENCH

CARD, MODEL, STACK, DTYPE = "h100-80gb", "vit-l-16,layers=2", "baseline", "fp32"
SETTINGS = ("", "expandable_segments:True", "max_split_size_mb:20", "roundup_power2_divisions:[1:2,4:4,>:1]")
INHERITED = {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync",
             "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "CUBLAS_WORKSPACE_CONFIG": ":16384:64"}  # fmt: skip


def ours(peakbench, folder, environment):
    """({settings: case}, what was printed as an error)"""
    out = pathlib.Path(tempfile.mkdtemp(dir=folder), "ours")
    command = [peakbench, "run", "--model", MODEL, "--strategy", STACK, "--device", f"emulated:{CARD}", "--dtype", DTYPE]
    command += ["--repetitions", "0", "--no-ablation", "--no-report", "--out", out]
    command += [part for setting in SETTINGS for part in ("--allocator", setting)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise AssertionError(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    cases = json.loads((out / "run.json").read_text(encoding="utf-8"))["cases"]
    return {case["allocator"]: case for case in cases}, done.stderr


def stock(peakbench, python, setting, folder):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = setting
    try:
        return next(iter(parity.stock(peakbench, python, CARD, [(MODEL, STACK, DTYPE)], folder).values()))
    finally:
        del os.environ["PYTORCH_CUDA_ALLOC_CONF"]


def problems_of(setting, mine, theirs):
    name = setting or "PyTorch's own"
    if mine["status"] != "ok":
        return [f"{name}: {mine['status']}: {mine['reason']}"]
    row, problem = parity.compare(name, mine, theirs)
    parity.show(row, mine)
    found = [problem] if problem else []
    if abs(row[1]["reserved"] - row[2]["reserved"]) > parity.SEGMENT:
        found.append(f"{name}: reserved {row[1]['reserved']:,}, stock {row[2]['reserved']:,}")
    if mine["settings"]["allocator"] != setting:
        found.append(f"{name}: PyTorch read {mine['settings']['allocator']!r}")
    return found


def problems_of_inherited(peakbench, folder, mine):
    again, printed = ours(peakbench, folder, INHERITED)
    found = [f"{setting}: another peak with {INHERITED} in the environment" for setting, case in mine.items()
             if parity.peaks(case["memory"]) != parity.peaks(again[setting]["memory"])]  # fmt: skip
    return found + [f"no warning of {name}: {printed}" for name in INHERITED if f"warning: {name}=" not in printed]


def test_settings_of_the_allocator(tmp_path):
    problems = []
    mine, _ = ours(PEAKBENCH, tmp_path, {})
    for setting in SETTINGS:
        problems += problems_of(setting, mine[setting], stock(PEAKBENCH, ORACLE, setting, tmp_path))
    problems += problems_of_inherited(PEAKBENCH, tmp_path, mine)
    if len({tuple(parity.peaks(case["memory"]).values()) for case in mine.values()}) != len(SETTINGS):
        problems.append("two settings have the same peaks: one of them had no effect")
    assert not problems
