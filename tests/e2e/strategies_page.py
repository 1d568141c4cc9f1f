"""docs/strategies.md: the strategies there are and which of them stack, from the plugins' manifests.

usage: strategies_page.py PEAKBENCH [--write]    without --write: exit code 1 where the page differs from what it would be
"""

import difflib
import json
import pathlib
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs/strategies.md"
PROMISES = {"bit_identical": "the same, to the bit", "within_tolerance": "the same, within a tolerance", "different_problem": "trains differently"}

HEAD = """# Strategies

Which strategies are there, what does each promise about training, and which can be stacked?

```sh
peakbench list strategies
peakbench describe checkpointing
```

A stack is typed with `+`: `lora+checkpointing,every=2`. This page is made from the plugins' manifests (`tests/e2e/strategies_page.py --write`),
and a test holds it to them.
"""


def ask(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def table_of(strategies):
    lines = ["| strategy | what it does | losses and parameters |", "|---|---|---|"]
    for one in strategies:
        page = REPOSITORY / f"docs/strategies/{one['id']}.md"
        name = f"[`{one['id']}`](strategies/{one['id']}.md)" if page.exists() else f"`{one['id']}`"
        lines.append(f"| {name} | {one['summary']} ([source]({one['source_url']})) | {PROMISES[one['promise']]} |")
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
    """Each pair once, under the strategy that is first in a stack."""
    lines, told = [], set()
    for one in described:
        for other in one["conflicts_with"]:
            pair = frozenset((one["id"], other["id"]))
            if pair in told:
                continue
            told.add(pair)
            lines.append(f"- `{one['id']}` and `{other['id']}`: {other['reason']}")
    return "\n".join(lines) + "\n" if lines else "None.\n"


def needs_of(described):
    lines = []
    for one in described:
        if one["requires"]:
            lines.append(f"- `{one['id']}` needs another strategy that takes {', '.join(one['requires'])}")
        for model in one["models_without"]:
            lines.append(f"- `{one['id']}`: {model['id']} has no {model['need']}")
    return "\n".join(lines) + "\n" if lines else "None.\n"


def page_of(program):
    described = [ask(program, "describe", one["id"]) for one in ask(program, "list", "strategies")]
    others = [one for one in described if one["id"] != "baseline"]
    return "\n".join([HEAD, table_of(described), "## Which stack", "",
                      "`·`: the two can be in one stack, with whatever else; `×`: they cannot, for the reason below. `baseline` is in every stack.", "",
                      matrix_of(others), "## Why some do not", "", reasons_of(others), "## What they need", "", needs_of(others)])  # fmt: skip


def main(program, *arguments):
    wanted = page_of(program)
    if "--write" in arguments:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    found = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if found == wanted:
        return 0
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), "docs/strategies.md", "the plugins"))
    print("tests/e2e/strategies_page.py PEAKBENCH --write writes it anew")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
