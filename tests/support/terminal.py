"""What a program writes to a terminal, which is a pseudo-terminal of so many columns."""
import fcntl
import os
import pty
import struct
import subprocess
import termios

PATIENCE_S = 200


def on_terminal(command, columns, **options):
    """-> (exit code, all that was written). The options are Popen's: stdout=subprocess.DEVNULL leaves that out."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(list(map(str, command)), **{"stdin": theirs, "stdout": theirs, "stderr": theirs, **options})
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return process.wait(timeout=PATIENCE_S), seen.decode().replace("\r\n", "\n")
