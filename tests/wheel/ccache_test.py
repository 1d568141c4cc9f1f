"""`peakbench workers build` fills nobody's ccache: the sources that a wheel brings, known by their third_party, are compiled without it,
and a checkout with it.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

from given import CMAKE

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
list(APPEND CMAKE_MODULE_PATH {REPOSITORY}/cmake)
project(sources LANGUAGES C CXX)
include(PeakbenchBuild)
add_library(one STATIC one.cpp)
"""


class Ccache(unittest.TestCase):
    def compiled_with_ccache(self, folders):
        with tempfile.TemporaryDirectory(prefix="peakbench-ccache-") as name:
            folder = pathlib.Path(name)
            for one in folders:
                (folder / one).mkdir()
            (folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
            (folder / "one.cpp").write_text("int one() { return 1; }\n", encoding="utf-8")
            (folder / "tools").mkdir()
            (folder / "tools/ccache").write_text(f'#!/bin/sh\necho used >> "{folder}/used"\nexec "$@"\n', encoding="utf-8")
            (folder / "tools/ccache").chmod(0o755)
            environment = {**os.environ, "PATH": f"{folder}/tools:{os.environ['PATH']}"}
            for command in ([CMAKE, "-S", folder, "-B", folder / "build", "-G", "Ninja"], [CMAKE, "--build", folder / "build"]):
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return (folder / "used").exists()

    def test_a_checkout_is_compiled_with_it(self):
        self.assertTrue(self.compiled_with_ccache([]))

    def test_what_a_wheel_brings_is_not(self):
        self.assertFalse(self.compiled_with_ccache(["third_party"]))
