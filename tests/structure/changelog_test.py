"""CHANGELOG.md has the form of Keep a Changelog 1.1.0, and its newest release is the one that CMake builds and CITATION.cff cites."""

import re
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SECTIONS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
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


if __name__ == "__main__":
    unittest.main()
