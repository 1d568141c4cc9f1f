"""A Python that has imported PyTorch already: programs are forked from it, which saves each of them the import.

    with warm_python.serving(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"]]) as python:
        subprocess.run([PEAKBENCH, "emulate", "--json", "took.json", "--", python, "program.py"])

For tests of what programs do, not of how they are started. A program is forked from a server that began in an environment like its own, but for
what is read only when a card is first used, or by the program (is_later); where there is none, it has a Python of its own, and imports. What a
forked program has of the server: its parent and command line (as a ledger has them), process group, limits, seed of hashes, layout of addresses.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import importlib.util
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import types
from pathlib import Path

ADDRESSES = "PEAKBENCH_WARM_PYTHONS"
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
MOST_DESCRIPTORS = 100  # that a program inherits, each below it
# What a program of PyTorch has imported once its optimizer has stepped. That it does so by itself, under a tracer, is tried where a program
# has a Python of its own (trace_test.py, ranks_test.py).
TRAINING = ("torch", "torch._dynamo")
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

    Each of ``launchers``, the words before a command (none, or those of an emulation), starts a server in ``environment``;
    with --no-lines, as a tracer begins in each program and not in the server.
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
            with open(f"{address}.stderr", "wb") as told:
                started.append(servers.enter_context(
                    subprocess.Popen(begin, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told, env=environment)))  # fmt: skip
        for one, address in zip(started, addresses):
            if not one.stdout.readline():
                raise RuntimeError(f"no server of {python} started: {Path(address + '.stderr').read_text(errors='replace')}")
        yield client


def served(*arguments, **more):
    """The path that `serving` gives, until this process ends."""
    servers = contextlib.ExitStack()
    atexit.register(servers.close)
    return servers.enter_context(serving(*arguments, **more))


def ask(executable, python, *words):
    """As the program: hands a server what this process was given, and ends as what it ran."""
    addresses = os.environ.pop(ADDRESSES).split(":")
    if not words or (words[0].startswith("-") and words[0] not in ("-c", "-m")):
        addresses = []
    handed = [one for one in range(MOST_DESCRIPTORS) if is_inherited(one)]
    # Until there is somebody to pass them on to; what is ignored stays so.
    passed_on = [number for number in FORWARDED if signal.getsignal(number) != signal.SIG_IGN]
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)
    asked = json.dumps({"words": words, "environment": dict(os.environ), "folder": os.getcwd(), "executable": executable,
                        "descriptors": handed}).encode()  # fmt: skip
    for address in addresses:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(address)
            socket.send_fds(server, [len(asked).to_bytes(8, "little")], handed)
            server.sendall(asked)
            if server.recv(1) == b"y":
                for number in passed_on:
                    signal.signal(number, lambda number, _: server.sendall(bytes([number])))
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
                status = server.recv(4, socket.MSG_WAITALL)
                if len(status) != 4:
                    sys.exit("warm_python: the server is gone")
                end_as(int.from_bytes(status, "little", signed=True))
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
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


def received(connection):
    """What is asked for, and its open files; None where who asked is gone before it was said."""
    length, descriptors, *_ = socket.recv_fds(connection, 8, MOST_DESCRIPTORS)
    text, wanted = b"", int.from_bytes(length, "little")
    with contextlib.suppress(ConnectionError):
        while len(text) < wanted and (part := connection.recv(wanted - len(text))):
            text += part
    return json.loads(text) if wanted and len(text) == wanted else None, descriptors


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
                for child in of_client.values():
                    os.kill(child, signal.SIGKILL)
                os._exit(0)
            if key.fileobj is listening:
                connection, _ = listening.accept()
                asked, descriptors = received(connection)
                if asked and without_later(asked["environment"]) in (began_with, without_later(os.environ)):
                    child = os.fork()
                    if child == 0:
                        waiting.close()
                        listening.close()
                        for one in of_child:
                            os.close(one)
                        connection.sendall(b"y")
                        connection.close()
                        return asked, descriptors
                    watched = os.pidfd_open(child)
                    waiting.register(watched, selectors.EVENT_READ)
                    waiting.register(connection, selectors.EVENT_READ)
                    of_client[connection], of_child[watched] = child, (child, connection)
                else:
                    with contextlib.suppress(OSError):
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
                try:
                    said = key.fileobj.recv(1)
                except ConnectionError:  # who asked is gone
                    said = b""
                os.kill(of_client[key.fileobj], said[0] if said else signal.SIGKILL)
                if not said:
                    del of_client[key.fileobj]
                    waiting.unregister(key.fileobj)


def folders(environment):
    """Those of PYTHONPATH, as Python has them in its own."""
    text = environment.get("PYTHONPATH", "")
    return list(dict.fromkeys(map(os.path.abspath, text.split(":")))) if text else []


def become(asked, descriptors):
    """What runs the program in this process, as Python would have."""
    # Through copies beyond all of them: a number may be one that another has to be.
    copies = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, MOST_DESCRIPTORS + max(descriptors, default=0)) for one in descriptors]
    for one in descriptors:
        os.close(one)
    for number, copy in zip(asked["descriptors"], copies):
        os.dup2(copy, number)
        os.close(copy)
    for number in {0, 1, 2}.difference(asked["descriptors"]):
        os.close(number)
    before = folders(os.environ)
    os.chdir(asked["folder"])
    sys.path[1:] = [*folders(asked["environment"]), *(path for path in sys.path[1:] if path not in before)]
    for name in filter(is_later, list(os.environ)):
        del os.environ[name]
    os.environ.update({name: value for name, value in asked["environment"].items() if is_later(name)})
    if "PEAKBENCH_TRACE_LIBRARY" in os.environ or os.environ.get("PEAKBENCH_EMULATED_RANKS") == "alone":  # as if PyTorch were imported only now
        path = next(path for path in sys.path[1:] if Path(path, "peakbench_tracing.py").exists())
        tracing = importlib.util.spec_from_file_location("sitecustomize", str(Path(path, "sitecustomize.py")))
        module = sys.modules["sitecustomize"] = importlib.util.module_from_spec(tracing)
        tracing.loader.exec_module(module)
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, module._WhenImported)]
        module._begin(sys.modules["torch"])
    import multiprocessing  # not at the top: every program that asks would wait for it
    import runpy

    sys.executable = asked["executable"]  # what the program starts is warm, too
    multiprocessing.set_executable(sys.executable)
    words = asked["words"]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if words[0] == "-m":
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
