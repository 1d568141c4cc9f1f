#!/usr/bin/env python3
"""Checks that a tag can be released, and prints the release's notes: the changelog's text for it.

    ci/release_notes.py vX.Y.Z

The tag must be the version of CMakeLists.txt and of CITATION.cff and the newest release of CHANGELOG.md. Nothing may be left under
[Unreleased] or in changes/. Links to files of the repository become links to the tag's files on GitHub, where notes have no folder.
Exit codes: 0; 1 the tag cannot be released, a line for each reason on stderr.
"""

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SECTION = re.compile(r"^## (?=\[)", re.MULTILINE)
LINK_DEFINITION = re.compile(r"^\[[^\]]+\]: .*\n?", re.MULTILINE)
FILE_LINK = re.compile(r"\]\((?![a-z]+:)([^)\s]+)\)")


def sections(changelog):
    """-> {name: text} in the changelog's order"""
    found = {}
    for part in SECTION.split(re.sub(r"<!--.*?-->", "", changelog, flags=re.DOTALL))[1:]:
        title, _, text = part.partition("\n")
        found[title[1 : title.index("]")]] = LINK_DEFINITION.sub("", text).strip()
    return found


def fragments(folder):
    return sorted(path.name for path in folder.glob("*") if path.name not in ("README.md", "template.md"))


def first(pattern, path):
    found = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "missing"


def problems(tag, repository):
    version, cmake = tag.removeprefix("v"), first(r"project\(Peakbench VERSION (\S+)", repository / "CMakeLists.txt")
    found = [] if re.fullmatch(r"v\d+\.\d+\.\d+", tag) else [f"the tag is {tag}, not of the form vX.Y.Z"]
    cited = first(r"^version: (\S+)", repository / "CITATION.cff")
    texts = sections((repository / "CHANGELOG.md").read_text(encoding="utf-8"))
    newest = next((name for name in texts if name != "Unreleased"), "missing")
    for where, there in (("the version of CMakeLists.txt", cmake), ("the version of CITATION.cff", cited), ("CHANGELOG.md's newest release", newest)):
        if there != version:
            found.append(f"{where} is {there}, not {version}")
    if texts.get("Unreleased"):
        found.append("CHANGELOG.md has text under [Unreleased]: move it into the release's section")
    if left := fragments(repository / "changes"):
        found.append(f"changes/ has fragments ({', '.join(left)}): run towncrier build --version {version}")
    return found


def notes(tag, repository):
    text = sections((repository / "CHANGELOG.md").read_text(encoding="utf-8"))[tag.removeprefix("v")]
    address = first(r'HOMEPAGE_URL "([^"]+)"', repository / "CMakeLists.txt")
    return FILE_LINK.sub(rf"]({address}/blob/{tag}/\1)", text)


def main(*arguments, repository=REPOSITORY):
    if len(arguments) != 1:
        sys.exit("usage: ci/release_notes.py vX.Y.Z")
    found = problems(arguments[0], repository)
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    if not found:
        print(notes(arguments[0], repository))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
