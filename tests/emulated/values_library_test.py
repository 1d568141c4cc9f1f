"""The values library of a PyTorch of another version, as `peakbench emulate` compiles it, and the tracer, as `peakbench trace` does: what a
compiler may do to the call, and what is left behind. The PyTorch is nothing but its files, and compilers are scripts.
"""

import os
import pathlib
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

from given import PEAKBENCH

os.environ.pop("CUDA_VISIBLE_DEVICES", None)
COMPILING = "compiling the values library for PyTorch 2.99.0+cu130 (once"
# What follows `-o` is what it is to write to.
OUTPUT = 'for word; do out=$word; done; echo $$ >> "$0.calls"\n'
GIB = 1 << 30


class ValuesLibraryTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-values-library-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name, text in {"torch/__init__.py": "raise SystemExit('not to be imported')\n",
                           "torch/version.py": "__version__ = '2.99.0+cu130'\ncuda = '13.0'\n",
                           "torch/share/cmake/Torch/TorchConfig.cmake": "",
                           "torch/lib/libtorch_python.so": "\0sm_1\0sm_80 sm_90\0",
                           "nvidia/cu13/include/cuda_runtime_api.h": "",
                           "train.py": "print('trained')\n"}.items():  # fmt: skip
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        self.temporary, self.cache = self.folder / "tmp", self.folder / "cache"
        self.temporary.mkdir()
        self.compiler = self.folder / "compiler"

    def start(self, script, verb=("emulate", "--details"), missing=False, **more):
        self.compiler.write_text(f"#!/bin/sh\n{OUTPUT}{script}\n")
        self.compiler.chmod(0o755)
        if missing:
            self.compiler.unlink()
        environment = {**os.environ, "CXX": str(self.compiler), "XDG_CACHE_HOME": str(self.cache), "TMPDIR": str(self.temporary)}
        command = [PEAKBENCH, *verb, "--", sys.executable, "-u", self.folder / "train.py"]
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                env=environment, cwd=self.folder, start_new_session=True, **more)  # fmt: skip

    def emulate(self, script, exit_code=0, **more):
        """What it said; the program itself has run."""
        return self.ended(self.start(script, **more), exit_code)

    def ended(self, emulate, exit_code=0, out="trained\n"):
        try:
            said = emulate.communicate(timeout=60)
        finally:
            emulate.kill()
        self.assertEqual((emulate.returncode, said[0]), (exit_code, out), said[1])
        return said[1]

    def calls(self):
        try:
            return list(map(int, pathlib.Path(f"{self.compiler}.calls").read_text().split()))
        except FileNotFoundError:
            return []

    def until(self, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def left(self):
        return sorted(path.name for path in [*self.temporary.iterdir(), *self.cache.glob("peakbench/values/*")])

    def test_is_compiled_once(self):
        self.assertIn(COMPILING, self.emulate('echo library > "$out"'))
        self.assertNotIn(COMPILING, self.emulate("exit 1"))
        self.assertEqual(len(self.left()), 1)
        self.assertRegex(self.left()[0], r"^2\.99\.0\+cu130-[0-9a-f]{16}\.so$")

    def test_one_that_an_installation_carries_is_not_compiled(self):
        emulator = self.folder / "prefix/lib/peakbench/emulator"
        emulator.parent.mkdir(parents=True)
        emulator.symlink_to(PEAKBENCH.parents[1] / "lib/peakbench/emulator")
        carried = self.folder / "prefix/workers/torch-2.99.0+cu130/lib/peakbench/values/peakbench_values.so"
        with unittest.mock.patch.dict(os.environ, PEAKBENCH_EMULATOR_DIR=str(emulator)):
            self.assertIn(COMPILING, self.emulate("exit 1"))
            carried.parent.mkdir(parents=True)
            carried.write_text("a library")
            self.assertNotIn(COMPILING, self.emulate("exit 1"))
        self.assertEqual(len(self.calls()), 1)

    def trace(self, script, **more):
        return self.emulate(script, verb=("trace", "--card", "h100-80gb", "--overwrite", "--out", self.folder / "run"), **more)

    def test_the_tracer_too_and_only_by_trace(self):
        self.assertNotIn("tracer", self.emulate('echo library > "$out"'))
        said = self.trace('echo tracer > "$out"')
        self.assertNotIn(COMPILING, said)
        self.assertIn(COMPILING.replace("values", "tracer"), said)
        (library,) = self.cache.glob("peakbench/tracer/*.so")
        self.assertEqual(library.read_text(), "tracer\n")
        self.assertNotIn("compiling", self.trace("exit 1"))
        self.assertEqual(len(self.calls()), 2)

    def test_why_there_is_no_tracer(self):
        self.emulate('echo library > "$out"')
        none = "peakbench: there is no tracer for PyTorch 2.99.0+cu130: {}; `peakbench emulate` works without one\n"
        failed = self.ended(self.start("echo 'a.cpp:1: error: no such type' >&2; exit 1", ("trace", "--card", "h100-80gb")), 2, out="")
        self.assertIn(none.format(f"{self.compiler} could not compile them: error: no such type"), failed)
        with unittest.mock.patch.dict(os.environ, PATH=str(self.temporary)):
            missing = self.ended(self.start("", ("trace",), missing=True), 2, out="")
        self.assertIn(none.format("there is no C++ compiler (c++, g++, or what CXX names)"), missing)
        (self.folder / "torch/version.py").write_text("__version__ = '2.99.0+cpu'\ncuda = None\n")
        cpu = self.ended(self.start("exit 1", ("trace",)), 2, out="")
        self.assertIn(f"there is no tracer for PyTorch 2.99.0+cpu in {self.folder}/torch, a build without CUDA", cpu)
        self.assertFalse((self.folder / "results/train.py").exists())

    def test_a_signal_while_the_tracer_is_compiled(self):
        self.emulate('echo library > "$out"')
        trace = self.start("sleep 600", ("trace", "--card", "h100-80gb"))
        self.until(lambda: len(self.calls()) == 2)
        trace.send_signal(signal.SIGINT)
        said = self.ended(trace, 130, out="")
        self.assertIn("peakbench: interrupted before the program was started", said)
        self.assertNotIn("no tracer", said)

    def test_a_compiler_that_prints_without_end(self):
        began = time.monotonic()
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (GIB, GIB))  # noqa: E731
        self.emulate("exec yes", preexec_fn=limit)
        self.assertLess(time.monotonic() - began, 30)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, GIB // 5)
        self.assertEqual(self.left(), [])

    def test_a_signal_ends_the_compiler_and_leaves_nothing_behind(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                pid_file = self.folder / f"sleeper.{number}"
                emulate = self.start(f'echo part > "$out"; sleep 600 & echo $! > {pid_file}; wait')
                self.until(lambda: pid_file.exists() and pid_file.read_text())
                emulate.send_signal(number)
                said = self.ended(emulate, 128 + number, out="")
                self.assertIn("peakbench: interrupted before the program was started", said)
                for pid in (self.calls()[-1], int(pid_file.read_text())):
                    self.until(lambda: not is_running(pid))
                self.assertEqual(self.left(), [])

    def test_a_signal_where_the_compiler_does_not_listen(self):
        emulate = self.start("trap '' TERM INT; while :; do sleep 1; done")
        self.until(self.calls)
        emulate.send_signal(signal.SIGTERM)
        self.ended(emulate, 128 + signal.SIGTERM, out="")
        self.until(lambda: not is_running(self.calls()[0]))
        self.assertEqual(self.left(), [])

    def test_what_the_compiler_leaves_running_holds_nobody(self):
        began = time.monotonic()
        daemon = self.folder / "daemon"
        self.emulate(f'echo library > "$out"; setsid sleep 600 & echo $! > {daemon}')
        self.assertLess(time.monotonic() - began, 30)
        os.kill(int(daemon.read_text()), signal.SIGKILL)
        self.assertEqual(len(self.left()), 1)

    def test_for_this_user_alone(self):
        self.emulate('echo library > "$out"', umask=0)
        paths = [self.cache, self.cache / "peakbench", self.cache / "peakbench/values", *self.cache.glob("peakbench/values/*.so")]
        self.assertEqual([stat.S_IMODE(path.stat().st_mode) for path in paths], [0o700] * 4)

    def test_one_that_others_can_write_is_compiled_anew(self):
        self.emulate('echo library > "$out"')
        (library,) = self.cache.glob("peakbench/values/*.so")
        library.chmod(0o777)
        said = self.emulate('echo another > "$out"')
        self.assertIn(f"peakbench: {library} can be written by others: it is not loaded, and compiled anew\n", said)
        self.assertIn(COMPILING, said)
        self.assertEqual(library.read_text(), "another\n")

    def test_once_where_two_begin_at_a_time(self):
        script = 'sleep 2; echo library > "$out"'
        both = [self.start(script), self.start(script)]
        said = [self.ended(each) for each in both]
        self.assertEqual(len(self.calls()), 1)
        waiting = "peakbench: waiting for another process, which compiles the values library for PyTorch 2.99.0+cu130\n"
        self.assertEqual(sorted(waiting in each for each in said), [False, True], said)

    def test_who_waits_can_be_interrupted(self):
        script = 'sleep 5; echo library > "$out"'
        first = self.start(script)
        self.until(self.calls)
        second = self.start(script)
        self.assertIn("waiting for another process", second.stderr.readline())
        second.send_signal(signal.SIGINT)
        self.ended(second, 130, out="")
        self.ended(first)
        self.assertEqual(len(self.left()), 1)


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
