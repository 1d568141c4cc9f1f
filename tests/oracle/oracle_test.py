"""The oracle tells the truth: its accounting on events made by hand, closed forms on tiny models, and which strategies train bit
for bit like the baseline in stock PyTorch on the CPU (what our own strategies' promises are held against)."""

import contextlib
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import traceback
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FAMILIES = {
    "vit": ["vit.py", "--tiny"],
    "tied": ["decoder.py", "--model", "qwen2.5-0.5b", "--tiny", "--seq", "16"],
    "untied": ["decoder.py", "--model", "llama-3.1-8b", "--tiny", "--seq", "16", "--batch", "2"],
}


def load_libraries():
    """What takes seconds to import. Nothing is computed here: a process whose libraries have started threads cannot be forked."""
    import decoder  # noqa: F401, PLC0415
    import vit  # noqa: F401, PLC0415


def oracle(script, *arguments):
    """What a script prints, run as a program in a fork of this process."""
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as complaints:
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
                try:
                    sys.argv = [str(HERE / script), *arguments]
                    runpy.run_path(sys.argv[0], run_name="__main__")
                    status = 0
                except SystemExit as end:
                    status = end.code or 0
                except BaseException:
                    traceback.print_exc()
            printed.flush()
            complaints.flush()
            os._exit(status if isinstance(status, int) else 1)
        _, status = os.waitpid(child, 0)
        printed.seek(0)
        complaints.seek(0)
        if status:
            raise AssertionError(f"{script} {arguments}: {complaints.read()[-2000:]}")
        return json.loads(printed.read())


class Accounting(unittest.TestCase):
    def test_peak_counts_from_the_first_step_and_names_phase_and_step(self):
        program = """
import json, memory
phases = [(0, 10, "build", ""), (10, 20, "forward", "0"), (20, 30, "backward", "0"), (30, 40, "forward", "1")]
changes = [(1, 100), (2, 900), (3, -900), (11, 50), (21, 30), (22, -80), (31, 60)]
print(json.dumps(memory.summarise(changes, phases)))
"""
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=HERE, capture_output=True, text=True, check=True
        )
        result = json.loads(done.stdout)
        self.assertEqual(result["base_bytes"], 100)
        self.assertEqual(result["peak_requested_bytes"], 180)
        self.assertEqual((result["peak_phase"], result["peak_step"]), ("backward", 0))
        self.assertEqual(result["phases"], {"build": 1000, "forward": 160, "backward": 180})
        self.assertEqual(result["steps"], [180, 160])
        self.assertEqual(result["end_bytes"], 160)


class ClosedForms(unittest.TestCase):
    def test_base_is_parameters_and_input(self):
        result = oracle(*FAMILIES["vit"])
        self.assertEqual(result["memory"]["base_bytes"], 4 * result["parameters"] + result["input_bytes"])

    def test_the_two_moments_remain_and_a_counter_a_parameter(self):
        result = oracle(*FAMILIES["vit"], "--strategy", "fused-in-backward")
        state = 8 * result["parameters"] + 4 * 32  # tensors
        # The loss of the last step is alive at the end of its optimizer step.
        self.assertEqual(result["memory"]["phases"]["optimizer_step"], result["memory"]["base_bytes"] + state + 4)


class Promises(unittest.TestCase):
    def test_stock_strategies_train_like_the_baseline_bit_for_bit(self):
        for family, command in FAMILIES.items():
            with self.subTest(family), tempfile.TemporaryDirectory() as folder:
                weights, reference, other = (f"{folder}/{name}.safetensors" for name in ("weights", "reference", "other"))
                oracle(*command, "--randomise", "--save-weights", weights, "--save", reference)
                same = ["--weights", weights, "--input", reference, "--save", other]
                for stack in ("foreach-off", "fused-in-backward", "fused-in-backward+checkpointing"):
                    oracle(*command, *same, "--strategy", stack)
                    self.assertEqual(pathlib.Path(other).read_bytes(), pathlib.Path(reference).read_bytes(), (family, stack))


load_libraries()
