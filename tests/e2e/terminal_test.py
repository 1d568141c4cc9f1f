"""What is seen while it runs: redrawn lines on a terminal, plain lines elsewhere."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from installation import TIMEOUT, ProgramTest

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
RUN = ("run", "--model", "tiny", "--strategy", "baseline", "--strategy", "misbehave,behaviour=slow", "--out", "out")


class Terminal(ProgramTest):
    def on_terminal(self, columns, **environment):
        """Everything written to a terminal of so many columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        process = subprocess.Popen([self.program, *RUN], cwd=self.folder, stdin=theirs, stdout=theirs, stderr=theirs,
                                   env=self.environment(**environment))
        os.close(theirs)
        seen = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            seen += chunk
        os.close(ours)
        self.assertEqual(process.wait(timeout=TIMEOUT), 0)
        return seen.decode().replace("\r\n", "\n")

    def status_lines(self, text):
        """What stood between two clearings of the status lines."""
        frames = re.split(r"\r\x1b\[2A\x1b\[J", text)
        return [frame.split("\n")[:2] for frame in frames[1:-1]]

    def test_wide(self):
        seen = self.on_terminal(120)
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
            seen = self.on_terminal(columns)
            for frame in self.status_lines(seen):
                if len(frame) == 2 and frame[0].startswith("[") and "/2] " in frame[0] and "peak" not in frame[0]:
                    for line in frame:
                        self.assertLess(len(ESCAPE.sub("", line)), columns, frame)
            self.assertRegex(seen, r"step \d/3")
            subprocess.run(["rm", "-r", self.folder / "out"], check=True)

    def test_the_last_frame_is_taken_away(self):
        seen = self.on_terminal(100)
        after = ESCAPE.sub("", seen[seen.rindex("\x1b[J"):])
        self.assertNotIn("memory worker", after)
        self.assertNotIn("timing, round", after)

    def test_no_escape_codes_when_asked(self):
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            seen = self.on_terminal(100, **environment)
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


if __name__ == "__main__":
    unittest.main()
