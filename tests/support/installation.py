"""An installation of its own for a test: the program, a script as its worker, plugins that are manifests only."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import given

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT = 60


def install(prefix):
    """Copies, not links: the program finds everything relative to its own file."""
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(given.PEAKBENCH, prefix / "bin/peakbench")
    worker = (SOURCE / "tests/support/fake_worker.py").read_text(encoding="utf-8").split("\n", 1)[1]
    (prefix / "bin/peakbench-worker").write_text(f"#!{sys.executable}\n{worker}", encoding="utf-8")
    (prefix / "bin/peakbench-worker").chmod(0o755)
    shutil.copytree(given.FAKE_PLUGINS, prefix / "lib/peakbench/plugins")
    shutil.copytree(SOURCE / "templates", prefix / "share/peakbench/templates")


def workers_of(folder, pattern=""):
    """Ids of processes that work on a job below the folder whose path has the pattern."""
    job = re.compile(f"{re.escape(str(folder))}/.*{pattern}.*\\.json")
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = pathlib.Path("/proc", entry, "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if "peakbench-worker" in command and job.search(command):
            found.append(int(entry))
    return found


def wait_for(condition):
    """What the condition gives once it is true."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("waited in vain")


class ProgramTest(unittest.TestCase):
    """Each test has a folder of its own, which is the working folder; all share one installation."""

    @classmethod
    def setUpClass(cls):
        cls.prefix = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-e2e-"))
        cls.addClassCleanup(shutil.rmtree, cls.prefix, ignore_errors=True)
        install(cls.prefix / "installed")
        cls.program = str(cls.prefix / "installed/bin/peakbench")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.prefix))

    def environment(self, **more):
        plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
        return {**plain, "TERM": "xterm", **more}

    def peakbench(self, *arguments, exit_code=0, **options):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, text=True, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, capture_output=True, env=self.environment(), check=False,
                              **options)
        self.assertEqual(done.returncode, exit_code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def start(self, *arguments, stdin=subprocess.DEVNULL):
        process = subprocess.Popen([self.program, *map(str, arguments)], cwd=self.folder, text=True,
                                   stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment())
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def fails(self, *arguments, says, exit_code=2):
        """Bad input: exit code 2, a message on stderr that names everything in `says`, no usage wall."""
        done = self.peakbench(*arguments, exit_code=exit_code)
        for part in says:
            self.assertIn(part, done.stderr)
        self.assertTrue(done.stderr.startswith("peakbench: "), done.stderr)
        self.assertLess(len(done.stderr.splitlines()), 8, done.stderr)
        return done

    def run_json(self, out="out"):
        return json.loads((self.folder / out / "run.json").read_text(encoding="utf-8"))

    def statuses(self, out="out"):
        return [case["status"] for case in self.run_json(out)["cases"]]
