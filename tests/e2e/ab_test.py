"""`peakbench ab`: two installations whose workers are scripts; the second one's steps can take longer."""
import json
import unittest

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
        return self.peakbench("ab", *arguments, "--out", "out", exit_code=exit_code)

    def found(self):
        return json.loads((self.folder / "out/ab.json").read_text(encoding="utf-8"))

    def test_the_same_build_twice_is_the_same(self):
        done = self.ab(self.base, self.base, *TINY, "--pairs", "6", "--seed", "3")
        self.assertIn("same: 0.0% (0.0% to 0.0%), 6 pairs", done.stdout)
        self.assertEqual(len(done.stderr.splitlines()), 6)
        case, = self.found()["cases"]
        self.assertEqual((case["id"], case["verdict"], case["samples"]), ("tiny/baseline/cpu/fp32/b1", "same", 6))
        self.assertEqual(sorted(pair["first"] for pair in case["pairs"]), ["base"] * 3 + ["new"] * 3)
        self.assertEqual(len(case["pairs"][0]["base_step_times_ns"]), 10)

    def test_a_slower_build_is_worse(self):
        done = self.ab(self.base, self.slow, *TINY, "--pairs", "5", "--quiet")
        self.assertIn("worse: +5.0%", done.stdout)
        self.assertEqual(done.stderr, "")
        self.ab(self.base, self.slow, *TINY, "--pairs", "5", "--gate", exit_code=4)
        self.ab(self.slow, self.base, *TINY, "--pairs", "5", "--gate")
        self.assertEqual(self.found()["cases"][0]["verdict"], "better")
        self.ab(self.base, self.slow, *TINY, "--pairs", "5", "--margin", "6%")
        self.assertEqual(self.found()["cases"][0]["verdict"], "same")

    def test_few_pairs_are_unknown_and_say_how_many_more(self):
        done = self.ab(self.base, self.slow, *TINY, "--pairs", "2", "--json")
        case, = json.loads(done.stdout)["cases"]
        self.assertEqual((case["verdict"], case["more_samples"]), ("unknown", 3))

    def test_other_strategies_for_new(self):
        self.ab(self.base, self.base, *TINY, "--new-strategy", "slim", "--pairs", "5")
        case, = self.found()["cases"]
        self.assertEqual(case["new_id"], "tiny/slim/cpu/fp32/b1")

    def test_a_worker_that_fails_is_told_and_the_pairs_before_it_are_kept(self):
        done = self.ab(self.base, self.base, "--model", "tiny", "--strategy",
                       "misbehave,behaviour=segfault,in=throughput", "--pairs", "5", exit_code=3)
        self.assertIn("crashed", done.stdout)
        self.assertIn("SIGSEGV", self.found()["cases"][0]["problem"])

    def test_bad_input(self):
        self.fails("ab", "nowhere", self.base, *TINY, says=["nowhere: no bin/peakbench-worker there"])
        self.fails("ab", self.base, self.base, *TINY, "--device", "emulated:h100-80gb", says=["has no times"])
        self.fails("ab", self.base, self.base, *TINY, "--margin", "off", says=["--margin"])
        self.fails("ab", self.base, self.base, *TINY, "--margin", "2", says=["--margin: expected a part of the step"])
        self.fails("ab", self.base, self.base, *TINY, "--new-strategy", "slim", "--new-strategy", "rival",
                   says=["as many as --strategy"])
        self.fails("ab", self.base, self.base, "--model", "tiny", "--strategy", "baseline", "--strategy", "rival", "--new-strategy",
                   "slim", "--new-strategy", "slim", says=["BASE has 2 cases and NEW 1", "Name each stack once"])
        self.fails("ab", self.base, self.base, "--model", "tine", "--strategy", "baseline", says=["tiny"])
        self.fails("ab", self.base, self.base, "--model", "tiny", "--strategy", "slim+rival", says=["rival"])
        (self.folder / "file").write_text("in the way", encoding="utf-8")
        self.fails("ab", self.base, self.base, *TINY, "--out", "file", says=["file"])


if __name__ == "__main__":
    unittest.main()
