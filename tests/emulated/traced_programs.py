"""Programs that are run by `peakbench trace`, and what became of them. For tests of other files, which are
skipped where there is no oracle."""

import functools
import json
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

PACKAGES = pathlib.Path(__file__).resolve().parents[2] / "python"
MIB = 1 << 20


@functools.cache
def warm():
    """A Python that programs are forked from."""
    return warm_python.served(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"], []], imports=warm_python.TRAINING)


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
        done = subprocess.run([PEAKBENCH, "trace", "--details", *options, "--out", out, "--", *command], cwd=self.folder, capture_output=True,
                              text=True, timeout=300, check=False, env=environment, **more)  # fmt: skip
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def case(self, out="out"):
        (case,) = json.loads((self.folder / out / "run.json").read_text(encoding="utf-8"))["cases"]
        return case

    def query(self, text, out="out", trace="trace.sqlite"):
        (path,) = (self.folder / out).glob(f"cases/*/{trace}")
        database = sqlite3.connect(path)
        try:
            return database.execute(text).fetchall()
        finally:
            database.close()


# Allocations with their words and the innermost line of train.py, for a query to choose from.
ALLOCATIONS = """
    WITH RECURSIVE up(event, frame) AS (
      SELECT a.event, e.stack FROM allocations a JOIN events e ON e.id = a.event
      UNION ALL
      SELECT up.event, f.parent FROM up JOIN frames f ON f.id = up.frame
        WHERE (SELECT name FROM files WHERE id = f.file) NOT LIKE '%train.py'),
    lines AS (SELECT up.event, f.line FROM up JOIN frames f ON f.id = up.frame
      WHERE (SELECT name FROM files WHERE id = f.file) LIKE '%train.py'),
    made AS (SELECT a.event, a.last_event, c.name AS category, n.name, w.*, lines.line FROM allocations a
      JOIN events_in_words w ON w.id = a.event JOIN categories c ON c.id = a.category
      LEFT JOIN names n ON n.id = a.name LEFT JOIN lines ON lines.event = a.event)
"""


class OneProgram(TracedPrograms):
    """One program, run once for all tests of the class."""

    PROGRAM = ""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.done = cls.run_program(cls())

    def setUp(self):
        self.assertNotIn("differs from the trace", self.done.stderr)

    def run_program(self):
        return self.trace(warm(), self.write(self.PROGRAM), environment={"PYTHONPATH": str(PACKAGES)})

    def made(self, where, what="sum(requested_bytes)", **more):
        return self.query(f"{ALLOCATIONS} SELECT {what} FROM made WHERE {where}", **more)

    def bytes_made(self, where, **more):
        return self.made(where, "coalesce(sum(requested_bytes), 0)", **more)[0][0]

    def alive(self, event, **more):
        """Requested bytes by category, after the event, of the cards."""
        rows = self.made(f"event <= {event} AND last_event > {event} AND space LIKE 'cuda%' GROUP BY category",
                         "category, sum(requested_bytes)", **more)  # fmt: skip
        return dict(rows)
