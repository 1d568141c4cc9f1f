"""Builds the tree as it is and runs the tests that should notice, the quickest first."""

import dataclasses
import json
import os
import re
import shlex
import subprocess
import time

import processes


class CannotRun(Exception):
    pass


class Build:
    def __init__(self, repository, folder, jobs):
        self.repository, self.folder = repository, folder
        prefix = shlex.split(os.environ.get("PEAKBENCH_BUILD_PREFIX", ""))
        self._command = [*prefix, "cmake", "--build", str(folder), "--parallel", str(jobs)]
        self._known = None

    def targets(self, stage):
        """Those of a stage that this build has."""
        if self._known is None:
            helped = subprocess.run([*self._command, "--target", "help"], cwd=self.repository, capture_output=True, text=True)
            if helped.returncode != 0:
                raise CannotRun(f"the build folder cannot be used: {first_error(helped.stdout + helped.stderr)[0]}")
            self._known = set(re.findall(r"^([^\s:]+): \S+$", helped.stdout, re.MULTILINE))
        return [target for target in stage.targets if target in self._known]

    def make(self, targets):
        """None, or the output of a build that failed."""
        if not targets:
            return None
        with processes.running([*self._command, "--target", *targets], cwd=self.repository) as process:
            output = process.stdout.read().decode(errors="replace")
            return None if process.wait() == 0 else output


def first_error(output):
    """What a failed build says, and whether it is the compiler that refused the source."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror: ", line) and "Killed signal" not in line]
    if errors:
        return re.sub(r"^.*?error: ", "", errors[0])[:160], True
    return (lines[-1] if lines else "no output")[:160], False


@dataclasses.dataclass(frozen=True)
class Ended:
    name: str
    result: str  # CTest's word
    seconds: float

    @property
    def failed(self):
        return self.result not in ("Passed", "Skipped", "Not Run (Disabled)")

    def __str__(self):
        return f"{self.name} ({self.result.lower()})"


_STARTED = re.compile(r"^\s*Start\s+\d+: (\S+)")
_ENDED = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (\S+) \.+\s*(\*\*\*\D+?|Passed|Failed)\s+([\d.]+) sec")


def ended_in(line):
    """The test whose end a line of CTest's tells."""
    match = _ENDED.match(line)
    return Ended(match[1], match[2].strip("* "), float(match[3])) if match else None


def chosen_by(test):
    """The beginning of the names that CTest is to select for a test of json-v1: its suite, where each case is one; else itself."""
    if any(word.startswith("--gtest_filter=") for word in test["command"]):
        return re.escape(test["name"].rpartition(".")[0]) + r"\."
    return re.escape(test["name"]) + "$"


# Of a test that a fault cannot make hang.
WITHOUT_A_FAULT = 900


class Tests:
    """The tests of a build folder, each held to a time."""

    def __init__(self, build, timeout):
        self._build, self._timeout = build, timeout
        self._seconds = {}
        self._selections = {}

    def prepare(self, stage):
        """Runs a stage without a fault. Tests that fail even so would notice everything: they are left out from here on."""
        self._selections[stage] = self._selection(stage)
        ended = list(self._run(stage, [], lambda name: max(self._timeout, WITHOUT_A_FAULT)))
        self._seconds.update({test.name: test.seconds for test in ended})
        failed = [test for test in ended if test.failed]
        if failed:
            self._selections[stage] += ["-E", "^(" + "|".join(re.escape(test.name) for test in failed) + ")$"]
        return [test for test in ended if test.result == "Passed"], failed

    def noticed(self, stage):
        """The test that failed; None where all passed."""
        ended = self._run(stage, ["--stop-on-failure"], lambda name: max(self._timeout, 3 * self._seconds.get(name, 0)))
        return next((test for test in ended if test.failed), None)

    def _run(self, stage, options, limit):
        select = self._selections[stage]
        if select is None:
            return
        command = ["ctest", "--test-dir", str(self._build.folder), "--timeout", "1500", *options, *select]
        with processes.running(command, cwd=self._build.repository) as process:
            deadline, current, failed = processes.Deadline(process), "the tests' discovery", False
            deadline.extend(limit(current))
            try:
                for line in process.stdout:
                    line = line.decode(errors="replace")
                    if started := _STARTED.match(line):
                        current = started[1]
                        deadline.extend(limit(current))
                    elif ended := ended_in(line):
                        failed = failed or ended.failed
                        yield ended
                status = process.wait()
            finally:
                deadline.cancel()
            if deadline.passed:
                yield Ended(current, "Timeout", limit(current))
            elif status != 0 and not failed:
                yield Ended(current, f"CTest ended with {status}", 0)

    def _selection(self, stage):
        """CTest's arguments; None where there is no such test."""
        if not stage.programs:
            return list(stage.select) if self._listed(stage.select) else None
        programs = set(stage.programs)
        chosen = {chosen_by(test) for test in self._listed(()) if programs & {os.path.basename(word) for word in test.get("command", ())}}
        return ["-R", "^(" + "|".join(sorted(chosen)) + ")"] if chosen else None

    def _listed(self, select):
        command = ["ctest", "--test-dir", str(self._build.folder), "--show-only=json-v1", *select]
        listed = subprocess.run(command, cwd=self._build.repository, capture_output=True, text=True, check=True)
        return json.loads(listed.stdout)["tests"]
