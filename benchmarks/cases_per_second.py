#!/usr/bin/env python3
"""How many cases a second: ViT-B/16 on an emulated card, memory only, each case in a process of its own.

    benchmarks/cases_per_second.py [--cases N] [--jobs N] [--skip WAY] [--build DIR]

Runs the same cases three ways: several at a time, one at a time, and one at a time with each worker loading its libraries itself
(PEAKBENCH_FORK_SERVER=off). Prints seconds of the clock for the whole of `peakbench run`, whose report is timed by itself; how much the
process that workers are forked from grew; and whether every case's record is the same each way, times and the workers' own memory
apart.
"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from records import without_volatile  # noqa: E402

STRATEGIES = ("baseline", "foreach-off", "fused-in-backward", "lora", "checkpointing")
DEVICE = "emulated:h100-80gb"


def line(what, value, unit, target=""):
    print(f"{what:<62} {value:10,.2f} {unit:<8}{f' (target {target})' if target else ''}", flush=True)


def status_of(pid, name):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for row in file:
            if row.startswith(name + ":"):
                return int(row.split()[1]) * 1024
    return 0


def server_of(parent):
    """Id of the process that the program's workers are forked from, None where there is none."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name, rest = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)
        except OSError:
            continue
        if name.endswith("(peakbench-serve") and int(rest.split()[1]) == parent:
            return int(pid)
    return None


class Watch(threading.Thread):
    """Memory of the server's own (not of files) while the program runs: after its first cases, and the most."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.sizes = program, []

    def run(self):
        server = None
        while self.program.poll() is None:
            time.sleep(0.25)
            try:
                server = server or server_of(self.program.pid)
                if server:
                    self.sizes.append(status_of(server, "RssAnon"))
            except OSError:
                server = None


def run(options, folder, jobs, server):
    batches = ",".join(map(str, range(1, -(-options.cases // len(STRATEGIES)) + 1)))
    command = [options.program, "run", "--model", options.model, "--device", DEVICE, "--batch", batches, "--no-ablation"]
    for strategy in STRATEGIES:
        command += ["--strategy", strategy]
    command += ["--jobs", str(jobs), "--out", folder, "--quiet", "--no-report"]
    environment = {**os.environ, "PEAKBENCH_FORK_SERVER": "on" if server else "off"}
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, env=environment) as program:
        watch = Watch(program)
        watch.start()
        code = program.wait()
    seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    watch.join()
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if code:
        sys.exit(f"peakbench run ended with {code}")
    cases = json.loads(Path(folder, "run.json").read_text(encoding="utf-8"))["cases"]
    failed = [case["id"] for case in cases if case["status"] != "ok"]
    if failed:
        sys.exit(f"{len(failed)} cases did not end ok, the first is {failed[0]}")
    return cases, seconds, worked, watch.sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--model", default="vit-b-16")
    parser.add_argument("--skip", action="append", default=[], choices=["together", "one", "fresh"], help="leave one of the ways out")
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    options = parser.parse_args()
    options.program = str(Path(options.build) / "bin" / "peakbench")
    ways = {"together": (f"--jobs {options.jobs}", options.jobs, True), "one": ("--jobs 1", 1, True),
            "fresh": ("--jobs 1, no fork server", 1, False)}
    records = {}
    folder = tempfile.mkdtemp(prefix="peakbench-cases-")
    try:
        for way, (words, jobs, server) in ways.items():
            if way in options.skip:
                continue
            out = f"{folder}/{way}"
            cases, seconds, worked, sizes = run(options, out, jobs, server)
            target = "10 on two processors" if way == "together" else ""
            line(f"{options.model}, {len(cases):,} cases, {words}", len(cases) / seconds, "cases/s", target)
            line("    processor time of everything, each case", worked / len(cases) * 1000, "ms")
            if sizes:
                line("    the server's own memory, most", max(sizes) / 2**20, "MiB")
                line("    of that since its first cases", (max(sizes) - sizes[min(2, len(sizes) - 1)]) / 2**20, "MiB", "0")
            if way == "together":
                started = time.monotonic()
                subprocess.run([options.program, "report", out, "--out", f"{out}/report"], check=True, stdout=subprocess.DEVNULL)
                line("    their report, each", (time.monotonic() - started) / len(cases) * 1000, "ms")
            records[words] = without_volatile(cases)
            shutil.rmtree(out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    (first, found), *others = records.items()
    for words, cases in others:
        same = cases == found
        print(f"records of {words}: {'the same as' if same else 'OTHER THAN'} those of {first}")
        if not same:
            sys.exit(1)


if __name__ == "__main__":
    main()
