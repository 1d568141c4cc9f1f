"""`run --build` and `peakbench ab`: two installations whose workers are scripts; the second one's steps can take longer."""

import json

from installation import ProgramTest, install

TINY = ["--model", "tiny", "--strategy", "baseline"]


class Ab(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.base, cls.slow = str(cls.prefix / "installed"), str(cls.prefix / "slow")
        install(cls.prefix / "slow")
        worker = cls.prefix / "slow/bin/peakbench-worker"
        text = worker.read_text(encoding="utf-8")
        assert "2_000_000" in text
        worker.write_text(text.replace("2_000_000", "2_100_000"), encoding="utf-8")

    def ab(self, *arguments, exit_code=0):
        return self.peakbench("ab", *arguments, "--out", "out", "--overwrite", exit_code=exit_code)

    def cases(self):
        return json.loads((self.folder / "out/run.json").read_text(encoding="utf-8"))["cases"]

    def test_the_same_build_twice_is_the_same(self):
        done = self.ab(self.base, self.base, *TINY, "--pairs", "6")
        self.assertIn("tiny/baseline/cpu/fp32/b1: same: 0.0% (0.0% to 0.0%), 6 pairs (installed-2 against installed)", done.stdout)
        first, second = self.cases()
        self.assertEqual((first["id"], second["id"]), ("tiny/baseline/cpu/fp32/b1/build-installed", "tiny/baseline/cpu/fp32/b1/build-installed-2"))
        self.assertEqual([round_["place"] for round_ in first["throughput"]["rounds"]].count(0), 3, "each goes first as often")
        self.assertEqual(len(first["throughput"]["rounds"][0]["step_times_ns"]), 10)

    def test_a_slower_build_is_worse(self):
        done = self.ab(self.base, self.slow, *TINY, "--pairs", "5", "--quiet")
        self.assertIn("worse: +5.0%", done.stdout)
        self.assertEqual(done.stderr, "")
        self.ab(self.base, self.slow, *TINY, "--pairs", "5", "--gate", exit_code=4)
        self.assertIn("better: ", self.ab(self.slow, self.base, *TINY, "--pairs", "5", "--gate").stdout)
        self.assertIn("same: ", self.ab(self.base, self.slow, *TINY, "--pairs", "5", "--margin", "6%", "--gate").stdout)

    def test_builds_are_rows_of_one_table(self):
        done = self.peakbench("run", *TINY, "--strategy", "slim", "--build", f"{self.base},{self.slow}", "--out", "out", "--overwrite")
        table = done.stdout
        self.assertEqual(table.count("strategy "), 1, table)
        names = [case["id"].split("/")[1] + " " + case["build"] for case in self.cases()]
        self.assertEqual(names, ["baseline installed", "baseline slow", "slim installed", "slim slow"])
        before = self.cases()
        self.peakbench("run", *TINY, "--strategy", "slim", "--build", f"{self.base},{self.slow}", "--out", "out", "--resume")
        self.assertEqual(self.cases(), before)

    def test_one_build_is_a_run_like_any_other(self):
        self.peakbench("run", *TINY, "--build", self.slow, "--out", "out", "--overwrite")
        (case,) = self.cases()
        self.assertEqual(case["id"], "tiny/baseline/cpu/fp32/b1")
        self.assertNotIn("build", case)

    def test_few_pairs_are_unknown(self):
        self.assertIn("unknown: ", self.ab(self.base, self.slow, *TINY, "--pairs", "2").stdout)

    def test_a_worker_that_fails_is_told(self):
        done = self.ab(self.base, self.base, "--model", "tiny", "--strategy", "baseline", "--strategy",
                       "misbehave,behaviour=segfault,in=throughput", "--pairs", "5")  # fmt: skip
        self.assertIn("unknown: installed was not timed: ", done.stdout)
        self.assertIn("SIGSEGV", self.cases()[2]["reason"])
        self.ab(self.base, self.base, "--model", "tiny", "--strategy", "misbehave,behaviour=segfault", "--pairs", "5", exit_code=3)

    def test_bad_input(self):
        self.fails("ab", "nowhere", self.base, *TINY, says=["nowhere: no bin/peakbench-worker there"])
        self.fails("run", *TINY, "--build", "nowhere", says=["nowhere: no bin/peakbench-worker there"])
        self.fails("run", *TINY, "--build", self.base, "--torch", "newest", says=["--build and --torch"])
        self.fails("ab", self.base, self.base, *TINY, "--device", "emulated:h100-80gb", says=["has no times"])
        self.fails("ab", self.base, self.base, *TINY, "--margin", "off", says=["--margin"])
        self.fails("ab", self.base, self.base, *TINY, "--margin", "2", says=["--margin: expected a part of the step"])
        self.fails("ab", self.base, self.base, "--model", "tine", "--strategy", "baseline", says=["tiny"])
        self.fails("ab", self.base, f"{self.base},plugins=nowhere", *TINY, says=["nowhere", "--build"])
        (self.folder / "file").write_text("in the way", encoding="utf-8")
        self.fails("ab", self.base, self.base, *TINY, "--out", "file", says=["file"])
