"""The rules on small sources, the sample, and that a file is put back whatever happens."""

import collections
import fnmatch
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import equivalents
import report
from cpp import Source
from faults import Fault
from planting import ChangedSince, Journal
from rooms import CONCEPTS, ROOMS, concept_of, room_of, sources
from rules import RULES, faults_in, one_more
from sampling import Sample, group_of, quotas
from trial import chosen_by, ended_in, first_error

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def made(statement, rule=None):
    """What the rules make of a statement in a function's body."""
    before, after = "void f() {\n", "\n}\n"
    text = before + statement + after
    changed = [fault.planted_in(text) for fault in faults_in("a.cpp", text) if rule in (None, fault.rule)]
    return [one.removeprefix(before).removesuffix(after) for one in changed]


class Rules(unittest.TestCase):
    def expect(self, rule, statement, *expected):
        self.assertEqual(made(statement, rule), list(expected))

    def test_a_condition_is_negated(self):
        rule = "negate-condition"
        self.expect(rule, "if (a) b();", "if (!(a)) b();")
        self.expect(rule, "if (!a) b();", "if (a) b();")
        self.expect(rule, "if (!a || b) c();", "if (!(!a || b)) c();")
        self.expect(rule, "while (a(b)) c();", "while (!(a(b))) c();")
        self.expect(rule, "if (auto a = b(); a > c) d();", "if (auto a = b(); !(a > c)) d();")
        self.expect(rule, "if (const auto* a = b()) d();", "if (const auto* a = b(); !a) d();")
        self.expect(rule, "while (auto a = b()) c();")
        self.expect(rule, "if constexpr (a) b();")
        self.expect(rule, "if (a == b) c();")  # flip-comparison's

    def test_a_returned_condition_is_negated(self):
        rule = "negate-condition"
        self.expect(rule, "return a && b;", "return !(a && b);")
        self.expect(rule, "return a < b;", "return !(a < b);")
        self.expect(rule, "return !a;", "return a;")
        self.expect(rule, "return f(a < b);")
        self.expect(rule, "return static_cast<int>(a);")
        self.expect(rule, "return a >> 16U;")

    def test_a_choice_is_negated(self):
        rule = "negate-condition"
        self.expect(rule, "x = a ? b : c;", "x = !(a) ? b : c;")
        self.expect(rule, "return a > b ? c : d;", "return !(a > b) ? c : d;")
        self.expect(rule, "f(x, a.b(c) ? d : e);", "f(x, !(a.b(c)) ? d : e);")
        self.expect(rule, "x = a ? b : c ? d : e;", "x = !(a) ? b : c ? d : e;", "x = a ? b : !(c) ? d : e;")

    def test_a_comparison_is_flipped(self):
        rule = "flip-comparison"
        for before, after in (("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="), ("!=", "==")):
            self.expect(rule, f"x = a {before} b;", f"x = a {after} b;")

    def test_brackets_of_templates_are_no_comparisons(self):
        self.expect("flip-comparison", "std::map<int, std::vector<int>> x;")
        self.expect("flip-comparison", "x << a >> b;")
        self.expect("swap-operands", "std::map<int, std::vector<int>> x;")

    def test_logic(self):
        self.expect("swap-logic", "x = a && b;", "x = a || b;")
        self.expect("swap-logic", "x = a || b;", "x = a && b;")
        self.expect("swap-logic", "auto&& x = a;")

    def test_plus_and_minus(self):
        rule = "swap-plus-minus"
        self.expect(rule, "x = a + b;", "x = a - b;")
        self.expect(rule, "x -= a;", "x += a;")
        self.expect(rule, 'x = a + "b";')
        self.expect(rule, "x = -a;")
        self.expect(rule, "++x;")

    def test_operands_are_swapped(self):
        rule = "swap-operands"
        self.expect(rule, "x = a - b;", "x = b - a;")
        self.expect(rule, "x = a.b(c)[d] / std::e<int>(f);", "x = std::e<int>(f) / a.b(c)[d];")
        self.expect(rule, "x = static_cast<double>(a) / b->c;", "x = b->c / static_cast<double>(a);")
        self.expect(rule, "x = (a + b) % c;", "x = c % (a + b);")
        self.expect(rule, "x = a < b;", "x = b < a;")
        self.expect(rule, "x = a + b;")
        self.expect(rule, "x = a - a;")

    def test_operands_whose_order_means_nothing_stay(self):
        self.expect("swap-operands", "x = std::abs(a - b);")
        self.expect("swap-operands", "x = (a - b).abs();")
        self.expect("swap-operands", "x = -a <= b;")

    def test_arguments_are_swapped(self):
        rule = "swap-arguments"
        self.expect(rule, "f(a, b);", "f(b, a);")
        self.expect(rule, "x = a.f(b + c, d);", "x = a.f(d, b + c);")
        self.expect(rule, "f(a, b, c);")
        self.expect(rule, "f(a, a);")
        self.expect(rule, 'f(a, "b");')
        self.expect(rule, "x = std::max(a, b);")
        self.expect(rule, "std::string x(a, b);")
        self.expect(rule, "if (a, b) return;")

    def test_least_and_greatest(self):
        self.expect("swap-min-max", "x = std::max(a, b);", "x = std::min(a, b);")
        self.expect("swap-min-max", "x = std::min<int>(a, b);", "x = std::max<int>(a, b);")
        self.expect("swap-min-max", "x = a.max(b);")

    def test_a_call_is_deleted(self):
        rule = "delete-call"
        self.expect(rule, "f();", "{}")
        self.expect(rule, "a.b(c)->d<int>(e, [&] { return 1; });", "{}")
        self.expect(rule, "if (a) f(b);", "if (a) {}")
        self.expect(rule, "if (a) { f(b); } else g();", "if (a) { {} } else g();", "if (a) { f(b); } else {}")
        self.expect(rule, "for (auto& a : b) f(a);", "for (auto& a : b) {}")
        self.expect(rule, "x = f();")
        self.expect(rule, "return f();")
        self.expect(rule, "Scope scope(a);")
        self.expect(rule, "a.reserve(b);")
        self.expect(rule, "throw f();")

    def test_a_constant_is_shifted(self):
        rule = "shift-constant"
        self.expect(rule, "x = 0;", "x = 1;")
        self.expect(rule, "x = true;", "x = false;")
        self.expect(rule, "x = a.b0;")
        self.assertEqual(
            [one_more(number) for number in ("7", "1'000'000", "0x0FU", "0600", "0.5", "1e-9", "9ULL", "2.F")],
            ["8", "1000001", "0x10U", "0601", "1.5", "1.000000001", "10ULL", "3.0F"],
        )

    def test_what_is_no_code_stays(self):
        for untouched in (
            'auto x = "a < b && c + 1 " "true";',
            'auto x = R"(if (a) f(b, c); // 1)";',
            "// if (a < 1) f(b, c);",
            "/* if (a < 1)\n f(b, c); */",
            "char x = '1';",
            "#if A < 1 && \\\n B > 2\n#endif",
            "static_assert(1 < 2);",
        ):
            self.assertEqual(made(untouched), [], untouched)

    def test_every_rule_is_tried_here(self):
        tried = {fault.rule for fault in faults_in("a.cpp", "void f() { if (a && b < 1) { g(c - d); h(i, j); std::max(i, j); } }")}
        self.assertEqual(tried, set(RULES))

    def test_one_change_is_one_fault(self):
        text = "bool f() { return !a; }"
        self.assertEqual(len({fault.planted_in(text) for fault in faults_in("a.cpp", text)}), len(faults_in("a.cpp", text)))


