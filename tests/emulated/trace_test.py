"""`peakbench trace`: the anatomy of unchanged programs. The peak is PyTorch's own; what fills it is told by the line that planted it; the
categories are those of our own plugin's case.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

from traced_programs import MIB, PEAKBENCH, PYTHON, TracedPrograms

# A little training.
TRAINING = """
import importlib.util, sys
assert importlib.util.find_spec("torch")  # as libraries do, which ask whether it is there
import torch
from torch import nn
import torch.nn.functional as F
planted = sys.argv[1] if len(sys.argv) > 1 else ""

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))

model = nn.Sequential(Block(64), Block(64), nn.Linear(64, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept = []

for step in range(5):
    x, y = torch.randn(256, 64).cuda(), torch.randint(0, 8, (256,)).cuda()
    out = model(x)
    loss = F.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if planted == "list":
        kept.append(out.detach().repeat(1, 1024))
    del out, loss
print(torch.cuda.max_memory_allocated())
"""


class Programs(TracedPrograms):

    def lines_at_peak(self):
        """Bytes at the peak by the innermost frame in the script."""
        rows = self.query("""
            WITH RECURSIVE up(event, block, category, frame) AS (
              SELECT a.event, e.block_bytes, a.category, e.stack FROM allocations a JOIN events e ON e.id = a.event
                JOIN peaks p ON p.space = e.space JOIN trace t ON t.own_space = p.space
                WHERE a.event <= p.event AND a.last_event > p.event
              UNION ALL
              SELECT up.event, up.block, up.category, f.parent FROM up JOIN frames f ON f.id = up.frame
                WHERE (SELECT name FROM files WHERE id = f.file) NOT LIKE '%train.py')
            SELECT f.line, sum(up.block), c.name FROM up JOIN frames f ON f.id = up.frame
              JOIN files s ON s.id = f.file JOIN categories c ON c.id = up.category
              WHERE s.name LIKE '%train.py' GROUP BY 1, 3""")
        return {(line, category): size for line, size, category in rows}

    def test_the_peak_is_pytorchs_own(self):
        script = self.write(TRAINING)
        done = self.trace(PYTHON, script)
        case = self.case()
        self.assertEqual(case["memory"]["peak_allocated_bytes"], int(done.stdout))
        self.assertEqual(sum(case["memory"]["at_peak"].values()), int(done.stdout))
        self.assertNotIn("differs from the trace", done.stderr)
        self.assertEqual((case["kind"], case["status"]), ("program", "ok"))
        self.assertEqual(case["emulation"]["verdict"]["kind"], "exact")
        self.assertEqual(case["memory"]["steps"], 5)
        parameters = 4 * (2 * (64 * 256 + 256 + 256 * 64 + 64) + 64 * 8 + 8)
        at_peak = case["memory"]["at_peak"]
        self.assertEqual(at_peak["parameter"], parameters)
        self.assertEqual(at_peak["optimizer_state"], 2 * parameters)
        self.assertTrue((self.folder / "out/report/index.html").is_file())
        self.assertIn("What fills it, by line of your code", done.stderr)

        emulated = subprocess.run([PEAKBENCH, "emulate", "--details", "--card", "h100-80gb", "--json", "took.json", "--", PYTHON, script], cwd=self.folder,
                                  capture_output=True, text=True, timeout=300, check=True)  # fmt: skip
        self.assertEqual(emulated.stdout, done.stdout)
        peak = json.loads((self.folder / "took.json").read_text(encoding="utf-8"))["peak"]
        for name in ("peak_allocated_bytes", "peak_phase", "peak_step", "at_peak"):
            self.assertEqual(peak[name], case["memory"][name])
        of_lines = {(line["line"], category): size for line in peak["lines"] for category, size in line["by_category"].items() if line["file"] == str(script)}
        self.assertGreater(len(of_lines), 3)
        at_peak = self.lines_at_peak()  # blocks whole: their slack is in their category
        for (line, category), size in of_lines.items():
            if category != "allocator_slack":
                self.assertLessEqual(size, at_peak[line, category])
                self.assertGreater(size + 512 * 40, at_peak[line, category])
        self.assertRegex(emulated.stderr, r"\nWhat fills the peak \(in .* of step \d\): .*parameter .*\n( +[0-9.]+ \wi?B +[0-9.]+%  train.py:\d+ .*\n){3}")

    def test_modules_are_named_as_the_model_names_them(self):
        self.trace(PYTHON, self.write(TRAINING))
        names = {name for (name,) in self.query("SELECT name FROM modules")}
        self.assertLessEqual({"0.up", "1.down", "2"}, names)
        backward = self.query("SELECT DISTINCT module FROM events_in_words WHERE phase = 'backward' AND module IS NOT NULL")
        self.assertIn(("0.up",), backward)
        gradients = {name for (name,) in self.query("SELECT n.name FROM names n JOIN roles r ON r.id = n.role WHERE r.name = 'gradient'")}
        self.assertIn("1.down.weight", gradients)
        state = {name for (name,) in self.query("SELECT n.name FROM names n JOIN roles r ON r.id = n.role WHERE r.name = 'optimizer_state'")}
        self.assertIn("1.down.weight.exp_avg", state)

    def test_running_out_of_memory_names_the_line_and_what_fills_the_card(self):
        script = self.write("""
import torch
kept = []
for i in range(100):
    kept.append(torch.empty(64, 1 << 20, device="cuda"))
""")
        done = self.trace(PYTHON, script, options=("--card", "h100-80gb,memory=4GiB", "--no-needed"), code=1)
        case = self.case()
        self.assertNotIn("without a limit", done.stderr)
        self.assertIsNone(case["out_of_memory"]["needed_bytes"])
        self.assertEqual(case["status"], "out_of_memory")
        self.assertIn("train.py:5", case["reason"])
        self.assertEqual(case["out_of_memory"]["requested_bytes"], 256 * MIB)
        self.assertIn("train.py:5", done.stderr)

    def test_state_of_an_update_that_ran_out_of_memory_is_optimizer_state(self):
        script = self.write("""
import torch
from torch import nn

def train():
    model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(16))).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    model(torch.ones(8, 1024, device="cuda")).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    train()
