#!/usr/bin/env python3
"""How long a newcomer waits: a bare clone and empty caches, then ci/quickstart, timed by what it prints.

  benchmarks/from_clone.py                 downloads LibTorch (0.5 GB) and compiles everything
  benchmarks/from_clone.py --downloads .cache   with the downloads of this folder, so that the network is left out

Prints when each result came. The last commit is cloned, not what is uncommitted; system packages stay as they are. Nothing else
should run meanwhile. The clone is deleted unless --keep says otherwise.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
# "[ 3/12] ok  5.670 GiB ... ID" and, under way, the messages of ci/lib.sh.
ROW = re.compile(r"^\[ *\d+/\d+\] (\S+) .*?(\S+/\S+)$")
DONE = re.compile(r"^(.+): done in \d+ s$")
REPORT = re.compile(r"^Report: +\S+index\.html$")


def environment(folder, downloads):
    env = dict(os.environ, CCACHE_DIR=str(folder / "ccache"), PEAKBENCH_CACHE=str(downloads or folder / "cache"))
    for name in ("PEAKBENCH_TORCH_DIR", "NO_COLOR"):
        env.pop(name, None)
    return env


def watch(process, began):
    """Prints what was reached, as it is; returns [(seconds, case id)]."""
    rows = []
    for line in process.stdout:
        at = time.monotonic() - began
        if found := ROW.match(line.rstrip()):
            rows.append((at, found[2]))
            print(f"{at:7.0f} s  result: {found[2]} ({found[1]})", flush=True)
        elif found := DONE.match(line.rstrip()):
            print(f"{at:7.0f} s  {found[1]}", flush=True)
        elif REPORT.match(line.rstrip()):
            print(f"{at:7.0f} s  a table and its report", flush=True)
    return rows


def first_of_each_model(rows):
    """When every model of the suite has its first result."""
    first = {}
    for at, case in rows:
        first.setdefault(case.split("/")[0], at)
    return max(first.values(), default=0), sorted(first)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--downloads", type=pathlib.Path, help="a cache whose downloads are used (default: an empty one)")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="the clone goes to DIR and stays")
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-clone-")) if args.keep is None else args.keep.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    clone = folder / "peakbench"
    if clone.exists():
        sys.exit(f"error: {clone} is there already; name another folder for --keep")
    try:
        began = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
        process = subprocess.Popen(["ci/quickstart"], cwd=clone, env=environment(folder, args.downloads and args.downloads.resolve()),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace")
        rows = watch(process, began)
        code = process.wait()
        both, models = first_of_each_model(rows)
        print(f"\n{len(os.sched_getaffinity(0))} cores; {len(rows)} results; first {rows[0][0]:.0f} s, " if rows else "\nno result; ", end="")
        last = f", last {rows[-1][0]:.0f} s" if rows else ""
        print(f"first of {' and '.join(models)} {both:.0f} s{last}, every strategy built {time.monotonic() - began:.0f} s; exit code {code}")
        sys.exit(code)
    finally:
        if args.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
