"""tests/support/warm_python.py: programs that are forked say what they would have said in a Python of their own, and end so."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

SAYS = """
import os, sys
print(__name__, globals().get("__file__"), sys.argv, sys.path[0], os.getcwd(), os.environ.get("RANK"), sys.stdin.read(),
      sys.modules["__main__"].__dict__ is globals())
print("late", file=sys.stderr)
"""
ENDS = {
    "an error": "def f():\n    return 1 / 0\nf()",
    "an error of syntax": "x = (",
    "a status": "import sys; sys.exit(3)",
    "a sentence": "import sys; sys.exit('no')",
    "an interrupt": "raise KeyboardInterrupt",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "at the end": "import atexit; atexit.register(print, 'last'); print('first')",
    "an open file": "import os; print(os.read(HANDED, 5))",
}
IS_WARM = "import sys; print('torch' in sys.modules)"
WAITS = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, _: sys.exit(number))
print(os.getpid(), flush=True)
time.sleep(60)
"""
PEAK = IS_WARM + "; import torch; x = torch.ones(1000, 1000, device='cuda') * 2; print(torch.cuda.max_memory_allocated(), x.sum().item())"


def setUpModule():
    global WARM
    WARM = warm_python.served(PYTHON, [[]])


class WarmPython(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "says.py").write_text(SAYS, encoding="utf-8")

    def ran(self, *words, environment=(), **more):
        done = subprocess.run(list(map(str, words)), cwd=self.folder, env=os.environ | dict(environment), capture_output=True, text=True, timeout=60,
                              **more)  # fmt: skip
        return done.stdout, done.stderr, done.returncode

    def test_it_is_told_and_says_the_same(self):
        (self.folder / "folder").mkdir()
        (self.folder / "folder/says.py").write_text(SAYS, encoding="utf-8")
        for words in (["says.py", "a", "--b"], ["folder/says.py"], [self.folder / "says.py"], ["-c", SAYS, "a"], ["-m", "says", "a"],
                      ["-m", "folder.says"]):  # fmt: skip
            with self.subTest(words):
                own, forked = (self.ran(python, *words, environment={"RANK": "7"}, input="in") for python in (PYTHON, WARM))
                self.assertEqual(own, forked)
                self.assertEqual(own[2], 0, own)

    def test_it_ends_the_same(self):
        read, write = os.pipe()
        os.write(write, b"twice" * 2)
        for name, text in ENDS.items():
            with self.subTest(name):
                (self.folder / "ends.py").write_text(text.replace("HANDED", str(read)), encoding="utf-8")
                own, forked = (self.ran(python, "ends.py", pass_fds=[read]) for python in (PYTHON, WARM))
                self.assertEqual(own, forked)
        os.close(read)
        os.close(write)

    def test_it_is_forked_where_its_environment_is_the_servers(self):
        self.assertEqual(self.ran(WARM, "-c", IS_WARM)[0], "True\n")
        self.assertEqual(self.ran(WARM, "-c", IS_WARM, environment={"PYTHONPATH": "x", "RANK": "1"})[0], "True\n")
        self.assertEqual(self.ran(WARM, "-c", IS_WARM, environment={"PYTORCH_ALLOC_CONF": "x"})[0], "False\n")
        self.assertEqual(self.ran(WARM, "-u", "-c", IS_WARM)[0], "False\n")
        starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {IS_WARM!r}], check=True)"
        self.assertEqual(self.ran(WARM, "-c", starts)[0], "True\n")
        (self.folder / "mine.py").write_text("there = 1\n", encoding="utf-8")
        (self.folder / "other").mkdir()
        self.assertEqual(self.ran(WARM, "-m", "mine")[1:], ("", 0))
        imports = "import os; os.chdir('other'); import sys; sys.path.remove(''); import mine; print(mine.there)"
        self.assertEqual(self.ran(WARM, "-c", imports, environment={"PYTHONPATH": str(self.folder)})[0], "1\n")

    def test_signals_reach_it_and_it_ends_with_who_asked(self):
        for number, status in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGUSR1, signal.SIGUSR1), (signal.SIGKILL, -signal.SIGKILL)):
            with subprocess.Popen([WARM, "-c", WAITS], stdout=subprocess.PIPE, text=True) as program:
                process = int(program.stdout.readline())
                self.assertNotEqual(process, program.pid)
                program.send_signal(number)
                self.assertEqual(program.wait(30), status)
                for _ in range(300):
                    if not Path(f"/proc/{process}").exists():
                        break
                    time.sleep(0.1)
                else:
                    self.fail("it runs on")

    def test_who_is_gone_before_it_has_asked(self):
        for sent in (b"", (100).to_bytes(8, "little"), (100).to_bytes(8, "little") + b"half"):
            with self.subTest(sent), socket.socket(socket.AF_UNIX) as asks:
                asks.connect(str(WARM.with_name("0")))
                asks.sendall(sent)
        self.assertEqual(self.ran(WARM, "-c", IS_WARM)[0], "True\n")

    def test_a_server_that_is_gone_is_no_good_end(self):
        with (warm_python.serving(PYTHON, [[]], imports=()) as python,
              subprocess.Popen([python, "-c", WAITS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program):  # fmt: skip
            process = int(program.stdout.readline())
            server = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(server, signal.SIGKILL)
            os.kill(process, signal.SIGKILL)
            self.assertEqual((program.wait(30), program.stderr.read()), (1, "warm_python: the server is gone\n"))

    def test_an_emulation_of_it_is_the_same(self):
        with warm_python.serving(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"]]) as warm:
            (self.folder / "peak.py").write_text(PEAK, encoding="utf-8")
            records = []
            for python in (PYTHON, warm):
                said, told, status = self.ran(PEAKBENCH, "emulate", "--details", "--card", "a100-40gb", "--json", "took.json", "--", python, "peak.py")
                self.assertEqual(status, 0, told)
                record = json.loads((self.folder / "took.json").read_text(encoding="utf-8"))
                self.assertEqual(len(record["processes"]), 1)
                process = record["processes"][0]
                self.assertEqual(said.splitlines()[0], str(python == warm))
                records.append((said.splitlines()[1], record["verdict"], process["devices"], process["read_backs"], process["computing"], "peak.py:1" in told))
            self.assertEqual(*records)
