#!/usr/bin/env python3
"""What values of small tensors cost on an emulated card: the host's time of a training step of ViT-L/16 (torchvision, AdamW, the loss read
every step) under `peakbench emulate`, with and without --no-compute.

  benchmarks/values_cost.py

A process of each waits for its turn; they take a step in turns, so that a machine that gets slower does so for both. A round compares the
medians of its steps, in new processes; the ratio is the geometric mean of the rounds' ratios, with the 95% confidence interval that the
rounds allow. Nothing else should run meanwhile. No time of the card is meant: an emulated one has none. PyTorch is the oracle's (ci/oracle).
"""

import argparse
import os
import statistics
import subprocess
import sys

import step_time

PROGRAM = """
import sys, time, torch, torchvision
model = torchvision.models.vit_l_16().cuda()
optimizer = torch.optim.AdamW(model.parameters())
images, classes = torch.randn(8, 3, 224, 224).cuda(), torch.randint(1000, (8,)).cuda()
for _ in sys.stdin:
    began = time.perf_counter_ns()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), classes)
    loss.backward()
    optimizer.step()
    loss.item()
    print(time.perf_counter_ns() - began, flush=True)
"""


class Side:
    def __init__(self, args, options):
        command = [args.peakbench, "emulate", "--card", "h100-80gb", *options, "--", args.oracle, "-c", PROGRAM]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(list(map(str, command)), text=True, **pipes)

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        if not said:
            sys.exit(f"failed ({self.process.wait()}): {' '.join(map(str, self.process.args))}")
        return int(said)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def medians(args):
    """Of a round: without values, with values, in nanoseconds."""
    sides = [Side(args, ["--no-compute"]), Side(args, [])]
    times = [[], []]
    for _ in range(args.warmup + args.steps):
        for side, taken in zip(sides, times):
            taken.append(side.step())
    for side in sides:
        side.close()
    return [statistics.median(taken[args.warmup :]) for taken in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60, help="timed steps a round")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--peakbench", default=step_time.REPOSITORY / "build/release/bin/peakbench")
    parser.add_argument("--oracle", default=os.environ.get("PEAKBENCH_ORACLE"))
    args = parser.parse_args()
    args.oracle = args.oracle or step_time.run([step_time.REPOSITORY / "ci/oracle"]).strip()

    without, computed = zip(*(medians(args) for _ in range(args.rounds)))
    ratio, around = step_time.interval([b / a for a, b in zip(without, computed)])
    between = f"{around[0]:.3f} to {around[1]:.3f}" if around else "one round: none"
    print("| without values, ms | with values, ms | ratio | 95% interval |")
    print("|--:|--:|--:|--:|")
    print(f"| {statistics.median(without) / 1e6:.1f} | {statistics.median(computed) / 1e6:.1f} | {ratio:.3f} | {between} |")


if __name__ == "__main__":
    sys.exit(main())