class Bodies(unittest.TestCase):
    def bodies(self, text):
        source = Source(text)
        return [source.written(*body) for body in source.bodies()]

    def test_only_bodies_of_functions(self):
        text = """
#include <a>
namespace n { namespace {
constexpr int kOne = 1;
const std::array<int, 2> kTwo = {1, 2};
int three{3};
enum class E { kA = 1 };
struct S : Base<int> { int a = 1; S() : a{4}, b_(5) { one(); } bool operator==(const S&) const { two(); } };
template <class T> T f(int a = 1) noexcept { three(); }
auto g() -> int { four([&] { five(); }); }
}  // namespace
void h::i() { { six(); } } }
"""
        self.assertEqual(
            self.bodies(text), ["{ one(); }", "{ two(); }", "{ three(); }", "{ four([&] { five(); }); }", "{ { six(); } }"]
        )

    def test_place_and_text(self):
        (fault,) = faults_in("a.cpp", "\n\nvoid f() {\n  x = g(\n      0);\n}\n")
        self.assertEqual((fault.place, fault.before, fault.after), ("a.cpp:5", "0);", "1);"))

    def test_bodies_of_this_repository_are_found(self):
        for file in sources(REPOSITORY):
            text = (REPOSITORY / file).read_text()
            for fault in faults_in(file, text):
                self.assertNotEqual(fault.planted_in(text), text, fault)
        self.assertIn("harness/device/cuda/cuda_device.cpp", sources(REPOSITORY))


def a_fault(file, line, rule="delete-call"):
    return Fault(file, line, rule, ((line, line + 1, ""),), f"line {line}", "")


def many():
    files = ("harness/worker/equivalence.cpp", "harness/worker/engine.cpp", "harness/worker/throughput_job.cpp", "reports/compare/compare.cpp")
    rules = ["delete-call"] * 17 + ["swap-logic"] * 2 + ["flip-comparison"]
    return [a_fault(file, line, rules[line % 20]) for file in files for line in range(100)]


