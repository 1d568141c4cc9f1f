"""A standard output that cannot be written is an error of every command: nobody takes half an answer for a whole one."""
import os
import re
import subprocess

from given import PEAKBENCH
from installation import TIMEOUT, ProgramTest

ONE = ("run", "--model", "tiny", "--strategy", "baseline", "--repetitions", "0")

# Of each command that prints its result, a line that ends 0 where output works. None: it prints none of its own.
PRINTS = {
    "run": [*ONE, "--out", "new", "--overwrite"],
    "list": ["list", "models", "--json"],
    "describe": ["describe", "baseline", "--json"],
    "fit": ["fit", "--model", "tiny", "--strategy", "baseline", "--batch", "1", "--budget", "1GiB", "--out", "fit",
            "--overwrite", "--no-report"],
    "advise": ["advise", "out", "--card", "h100-80gb", "--json"],
    "report": ["report", "out"],
    "doctor": ["doctor", "--json"],
    "debug": None,  # becomes the debugger
    "emulate": ["emulate", "--no-lines", "--json", "--", "true"],
    "trace": None,  # prints what the program prints
    "import": None,  # its folder must be new each time
    "export": None,  # prints a path after a trace was written: needs a traced case
    "mcp": None,  # speaks with a client
    "compare": ["compare", "out", "other", "--json"],
    "gate": ["gate", "out", "other", "--json"],
    "ab": ["ab", "INSTALLED", "INSTALLED", "--model", "tiny", "--strategy", "baseline", "--pairs", "2", "--steps", "2",
           "--out", "ab", "--overwrite", "--json"],
    "releases": None,  # needs two PyTorchs
    "history": None,
    "history add": ["history", "add", "out", "--json"],
    "history list": ["history", "list", "--json"],
    "history show": ["history", "show", "1", "--json"],
    "history trend": ["history", "trend", "--json"],
    "history accept": ["history", "accept", "1"],
    "history prune": ["history", "prune", "--keep", "9", "--json"],
    "history export": ["history", "export"],
    "history check": ["history", "check"],
    "merge": None,  # its folder must be new each time
    "work": None,  # its output is a job's log: it needs a queue, and what it found stands in files
    "publish": ["publish", "--out", "site"],
    "new": None,  # its folder must be new each time
    "check": None,  # of a plugin that is not installed: tests/consumer
    "open": ["open", "out", "--print"],
    "quickstart": None,  # prints what `run` does
    "completion": ["completion", "bash"],
    "man": ["man"],
    "workers": None,
    "workers list": ["workers", "list", "--json"],
    "workers build": None,  # its folder must be new each time
    "workers remove": None,
}


def commands_of(test, *path):
    """Every command that --help names, and theirs."""
    out = test.peakbench(*path, "--help").stdout
    names = re.findall(r"^  ([a-z]+)  ", out.partition("\nExamples:\n")[0], re.MULTILINE)
    found = []
    for name in names:
        found += [(*path, name), *commands_of(test, *path, name)]
    return found


def make_runs(test):
    """What the lines of PRINTS read."""
    for name in ("out", "other"):
        test.peakbench(*ONE, "--out", name)
    test.peakbench("history", "add", "out", "--commit", "abc", "--branch", "main")


class Output(ProgramTest):
    def setUp(self):
        super().setUp()
        make_runs(self)

    def ends(self, *arguments, stdout):
        arguments = [str(self.prefix / "installed") if word == "INSTALLED" else word for word in arguments]
        return subprocess.run([self.program, *arguments], cwd=self.folder, stdout=stdout, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env=self.environment(), timeout=TIMEOUT, check=False)

    def full(self, *arguments):
        with open("/dev/full", "wb") as full:
            return self.ends(*arguments, stdout=full)

    def closed(self, *arguments):
        arguments = [str(self.prefix / "installed") if word == "INSTALLED" else word for word in arguments]
        return subprocess.run(["sh", "-c", '"$@" >&-', "sh", self.program, *arguments], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self.environment(),
                              timeout=TIMEOUT, check=False)

    def unread(self, *arguments):
        """Into a pipe that nobody reads any more."""
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            return self.ends(*arguments, stdout=pipe)

    def test_the_table_has_every_command(self):
        self.assertEqual({" ".join(path) for path in commands_of(self)}, set(PRINTS))

    def test_every_help(self):
        for path in [(), *commands_of(self)]:
            for ask in ([*path, "--help"], [*path, "--help-all"] if not path else ["help", *path]):
                done = self.full(*ask)
                self.assertEqual(done.returncode, 2, ask)
                self.assertIn("peakbench: cannot write to standard output: No space left on device", done.stderr)
                done = self.closed(*ask)
                self.assertEqual(done.returncode, 2, ask)
                self.assertIn("peakbench: cannot write to standard output: it is closed", done.stderr)
                done = self.unread(*ask)
                self.assertEqual((done.returncode, done.stderr), (141, ""), ask)
        for ask in (["--version"], []):
            self.assertEqual(self.full(*ask).returncode, 2)

    def test_every_result(self):
        for name, arguments in PRINTS.items():
            if arguments is None:
                continue
            self.assertEqual(self.ends(*arguments, stdout=subprocess.DEVNULL).returncode, 0, name)
            done = self.full(*arguments)
            self.assertEqual(done.returncode, 2, name)
            self.assertIn("peakbench: cannot write to standard output: No space left on device", done.stderr)
            done = self.closed(*arguments)
            self.assertEqual(done.returncode, 2, name)
            self.assertIn("peakbench: cannot write to standard output: it is closed", done.stderr)
            done = self.unread(*arguments)
            self.assertEqual(done.returncode, 141, name)
            self.assertNotIn("standard output", done.stderr)

    def test_a_run_goes_on(self):
        """What is measured is worth more than the lines about it."""
        for end in (self.full, self.closed, self.unread):
            end(*ONE, "--out", "kept", "--overwrite")
            self.assertEqual(self.statuses("kept"), ["ok"])
            self.assertEqual(self.run_json("kept")["status"], "complete")
            self.assertTrue((self.folder / "kept/report/index.html").exists())

    def test_nothing_is_written_into_what_is_opened_first(self):
        """A closed descriptor 1 is the next file's number: the history's, say."""
        self.closed("history", "add", "out", "--json")
        self.closed("history", "list", "--json")
        self.peakbench("history", "check")
        self.closed("history", "export", "--out", "lines.jsonl")
        self.peakbench("history", "add", "lines.jsonl", "--history", "again.sqlite")

    def test_a_verdict_stays_what_it_is(self):
        self.peakbench("run", "--model", "tiny", "--strategy", "misbehave,behaviour=no_result", "--out", "bad", exit_code=3)
        for end, code in ((self.full, 2), (self.closed, 2), (self.unread, 3)):
            done = end("run", "--model", "tiny", "--strategy", "misbehave,behaviour=no_result", "--out", "bad", "--overwrite")
            self.assertEqual(done.returncode, code, done.stderr)

    def test_a_program_on_an_emulated_card_has_signals_as_usual(self):
        # sh: Python ignores both of itself.
        done = subprocess.run([PEAKBENCH, "emulate", "--", "sh", "-c",
                               "grep SigIgn /proc/self/status"], capture_output=True, text=True, check=False, timeout=TIMEOUT)
        ignored = int(done.stdout.split()[1], 16)
        self.assertEqual(ignored & (1 << 13 - 1 | 1 << 25 - 1), 0, done.stdout)
