"""Checks of single files with the flags that CMake compiles them with: headers that compile alone, clang-tidy.

    python3 ci/compile_checks.py headers [--jobs N] [FILE...]
    python3 ci/compile_checks.py tidy [--jobs N] [--changed COMMIT] [--torch] [FILE...]

Needs build/checks/compile_commands.json (ci/checks makes it). Prints what was found; the exit status is 1 if anything was.

With --changed clang-tidy looks at the sources that changed since that commit, and at the sources of the headers that did: at those of a
target together, as it compiles them, since most of its time goes into headers. (A source that needs an include of the one before it is only
found without --changed.) Headers are looked at all of them each time.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
DATABASE = REPOSITORY / "build/checks/compile_commands.json"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def git(*arguments):
    ran = subprocess.run(["git", "-c", "core.quotePath=false", *arguments], cwd=REPOSITORY, check=False, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"error: git {' '.join(arguments)}: {ran.stderr.strip()}")
    return ran.stdout.splitlines()


def tracked(*patterns):
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns)
    return [path for path in listed if (REPOSITORY / path).exists()]


def changed_since(commit):
    """The files that differ from it; those that are not committed yet among them."""
    return {*git("diff", "--name-only", commit, "--"), *git("ls-files", "--others", "--exclude-standard")}


def commands():
    """({path relative to the repository: its arguments}, {path: the file that is compiled with it and others of its target})"""
    if not DATABASE.exists():
        sys.exit(f"error: no {DATABASE.relative_to(REPOSITORY)}; run ci/checks, or cmake --preset checks")
    found, together = {}, {}
    for entry in json.loads(DATABASE.read_text()):
        path = Path(entry["file"])
        if not path.is_relative_to(REPOSITORY) or not path.exists():  # generated sources are not built for this
            continue
        for member in members_of(path) if path.parent.name == "Unity" else [path]:
            name = str(member.relative_to(REPOSITORY))
            found.setdefault(name, shlex.split(entry["command"]))
            together.setdefault(name, path)
    return found, together


def flags(arguments):
    """The language, warnings, macros and folders of a command; no precompiled header, which would hide a missing include, and nothing
    that only GCC knows."""
    kept, skip = [], False
    for argument in arguments[1:]:
        if skip:
            skip = False
        elif argument in ("-o", "-c", "-include"):
            skip = True
        elif argument != "-Winvalid-pch" and not argument.startswith("--param="):
            kept.append(argument)
    return [argument for argument in kept if not argument.endswith((".cpp", ".cxx"))]


def with_torch(arguments):
    return any(argument.endswith("/torch/include") for argument in arguments)


class LibraryHeaders:
    """The headers of libraries that the repository's own include."""

    INCLUDE = re.compile(r"^#include <([^>]+)>", re.MULTILINE)

    def __init__(self):
        self.by_name, self.found = {}, {}
        for header in tracked("*.h"):
            parts = Path(header).parts
            for first in range(len(parts)):
                self.by_name.setdefault("/".join(parts[first:]), []).append(header)

    def _named(self, name, path):
        """The header that an #include of a file names, if that is certain: the one beside the file, or the only one that ends so."""
        beside = (Path(path).parent / name).as_posix()
        near = self.by_name.get(beside, []) or self.by_name.get(name, [])
        return near if len(near) == 1 else []

    def of(self, path):
        """Their names, of those that it includes itself or by others; never one too many."""
        if path not in self.found:
            self.found[path] = set()  # where a ring ends
            text = (REPOSITORY / path).read_text(errors="replace")
            through = [self.of(header) for name in INCLUDE.findall(text) for header in self._named(name, path)]
            self.found[path] = set(self.INCLUDE.findall(text)).union(*through)
        return self.found[path]


def includers(known):
    """{what an #include names: the sources that have it}"""
    found = {}
    for path in sorted(known):
        for name in INCLUDE.findall((REPOSITORY / path).read_text(errors="replace")):
            found.setdefault(name, []).append(path)
    return found


def neighbour(header, known, included_by):
    """The source whose flags a header is compiled with: one that includes it, else one in its folder or the nearest above."""
    parts = Path(header).parts
    folder = Path(header).parent
    for first in range(len(parts)):
        name = "/".join(parts[first:])
        for source in included_by.get(name, []):
            if "/" in name or Path(source).parent == folder:  # a name alone may be another folder's
                return source
    while True:
        near = [path for path in known if Path(path).is_relative_to(folder)]
        if near:
            return min(near, key=lambda path: (len(Path(path).parts), path))
        if folder == Path("."):
            raise LookupError(header)
        folder = folder.parent


