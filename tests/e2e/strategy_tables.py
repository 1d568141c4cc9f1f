"""The measured tables of docs/reference/strategies/*.md: each holds what the command at the top of its page measures.

usage: strategy_tables.py PEAKBENCH [--write] [PAGE...]    without --write: exit code 1 where a table differs from what is measured

A table is one whose first heading is GiB. Its headings say what its columns hold, and the first cell of a row is the stack that is
measured in place of the command's, with what else is different: "baseline", "autocast, batch 16", "clip (which ...)", "baseline, of vit-l-16"
(another model, with its own sequence length). The figures are of an emulated card, so they are the same on every machine.
"""

import difflib
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PAGES = REPOSITORY / "docs/reference/strategies"
GIB = 1 << 30
TABLE = re.compile(r"^\| GiB \|.*\n\|[-:|]+\|\n(?:\|.*\n)+", re.MULTILINE)
CATEGORIES = {
    "activations": ("activation", "recomputed_activation"),
    "parameters": ("parameter",),
    "gradients": ("gradient",),
    "optimizer state": ("optimizer_state",),
    "temporaries": ("temporary",),
    "buffers": ("buffer",),
    "workspaces": ("workspace",),
}
SPACES = {
    "pinned, requested": ("pinned", "peak_requested_bytes"),
    "pinned, allocated": ("pinned", "peak_allocated_bytes"),
    "host": ("cpu", "peak_allocated_bytes"),
}
PHASES = {
    "forward's own peak": "forward",
    "backward's own peak": "backward",
    "optimizer step's own peak": "optimizer_step",
}


def gib(size):
    return "0" if size == 0 else f"{size / GIB:.3f}"


def cell_of(heading, headings, memory):
    at_peak, peak = memory["at_peak"], memory["peak_allocated_bytes"]

    def part(name):
        return sum(at_peak.get(category, 0) for category in CATEGORIES[name])

    if heading in CATEGORIES:
        return gib(part(heading))
    if heading == "other":
        return gib(peak - sum(part(name) for name in headings if name in CATEGORIES))
    if heading == "peak":
        return gib(peak)
    if heading == "reserved":
        return gib(memory["peak_reserved_bytes"])
    if heading == "in":
        return memory["peak_phase"].replace("_", " ")
    if heading in PHASES:
        return gib(memory["phases"][PHASES[heading]]["peak_allocated_bytes"])
    if heading in SPACES:
        space, kind = SPACES[heading]
        return gib(memory["spaces"].get(space, {}).get(kind) or 0)
    sys.exit(f"no such column: {heading}")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def setting_of(label):
    """-> (stack, what the row changes of the command)"""
    label = label.replace("`", "")
    stack = re.match(r"[^ ]*[^ ,]", label)[0]
    batch = re.search(r", batch (\d+)", label)
    tokens = re.search(r", ([\d,]+) tokens", label)
    model = re.search(r", of ([a-z0-9.-]+)", label)
    changed = {"--batch": batch and batch[1], "--seq": tokens and tokens[1].replace(",", ""), "--model": model and model[1]}
    return stack, tuple((option, value) for option, value in changed.items() if value)


def command_of(text):
    """The page's command without its strategies and folder: option -> value."""
    line = next(line for line in text.splitlines() if line.startswith("peakbench run"))
    words = shlex.split(line)[2:]
    options = dict(zip(words[::2], words[1::2]))
    return {name: value for name, value in options.items() if name not in ("--strategy", "--out", "--repetitions")}


def measure(peakbench, options, stacks):
    """stack -> its memory"""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        command = [peakbench, "run", *(part for option in options.items() for part in option)]
        command += ["--repetitions", "0", "--no-ablation", "--no-report", "--quiet", "--out", out]
        command += [part for stack in stacks for part in ("--strategy", stack)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=folder)
        if not (out / "run.json").exists():
            sys.exit(f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}")
        cases = json.loads((out / "run.json").read_text(encoding="utf-8"))["cases"]
    for stack, case in zip(stacks, cases, strict=True):
        if case["status"] != "ok":
            sys.exit(f"{stack}: {case['status']}: {case['reason']}")
    return {stack: case["memory"] for stack, case in zip(stacks, cases)}


def table_of(peakbench, options, table):
    """The same table with measured figures."""
    heading_line, rule, *rows = table.splitlines()
    labels = [cells(row)[0] for row in rows]
    headings = cells(heading_line)[1:]
    settings = {label: setting_of(label) for label in labels}
    memory = {}
    for changed in dict.fromkeys(changed for _, changed in settings.values()):
        stacks = list(dict.fromkeys(stack for stack, its in settings.values() if its == changed))
        kept = {name: value for name, value in options.items() if name != "--seq" or "--model" not in dict(changed)}
        memory |= {(stack, changed): one for stack, one in measure(peakbench, kept | dict(changed), stacks).items()}
    lines = [f"| {label} | {' | '.join(cell_of(one, headings, memory[settings[label]]) for one in headings)} |" for label in labels]
    return "\n".join([heading_line, rule, *lines]) + "\n"


def page_of(peakbench, text):
    return TABLE.sub(lambda found: table_of(peakbench, command_of(text), found[0]), text)


def main(peakbench, *arguments):
    named = [pathlib.Path(name).resolve() for name in arguments if name != "--write"]
    differs = False
    for page in named or sorted(PAGES.glob("*.md")):
        found = page.read_text(encoding="utf-8")
        wanted = page_of(pathlib.Path(peakbench).resolve(), found)
        if found == wanted:
            continue
        if "--write" in arguments:
            page.write_text(wanted, encoding="utf-8")
            print(f"written: {page.name}")
            continue
        differs = True
        sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), page.name, "measured"))
    if differs:
        print("tests/e2e/strategy_tables.py PEAKBENCH --write writes them anew")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
