"""Do the attacks notice? A program that does what must not happen, and what is said of it; and that a seed gives the same files twice."""

import pathlib
import random
import sqlite3
import subprocess
import tempfile
import unittest

import counts
import files
import judge
import mutations
import soak
from given import FAIL_NTH

SHIM = str(FAIL_NTH)


class Judge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def faults(self, script, **options):
        return judge.faults_of(judge.run(["sh", "-c", script], self.folder, **options))

    def test_what_is_fine(self):
        self.assertEqual(self.faults("echo good"), [])
        self.assertEqual(self.faults("echo peakbench: no such file >&2; exit 2"), [])

    def test_what_is_not(self):
        for script, words in (("exit 1", "exit code 1"), ("kill -SEGV $$", "SIGSEGV"), ("exit 2", "silent"),
                              ("printf '\\033[31m'", "control character"), ("printf '\\302\\233'", "control character"),
                              ("printf '\\377'", "not UTF-8")):
            self.assertIn(words, " ".join(self.faults(script)), script)
        self.assertIn("hang", self.faults("sleep 60", allowed_s=0.2)[0])

    def test_left_over_and_touched(self):
        (self.folder / "thesis.txt").write_text("years")
        before = judge.state(self.folder)
        for name in ("run.json.tmp-123", "run.json.tmp-123-0", "a.partial", "h.sqlite-journal", "parameters.tmp", "fine.json"):
            (self.folder / name).touch()
        (self.folder / "thesis.txt").write_text("ruins")
        left = sorted(pathlib.Path(path).name for path in judge.left_over(self.folder))
        self.assertEqual(left, ["a.partial", "h.sqlite-journal", "run.json.tmp-123", "run.json.tmp-123-0"])
        said = judge.changed(before, judge.state(self.folder))
        self.assertEqual(sum("thesis.txt is another" in one for one in said), 1)
        self.assertEqual(sum("appeared" in one for one in said), 6)

    def test_what_is_written_is_well_formed(self):
        (self.folder / "a.json").write_text('{"a": NaN}')
        (self.folder / "b.svg").write_text("<svg>\ufffe</svg>")
        (self.folder / "c.json").write_text('{"a": 1}')
        self.assertEqual(len(files.written_wrong(self.folder)), 2)


class Mutations(unittest.TestCase):
    def test_a_seed_gives_the_same_twice(self):
        data = b'{"title": "x", "steps": 3, "list": [1, 2.5, "y"]}\n' * 4
        made = [[mutations.of_text(random.Random(seed), data) for seed in range(200)] for _ in range(2)]
        self.assertEqual(*made)
        self.assertGreater(len(set(made[0])), 150)

    def test_a_database_stays_sound_half_of_the_time(self):
        with tempfile.TemporaryDirectory() as name:
            good, scratch = pathlib.Path(name, "good"), pathlib.Path(name, "scratch")
            with sqlite3.connect(good) as database:
                database.executescript("CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO runs VALUES (1, 'a'), (2, 'b')")
            database.close()
            made = [mutations.of_sqlite(random.Random(seed), good.read_bytes(), scratch) for seed in range(40)]
            self.assertGreater(sum(one != good.read_bytes() for one in made), 30)
            self.assertGreater(sum(one.startswith(b"SQLite format 3") for one in made), 15)


class Shim(unittest.TestCase):
    """The library that makes the n-th call fail, under a program of the shell."""

    def run_copy(self, program="cp", **variables):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "from").write_text("text")
            (folder / "out").mkdir()
            env = {"LD_PRELOAD": SHIM, "PEAKBENCH_FAULT_PROGRAM": program, "PEAKBENCH_FAULT_BELOW": str(folder / "out"),
                   "PEAKBENCH_FAULT_LOG": str(folder / "log"), "PATH": "/usr/bin:/bin", "LC_ALL": "C", **variables}
            done = subprocess.run([program, "from", "out/to"], cwd=folder, env=env, capture_output=True, text=True, check=False)
            log = (folder / "log").read_text().splitlines() if (folder / "log").exists() else []
            return done.returncode, done.stderr, [line.split(" ")[1] for line in log]

    def test_counts_and_fails_one(self):
        code, _, calls = self.run_copy()
        self.assertEqual(code, 0)
        self.assertIn("open", calls)
        code, said, _ = self.run_copy(PEAKBENCH_FAULT_AT=str(1 + calls.index("open")), PEAKBENCH_FAULT_ERROR="28")
        self.assertEqual(code, 1)
        self.assertIn("No space left on device", said)

    def test_a_name_that_is_given(self):
        """linkat, as of a file that was written without a name, by its new path: the old one is elsewhere."""
        self.assertEqual(self.run_copy("ln")[2], ["linkat"])
        for mode in ("once", "from"):
            code, said, _ = self.run_copy("ln", PEAKBENCH_FAULT_AT="1", PEAKBENCH_FAULT_ERROR="28", PEAKBENCH_FAULT_MODE=mode)
            self.assertEqual(code, 1, mode)
            self.assertIn("No space left on device", said)

    def test_only_that_program_and_that_folder(self):
        self.assertEqual(self.run_copy(PEAKBENCH_FAULT_PROGRAM="mv")[2], [])
        self.assertEqual(self.run_copy(PEAKBENCH_FAULT_BELOW="/nowhere")[2], [])


class Table(unittest.TestCase):
    def test_of_what_was_counted(self):
        found = counts.Counts("kills", 7)
        found.tried("history add", "SIGKILL", 0.5, times=1200)
        found.tried("history add", "SIGINT", 0.1)
        found.found("history add", "lost: run 3", "seed 7, kill 4")
        found.skip("ulimit -u", "not root")
        record = {**found.as_json(), "seconds": 90, "date": "2026-11-22", "commit": "c0ffee"}
        lines = soak.table([record]).splitlines()
        self.assertEqual(lines[0], "2026-11-22, commit c0ffee, seed 7.")
        self.assertIn("| kills | history add | 1,201 | SIGKILL 1,200, SIGINT 1 | 0.5 s | 1 |", lines)
        self.assertIn("| kills | ulimit -u | 0 | skipped: not root | | |", lines)
        self.assertEqual(lines[-1], "| together | | 1,201 | 1 min | | 1 |")
        self.assertIn("lost: run 3", counts.listed(found.findings))

    def test_the_document_has_a_place_for_it(self):
        text = soak.DOCUMENT.read_text(encoding="utf-8")
        self.assertEqual(text.count(soak.BEGIN), 1)
        self.assertLess(text.index(soak.BEGIN), text.index(soak.END))
