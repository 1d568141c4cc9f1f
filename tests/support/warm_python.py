"""A Python that has imported PyTorch already: programs are forked from it, which saves each of them the import.

    with warm_python.serving(PYTHON, [[PEAKBENCH, "emulate", "--"]]) as python:
        subprocess.run([PEAKBENCH, "emulate", "--json", "took.json", "--", python, "program.py"])

For tests of what programs do, not of how they are started. A program is forked from a server that began in an environment like its own, but for
what is read only when a card is first used, or by the program (is_later); where there is none, it has a Python of its own, and imports.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import multiprocessing
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import types
from pathlib import Path

ADDRESSES = "PEAKBENCH_WARM_PYTHONS"
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
MOST_DESCRIPTORS = 100  # that a program inherits, each below it
# Read when a program first uses the card, or by the program.
LATER = ("PEAKBENCH_EMULATED_", "PEAKBENCH_EMULATION_", "PEAKBENCH_TRACE_", "TORCHELASTIC_", "PYTEST_")  # how names begin
LATER_NAMES = {
    "COLUMNS", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES", "GROUP_RANK", "GROUP_WORLD_SIZE", "LINES", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
    "MASTER_ADDR", "MASTER_PORT", "OLDPWD", "PEAKBENCH_PYTHON", "PEAKBENCH_TRAINED", "PWD", "PYTHONPATH", "RANK", "ROLE_NAME", "ROLE_RANK",
    "ROLE_WORLD_SIZE", "SHLVL", "WORLD_SIZE", "_",
}  # fmt: skip


@contextlib.contextmanager
def serving(python, launchers, environment=None, imports=("torch",)):
    """The path of a program that takes the words of a Python (a script, -c or -m) and becomes ``python``, forked or not.

    Each of ``launchers``, the words before a command (none, or those of an emulation), starts a server in ``environment``.
    """
    with tempfile.TemporaryDirectory(prefix="peakbench-warm-") as folder, contextlib.ExitStack() as servers:
        addresses = [str(Path(folder, str(number))) for number in range(len(launchers))]
        client = Path(folder, "warm-python")
        client.write_text(f'#!/bin/sh\n{ADDRESSES}="{":".join(addresses)}" exec "{sys.executable}" -S -E -B "{__file__}" "$0" "{python}" "$@"\n')
        client.chmod(0o755)
        started = []
        for launcher, address in zip(launchers, addresses):
            begin = [*map(str, launcher), sys.executable, "-S", "-E", "-B", __file__, "--begin", python, address, *imports]
            # It ends with its standard input.
            started.append(servers.enter_context(
                subprocess.Popen(begin, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)))  # fmt: skip
        for one in started:
            if not one.stdout.readline():
                raise RuntimeError(f"no server of {python} started")
        yield client


def ask(executable, python, *words):
    """As the program: hands a server what this process was given, and ends as what it ran."""
    addresses = os.environ.pop(ADDRESSES).split(":")
    if not words or (words[0].startswith("-") and words[0] not in ("-c", "-m")):
        addresses = []
    handed = [one for one in range(MOST_DESCRIPTORS) if is_inherited(one)]
    asked = json.dumps({"words": words, "environment": dict(os.environ), "folder": os.getcwd(), "executable": executable,
                        "descriptors": handed}).encode()  # fmt: skip
    for address in addresses:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(address)
            socket.send_fds(server, [len(asked).to_bytes(8, "little")], handed)
            server.sendall(asked)
            if server.recv(1) == b"y":
                for number in FORWARDED:
                    signal.signal(number, lambda number, _: server.sendall(bytes([number])))
                end_as(int.from_bytes(server.recv(4, socket.MSG_WAITALL), "little", signed=True))
    os.execv(python, [python, *words])


def end_as(status):
    if status < 0:
        with contextlib.suppress(OSError):  # of SIGKILL
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def is_inherited(descriptor):
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False


def received(connection, length):
    found = b""
    while len(found) < length:
        part = connection.recv(length - len(found))
        if not part:
            raise ConnectionError
        found += part
    return found


def is_later(name):
    return name in LATER_NAMES or name.startswith(LATER)


def without_later(environment):
    return {name: value for name, value in environment.items() if not is_later(name)}


def serve(address, began_with, imports):
    """Returns in the process of each program: what was asked, and its open files."""
    for name in imports:
        importlib.import_module(name)
    # What the import made stays to the end: looking through it for garbage is half of what is left of a program's time.
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    waiting = selectors.DefaultSelector()
    waiting.register(listening, selectors.EVENT_READ)
    waiting.register(sys.stdin, selectors.EVENT_READ)
    of_client, of_child = {}, {}
    print("ready", flush=True)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:
                os._exit(0)
            if key.fileobj is listening:
                connection, _ = listening.accept()
                length, descriptors, *_ = socket.recv_fds(connection, 8, MOST_DESCRIPTORS)
                asked = json.loads(received(connection, int.from_bytes(length, "little")))
                if without_later(asked["environment"]) in (began_with, without_later(os.environ)):
                    child = os.fork()
                    if child == 0:
                        waiting.close()
                        listening.close()
                        connection.sendall(b"y")
                        connection.close()
                        return asked, descriptors
                    watched = os.pidfd_open(child)
                    waiting.register(watched, selectors.EVENT_READ)
                    waiting.register(connection, selectors.EVENT_READ)
                    of_client[connection], of_child[watched] = child, (child, connection)
                else:
                    connection.sendall(b"n")
                    connection.close()
                for one in descriptors:
                    os.close(one)
            elif key.fileobj in of_child:
                child, connection = of_child.pop(key.fileobj)
                waiting.unregister(key.fileobj)
                os.close(key.fileobj)
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                if of_client.pop(connection, None):
                    waiting.unregister(connection)
                with contextlib.suppress(OSError):
                    connection.sendall(status.to_bytes(4, "little", signed=True))
                connection.close()
            elif key.fileobj in of_client:
                said = key.fileobj.recv(1)
                os.kill(of_client[key.fileobj], said[0] if said else signal.SIGKILL)
                if not said:
                    del of_client[key.fileobj]
                    waiting.unregister(key.fileobj)


def become(asked, descriptors):
    """What runs the program in this process, as Python would have."""
    # Through copies beyond all of them: a number may be one that another has to be.
    copies = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, MOST_DESCRIPTORS + max(descriptors)) for one in descriptors]
    for one in descriptors:
        os.close(one)
    for number, copy in zip(asked["descriptors"], copies):
        os.dup2(copy, number)
        os.close(copy)
    os.chdir(asked["folder"])
    before, now = (paths.get("PYTHONPATH", "").split(":") for paths in (os.environ, asked["environment"]))
    sys.path[1:] = [*filter(None, now), *(path for path in sys.path[1:] if path not in before)]
    for name in filter(is_later, list(os.environ)):
        del os.environ[name]
    os.environ.update({name: value for name, value in asked["environment"].items() if is_later(name)})
    if "PEAKBENCH_TRACE_LIBRARY" in os.environ:  # as if PyTorch were imported only now
        importlib.import_module("sitecustomize")._begin(sys.modules["torch"])
    sys.executable = asked["executable"]  # what the program starts is warm, too
    multiprocessing.set_executable(sys.executable)
    words = asked["words"]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if words[0] == "-m":
        import runpy

        sys.argv, sys.path[0] = words[1:], asked["folder"]
        return lambda: runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    if words[0] == "-c":
        sys.argv, sys.path[0] = ["-c", *words[2:]], ""
        code = compile(words[1], "<string>", "exec")
    else:
        sys.argv, sys.path[0] = words, str(Path(words[0]).resolve().parent)
        main.__file__ = os.path.abspath(words[0])
        code = compile(Path(words[0]).read_bytes(), main.__file__, "exec")
    return lambda: exec(code, main.__dict__)


def main():
    if sys.argv[1] == "--begin":  # before the Python, which may be a script that sets more
        python, address, *imports = sys.argv[2:]
        # Called as Python calls its own parts: the program's lines are called by none of this file.
        own = str(Path(address).with_suffix(".pyc"))
        subprocess.run([python, "-c", "import py_compile, sys; py_compile.compile(*sys.argv[1:])", __file__, own, "<frozen warm_python>"], check=True)
        os.execv(python, [python, own, "--serve", address, json.dumps(without_later(os.environ)), *imports])
    if sys.argv[1] != "--serve":
        ask(*sys.argv[1:])
    asked = serve(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4:])
    sys.excepthook = without_own
    become(*asked)()


def without_own(kind, error, trace):
    while trace and trace.tb_frame.f_code.co_filename == main.__code__.co_filename:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


if __name__ == "__main__":
    main()
