#!/usr/bin/env python3
"""A history of many runs: how large, how quick to ask, how quick to publish.

    benchmarks/history_scale.py [--runs N] [--cases N] [--build DIR] [--keep DIR]

Fills a history through the library itself (target peakbench_history_fill), then times the program on it. Prints one line a figure
with its target: seconds of the clock, the best of three for what only reads. --keep leaves history and site in DIR.
"""
import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def line(what, value, unit, target=""):
    print(f"{what:<58} {value:12,.3f} {unit:<6}{f' (target {target})' if target else ''}", flush=True)


def timed(times, *command):
    best = None
    for _ in range(times):
        started = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - started
        best = seconds if best is None else min(best, seconds)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--keep", help="folder for the history and the site")
    options = parser.parse_args()
    programs = Path(options.build) / "bin"
    program = str(programs / "peakbench")
    with contextlib.ExitStack() as stack:
        folder = Path(options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="peakbench-scale-")))
        folder.mkdir(parents=True, exist_ok=True)
        history, site = str(folder / "history.sqlite"), str(folder / "site")
        os.environ["PEAKBENCH_HISTORY"] = history
        if not os.path.exists(history):
            done = subprocess.run([programs / "peakbench_history_fill", history, str(options.runs), str(options.cases)],
                                  check=True, capture_output=True, text=True)
            line(f"adding {options.runs:,} runs of {options.cases} cases, each", float(done.stdout) / options.runs * 1000, "ms")
        line("file, per run", os.path.getsize(history) / options.runs / 1024, "KiB")
        line("file", os.path.getsize(history) / 2**20, "MiB")
        line("history trend (all cases, last 20 points)", timed(3, program, "history", "trend"), "s", "1")
        every = str(options.runs)
        line("history trend of one case, all points",
             timed(3, program, "history", "trend", "vit-l-16/baseline/emulated*/fp32/b1", "--last", every), "s", "1")
        line("history trend of all cases, all points, as JSON", timed(1, program, "history", "trend", "--json", "--last", every), "s")
        line("history list", timed(3, program, "history", "list"), "s")
        line("publish", timed(1, program, "publish", "--out", site), "s", "30")
        line("publish again, nothing changed", timed(1, program, "publish", "--out", site), "s", "30")
        files = [path for path in Path(site).rglob("*") if path.is_file()]
        line("site, files", len(files), "")
        line("site", sum(path.stat().st_size for path in files) / 2**20, "MiB")


if __name__ == "__main__":
    sys.exit(main())
