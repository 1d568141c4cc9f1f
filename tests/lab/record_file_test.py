"""lab/record_file.py: one record a line, the same content; and every recorded file of the repository is in that form."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "lab/record_file.py"
sys.path.insert(0, str(SCRIPT.parent))
import record_file  # noqa: E402

RECORDED = ("lab/*.json", "lab/published/*.json", "tests/oracle/cpu_peaks.json", "tests/programs/expected.json",
            "tests/emulated/operators.json", "tests/emulated/real_card/*.json")  # fmt: skip


class Form(unittest.TestCase):
    def test_a_document_with_records(self):
        self.assertEqual(record_file.text({"schema": "a/1", "records": [{"a": [1, 2]}, {"b": {}}], "none": [], "by_name": {"ö": {"x": None}}}),
                         '{\n "schema": "a/1",\n "records": [\n  {"a": [1, 2]},\n  {"b": {}}\n ],\n "none": [],\n "by_name": {\n'
                         '  "ö": {"x": null}\n }\n}\n')  # fmt: skip

    def test_a_table_of_records(self):
        self.assertEqual(record_file.text({"a": {"x": [1], "y": {"z": 2}}, "b": {}}), '{\n "a": {"x": [1], "y": {"z": 2}},\n "b": {}\n}\n')

    def test_rewrites_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "a.json")
            file.write_text('{"a":{"x":\n1}}')
            subprocess.run([sys.executable, "-B", SCRIPT, file], check=True)
            self.assertEqual(file.read_text(), '{\n "a": {"x": 1}\n}\n')
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["a.json"])


class Recorded(unittest.TestCase):
    def test_one_record_a_line(self):
        for pattern in RECORDED:
            files = sorted(ROOT.glob(pattern))
            self.assertTrue(files, pattern)
            for file in files:
                with self.subTest(file.relative_to(ROOT)):
                    text = file.read_text(encoding="utf-8")
                    self.assertTrue(record_file.text(json.loads(text)) == text, f"lab/record_file.py {file.relative_to(ROOT)} rewrites it")
