"""`ci/nightly` twice over a throw-away history, with a regression planted between: one more byte that a strategy keeps alive.

Real workers on the emulated card.
"""
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from given import PEAKBENCH as PROGRAM, PLANTED_AFTER as AFTER, PLANTED_BEFORE as BEFORE

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SUITE = """
title = "Night"
models = ["vit-b-16,layers=2"]
strategies = ["baseline", "planted-bytes"]
devices = ["emulated:h100-80gb"]
repetitions = 0
"""
PLANTED = "vit-b-16,layers=2/planted-bytes/emulated:h100-80gb/fp32/b1"


class NightlyTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-nightly-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = self.folder / "night"
        self.suite = self.folder / "small.toml"
        self.suite.write_text(SUITE, encoding="utf-8")

    def variables(self, **more):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PEAKBENCH_", "GITHUB_", "CI"))}
        return {**inherited, "PEAKBENCH_NIGHTLY_DIR": str(self.out), "PEAKBENCH_PROGRAM": str(PROGRAM), "PEAKBENCH_BRANCH": "main",
                **more}

    def nightly(self, *arguments, exit_code=0, folder=None, **variables):
        done = subprocess.run([SOURCE / "ci/nightly", *(arguments or [self.suite])], env=self.variables(**variables), text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=200, check=False, cwd=folder)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done.stderr

    def runs(self):
        done = subprocess.run([PROGRAM, "history", "list", "--json", "--history", self.out / "history.sqlite"], check=True,
                              capture_output=True, text=True)
        return [(run["number"], run["commit"], run["verdict"]) for run in json.loads(done.stdout)]

    def folders(self):
        return sorted(path for path in (self.out / "runs").iterdir() if path.is_dir())

    def test_a_planted_byte_is_caught_named_and_published_until_it_is_accepted(self):
        said = self.nightly(PEAKBENCH_COMMIT="aaaa1111", PEAKBENCH_NIGHTLY_PLUGINS=BEFORE)
        self.assertIn("the first run of branch main", said)
        self.assertIn("nothing got worse since run 1",
                      self.nightly(PEAKBENCH_COMMIT="bbbb2222", PEAKBENCH_NIGHTLY_PLUGINS=BEFORE))
        # Caught, by the exit code; named, by case, phase, module and operator.
        said = self.nightly(PEAKBENCH_COMMIT="cccc3333", PEAKBENCH_NIGHTLY_PLUGINS=AFTER, exit_code=4)
        self.assertIn(PLANTED, said)
        self.assertIn("+512", said)
        gate = (self.folders()[-1] / "gate.txt").read_text(encoding="utf-8")
        self.assertIn("forward", gate)
        self.assertIn("aten::", gate)
        self.assertTrue((self.folders()[-1] / "gate.junit.xml").is_file())
        self.assertIn("exit code 4. Log: ", said)
        self.assertIn(PLANTED, (self.out / "logs" / sorted(os.listdir(self.out / "logs"))[-1]).read_text(encoding="utf-8"))
        self.assertEqual(self.runs(), [(3, "cccc3333", "regressed"), (2, "bbbb2222", "passed"), (1, "aaaa1111", "passed")])
        # Published.
        index = (self.out / "site/index.html").read_text(encoding="utf-8")
        self.assertIn("+512 bytes", index)
        self.assertIn("verdict-regressed", index)
        trend = next(path for path in (self.out / "site/trends").iterdir() if "planted" in path.name).read_text(encoding="utf-8")
        self.assertIn("dot worse", trend)
        self.assertIn("cccc3333", trend)
        # It goes on alarming, against the last good run, until somebody says that it is wanted.
        self.nightly(PEAKBENCH_COMMIT="dddd4444", PEAKBENCH_NIGHTLY_PLUGINS=AFTER, exit_code=4)
        subprocess.run([PROGRAM, "history", "accept", "4", "--history", self.out / "history.sqlite"], check=True,
                       capture_output=True)
        self.assertIn("nothing got worse since run 4",
                      self.nightly(PEAKBENCH_COMMIT="eeee5555", PEAKBENCH_NIGHTLY_PLUGINS=AFTER))

    def test_a_case_that_fails_is_said_and_leaves_its_log(self):
        self.nightly(PEAKBENCH_NIGHTLY_PLUGINS=BEFORE)
        said = self.nightly(PEAKBENCH_NIGHTLY_PLUGINS=BEFORE, PEAKBENCH_NIGHTLY_DEVICE="emulated:h100-80gb,memory=100MiB",
                            exit_code=2)
        self.assertIn("could not be compared", said)
        self.assertEqual([verdict for _, _, verdict in self.runs()], ["unknown", "passed"])
        small = SUITE.replace("h100-80gb", "h100-80gb,memory=100MiB").replace('title = "Night"', 'title = "Small"')
        self.suite.write_text(small, encoding="utf-8")
        done = self.nightly(PEAKBENCH_NIGHTLY_PLUGINS=BEFORE, PEAKBENCH_NIGHTLY_DIR=str(self.folder / "other"), exit_code=5)
        self.assertIn("exit code 5", done)
        self.assertTrue(list((self.folder / "other/runs").glob("*/cases/*/worker.log")))

    def test_two_at_once(self):
        self.out.mkdir(parents=True)
        with open(self.out / "nightly.lock", "w", encoding="utf-8") as lock:
            lock.write("process 4711, since 2026-01-02T03:04:05Z\n")
            lock.flush()
            fcntl.flock(lock, fcntl.LOCK_EX)
            said = self.nightly(exit_code=1)
        self.assertIn("another ci/nightly is at work", said)
        self.assertIn("process 4711, since 2026-01-02T03:04:05Z", said)
        self.assertIn("PEAKBENCH_NIGHTLY_DIR", said)

    def test_bad_input(self):
        self.assertIn("no suite /nowhere.toml", self.nightly("/nowhere.toml", exit_code=1))
        self.assertIn("unknown argument --fast", self.nightly("--fast", exit_code=1))
        self.assertIn("wants a number", self.nightly(PEAKBENCH_NIGHTLY_KEEP="few", exit_code=1))
        self.suite.write_text("modles = []\n", encoding="utf-8")
        said = self.nightly(exit_code=2)
        self.assertIn("did you mean", said)
        self.assertIn(".run.txt", said)
        (self.out / "history.sqlite").write_text("no history")
        self.suite.write_text(SUITE, encoding="utf-8")
        said = self.nightly(PEAKBENCH_NIGHTLY_PLUGINS=BEFORE, exit_code=2)
        self.assertIn("not an SQLite file", said)
        self.assertEqual((self.out / "history.sqlite").read_text(), "no history")
        self.assertTrue((self.folders()[-1] / "run.json").is_file(), "what was measured stays")

    def test_names_are_data(self):
        """Nothing in the name of a branch or a suite is an option, a separator or code."""
        self.suite = self.suite.rename(self.folder / "-small $(touch pwned),a=b.toml")
        for branch in ("topic,a=b", "-x, y@latest", "a 'b' \"c\" $(touch pwned) `touch pwned` ;é|*\nmain"):
            out = self.folder / str(len(branch))
            for said in ("the first run of branch", "nothing got worse since run 1"):
                self.assertIn(said, self.nightly("./" + self.suite.name, PEAKBENCH_BRANCH=branch, PEAKBENCH_NIGHTLY_PLUGINS=BEFORE,
                                                 PEAKBENCH_NIGHTLY_DIR=str(out), folder=self.folder))
            done = subprocess.run([PROGRAM, "history", "list", "--json", "--history", out / "history.sqlite"], check=True,
                                  capture_output=True, text=True)
            self.assertEqual([(run["number"], run["branch"]) for run in json.loads(done.stdout)], [(2, branch), (1, branch)])
            self.assertTrue((out / "site/index.html").is_file())
        self.assertEqual([path.name for path in self.folder.rglob("pwned")], [])

    def test_a_name_with_a_newline_deletes_nothing_else(self):
        (self.folder / "mine").mkdir()
        for stamp in ("20200101T000000Z", "20210101T000000Z"):
            (self.out / "runs" / f"{stamp}-a\nmine").mkdir(parents=True)
        self.nightly(PEAKBENCH_NIGHTLY_PLUGINS=BEFORE, PEAKBENCH_NIGHTLY_KEEP="1", folder=self.folder)
        self.assertTrue((self.folder / "mine").is_dir())
        self.assertEqual([path.name.split("Z-")[1] for path in self.folders()], ["a\nmine", "small"], "one of each suite")

    def test_old_run_folders_go_and_others_stay(self):
        for mine in ("mine", "2019 Trip To Zermatt-Z-photos"):
            (self.out / "runs" / mine).mkdir(parents=True)
        (self.out / "runs/20200101T000000Z-small").mkdir()
        self.nightly(PEAKBENCH_NIGHTLY_PLUGINS=BEFORE, PEAKBENCH_NIGHTLY_KEEP="1")
        for mine in ("mine", "2019 Trip To Zermatt-Z-photos"):
            self.assertTrue((self.out / "runs" / mine).is_dir())
        self.assertEqual(len(self.folders()), 3)

    def test_help(self):
        self.assertIn("Exit codes: 0 nothing got worse", subprocess.run([SOURCE / "ci/nightly", "--help"], check=True,
                                                                       capture_output=True, text=True).stdout)
