"""Attacks on the program: what it is given, when it is killed, what fails under it. Each must end as docs/evidence/reliability.md promises.

usage: hostile.py KIND... --program PROGRAM --fake-plugins FOLDER [--seed N] [--count N] [--json FILE]

Prints what was tried in a table, and every finding with what shows it again; the exit code is 1 where there is one.
"""

import argparse
import importlib
import os
import pathlib
import signal
import sys
import time

import counts as counting
from workplace import Workplace

KINDS = {
    "files": "cut, spoilt and hostile files through every command that reads them",
    "bulk": "the same through the readers alone, many thousands",
    "kills": "killed at random moments, and gone on with",
    "faults": "each write, flush, rename, ... failing once",
    "links": "links in a run's folder, to somebody's files",
    "limits": "full disks, read-only folders, small limits, closed streams",
    "plugins": "plugins that misbehave",
    "together": "two of everything at once",
    "slurm": "nodes, tasks and calls of a run on Slurm that are lost, and what squeue says",
}


def arguments():
    parser = argparse.ArgumentParser(description="Attacks on peakbench.", epilog="; ".join(f"{k}: {v}" for k, v in KINDS.items()))
    parser.add_argument("kinds", nargs="+", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--program", type=pathlib.Path, required=True, help="peakbench, in a build folder with its worker")
    parser.add_argument("--fake-plugins", type=pathlib.Path, required=True, help="the plugins of tests/e2e, manifests only")
    parser.add_argument("--bad-plugins", type=pathlib.Path, help="the plugins of tests/plugin/bad")
    parser.add_argument("--read-many", type=pathlib.Path, help="peakbench-read-many, which reads many files in a process")
    parser.add_argument("--shim", type=pathlib.Path, help="the library that makes a system call fail")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="attacks of each kind (default: as many as take seconds)")
    parser.add_argument("--first", type=int, default=0, help="number of the first one, to go on or to see one again")
    parser.add_argument("--readers", action="append", help="of files and bulk, only these")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    parser.add_argument("--json", metavar="FILE", help="write what was counted here too")
    parser.add_argument("--keep", metavar="DIR", help="keep what led to a finding here")
    return parser.parse_args()


def main():
    options = arguments()
    options.program = options.program.resolve()
    done = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with Workplace(options.program, options.fake_plugins.resolve()) as workplace:
        for kind in options.kinds:
            counts = counting.Counts(kind, options.seed)
            began = time.monotonic()
            importlib.import_module(kind).attack(workplace, counts, options)
            counts.seconds = time.monotonic() - began
            done.append(counts)
            print(counting.table(counts), flush=True)
    if options.json:
        counting.write_json(options.json, done)
    findings = [finding for counts in done for finding in counts.findings]
    if findings:
        print(f"\n{len(findings)} findings\n{counting.listed(findings)}", flush=True)
    if not findings and all(counts.total() == 0 for counts in done):
        print("SKIP: " + "; ".join(why for counts in done for _, why in counts.skipped))
        return 77
    return 1 if findings else 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
