"""One planted fault: an edit of a file's text."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Fault:
    file: str  # from the repository's root
    line: int
    rule: str
    edits: tuple  # of (start, end, text), in order
    before: str  # the lines it touches, white space as one space
    after: str

    @property
    def place(self):
        return f"{self.file}:{self.line}"

    def planted_in(self, text):
        for start, end, new in reversed(self.edits):
            text = text[:start] + new + text[end:]
        return text


def make_fault(file, source, rule, edits):
    edits = tuple(sorted(edits))
    text = source.text
    first = text.rfind("\n", 0, edits[0][0]) + 1
    last = text.find("\n", edits[-1][1])
    last = len(text) if last < 0 else last
    changed = text[first:last]
    for start, end, new in reversed(edits):
        changed = changed[: start - first] + new + changed[end - first :]
    return Fault(file, source.line(edits[0][0]), rule, edits, squeezed(text[first:last]), squeezed(changed))


def squeezed(text):
    return " ".join(text.split())
