"""What is installed belongs to the program or to a worker: the wheel takes these apart, and a rule without a component comes a second time.

usage: components_test.py BUILD_FOLDER CMAKE
"""

import pathlib
import subprocess
import sys
import tempfile

BUILD, CMAKE = sys.argv[1:3]
NO_COMPONENT = "Unspecified"  # CMake's name of it

with tempfile.TemporaryDirectory(prefix="peakbench-components-") as folder:
    command = [CMAKE, "--install", BUILD, "--component", NO_COMPONENT, "--prefix", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
    left = sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*") if path.is_file())
if left:
    sys.exit("installed without a component:\n" + "\n".join(left))
