"""lab/published/run.py, with a stand-in for peakbench that runs the program without a card: what is measured and kept, what --check finds, what is
refused; and that the records of the repository are whole."""

import contextlib
import io
import json
import os
import pathlib
import stat
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lab/published"))
sys.dont_write_bytecode = True
import run  # noqa: E402

STAND_IN = """#!/usr/bin/env python3
import json, subprocess, sys
took, command = sys.argv[sys.argv.index("--json") + 1], sys.argv[sys.argv.index("--") + 1:]
code = subprocess.run(command).returncode
json.dump({"card": sys.argv[sys.argv.index("--card") + 1], "verdict": {"kind": "exact"},
           "cards": [{"index": 0, "peak_used_bytes": 2097152}]}, open(took, "w"))
print("\\nEmulated card: memory, no times.\\nVerdict: exact", file=sys.stderr)
sys.exit(code)
"""
PROGRAM = """
import json, sys
print("a progress bar")
print(json.dumps({"bytes": 512 * int(sys.argv[1]) + len(sys.argv[3:]), "phase": sys.argv[2]}))
"""
CAUSES = {"versions", "kernels", "workspaces", "data", "timing", "unknown"}
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
METRICS = {"peak_memory", "peak_allocated", "peak_active", "peak_reserved", "ncclAllGather", "ncclReduceScatter"}
GRADES = {"same_configuration", "same_law", "other_versions"}


def record(*arguments, **more):
    configuration = {"program": ["program.py", *map(str, arguments)]}
    return {"source": {"name": "somebody"}, "figure": {"metric": "peak_allocated"}, "card": "a100-80gb", "configuration": configuration, **more}


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        self.peakbench = self.folder / "peakbench"
        self.peakbench.write_text(STAND_IN, encoding="utf-8")
        self.peakbench.chmod(self.peakbench.stat().st_mode | stat.S_IXUSR)
        self.file = self.folder / "somebody.json"
        for replaced in (
            mock.patch.object(run, "ROOT", self.folder),
            mock.patch.object(run, "CACHE", self.folder / "cache"),
            mock.patch.object(run, "version_of_oracles_torch", lambda: "2.11.0"),
            mock.patch.dict(os.environ, {"PEAKBENCH_ORACLE": sys.executable}),
        ):
            replaced.start()
            self.addCleanup(replaced.stop)

    def keep(self, *records):
        self.file.write_text(json.dumps({"schema": run.SCHEMA, "records": list(records), "not_rebuilt": []}), encoding="utf-8")

    def kept(self):
        return [each.get("emulated") for each in json.loads(self.file.read_text(encoding="utf-8"))["records"]]

    def run_it(self, *arguments, exit_code=0):
        said = io.StringIO()
        command = ["run.py", str(self.file), "--peakbench", str(self.peakbench), *arguments]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            self.assertEqual(run.main(), exit_code, said.getvalue())
        return said.getvalue()

    def test_a_result_is_kept(self):
        self.keep(record(3, "backward"))
        self.run_it()
        (result,) = self.kept()
        self.assertRegex(result.pop("date"), r"^\d{4}-\d\d-\d\d$")
        self.assertEqual(result, {"bytes": 1536, "phase": "backward", "peak_used_bytes": [2097152], "verdict": "exact",
                                  "versions": {"torch": "2.11.0"}})

    def test_check_finds_each_change_and_writes_nothing(self):
        self.keep(record(3, "backward"))
        self.run_it()
        self.run_it("--check")
        for key, other in {"bytes": 1024, "phase": "forward", "peak_used_bytes": [1], "verdict": "unreliable",
                           "versions": {"torch": "2.6.0"}}.items():
            with self.subTest(key):
                changed = {**self.kept()[0], key: other}
                self.keep(record(3, "backward", emulated=changed))
                self.assertIn(f"{key} was {other}", self.run_it("--check", exit_code=1))
                self.assertEqual(self.kept(), [changed])
                self.run_it()
        self.keep(record(3, "backward"))
        self.assertIn("bytes was None, is 1536", self.run_it("--check", exit_code=1))

    def test_steps_are_the_program_with_more_arguments(self):
        self.keep(record(3, "backward", steps=[{"changed": "nothing", "arguments": ["--verbose"]}]))
        self.run_it()
        (kept,) = json.loads(self.file.read_text(encoding="utf-8"))["records"]
        self.assertEqual(kept["steps"], [{"changed": "nothing", "arguments": ["--verbose"], "bytes": 1537, "phase": "backward"}])
        self.assertNotIn("measured", self.run_it("--missing"))
        self.run_it("--check")

    def test_check_finds_a_changed_step(self):
        step = {"changed": "nothing", "arguments": ["--verbose"], "bytes": 1024, "phase": "forward"}
        self.keep(record(3, "backward", steps=[step]))
        said = self.run_it("--check", exit_code=1)
        self.assertIn("bytes was 1024, is 1537; phase was forward, is backward", said)
        self.assertEqual(json.loads(self.file.read_text(encoding="utf-8"))["records"][0]["steps"], [step])

    def test_missing_measures_steps_without_a_result(self):
        self.keep(record(3, "backward"))
        self.run_it()
        result = self.kept()[0]
        self.keep(record(3, "backward", emulated=result, steps=[{"changed": "nothing", "arguments": ["--verbose"]}]))
        self.assertEqual(self.run_it("--missing").count("measured"), 1)
        self.assertEqual(self.kept(), [result])

    def test_the_day_of_an_unchanged_result_stays(self):
        self.keep(record(3, "backward"))
        self.run_it()
        old = {**self.kept()[0], "date": "2020-01-01"}
        self.keep(record(3, "backward", emulated=old))
        self.run_it()
        self.assertEqual(self.kept(), [old])

    def test_some_records(self):
        self.keep(record(1, "forward"), record(2, "forward"), record(3, "forward"))
        self.run_it("--only", "program.py 2")
        self.assertEqual([result and result["bytes"] for result in self.kept()], [None, 1024, None])
        said = self.run_it("--missing")
        self.assertEqual([result["bytes"] for result in self.kept()], [512, 1024, 1536])
        self.assertNotIn("program.py 2", said)

    def test_a_failure_is_told_and_the_others_are_measured(self):
        self.keep(record("none", "forward"), record(0, "forward"), record(1, "sideways"), record(2, "forward"))
        said = self.run_it(exit_code=1)
        self.assertIn("invalid literal for int", said)
        self.assertIn("bytes is a positive integer", said)
        self.assertIn("phase one of forward", said)
        self.assertEqual([result and result["bytes"] for result in self.kept()], [None, None, None, 1024])

    def test_a_program_that_says_nothing(self):
        (self.folder / "program.py").write_text("print('done')", encoding="utf-8")
        self.keep(record())
        self.assertIn("its last line is not", self.run_it(exit_code=1))

    def test_records_that_cannot_be_run(self):
        wrong = {
            'no "program"': record() | {"configuration": {}},
            "no program elsewhere.py": record() | {"configuration": {"program": ["elsewhere.py"]}},
            '"card" is missing': record() | {"card": ""},
            '"source" has no "name"': record() | {"source": {}},
            'no "changed" or no "arguments"': record() | {"steps": [{"changed": "the loss"}]},
            "no version of the package liger-kernel": record() | {"configuration": {"program": ["program.py"], "packages": {"liger-kernel": ""}}},
        }
        for words, each in wrong.items():
            with self.subTest(words):
                self.keep(record(1, "forward"), each)
                said = self.run_it(exit_code=1)
                self.assertIn("record 2", said)
                self.assertIn(words, said)
        self.file.write_text("[]", encoding="utf-8")
        self.assertIn(run.SCHEMA, self.run_it(exit_code=1))

    def test_packages_come_first_on_the_path(self):
        package = self.folder / "cache/answer-1.0"
        package.mkdir(parents=True)
        (package / "answer.py").write_text("bytes = 2048", encoding="utf-8")
        (self.folder / "program.py").write_text("import answer, json; print(json.dumps({'bytes': answer.bytes, 'phase': 'build'}))", encoding="utf-8")
        each = record()
        each["configuration"]["packages"] = {"answer": "1.0"}
        self.keep(each)
        self.run_it()
        self.assertEqual(self.kept()[0]["bytes"], 2048)
        self.assertEqual(self.kept()[0]["versions"], {"torch": "2.11.0", "answer": "1.0"})

    def test_without_the_oracle(self):
        self.keep(record(1, "forward"))
        del os.environ["PEAKBENCH_ORACLE"]
        self.assertIn("SKIP: no oracle", self.run_it(exit_code=77))


