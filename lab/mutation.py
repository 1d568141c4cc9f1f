"""Mutation testing: changes one line of a C++ source at a time, builds the tests of its directory, runs them, and reports the changes that no
test notices. universalmutator makes the changes (mutants) by regular expressions; ci/mutation_test runs this.
"""
import argparse
import collections
import contextlib
import hashlib
import io
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import typing

from universalmutator import mutator

ROOT = pathlib.Path(__file__).resolve().parents[1]
EQUIVALENT = ROOT / "lab/equivalent_mutants.json"
# Directories without LibTorch, and the test programs that should notice a mutant there, the likeliest first.
MODULES = {
    "harness/base": ("result_test", "plan_test", "cli_test", "manifest_test", "executor_test"),
    "harness/host": ("process_test", "launch_test"),
    "harness/records": ("result_test", "plan_test", "compare_test", "cli_test"),
    "harness/planning": ("manifest_test", "plan_test"),
    "harness/launch": ("launch_test", "executor_test", "cli_test"),
    "harness/search": ("search_test", "cli_test"),
    "harness/programs": ("program_test", "cli_test"),
    "harness/cluster": ("executor_test",),
    "harness/trace": ("trace_test", "program_test", "peakbench_golden_tests"),
    "reports/analysis": ("compare_test", "peakbench_golden_tests"),
    "reports/compare": ("compare_test", "peakbench_golden_tests"),
    "reports/trends": ("history_test", "site_test"),
}
RULES = ["universal.rules", "c_like.rules", "cpp.rules"]
# Lines that are left alone: a mutant of them could end other processes or delete other files.
UNTOUCHED = [r"\bkill\(", r"\bremove(_all)?\(", r"\b(unlink|rmdir)(at)?\("]
INVALID, EQUAL, KNOWN, KILLED, SURVIVED = "does not compile", "same program", "known to change nothing", "killed", "SURVIVED"
BUILD_SECONDS = 3600


class CannotRun(Exception):
    pass


class Mutant(typing.NamedTuple):
    file: str
    number: int
    before: str
    after: str

    def __str__(self):
        return f"{self.file}:{self.number}\n    - {self.before.strip()}\n    + {' '.join(self.after.split())}"


def mutants_of(file):
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints the names of its rules
        found = mutator.mutants_regexp(lines, ruleFiles=RULES, ignorePatterns=UNTOUCHED, ignoreStringOnly=True)
    return [Mutant(file, number, lines[number - 1], after) for number, after, *_ in found]


def sample(modules, seed):
    """Mutants of the modules in turn, at most one of a line. A module's order depends on the seed alone."""
    queues = []
    for module in modules:
        chance, of_line = random.Random(f"{seed}:{module}"), {}
        for path in sorted((ROOT / module).glob("*.cpp")):
            for mutant in mutants_of(path.relative_to(ROOT).as_posix()):
                of_line.setdefault((mutant.file, mutant.number), []).append(mutant)
        queue = [chance.choice(mutants) for mutants in of_line.values()]
        chance.shuffle(queue)
        queues.append(queue)
    return [mutant for turn in itertools.zip_longest(*queues) for mutant in turn if mutant]


@contextlib.contextmanager
def planted(mutant):
    path = ROOT / mutant.file
    original = path.read_bytes()
    lines = original.decode().splitlines(keepends=True)
    lines[mutant.number - 1] = mutant.after
    try:
        path.write_text("".join(lines), encoding="utf-8")
        yield
    finally:
        path.write_bytes(original)


def ended(command, seconds, **options):
    """A command's exit code, or None: it did not end in time. Whatever it started is gone afterwards."""
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True, **options)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Programs:
    """The test programs of a build folder: as they are without a mutant, and what they are with one."""

    def __init__(self, options):
        self._options, self._sums, self._seconds, self.touched = options, {}, {}, set()

    def build(self, name):
        self.touched.add(name)
        return ended(["cmake", "--build", self._options.build, "--parallel", self._options.jobs, "--target", name], BUILD_SECONDS) == 0

    def passes(self, name, seconds):
        with tempfile.TemporaryDirectory(prefix="peakbench-mutation-") as scratch:
            return ended([self._file(name)], seconds, cwd=scratch, env={**os.environ, "GTEST_FAIL_FAST": "1"}) == 0

    def sum_of(self, name):
        return hashlib.sha256(self._file(name).read_bytes()).digest()

    def _file(self, name):
        return self._options.build / "bin" / name

    def prepare(self, names):
        for name in names:
            if not self.build(name):
                raise CannotRun(f"{name} does not build without a mutant: cmake --build {self._options.build} --target {name}")
            began = time.monotonic()
            if not self.passes(name, 1800):
                raise CannotRun(f"{name} fails without a mutant; its own output says why")
            self._sums[name], self._seconds[name] = self.sum_of(name), time.monotonic() - began
            print(f"without a mutant: {name} passes in {self._seconds[name]:.0f} s", flush=True)

    def verdict(self, mutant, names):
        changed = False
        with planted(mutant):
            for name in names:
                if not self.build(name):
                    return INVALID, ""
                if self.sum_of(name) == self._sums[name]:
                    continue
                changed = True
                if not self.passes(name, max(self._options.timeout, 3 * self._seconds[name])):
                    return KILLED, name
        return (SURVIVED if changed else EQUAL), ""


