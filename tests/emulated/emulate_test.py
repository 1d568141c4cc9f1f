"""`peakbench emulate` as a user meets it: which programs it refuses and why, exit codes, what it prints and writes, and that the
stand-ins win over vendor libraries beside a program.
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

from given import CUDA_INCLUDE, PEAKBENCH
from terminal import on_terminal

os.environ.pop("CUDA_VISIBLE_DEVICES", None)
CARDS = pathlib.Path(__file__).parents[2] / "emulator/cards"
EMULATOR = pathlib.Path(__file__).resolve().parent.parent.parent / "emulator"
# What a PyTorch for CUDA 12 loads, of those that are called otherwise with CUDA 13.
CUDA12 = {"runtime": "libcudart.so.12", "cublas": "libcublas.so.12", "cublas_lt": "libcublasLt.so.12", "nvrtc": "libnvrtc.so.12",
          "cufft": "libcufft.so.11", "cusolver": "libcusolver.so.11", "cupti": "libcupti.so.12", "nvtx": "libnvToolsExt.so.1"}  # fmt: skip
# Where CUDA 12's headers put what is read here: compiled against those of 12.4 and of 12.9.
CUDA12_PROGRAM = """
import ctypes, json, pathlib, struct
for soname, names in json.loads(pathlib.Path(__file__).with_name("lists.json").read_text()).items():
    library = ctypes.CDLL(soname)
    assert names and all(hasattr(library, name) for name in names), soname
mapped = pathlib.Path("/proc/self/maps").read_text()
assert "libcudart.so.13" not in mapped and "libcublas.so.13" not in mapped

def number(library, function):
    out = ctypes.c_int()
    assert getattr(ctypes.CDLL(library), function)(ctypes.byref(out)) == 0
    return out.value

runtime = ctypes.CDLL("libcudart.so.12")
assert number("libcudart.so.12", "cudaRuntimeGetVersion") == 12040
assert number("libcudart.so.12", "cudaDriverGetVersion") >= 12040
assert number("libnccl.so.2", "ncclGetVersion") == 22105
assert ctypes.CDLL("libcudnn.so.9").cudnnGetVersion() == 90100
assert ctypes.CDLL("libcublasLt.so.12").cublasLtGetVersion() == 120400

record = ctypes.create_string_buffer(b"\\xff" * 1040, 1040)
assert runtime.cudaGetDeviceProperties_v2(record, 0) == 0
at = lambda offset, kind="i": struct.unpack_from(kind, record.raw, offset)[0]
assert record.raw.startswith(b"Tesla V100"), record.raw[:32]
assert at(288, "Q") > 15 << 30 and (at(360), at(364)) == (7, 0)
assert at(388) == 80 and at(608) > 0 and at(348) > 0 and at(384) == 1
assert (at(616), at(624), at(640, "Q"), at(648)) == (6 << 20, 2048, 96 << 10, 65536)
assert (at(652), at(696, "Q"), at(772), at(776)) == (1, 96 << 10, 0, 1)
assert record.raw[1032:] == b"\\xff" * 8

base = ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(base), ctypes.c_size_t(1 << 30)) == 0
record = ctypes.create_string_buffer(b"\\xff" * 96, 96)
assert runtime.cudaPointerGetAttributes(record, base) == 0
assert (at(0), at(4), at(8, "Q")) == (2, 0, base.value) and record.raw[24:] == b"\\xff" * 72
status, capture = ctypes.c_int(7), ctypes.c_ulonglong()
for form, more in (("", 0), ("_v2", 3), ("_v3", 4)):
    function = getattr(runtime, "cudaStreamGetCaptureInfo" + form)
    assert function(None, ctypes.byref(status), ctypes.byref(capture), *[None] * more) == 0 and status.value == 0
assert runtime.cudaMemPrefetchAsync(base, ctypes.c_size_t(512), 0, None) == 0
runtime.cudaFree(base)
"""
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
# GIBIBYTES READY UNTIL: takes them, says whether it was refused and what is free, makes the file READY and ends when UNTIL is there.
SHARES = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cuda_runtime_api.h>
int main(int count, char** words) {
  void* at = 0;
  size_t free_bytes = 0, total = 0;
  int refused = cudaMalloc(&at, (size_t)atoi(words[1]) << 30) == cudaErrorMemoryAllocation;
  cudaMemGetInfo(&free_bytes, &total);
  printf("%s %d\\n", refused ? "refused" : "taken", (int)(free_bytes >> 30));
  fflush(stdout);
  close(open(words[2], O_CREAT | O_WRONLY, 0600));
  for (int i = 0; i < 20000 && access(words[3], F_OK) != 0; ++i) usleep(1000);
  return 0;
}
"""


class EmulateTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-emulate-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def emulate(self, *command, card="h100-80gb", exit_code=0, options=(), **more):
        line = [PEAKBENCH, "emulate", "--details", "--card", card, *options, "--", *command]
        done = subprocess.run(list(map(str, line)), capture_output=True, text=True, **more)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done.stderr

    def compiled(self, text, name, *flags):
        source, program = self.folder / f"{pathlib.Path(name).name}.c", self.folder / name
        source.write_text(text)
        subprocess.run(["cc", "-I", CUDA_INCLUDE, "-o", program, source, *map(str, flags)], check=True)
        return program

    def vendor_runtime(self, major=13):
        """A folder with a CUDA runtime of its own that must never be called."""
        folder = self.folder / f"nvidia/cu{major}/lib"
        folder.mkdir(parents=True)
        soname = f"libcudart.so.{major}"
        source = self.folder / "vendor.c"
        source.write_text("#include <stdlib.h>\nint cudaMalloc(void** at, unsigned long n) { abort(); }\nint cudaFree(void* at) { abort(); }\n")
        script = self.folder / "vendor.map"
        script.write_text(f"{soname} {{ global: *; }};\n")
        library = folder / soname
        flags = (f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, *flags], check=True)
        return library

    def cuda_program(self, *flags, major=13):
        library = self.vendor_runtime(major)
        # As a wheel's libraries find theirs.
        return self.compiled(TAKES_A_GIBIBYTE, f"takes{major}", library, f"-Wl,-rpath,{library.parent}", "-Wl,--disable-new-dtags", *flags)

    def test_stand_ins_win_over_vendor_libraries_beside_the_program(self):
        program = self.cuda_program()
        self.assertEqual(subprocess.run([program]).returncode, -signal.SIGABRT)  # without the card it would
        said = self.emulate(program)
        self.assertEqual(said.splitlines()[1], "Fits h100-80gb: peak 1.000 GiB of 79.179 GiB, context (0.521 GiB) not included; exact.")
        self.assertNotIn("exit code", said)

    def test_a_program_for_cuda_12_whose_pytorch_is_not_known(self):
        """Both sets are there, and its own version of the symbols decides."""
        said = self.emulate(self.cuda_program(major=12))
        self.assertIn("peak 1.000 GiB of 79.179 GiB", said)
        self.assertIn("peak 1.000 GiB", self.emulate(self.cuda_program(), card="h100-80gb,driver=13.0"))
        self.assertIn("peak 1.000 GiB", self.emulate(self.folder / "takes12", card="h100-80gb,driver=12.4"))
        self.emulate(self.folder / "takes13", card="h100-80gb,driver=12.4", exit_code=9)  # too old a driver

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

        done = peakbench("emulate", "--details", "--", self.cuda_program(), 7)
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertIn("peak at least 1.000 GiB of 79.179 GiB", done.stderr)
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
        self.assertEqual(record["context_set_aside_bytes"], 0)
        self.assertEqual([one["bytes"] >> 20 for one in record["context_memory"]], [534])

    def test_the_first_line_of_programs_that_fail_or_are_ended(self):
        program = self.cuda_program()
        for command, exit_code, begins in (
            ((program, 7), 7, "Failed on h100-80gb (exit code 7), not for lack of its memory: until then peak at least 1.000 GiB of"),
            (("sh", "-c", f"{program}; kill -9 $$"), 137, "Ended by signal 9 (Killed) on h100-80gb: until then peak at least 1.000 GiB of"),
            (("false",), 1, "Used no card and ended with exit code 1: the program did not use CUDA"),
        ):
            with self.subTest(begins):
                out = self.folder / "took.json"
                line = self.emulate(*command, exit_code=exit_code, options=["--json", out]).splitlines()[1]
                self.assertTrue(line.startswith(begins), line)
                answer = json.loads(out.read_text())["answer"]
                self.assertEqual((answer["fits"], answer["sentence"]), (None, line))

    def on_terminal(self, columns, *command, card="h100-80gb", **environment):
        """What stderr gets where it is a window of so many columns."""
        variables = {**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, "TERM": "xterm", **environment}
        return on_terminal([PEAKBENCH, "emulate", "--details", "--card", card, "--", *command], columns, stdin=None, stdout=None, env=variables)[1]

    def test_colours_on_a_terminal_and_columns_as_it_has(self):
        program = self.cuda_program()
        wide = self.on_terminal(120, program)
        self.assertTrue(wide.startswith("\n\x1b[32mFits h100-80gb\x1b[0m: peak 1.000 GiB"), wide)
        self.assertIn("peak, bytes", wide)
        narrow = self.on_terminal(40, program)
        self.assertIn("allocated", narrow)
        self.assertNotIn("peak, bytes", narrow)
        self.assertTrue(self.on_terminal(80, program, card="t4-16gb,memory=512MiB").startswith("\n\x1b[31mDoes not fit t4-16gb"))
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\x1b", self.on_terminal(80, program, **environment))
        self.assertNotIn("\x1b", self.emulate(program), "a file")

    def test_the_context_is_a_line_of_its_own_and_in_no_figure(self):
        program = self.cuda_program()
        said = self.emulate(program)
        self.assertIn("\nCUDA context: not in these figures; 534 MiB were measured on such a card (", said)
        self.assertIn("; github.com/", said)
        self.assertIn(" 1073741824\n", said)
        said = self.emulate(program, card="t4-16gb,context=1GiB")
        self.assertIn("\nCUDA context: 1.000 GiB set aside for each process, in the answer's peak and in no other figure; how much it takes of "
                      "this card is unknown.\n", said)
        self.assertIn(": peak 2.000 GiB of 14.748 GiB, context (1.000 GiB) included; exact.\n", said)
        self.assertIn(" 1073741824\n", said)

    def test_list_devices_says_what_is_known_of_the_context(self):
        def listed(*more):
            return subprocess.run([PEAKBENCH, "list", "devices", *more], capture_output=True, text=True, check=True).stdout

        cards = {one["id"]: one for one in json.loads(listed("--json")) if one["emulated"]}
        self.assertEqual(set(cards), {f"emulated:{path.stem}" for path in CARDS.glob("*.json")})
        self.assertEqual(cards["emulated:t4-16gb"]["context_memory"], [])
        h100 = json.loads((CARDS / "h100-80gb.json").read_text())
        self.assertEqual(cards["emulated:h100-80gb"]["context_memory"], h100["context_memory"])
        lines = listed().splitlines()
        after = {line.split()[0]: line for line in lines if line.startswith("emulated:")}
        self.assertRegex(after["emulated:h100-80gb"], r"^emulated:h100-80gb +79\.179 GiB +9\.0 +534 MiB  NVIDIA H100 SXM5 80 GB$")
        self.assertRegex(after["emulated:t4-16gb"], r"^emulated:t4-16gb +14\.748 GiB +7\.5 +NVIDIA T4 16 GB$", "none is known")
        self.assertLessEqual(max(map(len, after.values())), 100)  # the line of this machine's processor has its name

    def test_memory_runs_out(self):
        said = self.emulate(self.cuda_program(), card="t4-16gb,memory=512MiB", exit_code=9)
        line = said.splitlines()[1]
        self.assertRegex(line, r"^Does not fit t4-16gb,memory=512MiB: asked for 1\.000 GiB \(\w+\) with 0 B in use of 0\.500 GiB, context ")
        self.assertIn("out of memory: the card refused one request, PyTorch's second tries included; the largest that was refused: 1.000 GiB", said)

    def share(self, script, card="h100-80gb"):
        """What the program's processes said, in order; `$share` is SHARES, `until_there FILE` waits for a file."""
        program = self.compiled(SHARES, "share", PEAKBENCH.parent.parent / "lib/peakbench/emulator/libcudart.so.13",
                                "-Wl,--allow-shlib-undefined")
        out = self.folder / "took.json"
        script = f'cd {self.folder}; share={program}; until_there() {{ while [ ! -e $1 ]; do sleep 0.01; done; }}\n{script}'
        done = subprocess.run([PEAKBENCH, "emulate", "--details", "--card", card, "--json", out, "--", "sh", "-c", script], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.said, self.took = done.stderr, json.loads(out.read_text())
        return done.stdout.split("\n")[:-1]

    def test_processes_share_a_card(self):
        self.assertEqual(self.share("$share 50 a end & until_there a; $share 50 b b; touch end; wait; $share 60 c c"),
                         ["taken 29", "refused 29", "taken 19"])
        line = self.said.splitlines()[1]
        self.assertRegex(line, r"^Ran out of memory of h100-80gb once and continued: asked for 50\.000 GiB \(\w+\) with 50\.000 GiB in use "
                               r"\(process \d+\); peak 60\.000 GiB of 79\.179 GiB \(process \d+\), context \(0\.521 GiB\) not included; exact if")
        self.assertIs(self.took["answer"]["out_of_memory"]["swallowed"], True)
        self.assertEqual(self.took["answer"]["peak_bytes"], 60 << 30)
        self.assertEqual([(card["index"], card["peak_used_bytes"]) for card in self.took["cards"]], [(0, 60 << 30)])
        self.assertIn("out of memory: the card refused one request", self.said)

    def test_processes_that_hold_a_card_together(self):
        self.share("$share 30 a end & until_there a; $share 40 b b; touch end; wait")
        self.assertIn(": peak 70.000 GiB of 79.179 GiB (card 0, 2 processes together), contexts (2 of 0.521 GiB) not included;", self.said)
        self.assertIn(f"card 0  peak 70.000 GiB of 79.179 GiB  ({70 << 30} bytes; 2 processes together)", self.said)

    def test_of_those_that_come_one_after_another_the_ones_of_the_peak_count(self):
        self.share("$share 30 a end & until_there a; $share 20 b b; $share 40 c c; touch end; wait")
        self.assertIn(": peak 70.000 GiB of 79.179 GiB (card 0, 2 processes together), contexts (2 of 0.521 GiB) not included;", self.said)

    def test_ranks_that_the_environment_tells(self):
        """As torchrun does."""
        self.share("for rank in 1 0; do RANK=$rank WORLD_SIZE=2 CUDA_VISIBLE_DEVICES=$rank $share $((20 + rank)) $rank $rank; done",
                   card="h100-80gb,count=2")
        self.assertIn(": peak 21.000 GiB of 79.179 GiB (rank 1), context (0.521 GiB) not included;", self.said)
        self.assertEqual((self.took["answer"]["rank"], self.took["answer"]["card"]), (1, 1))
        lines = self.said.splitlines()
        head = next(i for i, line in enumerate(lines) if line.startswith("rank "))
        self.assertRegex(lines[head + 1], r"^0 +\d+ .* 20\.000 GiB ")
        self.assertRegex(lines[head + 2], r"^1 +\d+ .* 21\.000 GiB ")

    def test_a_process_may_end_after_the_program(self):
        self.assertEqual(self.share("$share 50 a end & until_there a; (sleep 0.5; touch end) &"), ["taken 29"])
        self.assertEqual([process["finished"] for process in self.took["processes"]], [True])
        self.assertEqual(self.took["verdict"]["kind"], "exact if", self.said)

    def test_a_process_that_the_program_leaves_running(self):
        self.assertEqual(self.share("$share 50 a end & until_there a; (sleep 8; touch end) &"), ["taken 29"])
        self.assertRegex(self.said, r"peakbench: waiting for process \d+, which the program left running\n")
        self.assertRegex(self.said, r"process \d+ \(did not end by itself\)")
        self.assertEqual(self.took["verdict"]["kind"], "lower bound", self.said)

    def test_what_a_killed_process_had_is_given_back(self):
        self.assertEqual(self.share("$share 50 a end & until_there a; kill -9 $!; wait; $share 70 b b"), ["taken 29", "taken 9"])

    def test_contexts_of_processes_that_share_a_card(self):
        self.assertEqual(self.share("$share 30 a end & until_there a; $share 30 b b; $share 48 c c; touch end; wait", card="h100-80gb,context=1GiB"),
                         ["taken 48", "taken 17", "refused 47"])

    def test_cards_are_told_apart_however_they_are_numbered(self):
        script = """$share 50 a end & until_there a
        CUDA_VISIBLE_DEVICES=1 $share 50 b end & until_there b
        CUDA_VISIBLE_DEVICES=1,0 $share 50 c c
        CUDA_VISIBLE_DEVICES=0,1 $share 20 d d
        touch end; wait"""
        self.assertEqual(self.share(script, card="h100-80gb,count=2"), ["taken 29", "taken 29", "refused 29", "taken 9"])
        self.assertEqual(sorted(process["devices"][0]["card"] for process in self.took["processes"]), [0, 0, 1, 1])
        self.assertEqual([card["peak_used_bytes"] >> 30 for card in self.took["cards"]], [70, 50])

    def test_a_program_that_does_not_use_cuda(self):
        said = self.emulate("true")
        self.assertIn("did not use CUDA", said)
        self.assertIn("another major version of CUDA", said)

    def test_a_program_without_the_environment(self):
        self.assertIn("LD_PRELOAD must reach the program", self.emulate("env", "-i", shutil.which("true")))

    def test_a_program_that_cannot_be_started(self):
        script = self.folder / "train.sh"
        script.write_text("#!/bin/sh\n")
        said = self.emulate(script, exit_code=2)
        self.assertIn("train.sh was not started: Permission denied. Make it executable", said)
        self.assertNotIn("did not use CUDA", said)

    def test_paths_with_spaces(self):
        folder = self.folder / "a b"
        folder.mkdir()
        program = shutil.copy(self.cuda_program(), folder / "takes some")
        card = json.loads((PEAKBENCH.parent.parent / "lib/peakbench/emulator/cards/t4-16gb.json").read_text())
        (folder / "my card.json").write_text(json.dumps(card))
        out = folder / "took what.json"
        said = self.emulate(program, card=folder / "my card.json", options=["--json", out], env={**os.environ, "TMPDIR": str(folder)})
        self.assertIn("peak 1.000 GiB", said)
        self.assertEqual(json.loads(out.read_text())["processes"][0]["devices"][0]["peak_malloc_bytes"], 1 << 30)

    def test_a_temporary_folder_that_is_missing(self):
        said = self.emulate("true", exit_code=2, env={**os.environ, "TMPDIR": "/no/such/folder"})
        self.assertIn("in /no/such/folder: No such file or directory; set TMPDIR to a folder", said)
        self.emulate("true", env={**os.environ, "TMPDIR": ""})

    def test_texts_of_statuses(self):
        """Functions that give a text give one, whatever the status; a number in its place would end the program."""
        program = self.folder / "texts.py"
        program.write_text(
            "import ctypes\n"
            "for library, functions in {'libcublas.so.13': 'cublasGetStatusName cublasGetStatusString',\n"
            "                           'libcublasLt.so.13': 'cublasLtGetStatusName cublasLtGetStatusString',\n"
            "                           'libcusparse.so.12': 'cusparseGetErrorName cusparseGetErrorString',\n"
            "                           'libcudnn.so.9': 'cudnnGetErrorString', 'libnvrtc.so.13': 'nvrtcGetErrorString',\n"
            "                           'libnccl.so.2': 'ncclGetErrorString pncclGetErrorString',\n"
            "                           'libcusparseLt.so.0': 'cusparseLtGetErrorName cusparseLtGetErrorString',\n"
            "                           'libcudart.so.13': 'cudaGetErrorName cudaGetErrorString'}.items():\n"
            "    for name in functions.split():\n"
            "        function = getattr(ctypes.CDLL(library), name)\n"
            "        function.restype = ctypes.c_char_p\n"
            "        for status in (0, 1, 10, 999):\n"
            "            assert len(function(status)) > 3, name\n"
        )
        self.emulate(sys.executable, program)

    def test_all_that_the_vendors_export(self):
        """What is not emulated is refused by its name, and a way round is told."""
        program = self.folder / "more.py"
        program.write_text(
            "import ctypes\n"
            "assert ctypes.CDLL('libcusolver.so.12').cusolverRfCreate(None) == 9\n"
            "assert ctypes.CDLL('libcurand.so.10').curandCreateGenerator(None, 0) == 999\n"
            "assert ctypes.CDLL('libcuda.so.1').cuArrayCreate_v2(None, None) == 801\n"
        )
        said = self.emulate(sys.executable, program)
        for name in ("cusolverRfCreate", "curandCreateGenerator", "cuArrayCreate_v2"):
            self.assertIn(f"refused  {name}: 1 call", said)
        self.assertIn("a way round: torch.linalg on the CPU", said)

    def with_torch(self, version, exit_code=2, program="print('trained')\n", architectures="", **more):
        """What is said of a program whose PyTorch has this version.py."""
        package = self.folder / "torch"
        (package / "lib").mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text("raise SystemExit('torch is not imported to look at its version')\n")
        (package / "version.py").write_text(version)
        (package / "lib/libtorch_python.so").write_bytes(f"\0sm_1\0 sm_90\0{architectures}\0".encode())
        (self.folder / "train.py").write_text(program)
        return self.emulate(sys.executable, "-u", self.folder / "train.py", exit_code=exit_code, **more)

    def test_a_torch_that_cannot_work_is_refused_before_the_program_starts(self):
        facts = "from typing import Optional\n__version__ = '{}'\ncuda: Optional[str] = {}\nhip: Optional[str] = {}\n"
        self.assertIn("built without CUDA", self.with_torch(facts.format("2.11.0+cpu", None, None)))
        self.assertIn("built for ROCm 6.4.1", self.with_torch(facts.format("2.11.0+rocm6.4", None, "'6.4.1'")))
        self.assertIn("too old: the emulated card works with PyTorch 2.6", self.with_torch(facts.format("2.5.1+cu124", "'12.4'", None)))
        other = self.with_torch(facts.format("2.6.0+cu118", "'11.8'", None))
        self.assertIn("PyTorch 2.6.0+cu118 in " + str(self.folder / "torch"), other)
        self.assertIn("is built for CUDA 11.8; this emulated card has the libraries of CUDA 12 and 13", other)
        named = self.with_torch(facts.format("2.12.1+cu132", "'13.2'", None), exit_code=0)
        self.assertIn(f"PyTorch 2.12.1+cu132, in {self.folder / 'torch'}", named)

    def test_the_stand_ins_are_those_of_the_programs_torch(self):
        """A PyTorch for CUDA 12.4: the libraries, what they say of themselves, and CUDA 12's records and forms of functions."""
        (self.folder / "torch-2.6.0.dist-info").mkdir()
        (self.folder / "torch-2.6.0.dist-info/METADATA").write_text(
            "Requires-Dist: nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system\nRequires-Dist: nvidia-nccl-cu12==2.21.5; platform_system\n"
        )
        lists = {name: sorted(self.listed(name)) for name in CUDA12}
        (self.folder / "lists.json").write_text(json.dumps({CUDA12[name]: names for name, names in lists.items()}))
        version = "__version__ = '2.6.0+cu124'\ncuda = '12.4'\n"
        out = self.folder / "took.json"
        self.with_torch(version, 0, CUDA12_PROGRAM, "sm_70 sm_80 sm_90", card="v100-16gb", options=["--json", out, "--no-compute"])
        took = json.loads(out.read_text())
        self.assertEqual(took["processes"][0]["devices"][0]["peak_malloc_bytes"], 1 << 30)
        self.assertEqual(took["processes"][0]["refused"], [])
        said = self.with_torch(version, 2, "", "sm_70 sm_80", card="h100-80gb")
        self.assertIn("LibTorch 2.6.0+cu124 has code for sm_70, sm_80 alone", said)

    def test_versions_of_a_torch_that_only_the_process_finds(self):
        """A shell starts the program: the launcher cannot know, so the stand-ins look beside the loaded PyTorch."""
        (self.folder / "site/torch-2.7.0.dist-info").mkdir(parents=True)
        (self.folder / "site/torch-2.7.0.dist-info/METADATA").write_text(
            "Name: torch\nRequires-Dist: nvidia-cudnn-cu12==9.5.1.17; platform_system\nRequires-Dist: nvidia-nccl-cu12==2.26.2; x\n\n==1.2.3\n"
        )
        (self.folder / "site/torch/lib").mkdir(parents=True)
        library = self.compiled("int nothing;\n", "site/torch/lib/libtorch_cpu.so", "-shared", "-fPIC")
        program = self.folder / "versions.py"
        program.write_text(
            f"import ctypes\nctypes.CDLL('{library}')\nassert ctypes.CDLL('libcudnn.so.9').cudnnGetVersion() == 90501\n"
            "out = ctypes.c_int()\nctypes.CDLL('libnccl.so.2').ncclGetVersion(ctypes.byref(out))\nassert out.value == 22602\n"
        )
        self.emulate("sh", "-c", f"{sys.executable} {program}")

    # PyTorch 2.6 is such a program: it reads PYTORCH_CUDA_ALLOC_CONF by a regular expression.
    def test_a_program_of_the_old_abi_keeps_its_own_templates(self):
        source, library = self.folder / "old.cpp", self.folder / "libold.so"
        source.write_text(
            '#include <regex>\nextern "C" int finds() { std::string text = "expandable_segments:True";\n'
            'return std::regex_search(text, std::regex("[[:alpha:]_]+:([A-Z])")); }\n')
        subprocess.run(["c++", "-shared", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=0", "-o", library, source], check=True)
        self.emulate(sys.executable, "-c", f"import ctypes\nassert ctypes.CDLL('{library}').finds() == 1")

    def listed(self, library):
        names, cuda = set(), None
        for line in (EMULATOR / library / "exports.txt").read_text().splitlines():
            if line.startswith("["):
                cuda = line
            elif not line.startswith("#") and cuda in (None, "[12]"):
                names.add(line)
        return names

    def nvidia_smi(self, *arguments, exit_code=0, card="h100-80gb,count=2"):
        out = self.folder / "said"
        done = ("import subprocess, sys\ndone = subprocess.run(['nvidia-smi', *sys.argv[1:]], capture_output=True, text=True)\n"
                f"open('{out}', 'w').write(done.stdout)\nsys.exit(done.returncode)\n")
        (self.folder / "asks.py").write_text(done)
        self.emulate(sys.executable, self.folder / "asks.py", *arguments, card=card, exit_code=exit_code)
        return out.read_text().splitlines()

    def test_nvidia_smi_lists_the_cards(self):
        lines = self.nvidia_smi("-L")
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[1], r"^GPU 1: NVIDIA H100 80GB HBM3 \(UUID: GPU-7065616b-[0-9a-f-]+01\)$")

    def test_nvidia_smi_answers_queries(self):
        query = "--query-gpu=index,name,memory.total,memory.used, utilization.gpu,power.draw"
        self.assertEqual(self.nvidia_smi(query, "--format=csv", "-i", 1),
                         ["index, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%], power.draw [W]",
                          "1, NVIDIA H100 80GB HBM3, 81079 MiB, 0 MiB, 0 %, 50.00 W"])  # fmt: skip
        self.assertEqual(self.nvidia_smi("--query-gpu=memory.free,memory.total", "--format=csv,noheader,nounits"), ["81079, 81079"] * 2)
        self.assertIn("81079MiB", "\n".join(self.nvidia_smi()))

    def test_nvidia_smi_refuses_the_rest_by_name(self):
        self.assertIn("has no -q;", self.nvidia_smi("-q", exit_code=2)[0])
        self.assertIn('Field "ecc.errors" is not a valid field', self.nvidia_smi("--query-gpu=ecc.errors", "--format=csv", exit_code=2)[0])
        self.assertIn("No devices were found: 7", self.nvidia_smi("-i", 7, exit_code=2)[0])

    def test_nvidia_smi_sees_what_processes_have_taken(self):
        ask = "nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits"
        apps = "nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader"
        said = self.share(f"$share 50 a end & until_there a; {ask}; test $({apps} | cut -d, -f1) = $!; touch end; wait; {ask}")
        self.assertEqual(sorted(said), sorted(["taken 29", str(50 << 10), "0"]))

    def test_nvml_answers_loggers(self):
        program = self.folder / "logs.py"
        program.write_text(
            "import ctypes\n"
            "nvml = ctypes.CDLL('libnvidia-ml.so.1')\n"
            "card, number = ctypes.c_void_p(), ctypes.c_uint()\n"
            "assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card)) == 0\n"
            "def ask(name, *which):\n"
            "    assert getattr(nvml, name)(card, *which, ctypes.byref(number)) == 0, name\n"
            "    return number.value\n"
            "assert 0 < ask('nvmlDeviceGetTemperature', 0) < 90\n"
            "assert ask('nvmlDeviceGetClockInfo', 1) == 1980 and ask('nvmlDeviceGetClockInfo', 2) == 2619\n"
            "assert 0 < ask('nvmlDeviceGetPowerUsage') < ask('nvmlDeviceGetEnforcedPowerLimit')\n"
            "rates = (ctypes.c_uint * 2)(7, 7)\n"
            "assert nvml.nvmlDeviceGetUtilizationRates(card, rates) == 0 and max(rates) <= 100\n"
            "assert nvml.nvmlDeviceGetTemperature(None, 0, ctypes.byref(number)) == 2\n"
        )
        said = self.emulate(sys.executable, program)
        self.assertNotIn("refused", said)

    def test_a_program_that_is_killed(self):
        said = self.emulate("sh", "-c", "kill -9 $$", exit_code=137)
        self.assertIn("ended with signal 9", said)

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
