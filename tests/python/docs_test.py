"""Each command of the pages for Python runs, in examples/pytest and beside the scripts of the page."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from given import ORACLE as PYTHON, PEAKBENCH

REPOSITORY = Path(__file__).resolve().parents[2]


class Pages(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench-pages-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name, "example")
        shutil.copytree(REPOSITORY / "examples/pytest", self.folder)
        programs = Path(scratch.name, "bin")
        programs.mkdir()
        (programs / "peakbench").symlink_to(PEAKBENCH)
        for name in ("python", "python3"):
            (programs / name).write_text(f'#!/bin/sh\nexec "{PYTHON}" "$@"\n')
            (programs / name).chmod(0o755)
        paths = ":".join(filter(None, [str(REPOSITORY / "python"), os.environ.get("PYTHONPATH")]))
        self.environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": paths, "PYTEST_PLUGINS": "peakbench.pytest_plugin",
                                         "OMP_NUM_THREADS": "1"}  # fmt: skip

    def run_page(self, name):
        """What its commands said, in order."""
        page = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
        said = []
        for commands in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
            with self.subTest(commands):
                done = subprocess.run(["bash", "-e", "-c", commands], cwd=self.folder, env=self.environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                said.append(done.stdout)
        return page, said

    def test_pytest(self):
        page, said = self.run_page("how-to/pytest.md")
        self.assertEqual(len(said), page.count("```sh"))
        self.assertTrue(all("3 passed" in one for one in said))
        self.assertIn("accepted figures of 3 tests are in ", said[2])
        # The page's test of two ranks, beside the example's three, by the command under it.
        sharded = self.folder / "test_sharded.py"
        sharded.write_text(re.search(r"```python\n(import pytest\nimport torch\n.*?)```", page, re.DOTALL)[1])
        (command,) = re.findall(r"```sh\n(.*count=2 .*)\n```", page)
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        self.assertIn("4 passed", done.stdout, done.stderr)
        sharded.unlink()
        # The failure that the page shows, of the example with one change.
        file = self.folder / "test_memory.py"
        file.write_text(file.read_text().replace('device="cuda")).sum())', 'device="cuda")))'))
        done = subprocess.run([PEAKBENCH, "emulate", "--card", "h100-80gb", "--", PYTHON, "-m", "pytest"], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True)  # fmt: skip
        shown = re.search(r"```text\n(.*?)```", page, re.DOTALL)[1]
        self.assertIn(re.sub(r"torch \S+", "torch", shown), re.sub(r"torch \S+", "torch", done.stdout))

    def write_scripts(self):
        page = (REPOSITORY / "docs/reference/python.md").read_text(encoding="utf-8")
        for name, text in zip(("train.py", "read.py", "bench.py"), re.findall(r"```python\n(.*?)```", page, re.DOTALL)):
            (self.folder / name).write_text(text)
        return page

    def test_python(self):
        page = self.write_scripts()
        _, said = self.run_page("reference/python.md")
        self.assertEqual(len(said), page.count("```sh"))
        self.assertRegex(said[0], r"(?m)^0\.\d+ GiB allocated, 0\.\d+ GiB reserved$|^\d+\.\d+ MiB allocated")
        self.assertRegex(said[0], r"(?m)^\d+ train\.py:\d+ [a-z ]+$")
        self.assertIn("rtx-4090-24gb has 23.", said[0])
        self.assertTrue((self.folder / "results/evaluation/report/index.html").is_file())
        self.assertIn("vit-b-16", said[1])
        self.assertRegex(said[2], r"(?m)^in_backward +0\.564 GiB +−18\.1% +.*bit-identical \(claimed\)$")
        self.assertIn(re.search(r"```text\n(strategy .*?)```", page, re.DOTALL)[1], said[2])
        self.assertIn("peakbench.bench", said[3])

    def test_models_by_name(self):
        configuration = json.loads((REPOSITORY / "python/peakbench/models/configurations.json").read_text(encoding="utf-8"))["hf"]["gpt2"]["config"]
        (self.folder / "my-model").mkdir()
        (self.folder / "my-model/config.json").write_text(json.dumps(configuration))
        page, said = self.run_page("how-to/models-by-name.md")
        table, answer = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
        self.assertIn(table.splitlines()[-1], said[0])
        self.assertIn("hf:./my-model/config.json", said[1])
        self.assertEqual(answer.split(), said[2].split("\n\n")[0].split())

    def test_ranks(self):
        self.write_scripts()
        page, said = self.run_page("how-to/ranks.md")
        table, last = re.search(r"```text\n.*?\n.*?\n(strategy .*?)\.\.\.\n(.*?)```", page, re.DOTALL).groups()
        self.assertIn(table, said[0])
        self.assertIn(" ".join(last.split()), " ".join(said[0].split()))

    def test_the_workflow_runs_the_pages_command(self):
        workflow = (self.folder / ".github/workflows/memory.yml").read_text()
        self.assertIn("run: peakbench emulate --card h100-80gb -- python -m pytest -n 2", workflow)
        linters = os.environ.get("PEAKBENCH_LINTERS") or os.path.join(os.environ.get("PEAKBENCH_CACHE", REPOSITORY / ".cache"), "linters-venv/bin")
        checker = Path(linters, "check-jsonschema")
        if not checker.exists():
            self.skipTest("ci/linters makes check-jsonschema")
        subprocess.run([checker, "--builtin-schema", "vendor.github-workflows", self.folder / ".github/workflows/memory.yml"], check=True)
