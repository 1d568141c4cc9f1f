#!/usr/bin/env python3
"""Step time against stock Python PyTorch: the same model, strategy, batch, type and threads, on this machine's CPU.

  benchmarks/step_time.py                                      both models, every strategy
  benchmarks/step_time.py --model vit-l-16 --strategy baseline

The two take turns, --rounds times, in an order that alternates, so that a machine that gets slower does so for both. A round
compares the medians of its timed steps; the ratio is the geometric mean of the rounds' ratios, with the 95% confidence interval that
the rounds allow (Student's t of their logarithms). Nothing else should run meanwhile. Stock PyTorch is the oracle's (ci/oracle); ours is
build/release/bin/peakbench, whose throughput worker never has a tracer installed.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
MODELS = {
    "vit-l-16": ("vit.py", ["--model", "vit-l-16"], []),
    "vit-b-16": ("vit.py", ["--model", "vit-b-16"], []),
    "qwen2.5-0.5b": ("decoder.py", ["--model", "qwen2.5-0.5b"], ["--seq", "256"]),
    "qwen2.5-0.5b,layers=4": ("decoder.py", ["--model", "qwen2.5-0.5b", "--layers", "4"], ["--seq", "256"]),
}
STRATEGIES = ["baseline", "foreach-off", "fused-in-backward", "lora", "checkpointing"]


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def stock_steps(args, model, strategy):
    script, which, shape = MODELS[model]
    command = [args.oracle, REPOSITORY / "tests/oracle" / script, *which, *shape, "--strategy", strategy, "--batch", args.batch]
    command += ["--dtype", args.dtype, "--threads", args.threads, "--time", args.steps, "--warmup", args.warmup]
    return json.loads(run(command))["step_ns"]["all"]


def our_steps(args, model, strategy):
    with tempfile.TemporaryDirectory() as folder:
        command = [args.peakbench, "run", "--model", model, "--strategy", strategy, *MODELS[model][2], "--batch", args.batch]
        command += ["--device", "cpu", "--dtype", args.dtype, "--threads", args.threads, "--steps", args.steps]
        run([*command, "--warmup", args.warmup, "--repetitions", "1", "--no-report", "--out", f"{folder}/run"])
        case = json.loads(pathlib.Path(folder, "run/run.json").read_text())["cases"][0]
    if not case.get("throughput"):
        sys.exit(f"{case['id']}: {case['status']}: {case.get('reason') or case.get('throughput_reason')}")
    return case["throughput"]["step_times_ns"]


# Student's t, two-sided 95%, by degrees of freedom.
T_95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]


def interval(ratios):
    """The geometric mean of the rounds' ratios and its 95% interval; None for one round."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), None
    t = T_95[min(len(logs) - 1, len(T_95)) - 1]
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), (math.exp(mean - half), math.exp(mean + half))


def compare(args, model, strategy):
    """A line of the table."""
    stock, ours, ratios = [], [], []
    for number in range(args.rounds):
        sides = [(stock, stock_steps), (ours, our_steps)]
        found = [None, None]
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            times, measure = sides[side]
            steps = measure(args, model, strategy)
            times += steps
            found[side] = statistics.median(steps)
        ratios.append(found[1] / found[0])
    ratio, around = interval(ratios)
    between = f"{around[0]:.3f} to {around[1]:.3f}" if around else "one round: none"
    return f"| {model} | {strategy} | {statistics.median(stock) / 1e6:.0f} | {statistics.median(ours) / 1e6:.0f} | {ratio:.3f} | {between} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=MODELS, help="default: vit-l-16 and qwen2.5-0.5b")
    parser.add_argument("--strategy", action="append", help=f"default: {', '.join(STRATEGIES)}")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--steps", type=int, default=5, help="timed steps a round")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--peakbench", default=REPOSITORY / "build/release/bin/peakbench")
    parser.add_argument("--oracle", default=os.environ.get("PEAKBENCH_ORACLE"))
    args = parser.parse_args()
    args.oracle = args.oracle or run([REPOSITORY / "ci/oracle"]).strip()

    print(f"{args.threads} threads, batch {args.batch}, {args.dtype}, {args.rounds} rounds of {args.steps} steps, {args.warmup} before each")
    print()
    print("| model | strategy | stock PyTorch, ms | Peakbench, ms | ratio | 95% interval |")
    print("|---|---|---|---|---|---|", flush=True)
    for model in args.model or ["vit-l-16", "qwen2.5-0.5b"]:
        for strategy in args.strategy or STRATEGIES:
            print(compare(args, model, strategy), flush=True)


if __name__ == "__main__":
    main()
