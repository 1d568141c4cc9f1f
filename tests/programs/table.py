"""The tables in docs/evidence/emulator.md of what the corpus's programs end in, made of expected.json.

usage: table.py            writes them into the page
"""

import collections
import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/evidence/emulator.md"
VERDICTS = ("exact", "exact if", "estimate", "lower bound", "upper bound", "unreliable")
TRUTHS = ("the CPU's run", "a twin", "a closed form", "none")
OWN_RECORD = "what it took before"
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

# Shorter words for the page.
SHOWN = {
    "a size that is not known": "an unknown size",
    "an integer that is not known": "an unknown integer",
    "a truth that is not known": "an unknown boolean",
    "numbers that are not known": "unknown numbers",
    "what TF32 rounds off": "rounding to TF32",
    "storages that are written": "storages written to a file",
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
    return "the CPU's run" if re.search(r'^ *print\("size ', text, re.MULTILINE) else OWN_RECORD


def rows(heading, columns, counts):
    """A Markdown table of counts: a row for each entry of `counts`, a dictionary of counters; 0 is left empty."""
    lines = [f"| {heading} | {' | '.join(columns)} |\n", "|---|" + "--:|" * len(columns) + "\n"]
    return lines + [f"| {name} | {' | '.join(str(count[column] or '') for column in columns)} |\n" for name, count in counts.items()]


def table():
    expected = json.loads(HERE.joinpath("expected.json").read_text(encoding="utf-8"))
    programs, reasons = {}, collections.defaultdict(collections.Counter)
    for verdict in VERDICTS:
        names = [name for name, found in expected.items() if found["verdict"] == verdict]
        if not names:
            continue
        programs[f"`{verdict}`"] = collections.Counter({"Programs": len(names), **collections.Counter(map(truth, names))})
        for kind in (kind for name in names for kind in expected[name]["why"]):
            reasons[SHOWN.get(kind, kind)][f"`{verdict}`"] += 1
    most_first = dict(sorted(reasons.items(), key=lambda one: (-one[1].total(), one[0])))
    conditional = [verdict for verdict in programs if any(count[verdict] for count in reasons.values())]
    return "".join([f"Of {len(expected)} programs:\n", "\n", *rows("Verdict", ["Programs", *TRUTHS[:-1], OWN_RECORD, TRUTHS[-1]], programs), "\n",
                    *rows("Reason or condition", conditional, most_first)])  # fmt: skip


def page_with(text):
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return before + BEGIN + text + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page_with(table()), encoding="utf-8")
