"""What `pip install .` compiles without a PyTorch."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from given import BUILD, CMAKE

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DEFAULT = next(line.split()[0] for line in (REPOSITORY / "cmake/libtorch_releases.txt").read_text(encoding="utf-8").splitlines() if line[0].isdigit())
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
list(APPEND CMAKE_MODULE_PATH {REPOSITORY}/cmake)
project(sources LANGUAGES C CXX)
set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)
set(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH OFF)
include(PeakbenchDependencies)
"""


class Sources(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench-sources-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def test_what_is_listed_of_the_default_release_is_what_it_imports(self):
        facts = json.loads((BUILD / "lib/peakbench/emulator/libtorch.json").read_text(encoding="utf-8"))
        if facts["version"].partition("+")[0] != DEFAULT:
            self.skipTest(f"this build has LibTorch {facts['version']}")
        listed = self.folder / "listed.json"
        subprocess.run([sys.executable, REPOSITORY / "emulator/generate.py", "released", REPOSITORY / "emulator/released.json", listed], check=True)
        scanned = json.loads((BUILD / "emulator/scan.json").read_text(encoding="utf-8"))
        self.assertGreater(sum(len(one["functions"]) for one in scanned["libraries"].values()), 5000)
        self.assertEqual(json.loads(listed.read_text(encoding="utf-8")), scanned)

    def test_one_sentence_names_the_libraries_that_are_missing(self):
        (self.folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
        done = subprocess.run([CMAKE, "-S", self.folder, "-B", self.folder / "build", "-G", "Ninja", "-DPEAKBENCH_CARRIED=ON",
                               "-DPEAKBENCH_PROGRAM_ONLY=ON"],
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        self.assertNotEqual(done.returncode, 0)
        said = " ".join(done.stderr.split())
        for part in ("Libraries that Peakbench is compiled with are missing: nlohmann/json.hpp (nlohmann-json3-dev), ", "CLI/CLI.hpp (libcli11-dev)",
                     "toml++/toml.h (libtomlplusplus-dev)", "sqlite3.h (libsqlite3-dev)", "Install them: ci/packages does"):  # fmt: skip
            self.assertIn(part, said)
        self.assertEqual(said.count("CMake Error"), 1, said)

    def test_a_workers_sources_are_laid_out_whole_and_without_git_too(self):
        with_git, without = self.folder / "with", self.folder / "without"
        subprocess.run([REPOSITORY / "ci/wheel_sources", with_git, self.folder / "licences"], check=True)
        (self.folder / "git").write_text("#!/bin/sh\nexit 128\n", encoding="utf-8")
        (self.folder / "git").chmod(0o755)
        path = {"PATH": f"{self.folder}:/usr/bin:/bin"}
        subprocess.run([REPOSITORY / "ci/wheel_sources", without, self.folder / "licences"], check=True, env=path)
        names = {file.relative_to(with_git) for file in with_git.rglob("*") if file.is_file()}
        for name in ("CMakeLists.txt", "harness/worker/main.cpp", "plugins/lora/plugin.json", "third_party/include/sqlite3.h", "third_party/lib/libsqlite3.a"):
            self.assertIn(pathlib.Path(name), names)
        self.assertFalse({name for name in names if name.suffix == ".py"})
        self.assertEqual(names - {file.relative_to(without) for file in without.rglob("*") if file.is_file()}, set())
