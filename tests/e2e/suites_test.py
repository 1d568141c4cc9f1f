"""The bundled suites: each can be planned whole with the bundled plugins, and docs/suites.md names it with its number of cases.

usage: suites_test.py PEAKBENCH
"""

import json
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

PEAKBENCH = pathlib.Path(sys.argv.pop(1)).resolve()
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(\w+)` \|.*\| (\d+) \|$", re.MULTILINE)


def asked_cases(suite):
    done = subprocess.run([PEAKBENCH, "run", suite, "--dry-run", "--json"], capture_output=True, text=True, check=True)
    return [case for case in json.loads(done.stdout)["cases"] if not case["added_for"]]


class Suites(unittest.TestCase):
    def test_each_is_planned_whole_and_documented(self):
        section = (REPOSITORY / "docs/suites.md").read_text().split("## Bundled suites")[1].split("\n## ")[0]
        documented = {name: int(count) for name, count in ROW.findall(section)}
        planned = {}
        for suite in sorted((REPOSITORY / "suites").glob("*.toml")):
            cases = asked_cases(suite)
            self.assertEqual([case["id"] for case in cases if case["decided"]], [], suite.name)
            planned[suite.stem] = len(cases)
        self.assertEqual(documented, planned)

    def test_each_publishers_figures_have_their_cases(self):
        suites = sorted((REPOSITORY / "suites/published").glob("*.toml"))
        self.assertGreater(len(suites), 2)
        for suite in suites:
            self.assertEqual([case["id"] for case in asked_cases(suite) if case["decided"]], [], suite.name)
            figures = tomllib.loads(suite.read_text(encoding="utf-8"))["published"]
            self.assertEqual([figure["source"] for figure in figures if "grade" not in figure], [], suite.name)


if __name__ == "__main__":
    unittest.main()
