"""Links between pages lead to files and headings that exist, every page is reached, and files that name a page name one that exists.

The site's strict build finds broken links, too, but only where there is a browser to test it (tests/browser/docs_test.py).
"""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
START = "docs/index.md"
FENCE = re.compile(r"^\s*```.*?^\s*```[^\n]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
ANCHOR = re.compile(r'<a (?:id|name)="([^"]+)"')
MENTION = re.compile(r"(?<![\w/.-])/?docs/[\w/-]+\.md\b")


def blank(match):
    return "\n" * match[0].count("\n")


def slug(heading):
    """A heading's anchor, as GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"<[^>]*>", "", heading))
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(text):
    text, found = FENCE.sub(blank, text), set()
    for heading in HEADING.findall(text):
        name, number = slug(heading), 0
        while (name if not number else f"{name}-{number}") in found:
            number += 1
        found.add(f"{name}-{number}" if number else name)
    return found | set(ANCHOR.findall(text))


def links(text):
    """-> (line, target), without addresses of other sites."""
    prose = SPAN.sub(lambda match: "x" * len(match[0]), FENCE.sub(blank, text))
    return [(prose.count("\n", 0, link.start()) + 1, link[1]) for link in LINK.finditer(prose) if not re.match(r"[a-z]+:", link[1])]


def broken(root, pages):
    """What is wrong with the links of these pages, a line each."""
    known, found = {}, []
    for page in pages:
        for line, target in links((root / page).read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not (root / file).exists():
                found.append(f"{page}:{line}: no file {target}")
            elif anchor and file.endswith(".md"):
                if file not in known:
                    known[file] = anchors((root / file).read_text(encoding="utf-8"))
                if anchor not in known[file]:
                    found.append(f"{page}:{line}: no heading {target}")
    return found


def reached(root, start):
    """The pages that links lead to from this one."""
    found, queue = {start}, [start]
    for page in queue:
        for _, target in links((root / page).read_text(encoding="utf-8")):
            file = os.path.normpath(os.path.join(os.path.dirname(page), target.partition("#")[0]))
            if file.endswith(".md") and (root / file).is_file() and file not in found:
                found.add(file)
                queue.append(file)
    return found


def pages():
    found = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
    return sorted(page.relative_to(REPOSITORY).as_posix() for page in found)


class Checker(unittest.TestCase):
    def test_anchors(self):
        text = "# A `b` page: two, of [three](x.md)\n\n## Same\n\n## Same\n\n```sh\n# none\n```\n<a id=\"old\"></a>\n"
        self.assertEqual(anchors(text), {"a-b-page-two-of-three", "same", "same-1", "old"})

    def test_links(self):
        self.assertEqual(links("[a](b.md#c) `[x](y.md)`\n```\n[d](e.md)\n```\n[f](https://g) [h](#i)\n"), [(1, "b.md#c"), (5, "#i")])

    def test_it_finds_what_is_broken(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "docs/a.md").write_text("# A\n\n[b](b.md#b) [c](c.md) [other](b.md#c) [own](#z)\n[up](../x)\n")
            (root / "docs/b.md").write_text("# B\n")
            self.assertEqual(broken(root, ["docs/a.md"]), ["docs/a.md:3: no file c.md", "docs/a.md:3: no heading b.md#c",
                                                           "docs/a.md:3: no heading #z", "docs/a.md:4: no file ../x"])  # fmt: skip
            self.assertEqual(reached(root, "docs/a.md"), {"docs/a.md", "docs/b.md"})


class Pages(unittest.TestCase):
    def test_links_lead_somewhere(self):
        self.assertGreater(len(pages()), 50)
        self.assertEqual(broken(REPOSITORY, pages()), [])

    def test_every_page_is_reached(self):
        for start in ("README.md", START):
            missing = set(pages()) - reached(REPOSITORY, start) - {START}
            self.assertEqual([page for page in sorted(missing) if page.startswith("docs/")], [], start)

    def test_the_site_has_every_page(self):
        navigation = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
        listed = []
        for entry in re.findall(r"(?m)^ +- (?:[^\n]*: )?([\w/-]+(?:\.md|/))$", navigation):
            folder = REPOSITORY / "docs" / entry
            listed += [f"docs/{entry}"] if entry.endswith(".md") else [f"docs/{entry}{page.name}" for page in folder.glob("*.md")]
        self.assertEqual(sorted(listed), [page for page in pages() if page.startswith("docs/")])

    def test_files_name_pages_that_exist(self):
        """In comments, help texts and tests."""
        git = subprocess.run(["git", "-C", REPOSITORY, "grep", "-nIE", r"docs/[a-zA-Z0-9_/-]+\.md"], capture_output=True, text=True)
        if git.returncode:
            self.skipTest(f"git grep: {git.stderr.strip()}")
        missing = []
        for line in git.stdout.splitlines():
            file, number, text = line.split(":", 2)
            if file.startswith(("tests/setup/", "tests/structure/")):  # which make repositories of their own
                continue
            named = [REPOSITORY / page.lstrip("/") for page in MENTION.findall(text)]
            # NAME.md and the like stand for any name.
            missing += [f"{file}:{number}: {page.name}" for page in named if not page.exists() and not page.stem.isupper()]
        self.assertEqual(missing, [])
