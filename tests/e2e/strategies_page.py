"""docs/reference/strategies.md: the strategies there are and which of them stack, from the plugins' manifests.

usage: strategies_page.py PEAKBENCH [--write]    without --write: exit code 1 where the page differs from what it would be
"""

import difflib
import json
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs/reference/strategies.md"
# What shares the page of another strategy; every other one has a page of its own.
SHARED = {"adamw-4bit": "adamw-8bit", "save-on-cpu": "activation-offload", "linear-cross-entropy": "chunked-cross-entropy"}
SAME_SLOT = re.compile(r"both take the slot (\w+);")
PROMISES = {
    "bit_identical": "the same, to the bit",
    "within_tolerance": "the same, within a tolerance",
    "different_problem": "trains differently",
}

HEAD = """# Strategies

Which strategies are there, what does each promise about training, and which can be stacked?

```sh
peakbench list strategies
peakbench describe checkpointing
```

Join strategies with `+`, and add options after commas: `lora+checkpointing,every=2`.
The order in which you type them does not matter; the table has the order in which a stack applies them.
Each strategy has a page: what it does, when to use it and when not, and what it saves of a model's peak on an emulated card.
If you do not know which one you need, start with [the parts of a peak](strategies/baseline.md#where-to-go-from-here).
To write a strategy of your own, read [plugins.md](../how-to/plugins.md).

The last column compares training with the baseline's: losses and parameters are the same to the bit, or the same within a tolerance.
Strategies that train differently are compared with themselves.
`tests/e2e/strategies_page.py --write` writes this page from the plugins' manifests.
"""

LEGEND = (
    "`·`: the two can be in one stack; `×`: they cannot, for the reason below. `baseline` is in every stack. Columns are numbered like rows."
)


def ask(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def table_of(strategies):
    lines = ["| strategy | what it does | losses and parameters |", "|---|---|---|"]
    for one in strategies:
        page = SHARED.get(one["id"], one["id"])
        does = f"{one['summary']} ([source]({one['source_url']}))"
        lines.append(f"| [`{one['id']}`](strategies/{page}.md) | {does} | {PROMISES[one['promise']]} |")
    return "\n".join(lines) + "\n"


def matrix_of(described):
    """One line a strategy; a dot: the two stack, a cross: they do not."""
    names = [one["id"] for one in described]
    lines = ["| |" + "|".join(str(i + 1) for i in range(len(names))) + "|", "|---|" + "|".join(":-:" for _ in names) + "|"]
    for i, one in enumerate(described):
        refused = {other["id"] for other in one["conflicts_with"]}
        cells = ["" if name == one["id"] else "×" if name in refused else "·" for name in names]
        lines.append(f"| {i + 1} `{one['id']}` |{'|'.join(cells)}|")
    return "\n".join(lines) + "\n"


def reasons_of(described):
    """Each pair once, under the strategy that is first in a stack; those that take the same slot in one line."""
    lines, slots, told = [], {}, set()
    for one in described:
        for other in one["conflicts_with"]:
            pair = frozenset((one["id"], other["id"]))
            if pair in told:
                continue
            told.add(pair)
            same = SAME_SLOT.search(other["reason"])
            if same:
                slots.setdefault(same[1], dict.fromkeys([one["id"]]))[other["id"]] = None
            else:
                lines.append(f"- `{one['id']}` and `{other['id']}`: {other['reason']}")
    one_of = [f"- at most one of {', '.join(f'`{name}`' for name in names)}: each takes the slot `{slot}`" for slot, names in slots.items()]
    return "\n".join([*one_of, *lines]) + "\n" if told else "None.\n"


def needs_of(described):
    lines = []
    for one in described:
        if one["requires"]:
            lines.append(f"- `{one['id']}` needs another strategy that takes the slot {', '.join(f'`{slot}`' for slot in one['requires'])}")
        without = {}
        for model in one["models_without"]:
            without.setdefault(model["need"], []).append(f"`{model['id']}`")
        lines += [f"- `{one['id']}` needs a model with `{need}` (not {', '.join(models)})" for need, models in without.items()]
    return "\n".join(lines) + "\n" if lines else "None.\n"


def page_of(program):
    described = [ask(program, "describe", one["id"]) for one in ask(program, "list", "strategies")]
    others = [one for one in described if one["id"] != "baseline"]
    parts = [HEAD, table_of(described), "## Which stack", "", LEGEND, "", matrix_of(others)]
    parts += ["## Why some do not", "", reasons_of(others), "## What they need", "", needs_of(others)]
    return "\n".join(parts)


def main(program, *arguments):
    wanted = page_of(program)
    if "--write" in arguments:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    found = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if found == wanted:
        return 0
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), "docs/reference/strategies.md", "the plugins"))
    print("tests/e2e/strategies_page.py PEAKBENCH --write writes it anew")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
