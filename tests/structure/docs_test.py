"""Every page of docs/ opens with the question it answers and a command that answers it; every strategy has a page."""

import json
import os
import re
import sys
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# A heading, a question of one paragraph, a block of shell.
OPENING = re.compile(r"\A# [^\n]+\n\n[^#`\n][^`]*?\?\n\n```sh\n[^`\n][^`]*```\n")
# A command's page begins with its help, and lists of fields, variables and codes with what they are.
OPENS_OTHERWISE = re.compile(r"/docs/reference/cli/|(_fields|/environment|/exit-codes)\.md$")


class Openings(unittest.TestCase):
    def test_the_pattern_refuses_what_it_should(self):
        self.assertTrue(OPENING.match("# Title\n\nHow much\nis it?\n\n```sh\npeakbench list\n```\n"))
        self.assertFalse(OPENING.match("# Title\n\nIt is much.\n\n```sh\npeakbench list\n```\n"))
        self.assertFalse(OPENING.match("# Title\n\nHow much is it?\n\nMuch.\n"))

    def test_every_page_opens_with_its_question_and_a_command(self):
        pages = [page for page in (REPOSITORY / "docs").rglob("*.md") if not OPENS_OTHERWISE.search(page.as_posix())]
        self.assertGreater(len(pages), 50)
        self.assertEqual([page.name for page in pages if not OPENING.match(page.read_text(encoding="utf-8"))], [])


class Figures(unittest.TestCase):
    """What README says is what the pages say that it links."""

    def setUp(self):
        self.readme = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())

    def test_parity(self):
        parity = (REPOSITORY / "docs/evidence/parity.md").read_text(encoding="utf-8")
        cases, = re.findall(r"^\| requested \| [^|]*\| none in (\d+) cases \|$", parity, re.MULTILINE)
        most, = re.findall(r"^\| allocated \| [^|]*\| none in \d+ cases; at most ([\d.]+%) in the others \|$", parity, re.MULTILINE)
        self.assertIn(f"In {cases} compared cases (a model trained with a strategy), the same training in Python requests the same bytes. "
                      f"The bytes that PyTorch counts as allocated differ by at most {most}", self.readme)  # fmt: skip

    def test_fidelity(self):
        fidelity = (REPOSITORY / "docs/evidence/fidelity.md").read_text(encoding="utf-8")
        row, = re.findall(r"^\| training steps \| same configuration \|([\d |]+)\| ([^|]*) \|$", fidelity, re.MULTILINE)
        figures, _, _, agree, _, _ = map(int, row[0].split("|"))
        self.assertIn(f"Of {figures} published peaks of training steps that we rebuilt with the same configuration, {agree} are met within 0.5%, and "
                      f"all within {row[1].lstrip('−+')}%", self.readme)  # fmt: skip
        self.assertIn(f"Of {figures} distinct figures of whole training steps", fidelity)


class Readme(unittest.TestCase):
    def setUp(self):
        self.text = (REPOSITORY / "README.md").read_text(encoding="utf-8")

    def test_it_is_short_and_begins_with_the_two_commands_of_a_clone(self):
        self.assertLessEqual(len(self.text.splitlines()), 90)
        first = re.search(r"```sh\n(.*?)```", self.text, re.DOTALL)[1]
        commands = [line.split("#")[0].strip() for line in first.splitlines()]
        self.assertEqual(commands, ["ci/quickstart", "ci/test"])
        for command in commands:
            self.assertTrue(os.access(REPOSITORY / command, os.X_OK), command)

    def test_no_page_installs_from_the_index_what_is_not_there(self):
        # From the first published version on, README may say `pip install peakbench`, and this test goes.
        for page in [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]:
            self.assertNotRegex(page.read_text(encoding="utf-8"), r"(?m)^pip install \"?peakbench(\[|\"|$)", page.name)


class Tests(unittest.TestCase):
    def test_the_tests_that_pages_name_exist(self):
        sources = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "tests/unit").glob("*_test.cpp"))
        known = {suite for suite, _ in re.findall(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", sources, re.MULTILINE)}
        self.assertGreater(len(known), 100)
        named = {(page.name, suite) for page in [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").rglob("*.md")]
                 for suite in re.findall(r"`unit\.(\w+)[.\w]*`", page.read_text(encoding="utf-8"))}  # fmt: skip
        self.assertEqual({(page, suite) for page, suite in named if suite not in known}, set())


class Corpus(unittest.TestCase):
    def test_the_table_of_the_corpus_is_of_its_records(self):
        sys.path.insert(0, str(REPOSITORY / "tests/programs"))
        import table

        self.assertIn(table.BEGIN + table.table() + table.END, table.PAGE.read_text(encoding="utf-8"), "tests/programs/table.py writes it anew")


class Strategies(unittest.TestCase):
    def setUp(self):
        self.table = (REPOSITORY / "docs/reference/strategies.md").read_text(encoding="utf-8")
        # id -> its page, as docs/reference/strategies.md links them
        self.pages = dict(re.findall(r"^\| \[`([^`]+)`\]\(strategies/([^)]+)\)", self.table, re.MULTILINE))

    def test_every_bundled_strategy_is_linked_with_a_page_that_runs_it(self):
        manifests = [json.loads(path.read_text(encoding="utf-8")) for path in (REPOSITORY / "plugins").glob("*/plugin.json")]
        bundled = sorted(entry["id"] for manifest in manifests for entry in manifest["entries"] if manifest["kind"] == "strategy")
        self.assertGreater(len(bundled), 30)
        self.assertEqual(sorted(self.pages), bundled)
        for strategy, page in self.pages.items():
            text = (REPOSITORY / "docs/reference/strategies" / page).read_text(encoding="utf-8")
            command = next(line for line in text.splitlines() if line.startswith("peakbench run"))
            stacks = re.findall(r"--strategy '?([^ ']+)", command)
            self.assertIn(strategy, [part.split(",")[0] for stack in stacks for part in stack.split("+")], page)

    def test_every_page_is_linked(self):
        self.assertEqual(sorted(set(self.pages.values())), sorted(page.name for page in (REPOSITORY / "docs/reference/strategies").glob("*.md")))

    def test_no_measured_table_is_left_out_or_empty(self):
        for page in (REPOSITORY / "docs/reference/strategies").glob("*.md"):
            text = page.read_text(encoding="utf-8")
            self.assertRegex(text, r"\n\|[-:|]+\|\n\|[^\n]*\d", page.name)
            self.assertNotRegex(text, r"(?m)^TABLE$|\| \|\s*$", page.name)
            self.assertIn("on the emulated card", text, page.name)

    def test_every_example_is_described(self):
        plugins = (REPOSITORY / "docs/how-to/plugins.md").read_text(encoding="utf-8")
        examples = [manifest.parent.name for manifest in (REPOSITORY / "examples").glob("*/plugin.json")]
        self.assertGreater(len(examples), 10)
        for example in examples:
            self.assertIn(f"| [`{example}`](../../examples/{example}) |", plugins)
