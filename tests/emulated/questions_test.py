"""docs/how-to/index.md: every command in it, typed as it stands there, answers with the line that is shown below it."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import typed
from given import ALL, ORACLE as PYTHON, PEAKBENCH

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/how-to/index.md"
FAILS = {"gate": 4, "does not fit": 3}  # by a word of the command or of its answer


class Questions(unittest.TestCase):
    def test_each_is_answered(self):
        page = PAGE.read_text(encoding="utf-8")
        script = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
        asked = re.findall(r"```sh( slow)?\n([^`]*)```\n```text\n([^`]*)```", page)
        self.assertEqual(len(asked) + 1, page.count("```sh"), "a command without an answer, besides the page's first")
        with tempfile.TemporaryDirectory(prefix="peakbench-questions-") as folder:
            pathlib.Path(folder, "train.py").write_text(script, encoding="utf-8")
            packages = ":".join(filter(None, [str(PAGE.parents[2] / "python"), os.environ.get("PYTHONPATH")]))
            environment = typed.environment(pathlib.Path(folder, "bin"), PEAKBENCH, PYTHON) | {"PYTHONPATH": packages}
            for slow, commands, answer in asked:
                if slow and not ALL:
                    continue
                with self.subTest(commands.strip()):
                    done = subprocess.run(["bash", "-e", "-c", commands], cwd=folder, env=environment, capture_output=True, text=True, check=False)
                    said = done.stdout + done.stderr
                    expected = next((code for word, code in FAILS.items() if word in commands + answer), 0)
                    self.assertEqual(done.returncode, expected, said)
                    self.assertIn(" ".join(answer.split()), " ".join(said.split()))
