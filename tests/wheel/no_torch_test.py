"""Programs and stand-ins that are there without PyTorch need nothing of it."""

import subprocess
import unittest

from check_wheel import of_pytorch
from given import BUILD


def needs(file):
    dynamic = subprocess.run(["readelf", "--wide", "--dynamic", file], capture_output=True, text=True, check=True).stdout
    undefined = subprocess.run(["nm", "--dynamic", "--undefined-only", "--format=posix", file], capture_output=True, text=True, check=True).stdout
    libraries = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line]
    return of_pytorch(libraries, [line.split()[0].split("@")[0] for line in undefined.splitlines()])


class NoTorch(unittest.TestCase):
    def test_programs_and_stand_ins(self):
        emulator = BUILD / "lib/peakbench/emulator"
        files = [BUILD / "bin/peakbench", BUILD / "bin/peakbench-check-manifest", emulator / "bin/nvidia-smi", *emulator.glob("*.so*"), *emulator.glob("cuda12/*")]
        self.assertGreater(len(files), 25)
        self.assertEqual({file.name: found for file in files if (found := needs(file))}, {})

    def test_what_is_made_for_pytorch_is_found_out(self):
        for file in (BUILD / "bin/peakbench-worker", BUILD / "lib/peakbench/emulator/values/peakbench_values.so"):
            found = needs(file)
            self.assertIn("libc10.so", found)
            self.assertTrue(any(one.startswith("_Z") for one in found), found)