class HeaderCheck:
    """check(header, arguments): what clang says of it alone.

    Nearly all of the time would go into headers of libraries. They are compiled once, in combinations in which this repository's headers
    include them, themselves or by others of its headers: a header can use no more than what it includes anyway.
    """

    # What each adds, in seconds on a quiet core: roughly, as it only decides what is precompiled.
    LARGE = {"ATen/ATen.h": 4, "ATen/core/Tensor.h": 3, "ATen/core/dispatch/Dispatcher.h": 1, "ATen/core/ivalue.h": 3, "ATen/record_function.h": 1,
             "CLI/CLI.hpp": 0.8, "algorithm": 0.1, "chrono": 0.16, "filesystem": 0.27, "functional": 0.09, "gtest/gtest.h": 0.6, "map": 0.03,
             "memory": 0.15, "mutex": 0.06, "nlohmann/json.hpp": 1.1, "optional": 0.02, "ostream": 0.05, "set": 0.03, "string": 0.18,
             "torch/nn/module.h": 3, "unordered_map": 0.05, "variant": 0.03, "vector": 0.03}
    # To precompile takes longer than to parse.
    MADE = 1.5

    def __init__(self, items, jobs):
        self.folder = DATABASE.parent / "alone"
        self.folder.mkdir(exist_ok=True)
        libraries, by_language = LibraryHeaders(), {}
        self.large = {header: frozenset(self.LARGE.keys() & libraries.of(header)) for header in items}
        for header, arguments in items.items():
            by_language.setdefault(self._language(arguments), {})[header] = self._folders(arguments)
        wanted = {(large, language): folders for language, headers in by_language.items() for large, folders in self._worth_it(headers).items()}
        with ThreadPoolExecutor(jobs) as pool:
            made = pool.map(self._precompile, range(len(wanted)), wanted, wanted.values())
            self.precompiled = {key: path for key, path in zip(wanted, made) if path}

    @classmethod
    def _seconds(cls, large):
        return sum(cls.LARGE[name] for name in large)

    def _worth_it(self, headers):
        """{combination: the folders of a header that has it}, of those that save more than they take; that which saves most, given those
        before it, first."""
        found, saved = {}, dict.fromkeys(headers, 0)
        folders = {self.large[header]: of_it for header, of_it in headers.items()}
        while True:
            gains = {large: -self.MADE * self._seconds(large) + sum(max(0, self._seconds(large) - saved[header])
                                                                    for header in headers if large <= self.large[header])
                     for large in folders}
            best = max(gains, key=gains.get, default=None)
            if best is None or gains[best] <= 0:
                return found
            found[best] = folders[best]
            for header in headers:
                if best <= self.large[header]:
                    saved[header] = max(saved[header], self._seconds(best))

    @staticmethod
    def _language(arguments):
        """What must be the same for what is precompiled: the standard, the warnings, NDEBUG."""
        kept = [argument for argument in flags(arguments) if argument.startswith(("-std=", "-W")) or argument == "-DNDEBUG"]
        return (*dict.fromkeys(kept), "-Wno-unknown-warning-option")

    @staticmethod
    def _folders(arguments):
        """The options that say where headers are."""
        given = flags(arguments)
        return [one for before, one in zip(["", *given], given) if one.startswith("-I") or "-isystem" in (one, before)]

    @staticmethod
    def _clang(*arguments):
        """What it says if it fails, else nothing."""
        ran = subprocess.run(["clang++", *map(str, arguments)], cwd=DATABASE.parent, capture_output=True, text=True, check=False)
        return (ran.stderr or f"clang++ ended with {ran.returncode}") if ran.returncode else ""

    def _precompile(self, number, key, folders):
        large, language = key
        source = self.folder / f"large_{number}.h"
        source.write_text("".join(f"#include <{name}>\n" for name in sorted(large)))
        made = source.with_suffix(".pch")
        return None if self._clang(*language, *folders, "-fpch-instantiate-templates", "-x", "c++-header", source, "-o", made) else made

    def __call__(self, header, arguments):
        source, language = self.folder / (header.replace("/", "_") + ".cpp"), self._language(arguments)
        # Macros of a target are defined in the source: what is precompiled is so for many.
        macros = [one[2:].partition("=") for one in flags(arguments) if one.startswith("-D") and one not in language]
        source.write_text("".join(f"#define {name} {value or 1}\n" for name, _, value in macros)
                          + f'#include "{os.path.relpath(REPOSITORY / header, self.folder)}"\n')
        fitting = [key for key in self.precompiled if key[1] == language and key[0] <= self.large[header]]
        best = max(fitting, key=lambda key: self._seconds(key[0]), default=None)
        before = ["-fpch-instantiate-templates", "-include-pch", self.precompiled[best]] if best else []
        return self._clang(*language, *self._folders(arguments), *before, "-fsyntax-only", source)