class Sampling(unittest.TestCase):
    def test_a_seed_decides(self):
        self.assertEqual(Sample(many(), 1, 12).take(), Sample(many(), 1, 12).take())
        self.assertNotEqual(Sample(many(), 1, 12).take(), Sample(many(), 2, 12).take())

    def test_half_in_the_concepts(self):
        groups = collections.Counter(group_of(fault) for fault in Sample(many(), 1, 12).take())
        self.assertEqual(groups, {"the judge": 3, "the timing job": 3, "harness/worker": 3, "reports/compare": 3})

    def test_what_a_group_lacks_the_others_give(self):
        self.assertEqual(quotas({"the judge": 1, "the recipe": 9, "harness/trace": 9}, 10), {"the judge": 1, "the recipe": 4, "harness/trace": 5})
        self.assertEqual(quotas({"the judge": 9, "harness/trace": 2}, 10), {"the judge": 8, "harness/trace": 2})
        self.assertEqual(quotas({"harness/trace": 3}, 10), {"harness/trace": 3})

    def test_rules_take_turns(self):
        sample = Sample([fault for fault in many() if fault.file.endswith("engine.cpp")], 1, 6).take()
        self.assertEqual(collections.Counter(fault.rule for fault in sample), {"delete-call": 2, "swap-logic": 2, "flip-comparison": 2})

    def test_one_that_is_none_is_replaced_by_another_of_its_group(self):
        sample = Sample(many(), 1, 12)
        first = sample.take()
        sample.replace(first[0])
        (other,) = sample.take()
        self.assertNotIn(other, first)
        self.assertEqual(group_of(other), group_of(first[0]))
        self.assertEqual(sample.take(), [])

    def test_file_by_file(self):
        files = [fault.file for fault in Sample(many(), 1, 40).take()]
        self.assertEqual(len(set(files)), sum(1 for i, file in enumerate(files) if i == 0 or files[i - 1] != file))

    def test_every_source_has_a_room_and_every_concept_a_source(self):
        files = sources(REPOSITORY)
        self.assertTrue(all(room_of(file) for file in files))
        self.assertEqual({concept_of(file) for file in files} - {None}, set(CONCEPTS))
        for pattern in itertools.chain.from_iterable(CONCEPTS.values()):
            self.assertTrue(fnmatch.filter(files, pattern), pattern)
        self.assertEqual([room.folder for room in ROOMS], list(dict.fromkeys(room_of(file).folder for file in files)))


# Plants a fault and never takes it out.
PLANTED_AND_WAITING = """
import pathlib, signal, sys, time
sys.path.insert(0, sys.argv[1])
from mutation_test import a_fault
from planting import Journal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
with Journal(sys.argv[2], pathlib.Path(sys.argv[2], "journal/journal.json")).planted(a_fault("a.cpp", 1)):
    print("planted", flush=True)
    time.sleep(60)
"""


