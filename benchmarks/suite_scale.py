#!/usr/bin/env python3
"""A suite of 10,000 cases in one run folder: how long the program takes to plan, report, gate and merge it.

usage: suite_scale.py PEAKBENCH [--cases N] [--tables-of N]

Simulated: ten strategies are measured on an emulated card, and their records copied under other batch sizes, without traces: tables of
ten cases each, or fewer with --tables-of. Each figure is one call of the program, start and end included. Exit code 1 where one takes
over 10 s.
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
STRATEGIES = ("baseline", "foreach-off", "fused-in-backward", "fused-optimizer", "sgd", "lion", "lora", "checkpointing", "adafactor", "lomo")


def call(program, *arguments, allowed=(0,)):
    began = time.monotonic()
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    took = time.monotonic() - began
    if done.returncode not in allowed:
        sys.exit(f"{arguments}: {done.returncode}\n{done.stderr[-2000:]}")
    return took, done


def multiplied(run, count):
    """The run's cases under batch sizes 1 to count; nothing of it has a trace."""
    found = copy.deepcopy(run)
    found["cases"] = []
    for batch in range(1, count + 1):
        for number, one in enumerate(run["cases"]):
            case = copy.deepcopy(one)
            case["id"] = re.sub(r"/b\d+", f"/b{batch}", case["id"])
            case["slug"] = f"case-{batch}-{number}"
            case["batch_size"] = batch
            case["ranks"][0]["trace"] = ""
            if (reference := (case.get("equivalence") or {}).get("reference_case")):
                case["equivalence"]["reference_case"] = re.sub(r"/b\d+", f"/b{batch}", reference)
            found["cases"].append(case)
    return found


def write(folder, run):
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(run, indent=2), encoding="utf-8")


def measure(program, count, tables_of, place):
    strategies = STRATEGIES[:tables_of]
    ask = [word for strategy in strategies for word in ("--strategy", strategy)]
    call(program, "run", "--model", "vit-b-16", *ask, "--device", "emulated:h100-80gb", "--no-ablation", "--no-report", "--out", place / "one",
         "--quiet")
    tables = count // len(strategies)
    run = multiplied(json.loads((place / "one/run.json").read_text(encoding="utf-8")), tables)
    write(place / "base", run)
    write(place / "head", run)
    half = tables // 2 * len(strategies)
    write(place / "first", {**run, "cases": run["cases"][:half]})
    write(place / "second", {**run, "cases": run["cases"][half:]})
    batches = ",".join(str(batch) for batch in range(1, tables + 1))
    suite = place / "suite.toml"
    suite.write_text(f'models = ["vit-b-16"]\nstrategies = {json.dumps(strategies)}\ndevices = ["emulated:h100-80gb"]\nbatch_sizes = [{batches}]\n',
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
    parser.add_argument("--tables-of", type=int, default=len(STRATEGIES), choices=range(1, len(STRATEGIES) + 1), metavar="N")
    arguments = parser.parse_args()
    over = []
    with tempfile.TemporaryDirectory(prefix="peakbench-scale-") as folder:
        for what, seconds in measure(str(pathlib.Path(arguments.program).resolve()), arguments.cases,
                                     arguments.tables_of, pathlib.Path(folder)):
            print(f"{what:8} {seconds:6.2f} s", flush=True)
            if seconds > MOST_SECONDS:
                over.append(what)
    if over:
        sys.exit(f"over {MOST_SECONDS} s: {', '.join(over)}")


if __name__ == "__main__":
    main()
