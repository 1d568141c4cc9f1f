"""Python's garbage collector runs in the same iterations whoever looks: what it frees holds memory of the card. The truth is the same
program on the CPU, without Peakbench; its optimizer works parameter by parameter, as on the CPU.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from given import ORACLE as PYTHON, PEAKBENCH

# Every iteration leaves a cycle that holds 1 MiB, and does STEP. What is printed: in which iterations a collection began.
PROGRAM = """
import gc, os, torch
device = os.environ.get("PROGRAM_DEVICE", "cuda")
seen, i = [], -1
gc.callbacks.append(lambda phase, info: seen.append((i, info["generation"])) if phase == "start" else None)
class Node:
    pass
BEFORE
gc.collect()
seen.clear()
for i in range(300):
    a, b = Node(), Node()
    a.other, b.other, a.memory = b, a, torch.zeros(1 << 18, device=device)
    STEP
print("collections", seen)
"""

MODEL = """
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()) for _ in range(8)]).to(device)
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
x = torch.zeros(4, 16, device=device)
"""
TRAIN = "loss = model(x).sum(); loss.backward(); optimizer.step(); optimizer.zero_grad()"

# As the layers of transformers: a class's own __call__ calls super()'s, with keywords.
OWN_CALL = """
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.0))
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)
    def forward(self, hidden, scale=1.0, options=None):
        return self.inner(hidden) * scale
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(4))
    def forward(self, batch, **kwargs):
        hidden = batch["x"]
        for layer in self.layers:
            hidden = layer(hidden, scale=2.0, options=kwargs)
        return {"loss": hidden.sum()}
model = Model().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
batch = {"x": torch.zeros(4, 16, device=device), "rest": [torch.zeros(2), (1, 2)]}
"""

GENERATE = """
def generate(tokens):
    with torch.no_grad():
        for _ in range(3):
            tokens = model(tokens)
    return tokens
model.eval()
"""

# Five functions deep, each of them an object more of a frame where somebody asks for one.
READS = """
def read(depth):
    if depth:
        return read(depth - 1)
    return x.sum().item()
"""

RAISES = """
class Raises(torch.nn.Module):
    def forward(self, x):
        raise ValueError(x.sum() * 2)
raises = torch.nn.Sequential(Raises())
def attempt():
    try:
        raises(x)
    except ValueError:
        pass
"""

NEW_MODELS = """
def train_one():
    small = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Linear(16, 4)).to(device)
    step = torch.optim.SGD(small.parameters(), lr=0.1, foreach=False)
    small(x).sum().backward()
    step.step()
"""

PROGRAMS = {
    "training": (MODEL, TRAIN),
    "own __call__": (OWN_CALL, 'model(batch, flag=True)["loss"].backward(); optimizer.step(); optimizer.zero_grad()'),
    "generation": (MODEL + GENERATE, "generate(x)"),
    "reads": (MODEL + READS, "read(5)"),
    "a call that raises": (MODEL + RAISES, "attempt()"),
    "new models": (MODEL + NEW_MODELS, "train_one()"),
}  # fmt: skip


def written(before, step):
    return PROGRAM.replace("BEFORE", before).replace("STEP", step)


class Collections(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="peakbench-collector-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, *command, **more):
        done = subprocess.run([*command, PYTHON, self.folder / "train.py"], capture_output=True, text=True, timeout=300,
                              cwd=self.folder, env={**os.environ, **more})  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return next(line for line in done.stdout.splitlines() if line.startswith("collections"))

    def emulate(self, *options):
        took = self.folder / "took.json"
        took.unlink(missing_ok=True)
        line = self.run_program(PEAKBENCH, "emulate", "--details", "--card", "h100-80gb", "--json", took, *options, "--")
        device = json.loads(took.read_text(encoding="utf-8"))["processes"][0]["devices"][0]
        return line, device["peak_allocated_bytes"], device["peak_reserved_bytes"]

    def test_collections(self):
        for name, parts in PROGRAMS.items():
            with self.subTest(name):
                (self.folder / "train.py").write_text(written(*parts), encoding="utf-8")
                truth = self.run_program(PROGRAM_DEVICE="cpu")
                self.assertIn("(", truth)
                plain, traced = self.emulate("--no-lines"), self.emulate()
                self.assertEqual(plain, traced)
                self.assertEqual(truth, traced[0])
