"""What is seen on a terminal: redrawn lines while it runs, plain lines elsewhere; every command within the window."""
import re
import shutil
import subprocess
import unicodedata

import output_test
import terminal
from installation import ProgramTest
from output_test import ONE, PRINTS

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
RUN = ("run", "--model", "tiny", "--strategy", "baseline", "--strategy", "misbehave,behaviour=slow", "--out", "out")


class OnTerminal(ProgramTest):
    def on_terminal(self, columns, line, exit_code=0, **environment):
        """Everything written to a terminal of so many columns; exit_code: None for any."""
        ended, seen = terminal.on_terminal([self.program, *line], columns, cwd=self.folder, env=self.environment(**environment))
        self.assertIn(ended, (ended,) if exit_code is None else (exit_code,))
        return seen


class Terminal(OnTerminal):

    def status_lines(self, text):
        """What stood between two clearings of the status lines."""
        frames = re.split(r"\r\x1b\[2A\x1b\[J", text)
        return [frame.split("\n")[:2] for frame in frames[1:-1]]

    def test_wide(self):
        seen = self.on_terminal(120, RUN)
        frames = [frame for frame in self.status_lines(seen) if len(frame) == 2 and "worker" in frame[1]]
        self.assertGreater(len(frames), 3)
        lines = "\n".join(line for frame in frames for line in frame)
        self.assertIn("[2/2] tiny/misbehave,behaviour=slow/cpu/fp32/b1", lines)
        self.assertRegex(lines, r"memory worker, step [123]/3 (forward|backward|optimizer step), \d+ s, about .* left, "
                                r"0\.062 GiB, peak 0\.094 GiB")
        self.assertRegex(lines, r"timing, round [123] of 3, .*\d workers? left")
        self.assertIn("[1/2] ok", seen)
        self.assertIn("Report:  out/report/index.html", seen)

    def test_narrow(self):
        for columns in (40, 24):
            seen = self.on_terminal(columns, RUN)
            for frame in self.status_lines(seen):
                if len(frame) == 2 and frame[0].startswith("[") and "/2] " in frame[0] and "peak" not in frame[0]:
                    for line in frame:
                        self.assertLess(len(ESCAPE.sub("", line)), columns, frame)
            self.assertRegex(seen, r"step \d/3")
            subprocess.run(["rm", "-r", self.folder / "out"], check=True)

    def test_the_last_frame_is_taken_away(self):
        seen = self.on_terminal(100, RUN)
        after = ESCAPE.sub("", seen[seen.rindex("\x1b[J"):])
        self.assertNotIn("memory worker", after)
        self.assertNotIn("timing, round", after)

    def test_no_escape_codes_when_asked(self):
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            seen = self.on_terminal(100, RUN, **environment)
            self.assertNotIn("\x1b", seen)
            self.assertIn("[1/2] tiny/baseline/cpu/fp32/b1\n", seen)
            subprocess.run(["rm", "-r", self.folder / "out"], check=True)

    def test_plain_lines_elsewhere(self):
        done = self.peakbench(*RUN)
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertEqual(done.stderr, "[1/2] tiny/baseline/cpu/fp32/b1\n"
                                      "[2/2] tiny/misbehave,behaviour=slow/cpu/fp32/b1\n"
                                      "timing, round 1 of 3: 2 cases in turn, 6 workers left\n"
                                      "timing, round 2 of 3: 2 cases in turn, 4 workers left\n"
                                      "timing, round 3 of 3: 2 cases in turn, 2 workers left\n")
        self.assertRegex(done.stdout, r"\[1/2\] ok +peak 0\.098 GiB allocated +2\.001 ms/step +500 samples/s +tiny/baseline")


