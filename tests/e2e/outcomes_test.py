"""What can happen to a case: outcomes are rows, and never end the run."""
import json
import time
import xml.etree.ElementTree

from installation import ProgramTest


def misbehaving(how, where="memory"):
    return f"misbehave,behaviour={how},in={where}"


class Outcomes(ProgramTest):
    def run_cases(self, *strategies, more=("--repetitions", "1"), exit_code=0):
        arguments = [part for strategy in strategies for part in ("--strategy", strategy)]
        return self.peakbench("run", "--model", "tiny", *arguments, "--out", "out", *more, exit_code=exit_code)

    def test_a_good_run(self):
        done = self.run_cases("baseline", "slim", "slim+rival")
        run = self.run_json()
        self.assertEqual(run["status"], "complete")
        self.assertEqual([case["status"] for case in run["cases"]], ["ok", "ok", "conflict"])
        baseline, slim, conflict = run["cases"]
        self.assertEqual(baseline["memory"]["peak_allocated_bytes"], 104857600)
        self.assertGreater(baseline["memory"]["worker_peak_rss_bytes"], 1 << 20)
        self.assertEqual(baseline["throughput"]["step_ns"]["count"], 3)
        self.assertEqual(slim["equivalence"]["verdict"], "held")
        self.assertEqual(slim["equivalence"]["reason"], "read tiny/baseline/cpu/fp32/b1")
        self.assertEqual(slim["equivalence"]["reference_case"], "tiny/baseline/cpu/fp32/b1")
        self.assertIn("slim", conflict["reason"])
        self.assertIn("rival", conflict["reason"])
        self.assertEqual(run["environment"]["libtorch"], "fake")
        self.assertEqual(baseline["environment"], {"libtorch": "fake"})
        for name in ("os", "kernel", "cpu", "logical_cores", "memory_bytes", "peakbench", "commit"):
            self.assertTrue(run["environment"][name], name)
        self.assertEqual(run["command"][:2], ["peakbench", "run"])
        self.assertEqual(list((self.folder / "out").rglob("parameters*")), [])
        # Decided at once; the others end with the rounds that they are timed in, in turn.
        self.assertEqual([line[:9] for line in done.stdout.splitlines() if line.startswith("[")],
                         ["[3/3] con", "[1/3] ok ", "[2/3] ok "])
        self.assertIn("Report:  out/report/index.html", done.stdout)
        self.assertIn("Report:  out/report/report.md", done.stdout)
        self.assertTrue((self.folder / "out/report/index.html").stat().st_size > 1000)

    def test_workers_that_fail(self):
        hows = ["segfault", "abort", "exit", "no_result", "garbage", "truncated",
                "crash_after_result", "bad_bytes"]
        self.run_cases(*map(misbehaving, hows), "baseline")
        self.assertEqual(self.statuses(), ["crashed"] * len(hows) + ["ok"])
        reasons = {how: case["reason"] for how, case in zip(hows, self.run_json()["cases"])}
        self.assertIn("SIGSEGV (segmentation fault)", reasons["segfault"])
        self.assertIn("[worker.log: about to segfault]", reasons["segfault"])
        self.assertIn("exited with code 3", reasons["exit"])
        self.assertIn("cannot be read", reasons["garbage"])
        self.assertIn("cannot be read", reasons["truncated"])

    def test_out_of_memory_and_unsupported(self):
        self.run_cases(misbehaving("out_of_memory"), misbehaving("unsupported"), "baseline")
        self.assertEqual(self.statuses(), ["out_of_memory", "unsupported", "ok"])
        self.assertEqual(self.run_json()["cases"][0]["out_of_memory"]["limit_bytes"], 8 << 30)

    def test_a_part_that_does_nothing(self):
        done = self.run_cases(misbehaving("no_effect"), "baseline")
        self.assertEqual(self.statuses(), ["no_effect", "ok"])
        self.assertIn("no effect: misbehave declares the slot", done.stdout)
        report = (self.folder / "out/report/report.md").read_text(encoding="utf-8")
        self.assertIn("*no effect* | misbehave declares the slot schedule, which no step called", report)
        page = (self.folder / "out/report/index.html").read_text(encoding="utf-8")
        self.assertIn('<span class="badge no_effect">no effect</span>', page)

    def test_a_gate_that_compares_nothing_does_not_pass(self):
        for folder in ("base", "new"):
            self.peakbench("run", "--model", "tiny", "--strategy", misbehaving("no_effect"), "--out", folder, exit_code=3)
        done = self.peakbench("gate", "base", "new", "--junit", "gate.xml", "--out", "pages", "--format", "json,markdown",
                              exit_code=2)
        said = " ".join(done.stdout.split())
        self.assertIn("no case's memory was compared (1 still failing): nothing was checked.", said)
        self.assertIn("Gate: unusable (memory: nothing compared; cases: 1 still failing)", said)
        gate = json.loads((self.folder / "pages/comparison.json").read_text(encoding="utf-8"))["gate"]
        self.assertEqual((gate["outcome"], gate["exit_code"], gate["findings"][0]["case"]), ("unusable", 2, ""))
        self.assertIn("❌ unusable", (self.folder / "pages/comparison.md").read_text(encoding="utf-8"))
        suites = xml.etree.ElementTree.parse(self.folder / "gate.xml").getroot()
        self.assertEqual((suites.get("tests"), suites.get("errors"), suites.get("skipped")), ("2", "1", "1"))
        self.peakbench("gate", "base", "new", "--allow-nothing", exit_code=0)

    def test_a_gate_of_runs_that_share_no_case_never_passes(self):
        for folder, strategy in (("base", "baseline"), ("new", "slim")):
            self.peakbench("run", "--model", "tiny", "--strategy", strategy, "--repetitions", "0", "--out", folder)
        for flags in ([], ["--allow-nothing"]):
            done = self.peakbench("gate", "base", "new", *flags, exit_code=2)
            self.assertIn("have no case in common", " ".join((done.stdout + done.stderr).split()))
        said = " ".join(self.peakbench("gate", "--help").stdout.split())
        self.assertIn("Pass even if no case ended ok in both runs (otherwise exit code 2); the runs must still share a case", said)

    def test_memory_that_a_worker_takes_unseen(self):
        # The limit leaves a worker a gigabyte of its own (LibTorch, its trace) beyond what its tensors may take.
        self.run_cases(misbehaving("eat_memory"), "baseline", more=["--memory-limit", "16MiB"])
        self.assertEqual(self.statuses(), ["out_of_memory", "ok"])
        self.assertIn("resident memory passed 1.02 GiB", self.run_json()["cases"][0]["reason"])

    def test_timeout(self):
        start = time.monotonic()
        self.run_cases(misbehaving("hang"), misbehaving("hang", "throughput"), "baseline", more=["--timeout", "3"])
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(self.statuses(), ["timeout", "timeout", "ok"])
        cases = self.run_json()["cases"]
        self.assertIsNone(cases[0]["memory"])
        self.assertEqual(cases[1]["memory"]["steps"], 3)
        self.assertIsNone(cases[1]["throughput"])
        self.assertIn("memory was measured", cases[1]["reason"])

    def test_every_case_failed(self):
        self.run_cases(misbehaving("exit"), "slim+rival", exit_code=3)
        self.assertTrue((self.folder / "out/report/report.md").exists())

    def test_options_reach_the_worker(self):
        self.run_cases("baseline", more=["--steps", "5", "--warmup", "2", "--repetitions", "2", "--seed", "9",
                                         "--threads", "1", "--memory-limit", "2GiB", "--batch", "4"])
        (case,) = self.run_json()["cases"]
        self.assertEqual(case["memory"]["steps"], 5)
        self.assertEqual(case["throughput"]["step_ns"]["count"], 10)
        self.assertEqual((case["seed"], case["batch_size"]), (9, 4))
        self.assertEqual(self.run_json()["settings"],
                         {"steps": 5, "warmup": 2, "repetitions": 2, "timeout_s": 3600, "threads": 1, "seed": 9,
                          "memory_limit_bytes": 2 << 30})

    def test_no_report_and_quiet(self):
        done = self.run_cases("baseline", more=["--no-report", "--quiet"])
        self.assertEqual((done.stdout, done.stderr), ("", ""))
        self.assertFalse((self.folder / "out/report").exists())
        done = self.peakbench("report", "out", "--format", "markdown", "--out", "elsewhere")
        self.assertIn("elsewhere/report.md", done.stdout)
        self.assertFalse((self.folder / "elsewhere/index.html").exists())