def known_equivalents():
    records = json.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutants"]
    return {(record["file"], record["line"], record["becomes"]): record["reason"] for record in records}


def try_all(mutants, count, programs):
    """-> [(mutant, verdict)] of as many as have `count` verdicts of tests among them"""
    known, found, judged = known_equivalents(), [], 0
    for mutant in mutants:
        if judged == count:
            break
        began = time.monotonic()
        reason = known.get((mutant.file, mutant.before.strip(), mutant.after.strip()))
        verdict, why = (KNOWN, reason) if reason else programs.verdict(mutant, MODULES[os.path.dirname(mutant.file)])
        judged += verdict in (KILLED, SURVIVED)
        found.append((mutant, verdict))
        said = f"{verdict} by {why}" if verdict == KILLED else f"{verdict}: {why}" if why else verdict
        print(f"[{judged} of {count}] {mutant.file}:{mutant.number}: {said}, {time.monotonic() - began:.0f} s", flush=True)
    return found


def report(found, options):
    """Prints what survived and how many were killed; -> that share in per cent"""
    count = collections.Counter(verdict for _, verdict in found)
    judged = count[KILLED] + count[SURVIVED]
    score = 100 * count[KILLED] / max(judged, 1)
    print("\nNo test noticed:", *(mutant for mutant, verdict in found if verdict == SURVIVED), sep="\n")
    print(f"\nSeed {options.seed}: {count[KILLED]} of {judged} mutants killed ({score:.0f}%; at least {options.score}% wanted). "
          f"Not counted: {', '.join(f'{count[kind]} {kind}' for kind in (INVALID, EQUAL, KNOWN))}.")
    return score


def parse_arguments():
    parser = argparse.ArgumentParser(prog="ci/mutation_test", description=__doc__, epilog="Exit codes: 0; 1 fewer were killed than --score; 2 it could not run.")
    parser.add_argument("--count", type=int, default=40, help="mutants to judge (%(default)s)")
    parser.add_argument("--seed", type=int, default=2026, help="decides which (%(default)s)")
    parser.add_argument("--module", action="append", choices=MODULES, help="only this directory; may be repeated")
    parser.add_argument("--only", metavar="FILE:LINE", help="every mutant of one line instead of a sample")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--score", type=int, default=70, help="per cent that must be killed (%(default)s)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a test program, or three times what it takes without a mutant (%(default)g)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev", help="build folder (build/dev)")
    parser.add_argument("--jobs", type=int, default=2, help="of a build (%(default)s)")
    return parser.parse_args()


def run(options):
    if options.only:
        file, _, number = options.only.rpartition(":")
        mutants = [mutant for mutant in mutants_of(file) if str(mutant.number) == number] if os.path.dirname(file) in MODULES else []
    else:
        mutants = sample(options.module or MODULES, options.seed)
    count = len(mutants) if options.only else options.count
    if not mutants:
        raise CannotRun(f"there is no mutant of {options.only or ', '.join(options.module)}")
    if options.list:
        print(*mutants[:count], sep="\n")
        return 0
    changed = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if changed:
        raise CannotRun(f"files differ from the last commit ({changed.split()[1]}, ...), and sources are changed in place: commit or restore them")
    programs = Programs(options)
    modules = {os.path.dirname(mutant.file) for mutant in mutants}
    try:
        programs.prepare(list(dict.fromkeys(name for module in MODULES if module in modules for name in MODULES[module])))
        return int(report(try_all(mutants, count, programs), options) < options.score)
    finally:
        for name in sorted(programs.touched):  # no build keeps a mutant
            programs.build(name)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(parse_arguments())
    except CannotRun as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