# Of each command a line that shows what it prints for people; beside output_test.PRINTS, whose lines are seen without --json. None: why not.
SEEN = {
    **{name: [word for word in line if word != "--json"] for name, line in PRINTS.items() if line},
    "run": [*ONE, "--out", "new"],
    "emulate": ["emulate", "--no-lines", "--", "true"],
    "trace": ["trace", "--card", "h100-80gb", "--out", "traced", "--", "true"],
    "import": ["import", "none.pickle"],
    "export": ["export", "out"],
    "releases": ["releases", "--model", "tiny"],
    "history": ["history"],
    "merge": ["merge", "out", "other", "--out", "merged"],
    "new": ["new", "strategy", "mine"],
    "check": ["check", "none"],
    "quickstart": ["quickstart"],
    "workers": ["workers"],
    "debug": None,  # becomes the debugger
    "mcp": None,  # speaks with a client
    "work": None,  # runs where nobody looks, as a scheduler's task
    "workers build": None,  # compiles a worker
    "workers remove": None,  # of one that was compiled
}
CODES = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[\d+A\x1b\[J")  # colours, and the redrawing of status lines
ESCAPED = re.compile(r"\\(u00[0-9a-f]{2}|x[0-9a-f]{2})|\[\d+A|\[J")  # such a code as text
WIDTHS = (80, 120, 200)
# What they print is for other programs or to be copied, not to be broken; the whole of `emulate` and `trace` is as wide as its sentences.
COPIED = ("completion", "man", "history export", "new", "emulate", "trace")


def columns_of(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def too_wide(line, columns):
    """A line that could have been broken: one word, as a path is, cannot be; code is to be copied whole."""
    return columns_of(line) > columns and any(columns_of(part) < columns for part in line.strip().split(" ")[1:])


class EveryCommand(OnTerminal):
    def setUp(self):
        super().setUp()
        output_test.make_runs(self)

    def test_a_line_for_each(self):
        self.assertEqual({" ".join(path) for path in output_test.commands_of(self)}, set(SEEN))

    def check(self, name, line, columns):
        plain = CODES.sub("", self.on_terminal(columns, line, None))
        with self.subTest(" ".join(line), columns=columns):
            self.assertIsNone(ESCAPED.search(plain), repr(plain))
            self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f]", plain), repr(plain))
            if name not in COPIED:
                self.assertEqual([one for one in plain.split("\n") if too_wide(one, columns)], [], name)

    def test_what_is_printed(self):
        for name, line in SEEN.items():
            for columns in WIDTHS if line else ():
                for folder in ("new", "traced", "merged", "mine", "fit", "ab", "site", "results", "h.sqlite"):
                    shutil.rmtree(self.folder / folder, ignore_errors=True)
                self.check(name, line, columns)

    def test_help_and_errors(self):
        for path in [(), *output_test.commands_of(self)]:
            for more in (["--help"], ["--no-such-option"]):
                self.check("help", [*path, *more], 80)

    def test_status_lines_are_redrawn_by_a_command_that_calls_another(self):
        suites = self.prefix / "installed/share/peakbench/suites"
        suites.mkdir(exist_ok=True)
        (suites / "quickstart.toml").write_text('models = ["tiny"]\nstrategies = ["baseline"]\n', encoding="utf-8")
        self.addCleanup(shutil.rmtree, suites)
        seen = self.on_terminal(80, ["quickstart", "--cpu", "--out", "first"], None)
        self.assertIn("\r\x1b[2A\x1b[J", seen)
        self.assertIsNone(ESCAPED.search(CODES.sub("", seen)), repr(seen))

    def test_the_short_view_is_within_the_window(self):
        (self.folder / "train.py").write_text("print('no tensors')\n", encoding="utf-8")
        for columns in WIDTHS:
            seen = CODES.sub("", self.on_terminal(columns, ["train.py"], None))
            self.assertIn("Used no card", seen)
            self.assertEqual([one for one in seen.split("\n") if columns_of(one) > columns], [])

    def test_colours_where_there_are_any(self):
        line = ["emulate", "--no-lines", "--", "true"]
        self.assertIn("\x1b[33mUsed no card\x1b[0m: ", self.on_terminal(80, line))
        self.assertNotIn("\x1b", self.on_terminal(80, line, NO_COLOR="1"))
