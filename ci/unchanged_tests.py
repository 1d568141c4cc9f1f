"""Tests that cannot have become wrong since a commit: what they say they need is as it was.

usage: unchanged_tests.py BUILD COMMIT TESTS_JSON [PASSED]    (a built folder; ctest --show-only=json-v1; what summarise_tests.py wrote)

A test with the property REQUIRED_FILES names all that it needs: files and folders of the repository, and what was built (a program, a
library, a folder of plugins), which needs all that ninja made it from, headers too. Prints the names of those of which nothing differs
from the commit; a test without the property may have become wrong at any time. With PASSED, only those that it names and that are run now
as they were run then.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from compile_checks import REPOSITORY, changed_since
from summarise_tests import lines_of

# What all tests need: how things are compiled, and which PyTorch and packages they run with.
ALL_NEED = ("CMakeLists.txt", "cmake/", "ci/oracle", "ci/libtorch", "tests/conftest.py", "tests/pytest.ini", "tests/support/given.py")  # how their paths begin


def output(*command):
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"error: {' '.join(command)}: {ran.stderr.strip() or ran.stdout.strip()}")
    return ran.stdout


class Built:
    """What the files of a build folder were made from."""

    def __init__(self, folder):
        self.folder = folder
        self.headers = self._headers()

    def _headers(self):
        """{object file: the files that the compiler read for it}"""
        found, read = {}, None
        for line in output("ninja", "-C", str(self.folder), "-t", "deps").splitlines():
            if line.startswith("    "):
                read.add(self._path(line.strip()))
            elif line:
                read = found.setdefault(self._path(line.split(": #deps ")[0]), set())
        return found

    @cache
    def _path(self, name):
        return (self.folder / name).resolve()  # links too: what is not recognised would count as unchanged

    @cache
    def sources(self, target):
        inputs = {self._path(name) for name in output("ninja", "-C", str(self.folder), "-t", "inputs", str(target)).splitlines()}
        found = inputs.union(*(self.headers.get(path, ()) for path in inputs))
        if not any(path.is_relative_to(REPOSITORY) and not path.is_relative_to(self.folder) for path in found):
            sys.exit(f"error: ninja knows nothing of this repository that {target} was made from")
        return found


def needed(path, built):
    """What a file or folder that a test names is made of."""
    if not path.is_relative_to(built.folder):
        return {path}
    targets = sorted(path.rglob("*.so")) if path.is_dir() else [path]
    if not targets:
        sys.exit(f"error: {path} holds nothing that was built")
    return set().union(*(built.sources(target.relative_to(built.folder)) for target in targets))


def with_folders(paths):
    return {one for path in paths for one in (path, *path.parents)}


def main(build, commit, tests_json, passed=None):
    paths, built = changed_since(commit), Built(Path(build).resolve())
    if any(path.startswith(ALL_NEED) for path in paths):
        return
    changed = with_folders(REPOSITORY / path for path in paths)
    lines = lines_of(tests_json)
    known = set(lines.values()) if passed is None else set(Path(passed).read_text(encoding="utf-8").splitlines())
    for test in json.loads(Path(tests_json).read_text())["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        if "REQUIRED_FILES" not in properties or lines[test["name"]] not in known:
            continue
        sources = set().union(*(needed(Path(path).resolve(), built) for path in properties["REQUIRED_FILES"]))
        if changed.isdisjoint(sources):
            print(test["name"])


main(*sys.argv[1:])
