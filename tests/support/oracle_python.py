"""Runs the oracle's Python; exit code 77, with the reason, if there is none.

usage: oracle_python.py ARGUMENT...
"""

import os
import sys

if not os.environ.get("PEAKBENCH_ORACLE"):
    print("SKIP: no oracle; ci/oracle makes one, and PEAKBENCH_ORACLE names its Python")
    sys.exit(77)
os.execv(os.environ["PEAKBENCH_ORACLE"], [os.environ["PEAKBENCH_ORACLE"], *sys.argv[1:]])
