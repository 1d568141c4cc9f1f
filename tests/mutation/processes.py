"""Commands with their children: a fault may leave processes behind that nobody ends."""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import threading

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """What a command leaves behind becomes a child of this process (Linux), so that it can be found and ended."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextlib.contextmanager
def running(command, **options):
    """A command in a session of its own, gone at the end whatever happens, with all that it started."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, **options
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            end_session(process)
        process.stdout.close()
        process.wait()
        _end_orphans()


def end_session(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class Deadline:
    """Ends a command when `extend()` was not called in time."""

    def __init__(self, process):
        self._process = process
        self._timer = None
        self.passed = False

    def extend(self, seconds):
        self.cancel()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self):
        if self._timer:
            self._timer.cancel()

    def _end(self):
        self.passed = True
        end_session(self._process)


def _end_orphans():
    while children := _children():
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children():
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # pid (name) state parent ...: the name may hold anything
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid():
                found.append(int(stat.parent.name))
    return found
