#!/usr/bin/env python3
"""What tracing costs a step on the CPU: the memory worker's steps against the throughput worker's, which has no tracer.

  benchmarks/tracing_overhead.py                    vit-l-16, baseline
  benchmarks/tracing_overhead.py --model vit-b-16 --rounds 8

Each round runs both workers, one after the other, on the same machine and threads. A traced step lasts from its first event
to the next step's; the first step is left out on both sides. The ratio is of the medians over all rounds; beside it the events
a step has, and what each may cost before they make one per cent.
"""

import argparse
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
BEGINNINGS = "SELECT step, min(time_ns), count(*) FROM events WHERE step >= 0 GROUP BY step ORDER BY step"


def one_round(args):
    with tempfile.TemporaryDirectory() as folder:
        command = [args.peakbench, "run", "--model", args.model, "--strategy", args.strategy, "--device", "cpu", "--steps", args.steps]
        command += ["--repetitions", "1", "--no-report", "--quiet", "--out", f"{folder}/run"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        case = json.loads(pathlib.Path(folder, "run/run.json").read_text())["cases"][0]
        with sqlite3.connect(pathlib.Path(folder, "run", case["ranks"][0]["trace"])) as trace:
            rows = trace.execute(BEGINNINGS).fetchall()
    begins = [begin for _, begin, _ in rows]
    traced = [after - before for before, after in zip(begins[1:], begins[2:])]
    return traced, case["throughput"]["step_times_ns"], rows[1][2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="vit-l-16")
    parser.add_argument("--strategy", default="baseline")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--peakbench", default=REPOSITORY / "build/release/bin/peakbench")
    args = parser.parse_args()
    traced, untraced, events = [], [], 0
    for _ in range(args.rounds):
        with_tracer, without, events = one_round(args)
        traced += with_tracer
        untraced += without
    middle = [statistics.median(steps) / 1e6 for steps in (traced, untraced)]
    print(f"{args.model}, {args.strategy}: {len(traced)} traced and {len(untraced)} untraced steps in {args.rounds} rounds")
    print(f"traced {middle[0]:,.1f} ms, untraced {middle[1]:,.1f} ms, ratio {middle[0] / middle[1]:.4f}")
    print(f"fastest: traced {min(traced) / 1e6:,.1f} ms, untraced {min(untraced) / 1e6:,.1f} ms, ratio {min(traced) / min(untraced):.4f}")
    print(f"{events:,} events a step; 1% of the step is {middle[1] * 1e4 / events:,.0f} ns an event")


if __name__ == "__main__":
    main()
