"""Runs a command where there is a CUDA card; exit code 77, with the reason, where there is none.

usage: on_real_card.py COMMAND ARGUMENT...
"""

import pathlib
import subprocess
import sys

if not any(pathlib.Path("/proc/driver/nvidia/gpus").glob("*")):
    print("SKIP: this machine has no CUDA card that its driver shows (/proc/driver/nvidia/gpus)")
    sys.exit(77)
sys.exit(subprocess.run(sys.argv[1:]).returncode)
