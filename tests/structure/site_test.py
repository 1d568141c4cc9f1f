"""What ci/site_markdown.py makes of pages for the site: Python's Markdown reads in them what GitHub's does."""

import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "ci"))
import site_markdown  # noqa: E402


class Pages(unittest.TestCase):
    def read(self, text):
        return site_markdown.as_python_reads_it(text, "how-to/page.md", "https://host/project")

    def test_links_out_of_docs_lead_to_the_repository(self):
        self.assertEqual(self.read("[a](../../examples/sgd#b) [c](../fit.md) [d](#e) [f](https://g) `[h](../../i)`\n"),
                         "[a](https://host/project/blob/main/examples/sgd#b) [c](../fit.md) [d](#e) [f](https://g) `[h](../../i)`\n")  # fmt: skip

    def test_an_empty_line_before_lists_and_tables(self):
        self.assertEqual(self.read("One:\n- a\n- b\n\nTwo:\n| c |\n|---|\n| d |\n"), "One:\n\n- a\n- b\n\nTwo:\n\n| c |\n|---|\n| d |\n")

    def test_parts_of_items_are_indented_by_four(self):
        self.assertEqual(self.read("- a\n  b\n  1. c\n     d\n\n  e\n  ```sh\n  f\n    g\n  ```\n- h\n\ni\n"),
                         "- a\n    b\n    1. c\n        d\n\n    e\n    ```sh\n    f\n      g\n    ```\n- h\n\ni\n")  # fmt: skip

    def test_code_is_left_as_it_is(self):
        text = "a\n```\n- b\n  - [c](../../d)\n| e |\n```\nf\n"
        self.assertEqual(self.read(text), text)


class Navigation(unittest.TestCase):
    def test_a_folder_stands_for_its_pages(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "some").mkdir()
            for name in ("b.md", "a.md", "README.md"):
                (Path(folder) / "some" / name).write_text("")
            self.assertEqual(site_markdown.with_folders([{"Start": "index.md"}, {"Part": ["some/"]}], Path(folder)),
                             [{"Start": "index.md"}, {"Part": ["some/README.md", {"a": "some/a.md"}, {"b": "some/b.md"}]}])  # fmt: skip
