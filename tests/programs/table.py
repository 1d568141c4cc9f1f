"""The table in docs/emulator.md of what the corpus's programs end in, made of expected.json.

usage: table.py            writes it into the page
"""

import collections
import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/emulator.md"
VERDICTS = ("exact", "exact if", "lower bound", "upper bound", "unreliable")
TRUTHS = ("the CPU's run", "a twin", "a closed form", "none")
BEGIN, END = "<!-- made by tests/programs/table.py -->\n", "<!-- until here -->\n"
# What a verdict's reasons and conditions are about, by their words.
WHY = {
    "the program did not end well": r"did not end well",
    "a size that is not known": r"read (a size|size values)|read sizes?\b",
    "an integer that is not known": r"read integer values",
    "a truth that is not known": r"read bool values",
    "a function that is refused": r"is not emulated",
    "a vendor's workspace": r"workspace|vendor|scratch memory",
    "numbers that are not known": r"read floating values",
    "whether values are finite": r"whether values are finite",
    "storages that are written": r"read storages",
    "how much memory is free": r"how much memory is free",
    "memory that was refused": r"ran out of memory|was refused",
    "what TF32 rounds off": r"TF32",
    "how a card rounds": r"how a card rounds",
    "which of equal values": r"is not specified",
    "how memory pools grow": r"memory pools",
    "whether work is done": r"read whether work is done|read how long work took|record_stream|has times",
    "memory of several processes": r"at the same time|processes share memory",
    "small allocations": r"in small pieces",
}


def why(verdict):
    """The kinds of a verdict's reasons and conditions; what is none of them, in its own words."""
    found = []
    for sentence in [*verdict["reasons"], *verdict["conditions"]]:
        found.append(next((kind for kind, words in WHY.items() if re.search(words, sentence)), sentence))
    return sorted(set(found))


def truth(name):
    """What a program is held against: what its docstring says, or the CPU's run where it prints sizes; else nothing but what it took before."""
    text = HERE.joinpath("corpus", f"{name}.py").read_text(encoding="utf-8")
    said = re.search(r"^Truth: (.+)$", text, re.MULTILINE)
    if said:
        return next(truth for truth in TRUTHS if said[1].startswith(truth))
    return "the CPU's run" if re.search(r'^ *print\("size ', text, re.MULTILINE) else "what it took before"


def counted(names):
    return ", ".join(f"{name} ({count})" for name, count in collections.Counter(names).most_common())


def table():
    expected = json.loads(HERE.joinpath("expected.json").read_text(encoding="utf-8"))
    lines = [f"Of {len(expected)} programs:\n", "\n", "| Verdict | Programs | Why | Held against |\n", "|---|--:|---|---|\n"]
    for verdict in VERDICTS:
        names = [name for name, found in expected.items() if found["verdict"] == verdict]
        if names:
            reasons = counted(kind for name in names for kind in expected[name]["why"]) or "all that was read is known"
            lines.append(f"| `{verdict}` | {len(names)} | {reasons} | {counted(map(truth, names))} |\n")
    return "".join(lines)


def page_with(text):
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return before + BEGIN + text + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page_with(table()), encoding="utf-8")
