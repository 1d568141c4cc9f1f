"""Runs a command as root, by sudo where it asks nothing; exit code 77, with the reason, where that is not possible or Slurm is missing.

usage: as_root.py COMMAND ARGUMENT...
"""

import os
import subprocess
import sys

import cluster

command, why = sys.argv[1:], ""
if program := cluster.missing():
    why = f"{program} is not installed: ci/packages --tests installs Slurm"
elif os.geteuid() != 0:
    command = ["sudo", "-n", "-E", *command]
    if subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode:
        why = "Slurm's daemons are started as root, and sudo asks for a password"
if why:
    print(f"SKIP: {why}")
    sys.exit(77)
os.execvp(command[0], command)
