#!/usr/bin/env python3
"""How often `peakbench ab` cries wolf, and whether it sees a slow-down of 5%: the figures of docs/how-to/compare.md.

Forty comparisons of a build with itself (A/A) on a small model on the CPU; then one in which NEW has
a strategy that is busy for a twentieth of each step (tests/gate/planted). At 1% false alarms, two alarms in forty are
the most that pass. Takes some minutes; nothing else should run on the machine meanwhile.

  cmake --build build/release --target peakbench peakbench-worker planted_before planted_after
  benchmarks/aa.py build/release
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

MODEL = "vit-b-16,layers=2,width=192,heads=3,mlp=768,image=64"
ALARMS_ALLOWED = 2
WORSE = 4  # the exit code


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build folder or installation")
    parser.add_argument("--plugins", type=pathlib.Path, help="folder with before/ and after/ (default BUILD/tests/gate)")
    parser.add_argument("--model", default=MODEL, help="default %(default)s")
    parser.add_argument("--comparisons", type=int, default=40, help="default %(default)s")
    parser.add_argument("--pairs", type=int, default=7, help="of each A/A comparison (default %(default)s)")
    parser.add_argument("--planted-pairs", type=int, default=40, help="default %(default)s")
    parser.add_argument("--steps", type=int, default=50, help="timed steps of a process (default %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of a process (default %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, help="folder of all runs (default: a temporary one)")
    return parser.parse_args()


class Bench:
    def __init__(self, options):
        self.options = options
        self.build = options.build.resolve()
        self.plugins = (options.plugins or self.build / "tests/gate").resolve()
        self.out = (options.out or pathlib.Path(tempfile.mkdtemp(prefix="peakbench-aa-"))).resolve()

    def compare(self, name, pairs, new_plugins):
        """Whether NEW is called worse."""
        build = self.build
        done = subprocess.run([build / "bin/peakbench", "ab", f"{build},plugins={self.plugins / 'before'}", f"{build},plugins={new_plugins}",
                               "--model", self.options.model, "--strategy", "planted-delay", "--pairs", str(pairs), "--steps",
                               str(self.options.steps), "--warmup", "15", "--threads", str(self.options.threads), "--out", self.out / name,
                               "--no-report", "--quiet", "--gate"],
                              check=False, stdout=subprocess.PIPE, text=True)  # fmt: skip
        if done.returncode not in (0, WORSE):
            sys.exit(f"{name}: exit code {done.returncode}")
        print(f"{name:10} {done.stdout}", end="", flush=True)
        return done.returncode == WORSE


def main():
    options = arguments()
    bench, started = Bench(options), time.monotonic()
    load = os.getloadavg()[0]
    print(f"{options.comparisons} A/A comparisons of {options.pairs} pairs, {options.model}, {options.steps} steps, "
          f"{options.threads} thread(s); load average {load:.2f} before")
    alarms = sum(bench.compare(f"a-a-{number}", options.pairs, bench.plugins / "before")
                for number in range(1, options.comparisons + 1))
    planted = bench.compare("planted", options.planted_pairs, bench.plugins / "after")
    print(f"A/A: alarms {alarms} of {options.comparisons} (at most {ALARMS_ALLOWED} pass).")
    print(f"Planted slow-down of 5%, {options.planted_pairs} pairs: {'seen' if planted else 'not seen'}.")
    print(f"{time.monotonic() - started:.0f} s; load average {os.getloadavg()[0]:.2f} after; all in {bench.out}")
    sys.exit(0 if alarms <= ALARMS_ALLOWED and planted else 1)


if __name__ == "__main__":
    main()
