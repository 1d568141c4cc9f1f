"""emulator/generate.py on a LibTorch that imports what the stand-ins do not cover: it is named, and never answered by a guess."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from given import TORCH

EMULATOR = pathlib.Path(__file__).resolve().parent.parent.parent / "emulator"


class GenerateTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-generate-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.scan = self.folder / "scan.json"

    def generate(self, *arguments):
        command = [sys.executable, EMULATOR / "generate.py", *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True)

    def library(self, name, needed):
        """A shared library that needs another."""
        (self.folder / "torch/lib").mkdir(parents=True, exist_ok=True)
        source, wanted = self.folder / "empty.c", self.folder / needed
        source.write_text("int nothing_at_all;\n")
        for target, flags in ((wanted, [f"-Wl,-soname,{needed}"]), (self.folder / "torch/lib" / name, ["-Wl,--no-as-needed", wanted])):
            subprocess.run(["cc", "-shared", "-fPIC", "-o", target, source, *flags], check=True)

    def test_a_library_without_a_stand_in_is_named(self):
        shutil.copytree(TORCH / "lib", self.folder / "torch/lib", copy_function=lambda a, b: pathlib.Path(b).symlink_to(a))
        self.library("libtorch_more.so", "libcutensor.so.2")
        done = self.generate("scan", self.folder / "torch", self.scan)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("libcutensor.so.2", done.stderr)

    def test_a_new_function_is_named_and_refused(self):
        self.assertEqual(self.generate("scan", TORCH, self.scan).returncode, 0)
        scan = json.loads(self.scan.read_text())
        functions = scan["libraries"]["cublas"]["functions"]
        functions.append("cublasBrandNew")
        self.scan.write_text(json.dumps(scan))
        stubs, exports = self.folder / "stubs.c", self.folder / "exports.map"
        done = self.generate("stubs", self.scan, "cublas", EMULATOR / "cublas/entry_points.txt", stubs, exports)
        self.assertNotEqual(done.returncode, 0, "nothing is written by hand here")
        self.assertIn("cublasGetStatusName gives a text, which a stub cannot", done.stderr)
        for text in ("cublasGetStatusName", "cublasGetStatusString"):
            functions.remove(text)
        self.scan.write_text(json.dumps(scan))
        done = self.generate("stubs", self.scan, "cublas", EMULATOR / "cublas/entry_points.txt", stubs, exports)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cublasBrandNew", done.stdout + done.stderr)
        self.assertIn('peakbench_emulator_refuse("cublasBrandNew")', stubs.read_text())
        self.assertIn("cublasBrandNew;", exports.read_text())

    def test_a_list_that_is_malformed_is_told_with_its_line(self):
        self.assertEqual(self.generate("scan", TORCH, self.scan).returncode, 0)
        wrong = self.folder / "entry_points.txt"
        wrong.write_text("[no-op] a reason\ncublasCreate_v2\n[guess] whatever\n")
        done = self.generate("stubs", self.scan, "cublas", wrong, self.folder / "s.c", self.folder / "e.map")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("entry_points.txt:3", done.stderr)

    def test_stubs_give_handles_and_ask_for_a_card(self):
        library = {"soname": "libcudart.so.13", "node": "", "functions": ["cudaHandle", "cudaReady"]}
        self.scan.write_text(json.dumps({"libraries": {"runtime": library}}))
        rules, stubs = self.folder / "entry_points.txt", self.folder / "stubs.c"
        rules.write_text("[handle] a reason\ncudaHandle\n[ready] another\ncudaReady\n")
        done = self.generate("stubs", self.scan, "runtime", rules, stubs, self.folder / "exports.map")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cudaHandle(long a0) { return peakbench_emulator_give_handle((void**)a0); }", stubs.read_text())
        self.assertIn("cudaReady(void) { return peakbench_ready(); }", stubs.read_text())

    def test_lists_of_exports_are_kept_by_cuda(self):
        source, library, exports = self.folder / "vendor.c", self.folder / "vendor.so", self.folder / "exports.txt"
        for major, names in (("13", "cudaBoth cudaNew"), ("12", "cudaBoth cudaOld"), ("13", "cudaBoth cudaNewer other")):
            source.write_text("".join(f"int {name}(void) {{ return 0; }}\n" for name in names.split()))
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
            done = self.generate("exports", exports, major, library)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(exports.read_text().split("\n")[1:], ["cudaBoth", "[12]", "cudaOld", "[13]", "cudaNew", "cudaNewer", ""])

    def test_libraries_of_a_cuda_without_its_libtorch(self):
        self.assertEqual(self.generate("listed", "12", self.scan).returncode, 0)
        libraries = json.loads(self.scan.read_text())["libraries"]
        self.assertEqual(libraries["runtime"]["soname"], "libcudart.so.12")
        self.assertEqual(libraries["cusolver"]["node"], "libcusolver.so.11")
        self.assertIn("cudaGetDeviceProperties_v2", libraries["runtime"]["functions"])
        self.assertNotIn("cudaLogsCurrent", libraries["runtime"]["functions"])
        self.assertNotIn("cudnn", libraries, "one library for every CUDA")