def members_of(path):
    """The sources of this repository that a file of CMake's unity builds includes."""
    return [Path(name) for name in INCLUDE.findall(path.read_text()) if Path(name).is_relative_to(REPOSITORY)]


@cache
def settings_of(path):
    """What the .clang-tidy of its folder, and of those above, say."""
    ran = subprocess.run(["clang-tidy", "--dump-config", str(path)], cwd=DATABASE.parent, capture_output=True, text=True, check=True)
    return ran.stdout


def check_tidy(source, arguments):
    path, how = REPOSITORY / source, []
    if path.parent.name == "Unity":  # in the build folder; to include sources is what it is for
        how = [f"--config={settings_of(members_of(path)[0])}", "--checks=-bugprone-suspicious-include"]
    # Clang cannot read GCC's precompiled headers, nor all of its warnings' names.
    ran = subprocess.run(["clang-tidy", "--quiet", *how, str(path), "--", *flags(arguments), "-Wno-unknown-warning-option"],
                         cwd=DATABASE.parent, capture_output=True, text=True, check=False)
    return ran.stdout if ran.returncode or ran.stdout.strip() else ""


def sources_to_tidy(sources, changed, known, torch):
    """The sources to look at, by their names."""
    if changed is not None:
        included_by = {}
        for source in sources:
            first = INCLUDE.search((REPOSITORY / source).read_text(errors="replace"))
            if first:
                included_by.setdefault(first.group(1), []).append(source)
        wanted = changed | {source for path in changed if path.endswith(".h") for name, own in included_by.items()
                            if path.endswith("/" + name) for source in own}
        sources = [source for source in sources if source in wanted]
    return [source for source in sources if torch or not with_torch(known[source])]


def run(check, items, jobs):
    """Calls check(path, arguments) for all; prints what they found, and how far it is when that takes long."""
    failures = 0
    with ThreadPoolExecutor(jobs) as pool:
        for done, (path, found) in enumerate(zip(items, pool.map(lambda item: check(*item), items.items())), 1):
            if found:
                failures += 1
                print(f"{path}:\n{found.rstrip()}", flush=True)
            if sys.stderr.isatty():
                print(f"\r\033[K{done} of {len(items)}", end="", file=sys.stderr, flush=True)
            elif done % 50 == 0:
                print(f"{done} of {len(items)} files", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"{len(items)} files, {failures} with findings", file=sys.stderr)
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("headers", "tidy"))
    parser.add_argument("files", nargs="*", help="only these (relative to the repository)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--changed", metavar="COMMIT", help="tidy: what can have become wrong since then")
    parser.add_argument("--torch", action="store_true", help="tidy: the files with LibTorch's headers too")
    arguments = parser.parse_intermixed_args()
    known, together = commands()
    if arguments.what == "headers":
        if arguments.changed is not None:
            parser.error("--changed is of tidy: headers are looked at all of them")
        included_by = includers(known)
        items = {header: known[neighbour(header, known, included_by)] for header in arguments.files or tracked("*.h")}
        return run(HeaderCheck(items, arguments.jobs), items, arguments.jobs)
    changed = None if arguments.changed is None else changed_since(arguments.changed)
    if changed and ".clang-tidy" in changed:
        changed = None
    sources = arguments.files or [path for path in tracked("*.cpp") if path in known and not path.startswith(("tests/", "benchmarks/"))]
    if unknown := [path for path in sources if path not in known]:
        sys.exit(f"error: {unknown[0]} is compiled by no target of {DATABASE.relative_to(REPOSITORY)}")
    if not arguments.files:
        sources = sources_to_tidy(sources, changed, known, arguments.torch)
    if changed is None:
        items = {source: known[source] for source in sources}
    else:
        items = {str(together[source].relative_to(REPOSITORY)): known[source] for source in sources}
        print(f"{len(sources)} sources, in {len(items)} files with what is compiled with them", file=sys.stderr)
    return run(check_tidy, items, arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
