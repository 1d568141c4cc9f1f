"""What a card's streams do to PyTorch's allocator: where they are late, a block that another stream has used is not handed out again
before the host has waited. By its documented rules the reserved bytes can be told beforehand.
"""

import json
import pathlib
import subprocess
import tempfile
import unittest

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

BLOCK = 64 << 20
PROGRAM = f"""
import torch

def block():
    return torch.empty({BLOCK}, dtype=torch.uint8, device="cuda")

def reserved(*held):
    print(torch.cuda.memory_reserved() // {BLOCK}, flush=True)

side = torch.cuda.Stream()
used = block()
with torch.cuda.stream(side):
    used.add_(1)
used.record_stream(side)
del used
first = block()
reserved(first)
torch.cuda.synchronize()
second = block()
reserved(first, second)
"""


def setUpModule():
    global WARM
    WARM = warm_python.served(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"]])


class StreamsTest(unittest.TestCase):
    def emulate(self, card, exit_code=0, program=PROGRAM):
        """Blocks reserved, before and after the host has waited; the record is kept."""
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "took.json")
            command = [PEAKBENCH, "emulate", "--details", "--card", card, "--json", out, "--", WARM, "-c", program]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
            self.record = json.loads(out.read_text(encoding="utf-8"))
        return list(map(int, done.stdout.split()))

    def test_at_once_the_block_is_handed_out_again(self):
        self.assertEqual(self.emulate("h100-80gb"), [1, 2])
        self.assertEqual(self.record["verdict"]["notes"], [])

    def test_late_it_is_not_before_the_host_has_waited(self):
        self.assertEqual(self.emulate("h100-80gb,streams=late"), [2, 2])
        self.assertEqual(self.record["card"], "h100-80gb,streams=late")
        self.assertRegex(self.record["verdict"]["notes"][0], "streams=late")

    def test_soon_it_is_when_the_allocator_asks_again(self):
        # The first block asks once, and has another one; the second asks again.
        self.assertEqual(self.emulate("h100-80gb,streams=soon", program=PROGRAM.replace("torch.cuda.synchronize()\n", "")), [2, 2])
        self.assertEqual(self.emulate("h100-80gb,streams=late", program=PROGRAM.replace("torch.cuda.synchronize()\n", "")), [2, 3])
        self.assertRegex(self.record["verdict"]["notes"][0], "streams=late")

    def test_late_and_without_memory_the_allocator_waits(self):
        self.assertEqual(self.emulate("h100-80gb,streams=late,memory=100MiB", exit_code=1), [1])  # no card has room for the second
