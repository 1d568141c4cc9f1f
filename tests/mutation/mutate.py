"""Plants small faults in the C++ sources, one at a time, and tells which of them no test notices."""

import argparse
import contextlib
import fcntl
import pathlib
import signal
import subprocess
import sys
import time

import equivalents
import processes
import report
from planting import ChangedSince, Journal
from rooms import CONCEPTS, ROOMS, room_of, sources
from rules import faults_in
from sampling import Sample, group_of
from trial import Build, CannotRun, Tests, first_error

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# Seconds of a build after a change of one file, before any was seen.
BUILD_GUESS = {"harness/worker": 60, "harness/record": 60, "harness/device": 60}
OTHER_BUILD_GUESS = 20


def say(text):
    print(text, flush=True)


def arguments():
    parser = argparse.ArgumentParser(
        prog="ci/mutation_test",
        description=__doc__,
        epilog="PEAKBENCH_BUILD_PREFIX: words before every build's command. Exit code: 0 nothing survived in "
        + ", ".join(CONCEPTS)
        + "; 1 something did; 2 it could not be run.",
    )
    parser.add_argument("--count", type=int, default=40, help="faults to plant (%(default)s)")
    parser.add_argument("--seed", type=int, default=2026, help="what decides which (%(default)s)")
    parser.add_argument("--room", action="append", choices=[room.folder for room in ROOMS], help="only here; may be repeated")
    parser.add_argument("--only", metavar="FILE:LINE", help="every fault of one line, in place of a sample")
    parser.add_argument("--list", action="store_true", help="print the sample and end")
    parser.add_argument(
        "--timeout", type=float, default=60, help="seconds for a test, or three times what it takes without a fault (%(default)g)"
    )
    parser.add_argument("--build", type=pathlib.Path, default=REPOSITORY / "build/release", help="build folder (build/release)")
    parser.add_argument("--jobs", type=int, default=2, help="of a build (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the verdicts here too")
    return parser.parse_args()


# --- What is planted ------------------------------------------------------------------------------------


def all_faults(rooms):
    return [fault for file in sources(REPOSITORY, rooms) for fault in faults_in(file, (REPOSITORY / file).read_text())]


class Line:
    """In place of a sample: every fault of one line."""

    def __init__(self, faults, place):
        self._faults = [fault for fault in faults if fault.place == place]
        if not self._faults:
            raise CannotRun(f"no rule applies to {place}; a place is FILE:LINE from the repository's root, as --list prints it")
        self.quota = {group_of(self._faults[0]): len(self._faults)}

    def take(self):
        taken, self._faults = self._faults, []
        return taken

    def replace(self, fault):
        pass


# --- One fault ------------------------------------------------------------------------------------------


class Trials:
    def __init__(self, build, tests, journal):
        self._build, self._tests, self._journal = build, tests, journal
        self.known = equivalents.read()
        self.touched = []  # targets that may hold a fault

    def of(self, fault):
        began = time.monotonic()
        reason = equivalents.reason_for(self.known, fault)
        verdict = (report.EQUIVALENT, reason) if reason else self._judged(fault)
        return report.Outcome(fault, *verdict, time.monotonic() - began)

    def _judged(self, fault):
        with self._journal.planted(fault):
            for stage in room_of(fault.file).stages:
                targets = self._build.targets(stage)
                self.touched += [target for target in targets if target not in self.touched]
                failed = self._build.make(targets)
                if failed is not None:
                    return report.INVALID, self._refused(failed)
                if noticed := self._tests.noticed(stage):
                    return report.KILLED, str(noticed)
        return report.SURVIVED, ""

    def _refused(self, output):
        error, by_compiler = first_error(output)
        return error if by_compiler else "the build failed, and not by the compiler: " + error

    def clean_up(self):
        """The build folder without a fault in it."""
        if self.touched and self._build.make(self.touched) is not None:
            raise CannotRun("the sources are as they were, and do not build; the build folder may hold a fault: build it anew")


# --- The whole ------------------------------------------------------------------------------------------