class CardsTest(unittest.TestCase):
    def test_one_for_each_rank_with_the_records_streams(self):
        def card(*program, **more):
            return run.cards_of({"card": "a100-80gb", "configuration": {"program": ["train.py", *program], **more}})

        self.assertEqual(card(), "a100-80gb")
        self.assertEqual(card("--ranks", "1", streams="late"), "a100-80gb,streams=late")
        self.assertEqual(card("--ranks", "4", streams="soon"), "a100-80gb,count=4,streams=soon")


class RecordsTest(unittest.TestCase):
    """What the repository holds."""

    def test_records_are_whole(self):
        files = sorted(run.HERE.glob("*.json"))
        self.assertTrue(files)
        for path in files:
            for each in run.read(path)["records"]:
                with self.subTest(path.name, record=run.words_of(each)):
                    self.hold(each)

    def hold(self, each):
        figure, source = each["figure"], each["source"]
        self.assertIn(figure["metric"], METRICS)
        self.assertIn(figure["unit"], UNITS)
        self.assertGreater(figure["value"], 0)
        self.assertTrue(source["url"].startswith("https://"), source)
        self.assertIn(each["grade"], GRADES)
        self.assertIn("emulated", each, "run.py --missing measures it")
        for step in each.get("steps", []):
            self.assertGreater(step["bytes"], 0)
            self.assertIn(step["phase"], run.PHASES)
        unit = UNITS[figure["unit"]]
        beyond = abs(each["emulated"]["bytes"] - figure["value"] * unit) - figure.get("rounded_to", 0) * unit / 2
        if beyond > 0.005 * figure["value"] * unit:
            self.assertIn(each.get("cause"), CAUSES)
            self.assertTrue(each.get("explanation"))

    def test_what_is_not_rebuilt_has_a_reason(self):
        for path in sorted(run.HERE.glob("*.json")):
            for each in run.read(path).get("not_rebuilt", []):
                with self.subTest(path.name, source=each.get("source")):
                    self.assertTrue(each["source"] and each["url"].startswith("https://") and each["reason"])
                    self.assertGreater(each["figures"], 0)
