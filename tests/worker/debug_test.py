"""`peakbench debug` with the real gdb and the real worker, where gdb is installed and may trace a process."""

import json
import shutil
import subprocess

import pytest

from given import PEAKBENCH
from real_worker import MODEL, PLANTED, WorkerTest



def why_not():
    if shutil.which("gdb") is None:
        return "gdb is not installed"
    done = subprocess.run(["gdb", "-q", "-batch", "-ex", "run", "--args", "true"], capture_output=True, text=True, timeout=60)
    return "" if "exited normally" in done.stdout else f"gdb traces nothing here: {done.stderr.strip()[-200:]}"


pytestmark = pytest.mark.skipif(bool(WHY_NOT := why_not()), reason=WHY_NOT)


class Debug(WorkerTest):
    def gdb(self, *arguments):
        done = subprocess.run([PEAKBENCH, "debug", "--plugins", PLANTED.parent, "--model", MODEL, "--out", self.folder, *arguments],
                              capture_output=True, text=True, timeout=200)  # fmt: skip
        return done.stdout + done.stderr

    def test_a_worker_runs_to_its_end(self):
        for device in ("cpu", "emulated:h100-80gb"):
            said = self.gdb("--strategy", "baseline", "--device", device, "--", "-batch", "-ex", "run")
            self.assertIn("exited normally", said)
            (result,) = [path for path in self.folder.rglob("*.result.json")]
            self.assertEqual(json.loads(result.read_text())["status"], "ok", said)
            result.unlink()

    def test_a_signal_stops_in_the_plugin(self):
        said = self.gdb("--strategy", "faults-in-run", "--", "-batch", "-ex", "run", "-ex", "backtrace 2")
        self.assertIn("received signal SIGSEGV", said)
        self.assertIn("touch_nothing", said)
