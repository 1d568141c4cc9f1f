"""One command, and what must hold of it whatever it was given."""

import dataclasses
import errno
import os
import re
import resource
import shlex
import signal
import subprocess
import time

HANG_S = 5.0
# What a command may end with; 1 is a bug, 130 an interruption that somebody asked for.
USUAL_CODES = frozenset((0, 2, 3, 4, 5))
ADDRESS_SPACE = 4 << 30
# Half-written files of ours; what a run keeps for cases to come is called parameters.tmp.
LEFT_OVER = re.compile(r"\.tmp-\d+(-\d+)?$|\.tmp$|\.partial$|/\.write_test_|-journal$|-wal$|-shm$")
# Escape sequences and other control characters, also those of Unicode (U+0080 to U+009F).
CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x0d\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")


@dataclasses.dataclass(frozen=True)
class Ended:
    command: list
    code: int  # negative: the signal that killed it
    out: bytes
    err: bytes
    seconds: float
    hung: bool = False

    @property
    def words(self):
        return shlex.join(word.decode("utf-8", "backslashreplace") if isinstance(word, bytes) else str(word) for word in self.command)

    @property
    def outcome(self):
        if self.hung:
            return "hung"
        return f"exit {self.code}" if self.code >= 0 else signal.Signals(-self.code).name


def patience():
    """Seconds that are a hang: more where other programs keep the processors busy."""
    return HANG_S * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def _limited(limits):
    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for what, most in limits.items():
            resource.setrlimit(what, most if isinstance(most, tuple) else (most, most))

    return limit


def run(command, cwd, env=None, limits=None, allowed_s=None, **options):
    """Runs a command in a session of its own; whatever it started is gone at the end."""
    limits = {resource.RLIMIT_AS: ADDRESS_SPACE} if limits is None else limits
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    began = time.monotonic()
    process = subprocess.Popen([word if isinstance(word, bytes) else str(word) for word in command], cwd=cwd, env=env,
                               start_new_session=True, preexec_fn=_limited(limits), **options)
    hung = False
    try:
        out, err = process.communicate(timeout=allowed_s or patience())
    except subprocess.TimeoutExpired:
        hung = True
        end_session(process)
        out, err = process.communicate()
    return Ended(list(command), process.returncode, out or b"", err or b"", time.monotonic() - began, hung)


def end_session(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def faults_of(ended, codes=USUAL_CODES, speaks=None):
    """What is wrong with how it ended, a sentence each; `speaks` where its problems are its output."""
    if ended.hung:
        return [f"hang: not done after {ended.seconds:.1f} s"]
    faults = []
    if ended.code < 0:
        if ended.code not in codes:
            faults.append(f"signal: killed by {signal.Signals(-ended.code).name}")
    elif ended.code not in codes:
        faults.append(f"exit code {ended.code}: {text(ended.err)[-300:].strip()}")
    if ended.code == 2 and not (ended.err.strip() or (speaks and ended.out.strip())):
        faults.append("silent: exit code 2 without a word on standard error")
    for name, stream in (("output", ended.out), ("error", ended.err)):
        if found := CONTROLS.search(stream):
            faults.append(f"raw control character on standard {name}: {stream[max(0, found.start() - 40):found.end() + 40]!r}")
        elif not is_utf8(stream):
            faults.append(f"standard {name} is not UTF-8: {stream[:200]!r}")
    return faults


def is_utf8(stream):
    try:
        stream.decode("utf-8")
        return True
    except UnicodeDecodeError:
        return False


def text(stream):
    return stream.decode("utf-8", "replace")


# What SQLite says in the system's place.
_IN_OTHER_WORDS = {errno.ENOSPC: (b"disk is full", b"I/O error"), errno.EIO: (b"I/O error",), errno.EDQUOT: (b"I/O error", b"disk is full")}


def gives_reason(ended, number):
    """Does the message name the system's reason?"""
    return any(words in ended.err for words in (os.strerror(number).encode(), *_IN_OTHER_WORDS.get(number, ())))


def left_over(folder):
    """Half-written files below a folder."""
    found = []
    for base, _, names in os.walk(folder):
        found += [path for name in names if name != "parameters.tmp" and LEFT_OVER.search(path := os.path.join(base, name))]
    return found


def state(folder, besides=()):
    """Every path below a folder with what would change if it were touched."""
    found, waiting = {}, [folder]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            if entry.path in besides:
                continue
            facts = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                found[entry.path] = "folder"
                waiting.append(entry.path)
            else:
                found[entry.path] = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_mode)
    return found


def changed(before, after):
    """What was lost, changed or added, as sentences."""
    said = [f"touched: {path} is gone" for path in before.keys() - after.keys()]
    said += [f"touched: {path} appeared" for path in after.keys() - before.keys()]
    return said + [f"touched: {path} is another" for path in before.keys() & after.keys() if before[path] != after[path]]