""")
        # Parameters and gradients, and what cuBLAS keeps, leave room for a part of the state.
        done = self.trace(PYTHON, script, options=("--card", "h100-80gb,memory=240MiB", "--no-needed"), code=1)
        case = self.case()
        self.assertEqual((case["status"], case["out_of_memory"]["phase"]), ("out_of_memory", "optimizer_step"))
        layer = 4 * MIB
        # Segments of 20 MiB hold five each; beside 64 MiB of cuBLAS there are eight in 240 MiB: 40 layers, 32 of them parameters and gradients.
        parts = {name: size for name, size in case["memory"]["at_peak"].items() if size >= MIB}
        self.assertEqual(parts, {"parameter": 16 * layer, "gradient": 16 * layer, "workspace": 64 * MIB, "optimizer_state": 8 * layer})

    def test_running_out_of_memory_that_was_caught_is_listed(self):
        script = self.write("""
import torch
def work(batch):
    return torch.empty(batch, 1 << 20, device="cuda")
try:
    work(2048)
except torch.OutOfMemoryError:
    work(64)
""")
        done = self.trace(PYTHON, script, options=("--card", "h100-80gb,memory=4GiB"))
        self.assertIn("Ran out of memory and continued:\n  8.000 GiB asked for at", done.stderr)
        self.assertIn("train.py:4 (work), before the first step", done.stderr)
        self.assertNotIn("without a limit", done.stderr)
        self.assertEqual((self.case()["status"], self.case()["memory"]["peak_allocated_bytes"]), ("ok", 256 * MIB))

    def test_categories_are_those_of_our_own_plugin(self):
        script = self.write("""
import torch, torchvision
model = torchvision.models.VisionTransformer(image_size=224, patch_size=16, num_layers=2, num_heads=12, hidden_dim=768, mlp_dim=3072).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
x = torch.randn(2, 3, 224, 224, device="cuda")
y = torch.randint(0, 1000, (2,), device="cuda")
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    del loss
""")
        self.trace(PYTHON, script)
        done = subprocess.run([PEAKBENCH, "run", "--model", "vit-b-16,layers=2", "--strategy", "baseline", "--device", "emulated:h100-80gb", "--batch", "2",
                               "--repetitions", "0", "--no-report", "--out", "plugin"], cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        ours = json.loads((self.folder / "plugin/run.json").read_text(encoding="utf-8"))["cases"][0]["memory"]
        stock = self.case()["memory"]
        self.assertEqual((stock["peak_phase"], stock["peak_step"]), (ours["peak_phase"], ours["peak_step"]))
        # Blocks depend on what was freed before; the labels (16 bytes) are made on the card, and no model is called with them.
        stock["at_peak"].pop("allocator_slack"), ours["at_peak"].pop("allocator_slack")
        self.assertEqual(stock["at_peak"].pop("kept"), 16)
        self.assertEqual(stock["at_peak"], ours["at_peak"])

    def test_an_operator_is_named_as_in_our_own_plugin(self):
        self.trace(PYTHON, self.write("""
