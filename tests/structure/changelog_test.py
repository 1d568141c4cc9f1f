"""CHANGELOG.md has the form of Keep a Changelog 1.1.0, and its newest release is the one that CMake builds and CITATION.cff cites.

The fragments in changes/ become a section of it, and ci/release_notes.py prints one.
"""

import contextlib
import io
import re
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "ci"))
import release_notes  # noqa: E402

SECTIONS = ["Fixed: wrong figures", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
RELEASE = re.compile(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d{2}-\d{2})")


def problems(text, version):
    """What is wrong with a changelog of a program at `version`, a line each."""
    found = []
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    if not titles or titles[0] != "[Unreleased]":
        found.append("the first heading is not [Unreleased]")
    releases = [RELEASE.fullmatch(title) for title in titles[1:]]
    found += [f"not [VERSION] - DATE: {title}" for title, release in zip(titles[1:], releases) if not release]
    numbers = [tuple(map(int, release.groups()[:3])) for release in releases if release]
    dates = [release[4] for release in releases if release]
    if numbers != sorted(set(numbers), reverse=True) or dates != sorted(dates, reverse=True):
        found.append("the newest release is not first")
    if numbers[:1] != [tuple(map(int, version.split(".")))]:
        found.append(f"the newest release is not CMake's {version}")
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        sections = re.findall(r"^### (.+)$", part, re.MULTILINE)
        title = part.splitlines()[0]
        found += [f"{title}: no section of a changelog: {section}" for section in sections if section not in SECTIONS]
        if sections != sorted(set(sections), key=lambda section: SECTIONS.index(section) if section in SECTIONS else 99):
            found.append(f"{title}: sections are not in order, each once")
    for title in titles:
        name = title.split("]")[0] + "]"
        if not re.search(rf"^{re.escape(name)}: https://", text, re.MULTILINE):
            found.append(f"no link for {name}")
    return found


def fragment_problems(name, text, types):
    found = [] if re.fullmatch(rf"[\w-]+\.({'|'.join(types)})\.md", name) else [f"{name}: not NAME.TYPE.md with a type of towncrier.toml"]
    if len(text.splitlines()) != 1 or len(text.strip()) > 118 or text.startswith(("-", "*", " ")):
        found.append(f"{name}: not one line of at most 120 characters with the bullet that towncrier adds")
    return found


class Changelog(unittest.TestCase):
    GOOD = ("# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-01\n\n### Added\n\n- b\n\n## [0.1.0] - 2026-01-01\n\n"
            "### Added\n\n- a\n\n[Unreleased]: https://x\n[0.2.0]: https://x\n[0.1.0]: https://x\n")

    def test_the_form_is_held(self):
        self.assertEqual(problems(self.GOOD, "0.2.0"), [])
        for good, bad, why in (("[Unreleased]", "Unreleased", "the first heading is not [Unreleased]"),
                               ("[0.2.0] - 2026-02-01", "0.2.0", "not [VERSION] - DATE: 0.2.0"),
                               ("[0.2.0] - 2026-02-01", "[0.0.9] - 2026-02-01", "the newest release is not first"),
                               ("### Added\n\n- b", "### New\n\n- b", "[0.2.0] - 2026-02-01: no section of a changelog: New"),
                               ("### Added\n\n- b", "### Fixed\n\n### Added\n\n- b", "[0.2.0] - 2026-02-01: sections are not in order, each once"),
                               ("[0.1.0]: https://x\n", "", "no link for [0.1.0]")):
            self.assertIn(why, problems(self.GOOD.replace(good, bad, 1), "0.2.0"))
        self.assertIn("the newest release is not CMake's 0.3.0", problems(self.GOOD, "0.3.0"))

    def test_ours_has_it(self):
        version = re.search(r"project\(Peakbench VERSION (\S+)", (REPOSITORY / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
        self.assertEqual(problems((REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"), version), [])

    def test_what_is_cited_is_the_newest_release(self):
        citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
        release = RELEASE.search((REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"))
        self.assertIn(f"\nversion: {'.'.join(release.groups()[:3])}\ndate-released: {release[4]}\n", citation)

    def test_fragments_become_sections(self):
        settings = (REPOSITORY / "towncrier.toml").read_text(encoding="utf-8")
        types = re.findall(r'^directory = "(\w+)"\nname = "(.+)"$', settings, re.MULTILINE)
        self.assertEqual([name for _, name in types], [name for name in SECTIONS if name != "Deprecated"], "in the changelog's order")
        self.assertEqual([directory for directory, _ in types], [name.lower().split()[-1] for _, name in types])
        self.assertEqual((REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").count("\n<!-- towncrier release notes start -->\n"), 1)
        directories = [directory for directory, _ in types]
        for name in release_notes.fragments(REPOSITORY / "changes"):
            self.assertEqual(fragment_problems(name, (REPOSITORY / "changes" / name).read_text(encoding="utf-8"), directories), [])
        self.assertEqual(fragment_problems("a-b.fixed.md", "It works.\n", directories), [])
        for name, text in (("a.new.md", "It works.\n"), ("a.md", "It works.\n"), ("a.fixed.md", "- It works.\n"),
                           ("a.fixed.md", "One.\nTwo.\n"), ("a.fixed.md", "a" * 119), ("a.fixed.md", "")):  # fmt: skip
            self.assertEqual(len(fragment_problems(name, text, directories)), 1, (name, text))


class ReleaseNotes(unittest.TestCase):
    CHANGELOG = ("# Changelog\n\n## [Unreleased]\n\n<!-- start -->\n\n## [0.2.0] - 2026-02-01\n\n### Added\n\n- b ([docs](docs/b.md#b), "
                 "[site](https://x))\n\n[0.2.0]: https://x\n\n## [0.1.0] - 2026-01-01\n\n### Added\n\n- a\n\n[0.1.0]: https://x\n")  # fmt: skip

    def released(self, tag, changelog=CHANGELOG, version="0.2.0", fragments=()):
        """-> exit status, standard output, errors"""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
            (folder / "CMakeLists.txt").write_text(f'project(Peakbench VERSION {version} LANGUAGES C\n  HOMEPAGE_URL "https://home")\n', encoding="utf-8")
            (folder / "CITATION.cff").write_text(f"cff-version: 1.2.0\nversion: {version}\n", encoding="utf-8")
            (folder / "changes").mkdir()
            for fragment in ("README.md", "template.md", *fragments):
                (folder / "changes" / fragment).write_text("It works.\n", encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()) as errors:
                status = release_notes.main(tag, repository=folder)
            return status, printed.getvalue(), errors.getvalue()

    def test_notes_are_the_release_s_text(self):
        self.assertEqual(self.released("v0.2.0"), (0, "### Added\n\n- b ([docs](https://home/blob/v0.2.0/docs/b.md#b), [site](https://x))\n", ""))

    def test_a_tag_that_does_not_fit_is_refused(self):
        unreleased = self.CHANGELOG.replace("<!-- start -->", "### Fixed\n\n- c")
        for error, arguments in (("the tag is 0.2.0, not of the form vX.Y.Z", {"tag": "0.2.0"}),
                                 ("the version of CMakeLists.txt is 0.3.0, not 0.2.0", {"version": "0.3.0"}),
                                 ("the version of CITATION.cff is 0.3.0, not 0.2.0", {"version": "0.3.0"}),
                                 ("CHANGELOG.md's newest release is 0.2.0, not 0.3.0", {"tag": "v0.3.0", "version": "0.3.0"}),
                                 ("CHANGELOG.md has text under [Unreleased]", {"changelog": unreleased}),
                                 ("changes/ has fragments (a.fixed.md)", {"fragments": ["a.fixed.md"]})):  # fmt: skip
            status, printed, errors = self.released(**{"tag": "v0.2.0", **arguments})
            self.assertEqual((status, printed), (1, ""))
            self.assertIn(f"error: {error}", errors)
