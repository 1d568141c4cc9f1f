"""The command of the wheel (python/peakbench): it becomes the program beside it, and says why where it cannot."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python/peakbench"
SHOW = '#!/bin/sh\necho "$PEAKBENCH_ENVIRONMENT_PYTHON $PEAKBENCH_PYTHON"\nprintf "<%s>" "$@"\nexit 7\n'


class Command(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench wheel ")
        self.addCleanup(scratch.cleanup)
        self.site = Path(scratch.name)
        shutil.copytree(PACKAGE, self.site / "peakbench", ignore=shutil.ignore_patterns("__pycache__"))

    def program(self, content, mode=0o755):
        file = self.site / "peakbench/bin/peakbench"
        file.parent.mkdir()
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        file.chmod(mode)

    def run_it(self, *arguments, **environment):
        return subprocess.run([sys.executable, "-B", "-m", "peakbench", *arguments], capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"], "PYTHONPATH": str(self.site), **environment})  # fmt: skip

    def test_arguments_exit_code_and_whose_python_it_is(self):
        self.program(SHOW)
        ran = self.run_it("run", "--out", "a folder", "")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (7, f"{sys.executable} \n<run><--out><a folder><>", ""))

    def test_a_python_that_was_named_stays_and_one_of_another_environment_does_not(self):
        self.program(SHOW)
        said = self.run_it(PEAKBENCH_PYTHON="/some/python", PEAKBENCH_ENVIRONMENT_PYTHON="/outer/python").stdout.splitlines()[0]
        self.assertEqual(said, f"{sys.executable} /some/python")

    def test_standard_output_is_closed(self):
        self.program('#!/bin/sh\nexit 7\n')
        command = ["sh", "-c", f"exec {sys.executable} -B -m peakbench >&-"]
        ran = subprocess.run(command, stderr=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(self.site)})
        self.assertEqual((ran.returncode, ran.stderr), (7, ""))

    def test_it_is_the_program_and_not_its_parent(self):
        self.program("#!/bin/sh\nkill -TERM $$\n")
        self.assertEqual(self.run_it().returncode, -signal.SIGTERM)

    def refused(self, *words):
        ran = self.run_it("--version")
        self.assertEqual(ran.returncode, 1, ran)
        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
        for word in ("peakbench: ", str(self.site / "peakbench/bin/peakbench"), *words):
            self.assertIn(word, ran.stderr)

    def test_no_program(self):
        self.refused("it is not there", "pip install")

    def test_no_loader(self):
        self.program("#!/lib64/no-such-loader.so.2\n")
        self.refused("glibc's loader", "musl")

    def test_no_permission(self):
        self.program(SHOW, mode=0o644)
        self.refused("may not be executed")

    def test_another_machines_program(self):
        self.program(b"\x7fELF not for here")
        self.refused("Exec format error")

    def test_it_is_imported_without_more(self):
        ran = subprocess.run([sys.executable, "-B", "-c", "import peakbench, sys; print(peakbench.__version__, 'torch' in sys.modules)"],
                             capture_output=True, text=True, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(self.site)})  # fmt: skip
        self.assertEqual(ran.stdout, "unknown False\n", ran.stderr)