import torch
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        made = torch.zeros(300_000, device="cuda")  # here
        return x * 2 + made.sum()
    @staticmethod
    def backward(context, gradient):
        return gradient * 2
table = torch.nn.Embedding(1000, 64).cuda()
optimizer = torch.optim.AdamW(table.parameters())
for _ in range(2):
    Twice.apply(table(torch.arange(32, device="cuda"))).topk(4).values.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""))  # fmt: skip
        done = subprocess.run([PEAKBENCH, "run", "--model", "gpt2,layers=1,width=64,heads=4", "--strategy", "baseline", "--device", "emulated:h100-80gb",
                               "--batch", "1", "--repetitions", "0", "--no-report", "--out", "plugin"], cwd=self.folder, capture_output=True, text=True,
                              timeout=300, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        of_embedding = ("SELECT DISTINCT operator FROM events_in_words WHERE kind = 'alloc' AND phase = 'backward' AND operator IN "
                        "('aten::embedding_dense_backward', 'aten::zeros')")  # fmt: skip
        for out in ("out", "plugin"):
            self.assertEqual(self.query(of_embedding, out), [("aten::embedding_dense_backward",)], out)
        self.assertEqual(len(self.query("SELECT DISTINCT operator FROM events_in_words WHERE kind = 'alloc' AND operator = 'aten::topk'")), 1)
        (line,) = self.query("SELECT DISTINCT f.line FROM events e JOIN frames f ON f.id = e.stack WHERE e.requested_bytes = 1200000")
        self.assertEqual(line, (6,))  # of zeros, which a line of Python called within an operator

    def test_recomputed_activations(self):
        script = self.write("""
import torch, sys
from torch import nn
from torch.utils.checkpoint import checkpoint
layers = nn.ModuleList(nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(4)).cuda()
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = layers
    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=sys.argv[1] == "reentrant")
        return x
model = Model()
x = torch.randn(8192, 256, device="cuda", requires_grad=True)
for _ in range(2):
    model(x).sum().backward()
    model.zero_grad()
""")
        for kind in ("reentrant", "other"):
            with self.subTest(kind):
                self.trace(PYTHON, script, kind, out=kind)
                recomputed = self.query("""SELECT sum(e.requested_bytes) FROM allocations a JOIN events e ON e.id = a.event
                    JOIN categories c ON c.id = a.category WHERE c.name = 'recomputed_activation'""", out=kind)  # fmt: skip
                of_a_layer = 2 * 8192 * 1024 * 4  # what GELU and what the second product keep
                if kind == "other":  # it stops early: what nobody keeps is not computed again
                    self.assertEqual(recomputed, [(2 * 4 * of_a_layer,)])
                self.assertGreaterEqual(recomputed[0][0], 2 * 4 * of_a_layer)
                self.assertEqual(self.query("SELECT count(*) FROM events WHERE kind = 0 AND stack IS NULL", out=kind), [(0,)])

    def test_the_cpu(self):
        script = self.write(TRAINING.replace(".cuda()", "").replace("print(torch.cuda.max_memory_allocated())", ""))
        self.trace(PYTHON, script, options=(), environment={"CUDA_VISIBLE_DEVICES": ""})
        case = self.case()
        self.assertEqual(case["device"], "cpu")
        parameters = 4 * (2 * (64 * 256 + 256 + 256 * 64 + 64) + 64 * 8 + 8)
        self.assertEqual(case["memory"]["at_peak"]["parameter"], parameters)
        self.assertIsNone(case["emulation"])

    def test_programs_that_end_otherwise(self):
        for text, code in (("import os; os._exit(3)", 3), ("raise SystemExit(4)", 4), ("1 / 0", 1), ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL)):  # fmt: skip
            with self.subTest(text):
                script = self.write("import torch\nx = torch.ones(1 << 20, device='cuda')\ny = x + 1\n" + text)
                self.trace(PYTHON, script, out=f"end{code}", code=code)
                self.assertEqual(self.case(f"end{code}")["status"], "crashed")
                self.assertEqual(self.case(f"end{code}")["memory"]["peak_allocated_bytes"], 8 * MIB)

    def test_processes_beside_it(self):
        """A forked process leaves the trace alone, as does one that has no PyTorch; a started one has a trace of its own."""
        script = self.write("""
import os, subprocess, sys, torch
x = torch.ones(1 << 20, device="cuda")
if os.fork() == 0:
    torch.ones(1 << 22)
    os._exit(0)
os.wait()
subprocess.run([sys.executable, "-c", "pass"], check=True)
subprocess.run([sys.executable, "-c", "import torch; torch.ones(1 << 21, device='cuda')"], check=True)
y = x + 1
""")
        done = self.trace(PYTHON, script)
        case = self.case()
        self.assertNotIn("not traced", done.stderr)
        self.assertEqual(sorted(rank["memory"]["peak_allocated_bytes"] for rank in case["ranks"]), [8 * MIB, 8 * MIB])

    @unittest.skipUnless(shutil.which("unshare") and subprocess.run(["unshare", "-fp", "true"], capture_output=True).returncode == 0, "no PID namespaces")
    def test_processes_that_have_one_number(self):
        """The first process of each PID namespace is 1."""
        script = self.write("""
import subprocess, sys, torch
x = torch.ones(1 << 20, device="cuda")
for size in (1 << 21, 1 << 22):
    subprocess.run(["unshare", "-fp", sys.executable, "-c", f"import torch; torch.ones({size}, device='cuda')"], check=True)
""")
        done = self.trace(PYTHON, script)
        self.assertNotIn("not traced", done.stderr)
        self.assertEqual(sorted(rank["memory"]["peak_allocated_bytes"] for rank in self.case()["ranks"]), [4 * MIB, 8 * MIB, 16 * MIB])

    def test_a_process_that_is_not_traced_makes_a_lower_bound(self):
        script = self.write("""
import subprocess, sys, torch
x = torch.ones(1 << 20, device="cuda")
subprocess.run([sys.executable, "-I", "-c", "import torch; torch.ones(1 << 24, device='cuda')"], check=True)
""")
        done = self.trace(PYTHON, script)
        self.assertIn("of the card and was not traced", done.stderr)
        self.assertEqual(self.case()["emulation"]["verdict"]["kind"], "lower bound")

    def test_one_recording_that_is_lost_leaves_the_others(self):
        """One child may write no file, one leaves a pipe and a corrupted recording of a process that never was."""
        script = self.write("""
import os, subprocess, sys, torch
x = torch.ones(1 << 20, device="cuda")
folder = os.environ["PEAKBENCH_TRACE_FOLDER"]
os.mkfifo(folder + "/1.journal")
open(folder + "/2.journal", "w").write("x" * 5000)
limited = 'ulimit -f 0; exec "$0" -c "import torch; print(torch.zeros(5).sum())"'
subprocess.run(["bash", "-c", limited, sys.executable])
y = x + 1
""")
        done = self.trace(PYTHON, script)
        case = self.case()
        self.assertEqual((case["status"], case["memory"]["peak_allocated_bytes"]), ("ok", 8 * MIB))
        self.assertNotIn("was not traced", done.stderr)  # nothing of them is on the card

    def test_a_program_that_used_the_cpu_alone(self):
        done = self.trace(PYTHON, self.write("import torch\nprint(torch.ones(5).sum())"))
        self.assertIn("nothing was allocated on the card: the program used PyTorch on the CPU alone", done.stderr)

    def test_what_a_killed_one_left_goes_with_the_next(self):
        script = self.write("import sys, torch, time\nx = torch.ones(5, device='cuda')\nprint('ready', flush=True)\ntime.sleep(float(sys.argv[1]))")
        temporary = self.folder / "tmp"
        temporary.mkdir()
        environment = os.environ | {"TMPDIR": str(temporary)}
        command = [PEAKBENCH, "trace", "--card", "h100-80gb", "--out", "killed", "--", PYTHON, script]
        with subprocess.Popen([*command, "600"], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as killed:
            self.assertEqual(killed.stdout.readline(), b"ready\n")
            os.killpg(killed.pid, signal.SIGKILL)
        left = [*(self.folder / "killed").glob(".trace.*"), *temporary.glob("peakbench-emulate.*")]
        self.assertEqual(len(left), 2, left)
        subprocess.run([*command, "0"], cwd=self.folder, env=environment, check=True, capture_output=True)
        self.assertEqual([*(self.folder / "killed").glob(".trace.*"), *temporary.iterdir()], [])

    def test_a_failure_is_told_with_what_filled_the_card_then(self):
        script = self.write("""
import torch
from torch import nn
probe = torch.empty(1900 << 20, dtype=torch.uint8, device="cuda")
del probe
model = nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters())
kept = []
for step in range(9):
    model(torch.ones(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    kept.append(torch.empty(512 << 20, dtype=torch.uint8, device="cuda"))
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), file=open("peaks", "w"))
""")
        done = self.trace(PYTHON, script, options=("--card", "h100-80gb,memory=2GiB"), code=1)
        facts = self.case()["out_of_memory"]
        self.assertEqual(facts["limit_bytes"], 2 << 30)
        self.assertEqual(facts["reserved_bytes"], self.case()["memory"]["peak_reserved_bytes"])
        record = json.loads((self.folder / "out/run.json").read_text(encoding="utf-8"))
        self.assertEqual(record["command"][1:5], ["trace", "--details", "--card", "h100-80gb,memory=2GiB"])
        self.assertEqual([facts["needed_allocated_bytes"], facts["needed_bytes"]], list(map(int, (self.folder / "peaks").read_text().split())))
        self.assertIn("Without a limit it needs 4.571 GiB allocated, 4.857 GiB reserved.", done.stderr)
        self.assertIn("4.857", (self.folder / "out/report/index.html").read_text(encoding="utf-8"))
        self.assertRegex(done.stderr, r"Memory ran out outside of forward, backward and optimizer step \(step 4\): 0.500 GiB was asked for at train.py:12, 0.143 GiB was free; 1.500 GiB of 1.571 GiB is kept memory")
        self.assertRegex(done.stderr.split("What filled the card then")[1], r"1.500 GiB +[0-9.]+%  \S*train.py:12")
        self.assertEqual(self.case()["out_of_memory"]["step"], 3)

    def test_what_was_needed_is_not_known_where_the_second_run_fails(self):
        script = self.write("""
import sys, time, torch
x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
y = torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
if sys.argv[1] == "sleeps":
    time.sleep(600)
raise ValueError("too large a card")
""")
        for what, options, note in (("raises", (), "it ended with exit code 1: ValueError: too large a card"),
                                    ("sleeps", ("--needed-timeout", "20"), "it was ended after 20 s (--needed-timeout)")):  # fmt: skip
            with self.subTest(what):
                done = self.trace(PYTHON, script, what, options=("--card", "h100-80gb,memory=4GiB", *options), out=what, code=1)
                facts = self.case(what)["out_of_memory"]
                note = f"run again without a limit, {note}; until then its peak was 5.000 GiB allocated, 5.000 GiB reserved"
                self.assertEqual((facts["needed_bytes"], facts["needed_allocated_bytes"], facts["needed_note"]), (None, None, note))
                self.assertTrue(self.case(what)["reason"].endswith("; " + note))
                self.assertIn(f"What it needs is not known: {note}.", done.stderr)

    def test_an_interrupted_program(self):
        """A signal to us alone reaches the program and what it started, as Ctrl-C does."""
        script = self.write("""
import subprocess, sys, time, torch
x = torch.ones(1 << 20, device="cuda")
child = subprocess.Popen([sys.executable, "-c", "import time; print('child', flush=True); time.sleep(600)"])
try:  # the signal can come as soon as the last byte is read, inside of print
    print("ready", flush=True)
    time.sleep(600)
finally:
    print("child ended:", child.wait(), flush=True)
""")
        with subprocess.Popen([PEAKBENCH, "trace", "--card", "h100-80gb", "--out", "out", "--", PYTHON, script], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as trace:  # fmt: skip
            said = [trace.stdout.readline(), trace.stdout.readline()]
            self.assertEqual(sorted(said), ["child\n", "ready\n"])
            trace.send_signal(signal.SIGINT)
            out, err = trace.communicate(timeout=120)
        self.assertEqual((trace.returncode, out), (128 + signal.SIGINT, f"child ended: {-signal.SIGINT}\n"), err)
        run = json.loads((self.folder / "out/run.json").read_text(encoding="utf-8"))
        self.assertEqual((run["status"], self.case()["status"]), ("interrupted", "interrupted"))
        self.assertEqual(self.case()["reason"], "the program was interrupted by SIGINT (interrupt): its figures are those until then")
        self.assertEqual(self.case()["memory"]["peak_allocated_bytes"], 4 * MIB)

    def test_processes_of_the_cpu_that_are_not_traced(self):
        script = self.write("""
import os, subprocess, sys, torch
torch.set_num_threads(1)  # OpenMP does not outlive a fork
x = torch.ones(1 << 20)
for allocates in (True, False):
    child = os.fork()
    if child == 0:
        y = torch.ones(1 << 22) if allocates else None
        os._exit(0)
    os.waitpid(child, 0)
    print(child)
started = subprocess.Popen([sys.executable, "-I", "-c", "import time, torch; y = torch.ones(8); time.sleep(1)"])
started.wait()
print(started.pid)
subprocess.run([sys.executable, "-c", "import torch"], check=True)
""")
        done = self.trace(PYTHON, script, options=(), environment={"CUDA_VISIBLE_DEVICES": ""})
        forked, idle, started = done.stdout.split()
        untraced = json.loads((self.folder / "out/run.json").read_text(encoding="utf-8"))["settings"]["untraced"]
        because = "and was not traced: it was forked, or ran Python without its environment"
        self.assertEqual(sorted(untraced), sorted(f"process {pid} used PyTorch {because}" for pid in (forked, started)))
        for sentence in untraced:
            self.assertIn(f"Lower bound: {sentence}.", done.stderr)

    def test_a_pytorch_that_the_tracer_is_not_compiled_for(self):
        """Behind a shell script it is only seen when it is there."""
        self.write("__version__ = '2.99.0'\n", "torch.py")
        script = self.write("import torch\nprint(torch.__version__)\n")
        done = self.trace("sh", "-c", f"{sys.executable} {script}")
        self.assertEqual(done.stdout, "2.99.0\n")
        self.assertIn("this process is not traced: it uses PyTorch 2.99.0, and the tracer is compiled for ", done.stderr)

    def test_emulate_compiles_no_tracer(self):
        """Where none is at hand, it says how to get one; nothing else is different."""
        emulator = self.folder / "prefix/lib/peakbench/emulator"
        emulator.parent.mkdir(parents=True)
        emulator.symlink_to(PEAKBENCH.parents[1] / "lib/peakbench/emulator")
        python = subprocess.run([PYTHON, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True).stdout.strip()
        script = self.write("import torch\nx = torch.ones(1 << 20, device='cuda')\n")
        done = subprocess.run([PEAKBENCH, "emulate", "--json", "took.json", "--", python, script], cwd=self.folder, capture_output=True, text=True, timeout=300,
                              check=True, env={**os.environ, "PEAKBENCH_EMULATOR_DIR": str(emulator)})  # fmt: skip
        self.assertRegex(" ".join(done.stderr.split()), r" Peak: 4\.0 MiB allocated by tensors Filled by: `peakbench trace` tells it, and `emulate` once a "
                                                        r"tracer is compiled for PyTorch \d\S* ")
        self.assertNotIn("compiling", done.stderr)
        self.assertIsNone(json.loads((self.folder / "took.json").read_text(encoding="utf-8"))["peak"])

    def test_a_sitecustomize_of_its_own_and_no_torch(self):
        (self.folder / "mine").mkdir()
        self.write("import sys\nsys.mine = 'mine'\n", "mine/sitecustomize.py")
        script = self.write("import sys\nprint(sys.mine, any('tracer' in entry for entry in sys.path))\n")
        done = self.trace(PYTHON, script, environment={"PYTHONPATH": str(self.folder / "mine")})
        self.assertEqual(done.stdout, "mine False\n")
        self.assertIn("nothing was recorded", done.stderr)
        self.assertFalse((self.folder / "out/run.json").exists())

    def test_a_run_is_not_overwritten_unasked(self):
        script = self.write("import torch\ntorch.ones(4, device='cuda')\n")
        self.trace(PYTHON, script)
        self.assertIn("holds a run already", self.trace(PYTHON, script, code=2).stderr)
        self.trace(PYTHON, script, options=("--card", "h100-80gb", "--overwrite"))
        self.assertIn("no program to run", subprocess.run([PEAKBENCH, "trace"], capture_output=True, text=True, check=False).stderr)
        self.assertIn("no such program", self.trace("no-such-program", out="other", code=2).stderr)
        self.assertFalse((self.folder / "other").exists(), "nothing is left where nothing ran")

    def test_compare_and_gate_read_it(self):
        script = self.write(TRAINING)
        self.trace(PYTHON, script, out="base")
        self.trace(PYTHON, script, "list", out="now")
        for command, code in (("compare", 0), ("gate", 4)):
            done = subprocess.run([PEAKBENCH, command, "base", "now"], cwd=self.folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