class Planting(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.file = self.folder / "a.cpp"
        self.file.write_text("abc\n")
        self.journal = Journal(self.folder, self.folder / "journal/journal.json")

    def planted_by_another(self, ended_by):
        command = [sys.executable, "-B", "-c", PLANTED_AND_WAITING, str(pathlib.Path(__file__).parent), str(self.folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"planted\n")
            self.assertIn("ac\n", self.file.read_text())
            process.send_signal(ended_by)
            process.wait()

    def test_put_back_afterwards(self):
        with self.journal.planted(a_fault("a.cpp", 1)):
            self.assertTrue(self.file.read_text().endswith("\n#line 1\nac\n"))
        self.assertEqual(self.file.read_text(), "abc\n")
        self.assertIsNone(self.journal.restore())

    def test_put_back_after_an_error(self):
        with self.assertRaises(KeyboardInterrupt), self.journal.planted(a_fault("a.cpp", 1)):
            raise KeyboardInterrupt
        self.assertEqual(self.file.read_text(), "abc\n")

    def test_put_back_when_ended(self):
        self.planted_by_another(signal.SIGTERM)
        self.assertEqual(self.file.read_text(), "abc\n")

    def test_put_back_at_the_next_start(self):
        self.planted_by_another(signal.SIGKILL)
        self.assertIn("ac\n", self.file.read_text())
        self.assertEqual(self.journal.restore(), "a.cpp")
        self.assertEqual(self.file.read_text(), "abc\n")
        self.assertFalse(self.journal.path.exists())

    def test_newer_than_what_was_built_from_it(self):
        began = time.time_ns()
        with self.journal.planted(a_fault("a.cpp", 1)):
            time.sleep(0.01)
            built = time.time_ns()
            time.sleep(0.01)
        self.assertLess(began, built)
        self.assertGreater(os.stat(self.file).st_mtime_ns, built)

    def test_another_change_is_not_lost(self):
        self.planted_by_another(signal.SIGKILL)
        self.file.write_text("mended by hand\n")
        with self.assertRaisesRegex(ChangedSince, "a.cpp was changed after a fault had been planted in it; what it held is in .*journal.json"):
            self.journal.restore()
        self.assertEqual(self.file.read_text(), "mended by hand\n")
        self.assertTrue(self.journal.path.exists())


class Report(unittest.TestCase):
    def outcomes(self):
        judge, engine = a_fault("harness/worker/equivalence.cpp", 3), a_fault("harness/worker/engine.cpp", 4)
        return [
            report.Outcome(judge, report.KILLED, "worker.judge (failed)", 2),
            report.Outcome(judge, report.INVALID, "no match", 1),
            report.Outcome(engine, report.SURVIVED, "", 9),
            report.Outcome(engine, report.EQUIVALENT, "only faster", 0),
        ]

    def test_table(self):
        rows = [line.split() for line in report.table(self.outcomes()).splitlines()]
        self.assertEqual(rows[0], ["planted", "killed", "survived", "invalid", "equivalent"])
        self.assertEqual(rows[1], ["the", "judge", "1", "1", "0", "1", "0"])
        self.assertEqual(rows[2], ["harness/worker", "1", "0", "1", "0", "1"])
        self.assertEqual(rows[3], ["together", "2", "1", "1", "1", "1"])

    def test_survivors_and_equivalents_are_shown(self):
        text = report.summary(self.outcomes())
        self.assertIn("No test noticed:\n[harness/worker] harness/worker/engine.cpp:4 delete-call\n    - line 4\n", text)
        self.assertIn("    only faster", text)

    def test_what_is_critical(self):
        self.assertEqual(report.critical_survivors(self.outcomes()), [])
        alive = report.Outcome(a_fault("harness/trace/lifetimes.cpp", 3), report.SURVIVED, "", 1)
        self.assertEqual(report.critical_survivors([*self.outcomes(), alive]), [alive])

    def test_known_equivalents_fit_to_the_letter(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            entry = {"file": "harness/worker/engine.cpp", "line": "line 4", "rule": "delete-call", "becomes": "", "reason": "only faster"}
            json.dump([entry], file)
            file.flush()
            known = equivalents.read(pathlib.Path(file.name))
        self.assertEqual(equivalents.reason_for(known, a_fault("harness/worker/engine.cpp", 4)), "only faster")
        self.assertIsNone(equivalents.reason_for(known, a_fault("harness/worker/engine.cpp", 5)))
        self.assertEqual(len(equivalents.outdated(known, [a_fault("harness/worker/engine.cpp", 5)])), 1)

    def test_which_of_ctests_tests_are_a_programs(self):
        case = {"name": "unit.Suite/Case.Name", "command": ["/build/bin/some_test", "--gtest_filter=Suite/Case.Name"]}
        self.assertEqual(chosen_by(case), r"unit\.Suite/Case\.")
        whole = {"name": "worker.worker", "command": ["python3", "whole_program.py", "/build/bin/worker_test"]}
        self.assertEqual(chosen_by(whole), r"worker\.worker$")

    def test_how_tests_ended(self):
        for line, name, result, failed in (
            ("  1/70 Test #12: unit.Peak.SumsToTheByte ...   Passed    0.01 sec", "unit.Peak.SumsToTheByte", "Passed", False),
            (" 2/70 Test  #1: e2e.gate ........***Failed   12.50 sec", "e2e.gate", "Failed", True),
            (" 3/70 Test  #1: a.b ........***Exception: SegFault  0.10 sec", "a.b", "Exception: SegFault", True),
            (" 4/70 Test  #1: a.b ........***Timeout 300.01 sec", "a.b", "Timeout", True),
            (" 5/70 Test  #1: a.b ........***Not Run   0.00 sec", "a.b", "Not Run", True),
            (" 6/70 Test  #1: a.b ........***Skipped   0.00 sec", "a.b", "Skipped", False),
        ):
            ended = ended_in(line)
            self.assertEqual((ended.name, ended.result, ended.failed), (name, result, failed))
        self.assertIsNone(ended_in("      Start  1: a.b"))

    def test_the_compiler_or_something_else(self):
        self.assertEqual(first_error("[1/2] x\na.cpp:3:4: error: no match for it\nninja: stopped"), ("no match for it", True))
        self.assertEqual(first_error("c++: fatal error: Killed signal terminated program cc1plus\nninja: stopped"), ("ninja: stopped", False))


if __name__ == "__main__":
    unittest.main()
