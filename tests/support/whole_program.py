"""Runs a program of GoogleTest whole. Fails where not every case passed: one that was skipped would hide the others' failures from CTest, and
one that ends the process takes those after it along.

usage: whole_program.py PROGRAM
"""

import re
import subprocess
import sys

done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, errors="replace")
sys.stdout.write(done.stdout)
skipped = "[  SKIPPED ]" in done.stdout
if skipped:
    print("error: a case was skipped. Where one may be, a process for each case (gtest_discover_tests) tells it apart.")
elif not re.search(r"^\[  PASSED  \] \d+ tests?\.$", done.stdout, re.MULTILINE):
    print("error: the program ended before all of its cases had passed.")
    skipped = True
sys.exit(done.returncode or skipped)
