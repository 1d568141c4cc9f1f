"""docs/tutorials: the pages, typed as they stand there. Each script is saved, each change is made, each command answers as is shown below it.

A page is typed from its top to its end, in a folder of its own:

| block | what happens |
|---|---|
| python, toml | saved as the file that the line before names in backquotes |
| diff | the lines with - and ' ', which stand once in that file, become those with + and ' ' |
| yaml | a workflow: the commands of peakbench in it run on `base` (the scripts before the changes) and `head` (after them) |
| sh | run by bash. The block `text` behind it is its output: in full, except where a line of three dots marks a part left out |

Spaces, line breaks, and what belongs to the machine (seconds, dates, a commit, a torch's release) are not compared; every figure is.
With --all the commands marked `slow` are typed, too.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import typed
from given import ALL, ORACLE as PYTHON, PEAKBENCH

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((REPOSITORY / "docs/tutorials").glob("[0-9]*.md"))
BLOCK = re.compile(r"^(?P<before>[^\n]*)\n+```(?P<kind>\w+)(?P<slow> slow)?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
OPENING = re.compile(r"\A# [^\n]+\n\n[^#`\n][^`]*?\?\n\n```sh\n(?P<command>[^`\n][^`]*)```\n")
MACHINES = [(r"\b\d+(\.\d+)?s\b", "Ns"), (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "DATE"), (r"commit [0-9a-f]{12}(-dirty)?", "commit"),
            (r"torch \d\S*", "torch"), (r"[=_]{3,}", "==="), (r"\s+", " ")]  # fmt: skip


def squashed(text):
    for pattern, word in MACHINES:
        text = re.sub(pattern, word, text)
    return text.strip()


def difference(shown, said):
    """-> what of the shown output is not in the real one, in order; "" if it is all there and nothing is left out unmarked."""
    parts, rest = re.split(r"^\.\.\.$", shown, flags=re.MULTILINE), f" {squashed(said)} "
    for number, part in enumerate(parts):
        words = f" {squashed(part)} " if squashed(part) else " "
        at = rest.find(words)
        if number and number == len(parts) - 1 and rest.endswith(words):
            at = len(rest) - len(words)
        if at < 0 or (number == 0 and at > 0):
            return words.strip()
        rest = rest[at + len(words) - 1 :]
    return "" if not rest.strip() else f"left out, unmarked: {rest.strip()}"


def changed(text, change):
    """The text with a change made, as a reader makes it: lines of `diff`, without places and files."""
    lines = change.splitlines()
    old = "".join(line[1:] + "\n" for line in lines if not line.startswith("+"))
    new = "".join(line[1:] + "\n" for line in lines if not line.startswith("-"))
    if text.count(old) != 1:
        raise AssertionError(f"stands {text.count(old)} times in the file:\n{old}")
    return text.replace(old, new)


class Comparison(unittest.TestCase):
    """The test of the test: a page with a wrong figure fails."""

    SAID = "start\nFits t4-16gb: reserves 12.754 GiB;\n  exact.\nPeak: 12.347 GiB\n1 passed in 3.2s\n"

    def test_what_is_shown_stands_there(self):
        for shown in (self.SAID, "start\nFits t4-16gb:\nreserves 12.754 GiB; exact.\n...\n1 passed in 9.9s\n", "...\nPeak: 12.347 GiB\n...\n"):
            self.assertEqual(difference(shown, self.SAID), "")

    def test_what_does_not_stand_there_is_found(self):
        for wrong in (self.SAID.replace("12.754", "12.755"), self.SAID.replace("1 passed", "2 passed"), "...\nPeak: 12.347 GiB\n", "start\n",
                      "...\nPeak: 12.347 GiB\n...\nstart\n...\n", "Peak: 12.347 GiB\n...\n", "...\nPeak: 12.34 GiB\n...\n"):  # fmt: skip
            self.assertNotEqual(difference(wrong, self.SAID), "", wrong)

    def test_a_change_is_of_lines_that_are_there_once(self):
        self.assertEqual(changed("a\nb\nc\n", " a\n-b\n+x\n+y\n"), "a\nx\ny\nc\n")
        for wrong in ("-z\n+x\n", " a\n-c\n+x\n"):
            self.assertRaises(AssertionError, changed, "a\nb\nc\n", wrong)
        self.assertRaises(AssertionError, changed, "a\na\n", "-a\n+x\n")


class Tutorials(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench-tutorials-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.folder = self.scratch / "work"
        self.folder.mkdir()
        paths = ":".join(filter(None, [str(REPOSITORY / "python"), os.environ.get("PYTHONPATH")]))
        self.environment = typed.environment(self.scratch / "bin", PEAKBENCH, PYTHON) | {"PYTHONPATH": paths,
                                                                                         "PYTEST_PLUGINS": "peakbench.pytest_plugin"}  # fmt: skip

    def run_in(self, folder, commands):
        return subprocess.run(["bash", "-c", commands], cwd=folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)  # fmt: skip

    def type_page(self, page):
        text = page.read_text(encoding="utf-8")
        opening = OPENING.match(text)
        self.assertTrue(opening, "no question and command at the top")
        blocks = list(BLOCK.finditer(text, opening.end()))
        self.assertEqual(len(blocks) + 1, text.count("\n```") // 2, "a block without a language")
        self.assertIn(opening["command"], [block["text"] for block in blocks if block["kind"] == "sh"], "the command at the top stands below with its output")
        first = {}  # a file -> its text before the first change
        for block, after in zip(blocks, [*blocks[1:], None]):
            kind, content = block["kind"], block["text"]
            with self.subTest(f"{page.name}: {content.splitlines()[0]}"):
                if kind in ("python", "toml"):
                    self.path_of(block).write_text(content, encoding="utf-8")
                elif kind == "diff":
                    path = self.path_of(block)
                    first.setdefault(path.name, path.read_text(encoding="utf-8"))
                    path.write_text(changed(path.read_text(encoding="utf-8"), content), encoding="utf-8")
                elif kind == "yaml":
                    self.run_workflow(content, first)
                elif kind == "sh" and (ALL or not block["slow"]):
                    self.assertTrue(after and after["kind"] == "text" and not after["before"], "a command without its output")
                    self.check(content, after["text"])
                else:
                    self.assertIn(kind, ("sh", "text"))

    def path_of(self, block):
        names = re.findall(r"`([\w.]+\.\w+)`", block["before"])
        self.assertEqual(len(names), 1, f"the line before names the file: {block['before']}")
        return self.folder / names[0]

    def check(self, commands, shown):
        done = self.run_in(self.folder, commands)
        self.assertEqual(difference(shown, done.stdout), "", done.stdout)

    def run_workflow(self, workflow, before):
        """What it runs of peakbench: on the scripts before the page's changes, and after them. Its tests and its gate fail, and nothing else."""
        for name in ("base", "head"):
            (self.scratch / "job" / name).mkdir(parents=True)
            for path in self.folder.glob("*.py"):
                text = path.read_text(encoding="utf-8")
                (self.scratch / "job" / name / path.name).write_text(before.get(path.name, text) if name == "base" else text, encoding="utf-8")
        commands = re.findall(r"\bpeakbench (?:emulate|gate|run) .*", workflow)
        self.assertGreater(len(commands), 2)
        codes = [self.run_in(self.scratch / "job", command).returncode for command in commands]
        self.assertEqual([(command.split()[1], code) for command, code in zip(commands, codes) if code], [("emulate", 1), ("gate", 4)])


def add(page):
    setattr(Tutorials, "test_" + re.sub(r"\W", "_", page.stem), lambda self: self.type_page(page))


for _page in PAGES:
    add(_page)
