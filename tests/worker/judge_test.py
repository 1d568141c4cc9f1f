"""The judge of promises, in the real worker: what is planted is found, and nothing else."""

import math

from real_worker import WorkerTest


class Judge(WorkerTest):
    def setUp(self):
        super().setUp()
        self.reference = self.folder / "parameters"
        result = self.run_worker(write=self.reference)
        self.assertEqual(result["equivalence"]["reason"], "this is the reference case")
        self.assertEqual(len(result["losses"]), 3)

    def judged(self, *stack, **options):
        result = self.run_worker(*stack, read=self.reference, **options)
        self.assertEqual(result["status"], "ok", result["reason"])
        return result["equivalence"]

    def assert_judged(self, found, verdict, reason, difference):
        self.assertEqual((found["verdict"], found["reason"]), (verdict, reason))
        self.assertEqual(found["max_abs_difference"], difference)

    def test_the_same_training(self):
        self.assert_judged(self.judged("same"), "held", "", 0)

    def test_a_flipped_bit(self):
        found = self.judged("changes,how=flipped-bit")
        self.assertEqual((found["verdict"], found["reason"]), ("broken", "differs most in heads.head.weight"))
        # One unit in the last place of a weight below 1.
        self.assertGreater(found["max_abs_difference"], 0)
        self.assertLessEqual(found["max_abs_difference"], math.ldexp(1, -24))

    def test_not_a_number(self):
        for promise in ({}, {"promise": "within_tolerance", "tolerance": 1000.0}):
            self.assert_judged(self.judged("changes,how=nan", promise=promise), "broken",
                               "values that are infinite or not a number in heads.head.weight", "nan")  # fmt: skip

    def test_infinity(self):
        for promise in ({}, {"promise": "within_tolerance", "tolerance": 1000.0}):
            self.assert_judged(self.judged("changes,how=infinite", promise=promise), "broken",
                               "values that are infinite or not a number in heads.head.weight", "inf")  # fmt: skip

    def test_exactly_the_tolerance(self):
        promise = {"promise": "within_tolerance", "tolerance": math.ldexp(1, -10)}
        self.assert_judged(self.judged("changes,how=exact", promise=promise), "held", "", math.ldexp(1, -10))

    def test_just_over_the_tolerance(self):
        promise = {"promise": "within_tolerance", "tolerance": math.ldexp(1, -10)}
        self.assert_judged(self.judged("changes,how=just-over", promise=promise), "broken",
                           "differs most in heads.head.weight", math.ldexp(1, -10) + math.ldexp(1, -20))  # fmt: skip

    def test_a_relative_tolerance_alone(self):
        # The weight that grows by 2^-10 is smaller than 1/4, and larger than 2^-18.
        for relative, verdict in ((1e-3, "broken"), (math.ldexp(1, 8), "held")):
            promise = {"promise": "within_tolerance", "tolerance": None, "relative_tolerance": relative}
            found = self.judged("changes,how=exact", promise=promise)
            self.assertEqual((found["verdict"], found["max_abs_difference"]), (verdict, math.ldexp(1, -10)))

    def test_a_loss_that_is_not_a_number(self):
        promise = {"promise": "within_tolerance", "tolerance": 1000.0}
        result = self.run_worker("nan-loss", read=self.reference, promise=promise)
        self.assertEqual(result["losses"], ["nan"] * 3)
        self.assertEqual(result["equivalence"]["verdict"], "broken")
        self.assertEqual(result["equivalence"]["reason"],
                         "values that are infinite or not a number in the losses")  # fmt: skip

    def test_a_reference_that_is_not_a_number(self):
        self.run_worker("nan-loss", write=self.reference)
        found = self.judged("same")
        self.assertEqual(found["verdict"], "not_checked")
        self.assertEqual(found["reason"], "the reference case has values that are infinite or not a number in the losses: "
                         "nothing can be told from it")  # fmt: skip

    def test_other_parameters(self):
        found = self.judged("lora")
        self.assertEqual((found["verdict"], found["reason"]),
                         ("broken", "trains other parameters than the reference case"))  # fmt: skip

    def test_another_number_of_steps(self):
        found = self.judged("same", steps=2)
        self.assertEqual((found["verdict"], found["reason"]), ("broken", "made 2 losses, the reference case 3"))

    def test_a_reference_that_is_cut_short(self):
        self.reference.write_bytes(self.reference.read_bytes()[:-8])
        found = self.judged("same")
        self.assertEqual((found["verdict"], found["reason"]),
                         ("not_checked", "the reference's parameters are cut short at heads.head.bias"))  # fmt: skip

    def test_no_reference(self):
        self.reference.unlink()
        found = self.judged("same")
        self.assertEqual((found["verdict"], found["reason"]),
                         ("not_checked", "the reference case left no parameters to compare with"))  # fmt: skip

    def test_a_reference_that_cannot_be_written_is_not_the_cases_fault(self):
        result = self.run_worker(write=self.folder / "missing" / "parameters")
        self.assertEqual(result["status"], "ok")
        self.assertIn("could not be written", self.log)
