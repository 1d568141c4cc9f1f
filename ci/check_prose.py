#!/usr/bin/env python3
"""Long sentences and words to avoid in README.md, CONTRIBUTING.md and the pages of docs that are written by hand.

    ci/check_prose.py [PAGE...]

Without pages: all of them. Prints each finding; the exit status is 1 for a sentence of 40 words or more, for a word to avoid, or if more
than 3% of all sentences have over 30 words. Code, headings and short cells of tables are not sentences.
"""

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
LONG, TOO_LONG, SHARE = 31, 40, 0.03
GENERATED = ("docs/evidence/releases.md",)
# The word to avoid, and what to write.
WORDS = {
    "stand-in": "stub library", "stand-ins": "stub libraries", "spoilt": "corrupted", "mend": "fix", "mended": "fixed", "told apart": "distinguished",
    "whole or not at all": "atomically", "is told": "is reported", "are told": "are reported", "is said": "is reported", "are said": "are reported",
    "says so": "reports it", "stands beside": "is next to", "lies beside": "is next to", "lie beside": "are next to", "goes on": "continues",
    "held to": "checked against", "held against": "compared with", "somebody": "a user", "anybody": "any user", "nobody": "no user",
    "thereof": "its", "of late": "recently", "rooms": "modules", "the house": "the codebase", "of which there": "the noun", "what is made of": "the noun",
    "that of the": "the noun", "those of the": "the noun", "is one itself": "the noun", "is none": "there is no ...", "are none": "there are no ...",
}  # fmt: skip
AVOIDED = re.compile(r"\b(?:" + "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in sorted(WORDS, key=len, reverse=True)) + r")\b", re.IGNORECASE)
FENCE = re.compile(r"^\s*```.*?^\s*```[^\n]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s")
END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])")


def pages():
    found = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    return [page for page in found if not page.relative_to(REPOSITORY).as_posix().startswith(GENERATED)]


def blank(match):
    """As many lines, and nothing in them."""
    return "\n" * match[0].count("\n")


def paragraphs(text):
    """-> (its first line's number, its text): paragraphs, items of lists, and cells of tables that are sentences."""
    start, lines = 0, []
    for number, line in enumerate([*FENCE.sub(blank, text).splitlines(), ""], 1):
        is_text = bool(line.strip()) and not line.startswith(("#", "![", "|", "    "))
        if lines and (not is_text or ITEM.match(line)):
            yield start, " ".join(lines)
            lines = []
        if is_text:
            start = start if lines else number
            lines.append(line.strip())
        elif line.startswith("|"):
            yield from ((number, cell.strip()) for cell in line.split("|") if len(cell.split()) > 20)


def sentences(text):
    """-> (number of its paragraph's first line, sentence); a list of names in code is no sentence."""
    for number, paragraph in paragraphs(text):
        for sentence in END.split(LINK.sub(r"\1", paragraph)):
            if len(sentence.split()) > 2 and sentence.count("`") < len(sentence.split()):
                yield number, sentence


def words_to_avoid(text):
    """-> (line's number, word)"""
    prose = SPAN.sub("", LINK.sub(r"\1", FENCE.sub(blank, text)))
    return [(prose.count("\n", 0, found.start()) + 1, " ".join(found[0].lower().split())) for found in AVOIDED.finditer(prose)]


def main(*names):
    total, findings, long = 0, [], []
    for page in [Path(name).resolve() for name in names] or pages():
        name, text = page.relative_to(REPOSITORY) if page.is_relative_to(REPOSITORY) else page, page.read_text(encoding="utf-8")
        findings += [f"{name}:{line}: not {word}, but {WORDS[word]}" for line, word in words_to_avoid(text)]
        for line, sentence in sentences(text):
            total, length = total + 1, len(sentence.split())
            if length >= TOO_LONG:
                findings.append(f"{name}:{line}: {length} words: {sentence}")
            if length >= LONG:
                long.append(f"{name}:{line}: {length} words: {sentence}")
    if len(long) > SHARE * total:
        findings += [line for line in long if line not in findings]
        findings.append(f"{len(long)} of {total} sentences have over {LONG - 1} words: more than {SHARE:.0%}")
    print("\n".join(findings or [f"{total} sentences, {len(long)} over {LONG - 1} words"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
