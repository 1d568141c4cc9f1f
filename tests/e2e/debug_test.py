"""`peakbench debug`: what is handed to the debugger, from a command line, a suite and a run; a script stands in for the debugger."""
import json
import os
import shutil

from installation import ProgramTest

DEBUGGER = """#!/usr/bin/env python3
import json, os, sys
json.dump({"arguments": sys.argv, "variables": dict(os.environ)}, open("told.json", "w"))
sys.exit(7)
"""


class Debug(ProgramTest):
    def setUp(self):
        super().setUp()
        for name in ("gdb", "lldb"):
            path = self.folder / "tools" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(DEBUGGER)
            path.chmod(0o755)
        self.worker = str(self.prefix / "installed/bin/peakbench-worker")

    def environment(self, **more):
        return super().environment(PATH=f"{self.folder}/tools:{os.environ['PATH']}", **more)

    def debug(self, *arguments):
        """What the debugger was told, and the job."""
        done = self.peakbench("debug", *arguments, exit_code=7)
        told = json.loads((self.folder / "told.json").read_text())
        self.assertEqual(told["arguments"][-3:-1], ["--" if "lldb" in told["arguments"][0] else "--args", self.worker])
        job_path = told["arguments"][-1]
        with open(job_path, encoding="utf-8") as file:
            job = json.load(file)
        self.assertIn(f"Case: {job['case_id']}\nJob:  {job_path}\nRuns: ", done.stderr)
        return told, job

    def test_a_case_as_it_is_given_to_run(self):
        told, job = self.debug("--model", "tiny,layers=3", "--strategy", "slim", "--batch", "4", "--steps", "2", "--", "-batch", "-ex", "run")
        self.assertEqual(told["arguments"][1:-3], ["-q", "-ex", "set startup-with-shell off", "-batch", "-ex", "run"])
        self.assertEqual(job["case_id"], "tiny,layers=3/slim/cpu/fp32/b4")
        self.assertEqual((job["batch_size"], job["steps"], job["mode"]), (4, 2, "memory"))
        self.assertEqual([one["selection"]["id"] for one in job["strategies"]], ["baseline", "slim"])

    def test_the_variables_are_the_workers_alone(self):
        told, job = self.debug("--model", "tiny", "--strategy", "baseline", "--device", "emulated:h100-80gb", "--out", "here")
        set_there = [text for text in told["arguments"] if text.startswith("set environment ")]
        self.assertTrue(any(text.startswith("set environment LD_PRELOAD = ") for text in set_there), set_there)
        self.assertTrue(any("PEAKBENCH_" in text for text in set_there), set_there)
        self.assertNotIn("LD_PRELOAD", set(told["variables"]) - set(os.environ))
        self.assertEqual(job["device"], "emulated:h100-80gb")
        self.assertTrue(job["trace_path"].startswith(str(self.folder / "here")), job["trace_path"])

    def test_lldb(self):
        told, _ = self.debug("--model", "tiny", "--strategy", "baseline", "--device", "emulated:h100-80gb", "--debugger", "lldb")
        self.assertIn('settings append target.env-vars "', " ".join(told["arguments"]))

    def test_a_case_of_a_run_which_stays_as_it_is(self):
        self.peakbench("run", "--model", "tiny", "--strategy", "baseline", "--strategy", "slim", "--repetitions", "0", "--no-report",
                       "--out", "out")  # fmt: skip
        before = {path: path.read_bytes() for path in (self.folder / "out").rglob("*") if path.is_file()}
        for name in ("tiny/slim/cpu/fp32/b1", "slim", next(path.name for path in (self.folder / "out/cases").iterdir() if "slim" in path.name)):
            told, job = self.debug("out", name)
            self.assertEqual(job["case_id"], "tiny/slim/cpu/fp32/b1")
            for key in ("result_path", "trace_path"):
                self.assertNotIn(str(self.folder / "out"), job[key])
            self.assertNotIn(str(self.folder / "out"), told["arguments"][-1])
        self.assertEqual(before, {path: path.read_bytes() for path in (self.folder / "out").rglob("*") if path.is_file()})

    def test_one_of_a_suite(self):
        (self.folder / "suite.toml").write_text('models = ["tiny"]\nstrategies = ["baseline", "slim"]\n')
        _, job = self.debug("suite.toml", "tiny/slim/cpu/fp32/b1")
        self.assertEqual(job["case_id"], "tiny/slim/cpu/fp32/b1")
        said = self.peakbench("debug", "suite.toml", exit_code=2).stderr
        self.assertIn("say which of these cases, by its id:\n    tiny/baseline/cpu/fp32/b1\n    tiny/slim/cpu/fp32/b1", said)
        (self.folder / "two.toml").write_text('models = ["tiny", "tiny,layers=3"]\nstrategies = ["baseline", "slim"]\n')
        said = self.peakbench("debug", "two.toml", "slim", exit_code=2).stderr
        self.assertIn("by its id:\n    tiny/slim/cpu/fp32/b1\n    tiny,layers=3/slim/cpu/fp32/b1", said)
        self.assertNotIn("baseline", said)
        said = self.peakbench("debug", "suite.toml", "tiny/slin/cpu/fp32/b1", exit_code=2).stderr
        self.assertIn('no case "tiny/slin/cpu/fp32/b1"; did you mean "tiny/slim/cpu/fp32/b1"?', said)

    def test_one_of_a_bundled_suite(self):
        suites = self.prefix / "installed/share/peakbench/suites"
        suites.mkdir()
        self.addCleanup(shutil.rmtree, suites)
        (suites / "little.toml").write_text('models = ["tiny"]\nstrategies = ["baseline", "slim"]\n')
        _, job = self.debug("little", "tiny/slim/cpu/fp32/b1")
        self.assertEqual(job["case_id"], "tiny/slim/cpu/fp32/b1")
        said = self.peakbench("debug", "litle", exit_code=2).stderr
        self.assertIn("litle: there is no such file, and no such suite; bundled are little", said)
        (self.folder / "little").mkdir()
        self.debug("little", "tiny/slim/cpu/fp32/b1")
        (self.folder / "little/run.json").write_text("{}")  # the folder of a run goes first
        self.assertIn("little/run.json", self.peakbench("debug", "little", exit_code=2).stderr)

    def test_what_cannot_be_debugged(self):
        one = ["debug", "--model", "tiny", "--strategy", "baseline"]
        said = self.peakbench(*one, "--debugger", "no-such-gdb", exit_code=2).stderr
        self.assertIn('no debugger "no-such-gdb" on PATH; install it (apt-get install gdb), or name another with --debugger', said)
        said = self.peakbench("debug", "--model", "tiny", "--strategy", "slim+rival", exit_code=2).stderr
        self.assertIn("tiny/slim+rival/cpu/fp32/b1 is not run: conflict: ", said)
        self.peakbench("run", "--model", "tiny", "--strategy", "baseline", "--strategy", "slim+rival", "--repetitions", "0", "--no-report",
                       "--out", "out")  # fmt: skip
        said = self.peakbench("debug", "out", "tiny/slim+rival/cpu/fp32/b1", exit_code=2).stderr
        self.assertIn("no job of tiny/slim+rival/cpu/fp32/b1 was found", said)
        said = self.peakbench("debug", "out", "tiny/baselin/cpu/fp32/b1", exit_code=2).stderr
        self.assertIn('out: no case "tiny/baselin/cpu/fp32/b1"; did you mean "tiny/baseline/cpu/fp32/b1"?', said)
