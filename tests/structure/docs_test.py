"""Every page of docs/ opens with the question it answers and a command that answers it."""

import re
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# A heading, a question of one paragraph, a block of shell.
OPENING = re.compile(r"\A# [^\n]+\n\n[^#`\n][^`]*?\?\n\n```sh\n[^`\n][^`]*```\n")


class Openings(unittest.TestCase):
    def test_the_pattern_refuses_what_it_should(self):
        self.assertTrue(OPENING.match("# Title\n\nHow much\nis it?\n\n```sh\npeakbench list\n```\n"))
        self.assertFalse(OPENING.match("# Title\n\nIt is much.\n\n```sh\npeakbench list\n```\n"))
        self.assertFalse(OPENING.match("# Title\n\nHow much is it?\n\nMuch.\n"))

    def test_every_page_opens_with_its_question_and_a_command(self):
        pages = sorted([*(REPOSITORY / "docs").glob("*.md"), *(REPOSITORY / "docs/strategies").glob("*.md")])
        self.assertGreater(len(pages), 12)
        self.assertEqual([page.name for page in pages if not OPENING.match(page.read_text(encoding="utf-8"))], [])


if __name__ == "__main__":
    unittest.main()
