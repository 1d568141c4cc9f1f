"""Programs that are run by `peakbench trace`, and what became of them. For tests of other files: takes PEAKBENCH from the command line, and
skips all where there is no oracle."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PEAKBENCH = pathlib.Path(sys.argv.pop(1)).resolve()
if "PEAKBENCH_ORACLE" not in os.environ:
    print("SKIP: no oracle; ci/oracle makes one, and PEAKBENCH_ORACLE names its Python")
    sys.exit(77)
PYTHON = os.environ["PEAKBENCH_ORACLE"]
MIB = 1 << 20


def line_with(text, mark):
    """The number of the first line of a program with this mark."""
    return next(i for i, line in enumerate(text.splitlines(), 1) if mark in line)


class TracedPrograms(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, text, name="train.py"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def trace(self, *command, options=("--card", "h100-80gb"), out="out", code=0, **more):
        environment = {**os.environ, **more.pop("environment", {})}
        done = subprocess.run([PEAKBENCH, "trace", *options, "--out", out, "--", *command], cwd=self.folder, capture_output=True,
                              text=True, timeout=300, check=False, env=environment, **more)  # fmt: skip
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def case(self, out="out"):
        (case,) = json.loads((self.folder / out / "run.json").read_text(encoding="utf-8"))["cases"]
        return case
