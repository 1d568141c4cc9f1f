"""A corpus of programs as their users write them (corpus/*.py), each run by `peakbench emulate`: it ends as expected, with the expected
verdict and the expected bytes. What holds the bytes is none of ours, and stands behind `Truth:` in its docstring:

the CPU's run    it prints the sizes that depend on data (lines that begin with `size`), and the same program prints the same on the CPU
a twin           the same program with PROGRAM_TWIN set, whose sizes are constant, takes the same bytes
a closed form    the program asserts what is allocated
none             nobody can know; it is then not `exact`

The bytes were recorded with one release of PyTorch; with another they are not compared.
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import record_file
from given import ALL, ONLY, ORACLE as PYTHON, PEAKBENCH, UPDATE
from table import truth, why

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
EXPECTED = HERE / "expected.json"
CARD = "h100-80gb"
SKIPPED = 77
SECONDS = 600
QUICK = ("nms_of_host_boxes", "moe_router", "loop_until_converged", "gaussian_process", "amp_grad_scaler", "memory_assertions",
         "smaller_batch_after_out_of_memory", "sparse_embedding", "speculative_decoding", "gaussians_pruned", "momentum_queue")  # fmt: skip
REPEATED = ("classify_resnet", "moe_router", "threads", "data_loader", "sparse_embedding", "policy_gradient")
REPETITIONS = 10
RECORDED_WITH = "2.11."


def chosen():
    if ONLY:
        return ONLY.split(",")
    return sorted(path.stem for path in CORPUS.glob("*.py")) if ALL else QUICK


@functools.cache
def same_release():
    done = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=True)
    return done.stdout.startswith(RECORDED_WITH)


def recorded():
    found = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.exists() else {}
    if not same_release():
        found = {name: {key: value for key, value in one.items() if key != "peak"} for name, one in found.items()}
    return found


def environment(**more):
    """Nothing is downloaded, and nothing of the caller's settings of PyTorch's allocator counts."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PYTORCH_", "PROGRAM_"))}
    return {**own, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore", **more}


def run(command, **more):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=SECONDS, env=environment(**more))


def sizes_in(text):
    return [line for line in text.splitlines() if line.startswith("size ")]


def peaks(processes):
    """Of every process that took something of the card, the smallest first."""
    keys = {"allocated_bytes": "peak_allocated_bytes", "reserved_bytes": "peak_reserved_bytes", "used_bytes": "peak_used_bytes"}
    found = [{name: device[key] for name, key in keys.items()}
             for process in processes for device in process["devices"] if device["allocations"]]  # fmt: skip
    return found[0] if len(found) == 1 else sorted(found, key=lambda peak: list(peak.values()))


def line_of(name, word):
    """What stands behind a word in a program's docstring, or nothing."""
    found = re.search(rf"^{word}: (.+)$", CORPUS.joinpath(f"{name}.py").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def emulate(name, *options, **more):
    """What a program's record has, what it printed, and all that was said."""
    card = line_of(name, "Card") or CARD
    with tempfile.TemporaryDirectory(prefix="peakbench-corpus-") as folder:
        took = pathlib.Path(folder, "took.json")
        done = run([PEAKBENCH, "emulate", "--details", "--card", card, "--json", took, *options, "--", PYTHON, "-B", CORPUS / f"{name}.py"], **more)
        record = json.loads(took.read_text(encoding="utf-8"))
    if done.returncode == SKIPPED:
        return None, done.stdout, done.stderr
    verdict = record["verdict"]
    found = {"exit_code": done.returncode, "verdict": verdict["kind"], "why": why(verdict), "peak": peaks(record["processes"])}
    if not same_release():
        del found["peak"]
    if sizes := sizes_in(done.stdout):
        found["sizes"] = sizes
    return found, done.stdout, done.stderr


def without_why(found):
    """The verdict is held; its reasons are recorded for the table alone, as its sentences may change."""
    return {key: value for key, value in found.items() if key != "why"}


def promise(name):
    """Exit code and verdict, as the program's docstring has them."""
    text = CORPUS.joinpath(f"{name}.py").read_text(encoding="utf-8")
    words = re.search(r"^Expected: (?:ends well|exit code (\d+)), (exact if|exact|estimate|lower bound|upper bound|unreliable)\b", text, re.MULTILINE)
    assert words, f"{name}.py: no line 'Expected: ends well, exact' in its docstring"
    return int(words[1] or 0), words[2]


class Programs(unittest.TestCase):
    def test_programs(self):
        expected = recorded()
        for name in chosen():
            with self.subTest(name):
                found, printed, said = emulate(name)
                if found is None:
                    print(f"{name}: {printed.strip()}")
                    continue
                self.assertEqual((found["exit_code"], found["verdict"]), promise(name), printed + said)
                if "sizes" in found:
                    on_cpu = run([PYTHON, "-B", CORPUS / f"{name}.py"], PROGRAM_DEVICE="cpu")
                    self.assertEqual(found["sizes"], sizes_in(on_cpu.stdout), said)
                if UPDATE and same_release():
                    expected[name] = found
                    record_file.write(EXPECTED, dict(sorted(expected.items())))
                else:
                    self.assertEqual(without_why(found), without_why(expected[name]), said)

    def test_twins_take_the_same_bytes(self):
        expected = recorded()
        for name in chosen():
            if truth(name) == "a twin" and same_release():
                with self.subTest(name):
                    self.assertEqual(emulate(name, PROGRAM_TWIN="1")[0]["peak"], expected[name]["peak"])

    def test_who_looks_for_lines_changes_nothing(self):
        expected = recorded()
        for name in chosen():
            with self.subTest(name):
                found, _, said = emulate(name, "--no-lines")
                if found is not None:
                    self.assertEqual(without_why(found), without_why(expected[name]), said)

    def test_what_is_exact_is_held_against_something(self):
        for name, found in recorded().items():
            with self.subTest(name):
                text = CORPUS.joinpath(f"{name}.py").read_text(encoding="utf-8")
                self.assertEqual("sizes" in found, 'print("size ' in text)
                if line_of(name, "Truth"):
                    self.assertFalse(truth(name) == "none" and found["verdict"] == "exact")
                    self.assertEqual("sizes" in found, truth(name) == "the CPU's run")
                    self.assertEqual("PROGRAM_TWIN" in text, truth(name) == "a twin")
                    self.assertTrue("assert " in text or truth(name) != "a closed form")

    def test_every_program_is_recorded(self):
        names = {path.stem for path in CORPUS.glob("*.py")}
        self.assertEqual(set(recorded()) | {name for name in names if self.may_skip(name)}, names)

    @staticmethod
    def may_skip(name):
        return "SKIP" in CORPUS.joinpath(f"{name}.py").read_text(encoding="utf-8")

    def test_repeated_programs_take_the_same_bytes(self):
        expected = recorded()
        for name in REPEATED:
            for repetition in range(REPETITIONS):
                with self.subTest(name, repetition=repetition):
                    found = emulate(name, PEAKBENCH_EMULATED_DELAYS=str(repetition))[0]
                    self.assertEqual(without_why(found), without_why(expected[name]))


if UPDATE:  # what is written now is compared the next time
    del Programs.test_who_looks_for_lines_changes_nothing
if UPDATE or not ALL:  # it takes minutes; what skips a part of itself is run again where nothing changed
    del Programs.test_repeated_programs_take_the_same_bytes