def need_clean_tree():
    git = ["git", "-C", str(REPOSITORY), "status", "--porcelain", "--untracked-files=no"]
    changed = subprocess.run(git, capture_output=True, text=True, check=True).stdout.splitlines()
    if changed:
        raise CannotRun(
            f"{len(changed)} files differ from the last commit ({changed[0][3:]}, ...); commit or stash them, since faults are "
            "planted in the tree"
        )


def baseline(rooms, build, tests):
    """Builds and runs, without a fault, all that the faults will need. Room to the seconds of its tests."""
    took, seconds, counts = {}, {}, {}
    stages = list(dict.fromkeys(stage for room in rooms for stage in room.stages))
    say("Without a fault: building")
    failed = build.make(list(dict.fromkeys(target for stage in stages for target in build.targets(stage))))
    if failed is not None:
        raise CannotRun("the tree does not build as it is: " + first_error(failed)[0])
    for stage in stages:
        began = time.monotonic()
        passed, failed = tests.prepare(stage)
        seconds[stage], counts[stage] = time.monotonic() - began, len(passed)
        name = ", ".join(stage.programs) or " ".join(stage.select)
        say(f"Without a fault: {name}: {len(passed)} tests passed in {seconds[stage]:.0f} s")
        for test in failed:
            say(f"note: {test} fails without a fault, so it is left out")
    for room in rooms:
        if not sum(counts[stage] for stage in room.stages):
            raise CannotRun(f"no test that passes looks at {room.folder}")
        took[room.folder] = sum(seconds[stage] for stage in room.stages)
    return took


def expected_seconds(faults, took):
    """Half of a room's tests run before one of them notices."""
    folders = [room_of(fault.file).folder for fault in faults]
    return sum(BUILD_GUESS.get(folder, OTHER_BUILD_GUESS) + took[folder] / 2 for folder in folders)


def try_all(options, sample, trials, build, tests, outcomes):
    faults = sample.take()
    rooms = [room for room in ROOMS if any(room_of(fault.file) == room for fault in faults)]
    expected = expected_seconds(faults, baseline(rooms, build, tests))
    say(f"{len(faults)} faults, seed {options.seed}: about {expected / 60:.0f} min")
    progress = report.Progress(len(faults), expected, say)
    while faults:
        for fault in faults:
            outcome = trials.of(fault)
            outcomes.append(outcome)
            progress.take(outcome)
            if outcome.verdict in (report.INVALID, report.EQUIVALENT):
                sample.replace(fault)
        faults = sample.take()


def run(options):
    rooms = [room for room in ROOMS if not options.room or room.folder in options.room]
    if options.list:
        for fault in drawn(options, all_faults(rooms)).take():
            say(f"[{group_of(fault)}] {report.described(fault)}")
        return 0
    journal = Journal(REPOSITORY, options.build / "mutation/journal.json")
    journal.path.parent.mkdir(parents=True, exist_ok=True)
    with alone(journal.path.with_name("lock")):
        if restored := journal.restore():
            say(f"{restored}: put back as it was before an earlier run planted a fault in it")
        need_clean_tree()
        faults = all_faults(rooms)
        note_outdated(faults, rooms)
        return plant(options, drawn(options, faults), journal)


def drawn(options, faults):
    return Line(faults, options.only) if options.only else Sample(faults, options.seed, options.count)


@contextlib.contextmanager
def alone(path):
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotRun(f"another one is at work in {path.parent.parent}") from None
        yield


def note_outdated(faults, rooms):
    for file, line, *_ in equivalents.outdated(equivalents.read(), faults):
        if room_of(file) in rooms:
            say(f"note: {equivalents.FILE.name} has an entry that nothing in {file} is like any more: {line}")


def plant(options, sample, journal):
    processes.adopt_orphans()
    build = Build(REPOSITORY, options.build, options.jobs)
    tests = Tests(build, options.timeout)
    trials = Trials(build, tests, journal)
    outcomes = []
    try:
        try_all(options, sample, trials, build, tests, outcomes)
    finally:
        if outcomes:
            say("\n" + report.summary(outcomes))
        if options.json:
            report.write_json(options.json, options.seed, outcomes)
        trials.clean_up()
    return 1 if report.critical_survivors(outcomes) else 0


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(arguments())
    except (CannotRun, ChangedSince) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
