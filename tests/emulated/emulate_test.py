"""`peakbench emulate` as a user meets it: which programs it refuses and why, exit codes, what it prints and writes, and that the
stand-ins win over vendor libraries beside a program.

usage: emulate_test.py PEAKBENCH CUDA_INCLUDE
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

CUDA_INCLUDE = pathlib.Path(sys.argv.pop(2))
PEAKBENCH = pathlib.Path(sys.argv.pop(1)).resolve()
TAKES_A_GIBIBYTE = """
#include <stdlib.h>
#include <cuda_runtime_api.h>
int main(int count, char** words) {
  void* at = 0;
  if (cudaMalloc(&at, 1u << 30) != cudaSuccess) return 9;
  cudaFree(at);
  return count > 1 ? atoi(words[1]) : 0;
}
"""


class EmulateTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-emulate-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def emulate(self, *command, card="h100-80gb", exit_code=0, options=(), **more):
        line = [PEAKBENCH, "emulate", "--card", card, *options, "--", *command]
        done = subprocess.run(list(map(str, line)), capture_output=True, text=True, **more)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done.stderr

    def compiled(self, text, name, *flags):
        source, program = self.folder / f"{name}.c", self.folder / name
        source.write_text(text)
        subprocess.run(["cc", "-I", CUDA_INCLUDE, "-o", program, source, *map(str, flags)], check=True)
        return program

    def vendor_runtime(self):
        """A folder with a CUDA runtime of its own that must never be called."""
        folder = self.folder / "nvidia/cu13/lib"
        folder.mkdir(parents=True)
        source = self.folder / "vendor.c"
        source.write_text("#include <stdlib.h>\nint cudaMalloc(void** at, unsigned long n) { abort(); }\nint cudaFree(void* at) { abort(); }\n")
        script = self.folder / "vendor.map"
        script.write_text("libcudart.so.13 { global: *; };\n")
        library = folder / "libcudart.so.13"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-Wl,-soname,libcudart.so.13", f"-Wl,--version-script={script}"], check=True)
        return folder

    def cuda_program(self, *flags):
        folder = self.vendor_runtime()
        # As a wheel's libraries find theirs.
        return self.compiled(TAKES_A_GIBIBYTE, "takes", folder / "libcudart.so.13", f"-Wl,-rpath,{folder}", "-Wl,--disable-new-dtags", *flags)

    def test_stand_ins_win_over_vendor_libraries_beside_the_program(self):
        program = self.cuda_program()
        self.assertEqual(subprocess.run([program]).returncode, -signal.SIGABRT)  # without the card it would
        said = self.emulate(program)
        self.assertIn("peak 1.000 GiB of 79.179 GiB", said)
        self.assertIn("The program's exit code: 0.", said)

    def test_an_installation_whose_path_the_loader_would_split(self):
        prefix = self.folder / "a b:c"
        (prefix / "bin").mkdir(parents=True)
        built = PEAKBENCH.parent.parent
        for name in ("peakbench", "peakbench-worker"):
            shutil.copy(built / "bin" / name, prefix / "bin")
        for name in ("lib", "share"):
            (prefix / name).symlink_to(built / name)
        temporary = self.folder / "tmp"
        temporary.mkdir()

        def peakbench(*arguments):
            done = subprocess.run([prefix / "bin/peakbench", *map(str, arguments)], capture_output=True, text=True, cwd=self.folder,
                                  env={**os.environ, "TMPDIR": str(temporary)}, timeout=200)
            self.assertEqual(list(temporary.iterdir()), [], "links are gone")
            return done

        done = peakbench("emulate", "--", self.cuda_program(), 7)
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertIn("peak 1.000 GiB of 79.179 GiB", done.stderr)
        self.assertIn("the worker makes a tensor there", peakbench("doctor").stdout)
        done = peakbench("run", "--model", "vit-b-16,layers=1,width=48,mlp=64,image=32", "--strategy", "baseline", "--device",
                         "emulated:h100-80gb", "--out", "out", "--no-report")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_figures_and_exit_code(self):
        out = self.folder / "took.json"
        self.emulate(self.cuda_program(), 7, exit_code=7, options=["--json", out])
        record = json.loads(out.read_text())
        self.assertIs(record["emulated"], True)
        self.assertEqual(record["exit_code"], 7)
        self.assertEqual(record["processes"][0]["devices"][0]["peak_malloc_bytes"], 1 << 30)

    def test_memory_runs_out(self):
        said = self.emulate(self.cuda_program(), card="t4-16gb,memory=512MiB", exit_code=9)
        self.assertIn("out of memory 1 times; the largest that was refused: 1.000 GiB", said)

    def test_a_program_that_does_not_use_cuda(self):
        said = self.emulate("true")
        self.assertIn("did not use CUDA", said)
        self.assertIn("another major version of CUDA", said)

    def test_a_program_that_is_killed(self):
        said = self.emulate("sh", "-c", "kill -9 $$", exit_code=137)
        self.assertIn("ended by signal 9", said)

    def test_statically_linked(self):
        program = self.compiled("int main(void) { return 0; }\n", "alone", "-static")
        said = self.emulate(program, exit_code=2)
        self.assertIn("is linked statically", said)
        self.assertIn("-cudart shared", said)

    def test_the_cuda_runtime_inside_the_program(self):
        """As nvcc links by default: device code in the program, and no shared runtime."""
        program = self.compiled("int main(void) { return 0; }\n", "inside")
        code = self.folder / "fatbin"
        code.write_bytes(b"\x50\xed\x55\xba" * 16)
        subprocess.run(["objcopy", "--add-section", f".nv_fatbin={code}", program], check=True)
        said = self.emulate(program, exit_code=2)
        self.assertIn("has the CUDA runtime linked into it", said)
        self.assertIn("CUDA_RUNTIME_LIBRARY Shared", said)

    def test_bad_words(self):
        self.assertIn('did you mean "h100-80gb"?', self.emulate("true", card="h100-80g", exit_code=2))
        self.assertIn("compute capability 7.0", self.emulate("true", card="v100-16gb", exit_code=2))
        self.assertIn("memory=0", self.emulate("true", card="h100-80gb,memory=0", exit_code=2))
        self.assertIn("16TiB", self.emulate("true", card="h100-80gb,memory=1000TiB", exit_code=2))
        self.assertIn("no such program", self.emulate("no-such-program", exit_code=2))
        unwritable = self.emulate("true", options=["--json", "/no/such/folder/took.json"], exit_code=2)
        self.assertIn("/no/such/folder/took.json: cannot be written", unwritable)
        self.assertIn("no program to run", self.emulate(exit_code=2))

    def test_a_real_card_where_there_is_none(self):
        if any(pathlib.Path("/proc/driver/nvidia/gpus").glob("*")):
            self.skipTest("this machine has a CUDA card")
        command = [PEAKBENCH, "run", "--model", "vit-b-16", "--strategy", "baseline", "--device", "cuda:0", "--out", self.folder / "out"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        for words in ("no CUDA card that its driver shows", "--device emulated:h100-80gb", "peakbench doctor"):
            self.assertIn(words, done.stderr)
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    unittest.main()
