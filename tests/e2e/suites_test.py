"""The bundled suites: each can be planned whole with the bundled plugins, and docs/reference/suites.md names it with its number of cases."""

import json
import pathlib
import re
import subprocess
import tempfile
import tomllib
import unittest

from given import PEAKBENCH

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(\w+)` \|.*\| (\d+) \|$", re.MULTILINE)


def asked_cases(suite):
    done = subprocess.run([PEAKBENCH, "run", suite, "--dry-run", "--json"], capture_output=True, text=True, check=True)
    return [case for case in json.loads(done.stdout)["cases"] if not case["added_for"]]


class Suites(unittest.TestCase):
    def test_each_is_planned_whole_and_documented(self):
        section = (REPOSITORY / "docs/reference/suites.md").read_text().split("## Bundled suites")[1].split("\n## ")[0]
        documented = {name: int(count) for name, count in ROW.findall(section)}
        planned = {}
        for suite in sorted((REPOSITORY / "suites").glob("*.toml")):
            cases = asked_cases(suite)
            self.assertEqual([case["id"] for case in cases if case["decided"]], [], suite.name)
            planned[suite.stem] = len(cases)
        self.assertEqual(documented, planned)

    def test_a_bundled_suite_is_known_by_its_name(self):
        self.assertEqual(asked_cases("tutorial"), asked_cases(REPOSITORY / "suites/tutorial.toml"))
        with tempfile.TemporaryDirectory() as folder:
            said = subprocess.run([PEAKBENCH, "run", "tutorail"], capture_output=True, text=True, cwd=folder)
            self.assertEqual(said.returncode, 2)
            self.assertIn("tutorail: there is no such file, and no such suite; bundled are batch_scaling, ", said.stderr)
            pathlib.Path(folder, "lora").mkdir()  # a folder is no suite
            subprocess.run([PEAKBENCH, "run", "lora", "--dry-run"], capture_output=True, check=True, cwd=folder)
            pathlib.Path(folder, "tutorial").write_text('models = ["vit-b-16"]\nstrategies = ["baseline"]\n')  # a file of that name goes first
            own = subprocess.run([PEAKBENCH, "run", "tutorial", "--dry-run", "--json"], capture_output=True, text=True, check=True, cwd=folder)
            self.assertEqual(len(json.loads(own.stdout)["cases"]), 1)

    def test_each_publishers_figures_have_their_cases(self):
        suites = sorted((REPOSITORY / "suites/published").glob("*.toml"))
        self.assertGreater(len(suites), 2)
        for suite in suites:
            self.assertEqual([case["id"] for case in asked_cases(suite) if case["decided"]], [], suite.name)
            figures = tomllib.loads(suite.read_text(encoding="utf-8"))["published"]
            self.assertEqual([figure["source"] for figure in figures if "grade" not in figure], [], suite.name)
