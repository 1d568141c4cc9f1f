"""ci/check_prose.py: what it takes for a sentence, and what it finds."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "ci"))
import check_prose  # noqa: E402


def sentence(words):
    return "Word " * (words - 1) + "end.\n"


class Prose(unittest.TestCase):
    def sentences(self, text):
        return [found for _, found in check_prose.sentences(text)]

    def found(self, *texts):
        """-> exit status, lines"""
        with tempfile.TemporaryDirectory() as folder:
            pages = [Path(folder, f"{number}.md") for number in range(len(texts))]
            for page, text in zip(pages, texts):
                page.write_text(text, encoding="utf-8")
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                status = check_prose.main(*map(str, pages))
            return status, said.getvalue().replace(f"{folder}/", "").splitlines()

    def test_what_is_a_sentence(self):
        self.assertEqual(self.sentences("# A long title of a page\n\nOne is here.\nTwo\nis here. `three` is here.\n"),
                         ["One is here.", "Two is here.", "`three` is here."])  # fmt: skip
        self.assertEqual(self.sentences("Run this now:\n```sh\nit is. All code here.\n```\n- one item is here\n  1. another one is here\n"),
                         ["Run this now:", "- one item is here", "1. another one is here"])  # fmt: skip
        self.assertEqual(self.sentences("[This is a link](https://example.org/of. Many words).\n\n`one`, `two` `three`\n"), ["This is a link."])
        self.assertEqual(self.sentences(f"| short cell of it | {sentence(21).strip()} |\n"), [sentence(21).strip()])

    def test_long_sentences(self):
        self.assertEqual(self.found(sentence(30), sentence(30)), (0, ["2 sentences, 0 over 30 words"]))
        self.assertEqual(self.found("It is short.\n" * 40 + sentence(39)), (0, ["41 sentences, 1 over 30 words"]))
        status, lines = self.found("It is short.\n\n" * 40 + sentence(40))
        self.assertEqual((status, len(lines), lines[0][:23]), (1, 1, "0.md:81: 40 words: Word"))
        status, lines = self.found("It is short.\n" * 10, sentence(31))
        self.assertEqual((status, lines[0][:19], lines[1]), (1, "1.md:1: 31 words: W", "1 of 11 sentences have over 30 words: more than 3%"))

    def test_words_to_avoid(self):
        self.assertEqual(self.found("It is written\nwhole or\nnot at all.\n"), (1, ["0.md:2: not whole or not at all, but atomically"]))
        self.assertEqual(self.found("It Goes  on.\n"), (1, ["0.md:1: not goes on, but continues"]))
        self.assertEqual(self.found("Use `goes on` here.\n```\ngoes on\n```\nBlogs go on.\n")[0], 0, "code, and parts of words")

    def test_the_pages(self):
        names = [page.relative_to(check_prose.REPOSITORY).as_posix() for page in check_prose.pages()]
        self.assertTrue({"README.md", "CONTRIBUTING.md", "docs/how-to/emulate.md", "docs/reference/strategies/lora.md"} <= set(names))
        self.assertFalse([name for name in names if name.startswith("CHANGELOG") or name.endswith("evidence/releases.md")])
