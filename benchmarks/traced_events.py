#!/usr/bin/env python3
"""What the tracer of programs costs an event of PyTorch's allocator: the same program with it and without it, in turns, on an emulated card.

    benchmarks/traced_events.py [--rounds N] [--events N] [--python PYTHON] [--build DIR]

Small blocks are allocated and given back, two ways: native, many by one call from Python, so that no call stack is taken for each; and with
source lines, each by a call of its own, eight functions deep. Prints the processor time that an event takes with the tracer and without it, the median of the
rounds, their difference and ratio, and what a million events take on disk. PYTHON has PyTorch with CUDA: PEAKBENCH_ORACLE, or this one.
Exit code 1 where a target is missed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET_NS = {"native": 1000, "with source lines": 4000}
TARGET_MB = 200  # on disk, of a million events

# What it prints: of each way, nanoseconds of processor time, events and bytes of the journal (0 where it is not traced).
PROGRAM = """
import ctypes, glob, json, os, sys, time, torch

EVENTS = int(sys.argv[1])
A_BLOCK = 3  # allocated, given back, free again
EVENT = 3  # journal.h: Tag::kEvent; records of 64 bytes behind a header of 4096, which has their count at 8

def records():
    journals = glob.glob(os.path.join(os.environ.get("PEAKBENCH_TRACE_FOLDER", "none"), f"{os.getpid()}.journal"))
    if not journals:
        return b""
    with open(journals[0], "rb") as file:
        header = file.read(4096)
        return file.read(64 * int.from_bytes(header[8:16], "little"))

def deep(level, work):
    return deep(level - 1, work) if level else work()

def native(count):
    sources = [torch.empty(256, device="cuda") for _ in range(1000)]
    def run():
        for _ in range(count // 1000):
            torch._foreach_add(sources, 1.0)
    return run

def with_source_lines(count):
    def run():
        for _ in range(count):
            torch.empty(256, device="cuda")
    return lambda: deep(8, run)

said = {}
for name, make in (("native", native), ("with source lines", with_source_lines)):
    run = make(EVENTS // A_BLOCK)
    make(3000)()
    before = len(records())
    begin = time.process_time_ns()
    run()
    took = time.process_time_ns() - begin
    made = records()[before:]
    said[name] = {"ns": took, "events": made[::64].count(bytes([EVENT])), "bytes": len(made)}
print(json.dumps(said))
"""


def run(options, script, traced):
    program = [options.python, script, options.events]
    with tempfile.TemporaryDirectory() as folder:
        if traced:
            command = [options.build / "bin/peakbench", "trace", "--card", "h100-80gb", "--out", folder, "--", *program]
        else:
            command = [options.build / "bin/peakbench", "emulate", "--card", "h100-80gb", "--no-lines", "--", *program]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--python", default=os.environ.get("PEAKBENCH_ORACLE", sys.executable))
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    options = parser.parse_args()
    sides = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"
        script.write_text(PROGRAM, encoding="utf-8")
        for number in range(options.rounds):
            for traced in (True, False) if number % 2 else (False, True):
                sides[traced].append(run(options, script, traced))
    missed = []
    print(f"{'':<20}{'ns an event':>12}{'traced':>10}{'more':>8}{'ratio':>8}{'MB a million':>14}")
    for name, target in TARGET_NS.items():
        events = sides[True][0][name]["events"]
        traced, plain = (statistics.median(one[name]["ns"] for one in sides[side]) / events for side in (True, False))
        size = sides[True][0][name]["bytes"] / events
        print(f"{name:<20}{plain:>12.0f}{traced:>10.0f}{traced - plain:>8.0f}{traced / plain:>8.2f}{size:>14.0f}")
        if traced - plain > target or size > TARGET_MB:
            missed.append(f"{name}: the target is {target} ns more and {TARGET_MB} MB")
    print("\n".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
