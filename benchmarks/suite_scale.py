#!/usr/bin/env python3
"""A suite of 10,000 cases in one run folder: how long the program takes to plan, report, gate and merge it.

usage: suite_scale.py PEAKBENCH [--cases N] [--keep DIR]

Simulated: one case on an emulated card is measured, and its record copied under other batch sizes. Each figure is one call of the
program, start and end included. Exit code 1 where one takes over 10 s.
"""
import argparse
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

MOST_SECONDS = 10


def call(program, *arguments, allowed=(0,)):
    began = time.monotonic()
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    took = time.monotonic() - began
    if done.returncode not in allowed:
        sys.exit(f"{arguments}: {done.returncode}\n{done.stderr[-2000:]}")
    return took, done


def multiplied(run, count):
    """The run's one case under batch sizes 1 to count; nothing of it has a trace."""
    found = copy.deepcopy(run)
    found["cases"] = []
    for batch in range(1, count + 1):
        case = copy.deepcopy(run["cases"][0])
        case["id"] = re.sub(r"/b\d+", f"/b{batch}", case["id"])
        case["slug"] = f"case-{batch}"
        case["batch_size"] = batch
        case["ranks"][0]["trace"] = ""
        found["cases"].append(case)
    return found


def write(folder, run):
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(run, indent=2), encoding="utf-8")


def measure(program, count, place):
    ask = ("--model", "vit-b-16", "--strategy", "baseline", "--device", "emulated:h100-80gb", "--no-report")
    call(program, "run", *ask, "--out", place / "one", "--quiet")
    run = multiplied(json.loads((place / "one/run.json").read_text(encoding="utf-8")), count)
    write(place / "base", run)
    write(place / "head", run)
    half = count // 2
    write(place / "first", {**run, "cases": run["cases"][:half]})
    write(place / "second", {**run, "cases": run["cases"][half:]})
    batches = ",".join(str(batch) for batch in range(1, count + 1))
    suite = place / "suite.toml"
    suite.write_text(f'models = ["vit-b-16"]\nstrategies = ["baseline"]\ndevices = ["emulated:h100-80gb"]\nbatch_sizes = [{batches}]\n',
                     encoding="utf-8")
    yield "plan", call(program, "run", suite, "--dry-run")[0]
    yield "script", call(program, "run", suite, "--dry-run", "--executor", "slurm", "--out", place / "queue")[0]
    yield "merge", call(program, "merge", place / "first", place / "second", "--out", place / "merged")[0]
    yield "report", call(program, "report", place / "base")[0]
    yield "gate", call(program, "gate", place / "base", place / "head")[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=10_000)
    arguments = parser.parse_args()
    over = []
    with tempfile.TemporaryDirectory(prefix="peakbench-scale-") as folder:
        for what, seconds in measure(str(pathlib.Path(arguments.program).resolve()), arguments.cases, pathlib.Path(folder)):
            print(f"{what:8} {seconds:6.2f} s", flush=True)
            if seconds > MOST_SECONDS:
                over.append(what)
    if over:
        sys.exit(f"over {MOST_SECONDS} s: {', '.join(over)}")


if __name__ == "__main__":
    main()
