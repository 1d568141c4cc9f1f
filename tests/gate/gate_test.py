"""`peakbench gate` end to end: real workers on the emulated card, a change that costs one byte, and bad input."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from given import PEAKBENCH as PROGRAM, PLANTED_AFTER as AFTER, PLANTED_BEFORE as BEFORE

CASES = ["--model", "vit-b-16,layers=2", "--strategy", "baseline", "--strategy", "planted-bytes",
         "--device", "emulated:h100-80gb"]
PLANTED = "vit-b-16,layers=2/planted-bytes/emulated:h100-80gb/fp32/b1"


class GateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-gate-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for name, plugins, *options in (("base", BEFORE), ("again", BEFORE), ("new", AFTER), ("short", BEFORE, "--steps", "1")):
            done = cls.peakbench("run", *CASES, *options, "--plugins", plugins, "--out", cls.folder / name, "--no-report")
            if done.returncode != 0:
                raise AssertionError(done.stdout + done.stderr)

    @classmethod
    def peakbench(cls, *arguments, **variables):
        environment = {name: value for name, value in os.environ.items() if name != "GITHUB_STEP_SUMMARY"}
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=cls.folder, text=True, timeout=120,
                              capture_output=True, env={**environment, **variables}, check=False)

    def gate(self, *arguments, exit_code, **variables):
        done = self.peakbench("gate", *arguments, **variables)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done

    def copy(self, name):
        target = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / name
        shutil.copytree(self.folder / name, target)
        return target

    def change(self, run, edit):
        path = run / "run.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        edit(content)
        path.write_text(json.dumps(content), encoding="utf-8")
        return run

    def refuses(self, base, new, *says, command="gate"):
        done = self.peakbench(command, base, new)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        for part in says:
            self.assertIn(part, done.stderr)
        self.assertTrue(done.stderr.startswith("peakbench: "), done.stderr)

    def test_the_same_code_twice_passes(self):
        done = self.gate("base", "again", exit_code=0)
        self.assertIn("Gate: passed (memory: 2 the same)", done.stdout)

    def test_one_byte_is_caught_and_named(self):
        found = json.loads(self.gate("base", "new", "--json", exit_code=4).stdout)
        self.assertEqual(found["gate"]["outcome"], "regression")
        cases = {one["id"]: one for one in found["cases"]}
        self.assertEqual([one["id"] for one in found["cases"] if one["memory"]["verdict"] == "worse"], [PLANTED])
        memory = cases[PLANTED]["memory"]
        for where in ("peak", "forward", "backward", "optimizer_step"):
            differences = {one["figure"]: one["difference_bytes"] for one in memory["figures"]
                           if one["where"] == where and not one["space"]}
            self.assertEqual((differences["requested"], differences["allocated"]), (1, 512), where)
        for growth in memory["growth"]:
            self.assertEqual(growth["allocated_difference_bytes"], 512)
            self.assertEqual(len(growth["parts"]), 1, growth)
            part = growth["parts"][0]
            self.assertEqual((part["allocated_difference_bytes"], part["requested_difference_bytes"]), (512, 1))
            self.assertEqual(part["allocated_in"], "forward")
            self.assertEqual(part["category"], "kept")
            self.assertEqual(part["module"], "encoder.layers.encoder_layer_0")
            self.assertEqual(part["operator"], "aten::empty")

    def test_another_number_of_steps_is_no_regression_and_is_explained_where_it_is(self):
        """One step begins without optimizer state, which is there in forward from the second on."""
        done = self.gate("short", "base", exit_code=2)
        self.assertIn("Changed settings: steps: 1 -> 3", done.stdout)
        self.assertIn("not comparable (steps 1 → 3)", done.stdout)
        found = json.loads(self.gate("short", "base", "--json", exit_code=2).stdout)
        self.assertEqual(found["incomparable"], "steps 1 → 3")
        runs = [json.loads((self.folder / name / "run.json").read_text(encoding="utf-8"))["cases"] for name in ("short", "base")]
        for one in found["cases"]:
            before, after = ({case["id"]: case["memory"] for case in cases}[one["id"]] for cases in runs)
            for growth in one["memory"]["growth"]:
                self.assertEqual(growth["allocated_difference_bytes"],
                                 after["phases"][growth["phase"]]["peak_allocated_bytes"] -
                                 before["phases"][growth["phase"]]["peak_allocated_bytes"], growth["phase"])
                self.assertEqual(sum(cause["allocated_difference_bytes"] for category in growth["causes"]
                                     for cause in category["causes"]), growth["allocated_difference_bytes"])
            forward, = (growth for growth in one["memory"]["growth"] if growth["phase"] == "forward")
            state = forward["causes"][0]
            self.assertEqual(state["category"], "optimizer_state")
            self.assertEqual({cause["where"] for cause in state["causes"]}, {"*.exp_avg", "*.exp_avg_sq"})
            self.assertEqual(len({cause["new"]["tensors"] for cause in state["causes"]}), 1, "a moment a parameter, twice")
            at_peak = one["memory"]["at_peak"]
            if at_peak:
                self.assertEqual(at_peak["allocated_difference_bytes"],
                                 after["peak_allocated_bytes"] - before["peak_allocated_bytes"])

    def test_a_byte_that_is_allowed_passes(self):
        self.gate("base", "new", "--requested", "1", "--allocated", "512", exit_code=0)
        self.gate("base", "new", "--requested", "1", "--allocated", "511", exit_code=4)

    def test_what_continuous_integration_reads(self):
        summary, junit, pages = self.folder / "summary.md", self.folder / "gate.xml", self.folder / "pages"
        summary.write_text("Another step was here.\n", encoding="utf-8")
        self.gate("base", "new", "--junit", junit, "--out", pages, exit_code=4, GITHUB_STEP_SUMMARY=str(summary))
        text = summary.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("Another step was here.\n### Peakbench: ❌ regression"), text[:200])
        self.assertIn("+512 bytes", text)
        suites = xml.etree.ElementTree.parse(junit).getroot()
        self.assertEqual((suites.get("tests"), suites.get("failures"), suites.get("errors")), ("2", "1", "0"))
        failure, = suites.iter("failure")
        self.assertIn("encoder.layers.encoder_layer_0, by aten::empty", failure.text)
        html = (pages / "comparison.html").read_text(encoding="utf-8").replace("<wbr>", "")
        for part in ("stroke-base", "stroke-now", "Allocations that appeared", "encoder.layers.encoder_layer_0"):
            self.assertTrue(part in html, part)
        self.assertFalse(re.search(r"""(src|href)=["']?http|@import|url\(http""", html), "the page loads something")

    def test_without_its_trace_it_is_caught_and_not_explained(self):
        new = self.copy("new")
        for trace in new.glob("cases/*/trace.sqlite"):
            trace.unlink()
        done = self.gate("base", new, exit_code=4)
        self.assertIn("what grew is not known", " ".join(done.stdout.split()))
        self.assertIn("has no trace of this case", " ".join(done.stdout.split()))

    def test_other_cards_are_not_compared(self):
        def other_card(content):
            for case in content["cases"]:
                case["emulation"]["card"] = "a100-40gb"
        done = self.gate("base", self.change(self.copy("again"), other_card), exit_code=2)
        self.assertIn("not compared", done.stdout)
        self.assertIn("another emulated card", " ".join(done.stdout.split()))
        done = self.peakbench("compare", "base", self.change(self.copy("again"), other_card))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_case_that_fails_now_is_its_own_exit_code(self):
        def crash(content):
            content["cases"][1].update(status="crashed", reason="killed by SIGSEGV", memory=None)
        done = self.gate("base", self.change(self.copy("new"), crash), exit_code=5)
        self.assertIn("failed: crashed: killed by SIGSEGV", done.stdout)

    def test_bad_input_is_refused(self):
        self.refuses("base", "base", "BASE and NEW are the same run")
        self.refuses("base", self.folder / "base/run.json", "the same run", command="compare")
        self.refuses("base", "nowhere", "nowhere")
        cut = self.copy("new")
        text = (cut / "run.json").read_text(encoding="utf-8")
        (cut / "run.json").write_text(text[:len(text) // 2], encoding="utf-8")
        self.refuses("base", cut, str(cut))
        newer = self.change(self.copy("new"), lambda content: content.update(schema_version="2.0.0"))
        self.refuses("base", newer, str(newer), "2.0.0")

        def rename(content):
            for case in content["cases"]:
                case["id"] = "another/" + case["id"].split("/", 1)[1]
        self.refuses("base", self.change(self.copy("new"), rename), "no case in common")

    def test_bad_arguments_and_folders_are_refused(self):
        (self.folder / "file").write_text("in the way", encoding="utf-8")
        for arguments, says in ((["--out", "file"], "cannot make the folder file"),
                                (["--junit", "nowhere/gate.xml"], "nowhere/gate.xml"),
                                (["--summary", "nowhere/summary.md"], "nowhere/summary.md: cannot write"),
                                (["--format", "html"], "--format needs --out"),
                                (["--out", "pages2", "--format", "pdf"], "Unknown format \"pdf\""),
                                (["--allocated", "much"], "--allocated: expected 0, a size"),
                                (["--alocated", "1"], "did you mean \"--allocated\"?")):
            done = self.gate("base", "new", *arguments, exit_code=2)
            self.assertIn(says, done.stderr)
            self.assertTrue(done.stderr.startswith("peakbench: "), done.stderr)
