"""The command ``peakbench``: becomes the program that this package carries."""

import os
import sys
from pathlib import Path
from typing import NoReturn

PROGRAM = Path(__file__).resolve().parent / "bin" / "peakbench"


def main() -> NoReturn:
    """Runs the program with this process's arguments, in its place: its exit code and its signals are the command's."""
    # Whose PyTorch is meant, where none is named: that of the environment the command belongs to, active or not, and whatever started it.
    environment = {**os.environ, "PEAKBENCH_ENVIRONMENT_PYTHON": sys.executable or ""}
    try:
        os.execve(PROGRAM, ["peakbench", *sys.argv[1:]], environment)
    except OSError as error:
        sys.exit(f"peakbench: {PROGRAM} does not start: {_reason(error)}")


def _reason(error: OSError) -> str:
    """Why, and what to do."""
    if isinstance(error, FileNotFoundError) and PROGRAM.exists():
        # The kernel finds the file, and not the loader that it names.
        return "it needs glibc's loader, /lib64/ld-linux-x86-64.so.2, which is not there (musl, as on Alpine?). Use a system with glibc"
    if isinstance(error, FileNotFoundError):
        return "it is not there. Install the wheel again: pip install --force-reinstall --no-deps WHEEL"
    if isinstance(error, PermissionError):
        return "it may not be executed (a file system mounted noexec, or its mode was changed): install the package elsewhere, or again"
    machine = os.uname().machine
    if machine != "x86_64":
        return f"it is for x86_64, and this machine is {machine}"
    return f"{error.strerror} (errno {error.errno})"
