#!/usr/bin/env python3
"""Makes docs/evidence/fidelity.md anew: published figures beside ours.

  lab/published/page.py               the suites of suites/published and suites/, and the recorded figures of programs   a few minutes
  lab/published/page.py --programs    runs the programs of lab/published too (needs ci/oracle)                           an hour
  lab/published/page.py --check       writes nothing; exit code 1 if the page would change, dates apart

Cases are run now, on emulated cards. Programs are run with --programs; their figures and dates are recorded in
lab/published/*.json. Exit codes: 0; 1 a case did not end ok, or the page is another with --check; 2 unusable input.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

RECORDS = pathlib.Path(__file__).resolve().parent
ROOT = RECORDS.parents[1]
PAGE = ROOT / "docs/evidence/fidelity.md"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peakbench", default=str(ROOT / "build/release/bin/peakbench"), help="default build/release/bin/peakbench")
    parser.add_argument("--programs", action="store_true", help="run the programs, too")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--out", type=pathlib.Path, help="folder for the runs (default: a temporary one)")
    return parser.parse_args()


def graded(suite):
    return any("grade" in figure for figure in tomllib.loads(suite.read_text(encoding="utf-8")).get("published", []))


def run_suites(arguments, folder):
    """-> the folders of their runs. A case that fails has its row, and says why."""
    runs = []
    for suite in [*sorted((ROOT / "suites").glob("*.toml")), *sorted((ROOT / "suites/published").glob("*.toml"))]:
        if not graded(suite):
            continue
        out = folder / suite.stem if suite.parent.name != "published" else folder / f"published-{suite.stem}"
        code = subprocess.run([arguments.peakbench, "run", str(suite), "--out", str(out), "--repetitions", "0", "--no-ablation", "--no-report",
                               "--resume", "--quiet"], cwd=ROOT, check=False).returncode
        if code not in (0, 3):
            sys.exit(code)
        runs.append(out)
    return runs


def undated(page):
    return re.sub(r"\d{4}-\d\d-\d\d", "DATE", page.read_text(encoding="utf-8")).replace("DATE to DATE", "DATE")


def main():
    arguments = parse_arguments()
    if arguments.programs:
        subprocess.run([sys.executable, "-B", str(RECORDS / "run.py"), "--peakbench", arguments.peakbench], check=True)
    with tempfile.TemporaryDirectory(prefix="peakbench-published-") as scratch:
        folder = arguments.out or pathlib.Path(scratch)
        sources = [*run_suites(arguments, folder), *sorted(RECORDS.glob("*.json"))]
        page = pathlib.Path(scratch) / "fidelity.md" if arguments.check else PAGE
        done = subprocess.run([sys.executable, "-B", str(ROOT / "lab/fidelity.py"), *map(str, sources), "--out", str(page)], check=False)
        if done.returncode or not arguments.check:
            return done.returncode
        if undated(page) == undated(PAGE):
            return 0
        subprocess.run(["diff", "-u", str(PAGE), str(page)], check=False)
        print(f"{PAGE.relative_to(ROOT)} would change; lab/published/page.py rewrites it", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
