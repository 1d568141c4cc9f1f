"""Runs a program of GoogleTest whole. Fails where not every case passed: one that was skipped would hide the others' failures from CTest, and
one that ends the process takes those after it along.

usage: whole_program.py PROGRAM
"""

import re
import subprocess
import sys

done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, errors="replace")
sys.stdout.write(done.stdout)
if "[  SKIPPED ]" in done.stdout:
    sys.exit("error: a case was skipped. Where one may be, a process for each case (gtest_discover_tests) tells it apart.")
if not re.search(r"^\[  PASSED  \] \d+ tests?\.$", done.stdout, re.MULTILINE):
    sys.exit("error: the program ended before all of its cases had passed.")
sys.exit(done.returncode)
