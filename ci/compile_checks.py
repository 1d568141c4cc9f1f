"""Checks of single files with the flags that CMake compiles them with: headers that compile alone, clang-tidy.

    python3 ci/compile_checks.py headers [--jobs N] [--minutes M] [FILE...]
    python3 ci/compile_checks.py tidy [--jobs N] [--minutes M] [--torch] [FILE...]

Needs build/checks/compile_commands.json (ci/checks makes it). Prints what was found; the exit status is 1 if anything was.

The files that git says were changed last come first. With --minutes, no file is begun after so many minutes, and how many were left
out is printed: a check of what is new that takes no longer as the repository grows.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
DATABASE = REPOSITORY / "build/checks/compile_commands.json"


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns], cwd=REPOSITORY,
                            check=True, capture_output=True, text=True).stdout.splitlines()
    return [path for path in listed if (REPOSITORY / path).exists()]


def newest_first(paths):
    """As the last commit that changed them; what is changed and not committed before all."""
    listed = subprocess.run(["git", "-c", "core.quotePath=false", "log", "--format=", "--name-only"], cwd=REPOSITORY, check=True,
                            capture_output=True, text=True).stdout.splitlines()
    changed = subprocess.run(["git", "diff", "--name-only", "HEAD"], cwd=REPOSITORY, check=True, capture_output=True,
                             text=True).stdout.splitlines()
    place = {}
    for path in [*changed, *listed]:
        place.setdefault(path, len(place))
    return sorted(paths, key=lambda path: place.get(path, -1))  # -1: not committed at all


def commands():
    """{path relative to the repository: its arguments}"""
    if not DATABASE.exists():
        sys.exit(f"error: no {DATABASE.relative_to(REPOSITORY)}; run ci/checks, or cmake --preset checks")
    found = {}
    for entry in json.loads(DATABASE.read_text()):
        path = Path(entry["file"])
        if path.is_relative_to(REPOSITORY):
            found.setdefault(str(path.relative_to(REPOSITORY)), shlex.split(entry["command"]))
    return found


def flags(arguments):
    """The language, warnings, macros and folders of a command; no precompiled header, which would hide a missing include."""
    kept, skip = [], False
    for argument in arguments[1:]:
        if skip:
            skip = False
        elif argument in ("-o", "-c", "-include"):
            skip = True
        elif argument != "-Winvalid-pch":
            kept.append(argument)
    return [argument for argument in kept if not argument.endswith((".cpp", ".cxx"))]


def with_torch(arguments):
    return any("site-packages/torch/include" in argument or argument.endswith("/torch/include") for argument in arguments)


def includers(known):
    """{what an #include names: the first source that has it}"""
    found = {}
    for path in sorted(path for path in known if (REPOSITORY / path).exists()):  # generated sources are not built for this
        for name in INCLUDE.findall((REPOSITORY / path).read_text(errors="replace")):
            found.setdefault(name, path)
    return found


def neighbour(header, known, included_by):
    """The source whose flags a header is compiled with: one that includes it, else one in its folder or the nearest above."""
    parts = Path(header).parts
    for first in range(len(parts)):
        if source := included_by.get("/".join(parts[first:])):
            return source
    folder = Path(header).parent
    while True:
        near = [path for path in known if Path(path).is_relative_to(folder)]
        if near:
            return min(near, key=lambda path: (len(Path(path).parts), path))
        if folder == Path("."):
            raise LookupError(header)
        folder = folder.parent


def check_header(header, arguments):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "alone.cpp"
        source.write_text(f'#include "{REPOSITORY / header}"\n')
        ran = subprocess.run(["c++", *flags(arguments), "-fsyntax-only", str(source)], cwd=DATABASE.parent, capture_output=True,
                             text=True, check=False)
    return ran.stderr if ran.returncode else ""


def check_tidy(source, arguments):
    # Clang cannot read GCC's precompiled headers, nor all of its warnings' names.
    ran = subprocess.run(["clang-tidy", "--quiet", str(REPOSITORY / source), "--", *flags(arguments), "-Wno-unknown-warning-option"],
                         cwd=DATABASE.parent, capture_output=True, text=True, check=False)
    return ran.stdout if ran.returncode or ran.stdout.strip() else ""


def run(check, items, jobs, minutes):
    """Calls check(path, arguments) for all, but begins none after `minutes` (None: no limit); prints what they found, how far it is
    when that takes long, and how many were left out."""
    began, failures, left_out = time.monotonic(), 0, 0

    def one(item):
        late = minutes is not None and time.monotonic() - began > 60 * minutes
        return None if late else check(*item)

    with ThreadPoolExecutor(jobs) as pool:
        for done, (path, found) in enumerate(zip(items, pool.map(one, items.items())), 1):
            left_out += found is None
            if found:
                failures += 1
                print(f"{path}:\n{found.rstrip()}", flush=True)
            if sys.stderr.isatty():
                print(f"\r\033[K{done} of {len(items)}", end="", file=sys.stderr, flush=True)
            elif done % 50 == 0 and found is not None:
                print(f"{done} of {len(items)} files", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    checked = len(items) - left_out
    unchecked = f"; {left_out} that were changed before them are left out after {minutes:g} min" if left_out else ""
    print(f"{checked} files, {failures} with findings{unchecked}", file=sys.stderr)
    return 1 if failures or not checked else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("headers", "tidy"))
    parser.add_argument("files", nargs="*", help="only these (relative to the repository)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, help="begin no file after so many minutes")
    parser.add_argument("--torch", action="store_true", help="tidy: the files with LibTorch's headers too")
    arguments = parser.parse_intermixed_args()
    known = commands()
    if arguments.what == "headers":
        headers = arguments.files or tracked("*.h")
        included_by = includers(known)
        items = {header: known[neighbour(header, known, included_by)] for header in newest_first(headers)}
        return run(check_header, items, arguments.jobs, arguments.minutes)
    sources = arguments.files or [path for path in tracked("*.cpp") if path in known and not path.startswith(("tests/", "benchmarks/"))]
    if unknown := [path for path in sources if path not in known]:
        sys.exit(f"error: {unknown[0]} is compiled by no target of {DATABASE.relative_to(REPOSITORY)}")
    items = {path: known[path] for path in newest_first(sources) if arguments.torch or arguments.files or not with_torch(known[path])}
    return run(check_tidy, items, arguments.jobs, arguments.minutes)


if __name__ == "__main__":
    sys.exit(main())
