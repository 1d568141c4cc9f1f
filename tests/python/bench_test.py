"""Models and strategies that are functions in Python, as cases of `peakbench run --program`: bytes against the same training written by hand in stock
PyTorch, closed forms, promises on the CPU, and what is said of what cannot be used.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

PACKAGE = Path(__file__).resolve().parents[2] / "python"
ENVIRONMENT = os.environ | {"PYTHONPATH": ":".join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")])),
                            "PATH": f"{PEAKBENCH.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}  # fmt: skip
CARD = "h100-80gb"

BENCH = """
import peakbench
import torch

@peakbench.model
def tiny(batch=8, width=256):
    net = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width))
    inputs = torch.randn(batch, width)
    return net, lambda: net(inputs).square().mean()

@peakbench.strategy
def sgd(model, lr=0.01):
    return torch.optim.SGD(model.parameters(), lr=lr)

@peakbench.strategy(promise="bit_identical")
def one_by_one(model, lr=0.01):
    return torch.optim.SGD(model.parameters(), lr=lr, foreach=False)

@peakbench.strategy
def adam(model):
    return torch.optim.Adam(model.parameters())
"""

WIDE = """
@peakbench.model
def wide(batch=1):
    net = torch.nn.Linear(1 << 18, 4)
    inputs = torch.randn(batch, 1 << 18)
    return net, lambda rows=slice(None): net(inputs[rows]).square().mean()
"""

# No line of ours: what somebody would write without Peakbench.
BY_HAND = """
import sys
import torch
device, optimizer, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).to(device)
inputs = torch.randn(batch, 256).to(device)
make = {"sgd": lambda p: torch.optim.SGD(p, lr=0.01), "one_by_one": lambda p: torch.optim.SGD(p, lr=0.01, foreach=False), "adam": torch.optim.Adam}
optimizer = make[optimizer](net.parameters())
for _ in range(3):
    optimizer.zero_grad()
    loss = net(inputs).square().mean()
    loss.backward()
    optimizer.step()
    if device == "cpu":
        print(loss.item())
if device == "cuda":
    print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
"""


def setUpModule():
    global WARM
    WARM = warm_python.served(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"], []], ENVIRONMENT, warm_python.TRAINING)


class Bench(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench-bench-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "bench.py").write_text(BENCH, encoding="utf-8")
        self.environment = ENVIRONMENT | {"PEAKBENCH_PYTHON": str(WARM)}

    def call(self, *words, code=0, **more):
        done = subprocess.run(words, cwd=self.folder, env=self.environment | more, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def run_it(self, *words, out="out", code=0, **more):
        return self.call(PEAKBENCH, "run", *words, "--out", out, code=code, **more)

    def cases(self, out="out"):
        return {case["id"]: case for case in json.loads((self.folder / out / "run.json").read_text())["cases"]}

    def by_hand(self, *words, emulated=True):
        (self.folder / "hand.py").write_text(BY_HAND, encoding="utf-8")
        before = [PEAKBENCH, "emulate", "--no-lines", "--card", CARD, "--"] if emulated else []
        return [float(word) for word in self.call(*before, PYTHON, "hand.py", *words)[0].split()]

    # ---- figures ----

    def test_the_same_bytes_as_by_hand(self):
        said, _ = self.run_it("--program", "bench.py:tiny", "--strategy", "sgd,adam", "--batch", "8,64", "--card", CARD)
        cases = self.cases()
        self.assertEqual(list(cases), [f"python/tiny/{strategy}/emulated:{CARD}/b{batch}" for batch in (8, 64) for strategy in ("sgd", "adam")])
        for name, case in cases.items():
            with self.subTest(name):
                strategy, batch = name.split("/")[2], name.rsplit("b", 1)[1]
                memory = case["memory"]
                self.assertEqual([memory["peak_allocated_bytes"], memory["peak_reserved_bytes"]], self.by_hand("cuda", strategy, batch))
                self.assertEqual(case["emulation"]["verdict"]["kind"], "exact")
                self.assertEqual((case["kind"], case["throughput"]), ("python", None))
        parameters = 2 * (256 * 256 + 256) * 4
        at_peak = {name.split("/")[2]: case["memory"]["at_peak"] for name, case in cases.items() if name.endswith("b8")}
        self.assertEqual(at_peak["sgd"]["parameter"], parameters)
        self.assertNotIn("optimizer_state", at_peak["sgd"])
        self.assertEqual(at_peak["adam"]["optimizer_state"], 2 * parameters)  # its steps are counted on the CPU
        # The first strategy is the reference; the memory of an update is of the line that made the optimizer.
        self.assertRegex(said, r"(?m)^tiny +emulated:h100-80gb python batch 8$")
        self.assertRegex(said, r"(?m)^adam +0\.066 GiB +\+2\.3%.*trains differently$")
        report = (self.folder / "out/report/report.md").read_text()
        update = BENCH[: BENCH.index("@peakbench.strategy\ndef adam")].count("\n") + 1
        self.assertRegex(report, rf"(?m)^\| bench\.py:{update} \| adam \| .*optimizer state")
        self.assertIn("**adam**: In backward, where sgd peaks, adam uses", report)

    def test_a_module_of_a_package_and_a_python_without_cudas_libraries(self):
        (self.folder / "mine").mkdir()
        shutil.move(self.folder / "bench.py", self.folder / "mine/bench.py")
        # The oracle's own interpreter, where its starter adds libraries that PyTorch needs to be imported.
        plain = Path(PYTHON).with_name("python")
        more = {"PEAKBENCH_PYTHON": str(plain)} if plain.exists() else {}
        self.run_it("--program", "mine.bench:tiny", "--strategy", "sgd", "--steps", "1", "--card", CARD, **more)
        (case,) = self.cases().values()
        self.assertEqual((case["status"], case["memory"]["steps"]), ("ok", 1))
        self.assertEqual(case["settings"]["command"][3:6], ["mine.bench", "--model", "tiny"])

    def test_whatever_a_file_raises_for_want_of_cuda_it_is_asked_again_on_the_emulated_card(self):
        # PyTorch 2.9 without NVIDIA's packages raises ValueError as it is imported; a file may ask for its card as it is loaded.
        for fails in ("ValueError('libcublas.so.*[0-9] not found in the system path')", "RuntimeError('Found no NVIDIA driver')"):
            (self.folder / "bench.py").write_text(f"import os\nif 'PEAKBENCH_EMULATED_CARD' not in os.environ: raise {fails}\n{BENCH}")
            self.run_it("--program", "bench.py:tiny", "--strategy", "sgd", "--steps", "1", "--card", CARD, "--overwrite")
            (case,) = self.cases().values()
            self.assertEqual(case["status"], "ok")

    def test_options_are_part_of_the_name_and_of_the_sizes(self):
        self.run_it("--program", "bench.py:tiny,width=512", "--strategy", "sgd", "--strategy", "one_by_one,lr=0.1", "--card", CARD)
        cases = self.cases()
        self.assertEqual(list(cases), [f"python/tiny,width=512/{strategy}/emulated:{CARD}/b8" for strategy in ("sgd", "one_by_one,lr=0.1")])
        for case in cases.values():
            self.assertEqual(case["memory"]["at_peak"]["parameter"], 2 * (512 * 512 + 512) * 4)

    def test_what_a_strategy_may_return(self):
        (self.folder / "bench.py").write_text(BENCH + """
@peakbench.strategy
def in_backward(model):
    for parameter in model.parameters():
        optimizer = torch.optim.SGD([parameter], lr=0.01, foreach=False)
        def update(parameter, optimizer=optimizer):
            optimizer.step()
            optimizer.zero_grad()
        parameter.register_post_accumulate_grad_hook(update)

@peakbench.strategy(promise="within_tolerance", tolerance=1e-6)
def own_step(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    def step(loss):
        optimizer.zero_grad()
        value = loss()
        (value * 2).backward()
        for parameter in model.parameters():
            parameter.grad /= 2
        optimizer.step()
        return value
    return step
""")
        self.run_it("--program", "bench.py:tiny", "--strategy", "sgd,in_backward,own_step", "--device", "cpu")
        cases = {name.split("/")[2]: case for name, case in self.cases().items()}
        self.assertEqual([case["status"] for case in cases.values()], ["ok"] * 3)
        # One matrix's gradient at a time, where all of them are alive together otherwise.
        saved = cases["sgd"]["memory"]["at_peak"]["gradient"] - cases["in_backward"]["memory"]["at_peak"]["gradient"]
        self.assertGreaterEqual(saved, 256 * 256 * 4)
        self.assertEqual(cases["in_backward"]["losses"], cases["sgd"]["losses"])
        self.assertEqual(cases["own_step"]["equivalence"]["verdict"], "held")

    def test_a_suite_and_its_gate(self):
        (self.folder / "folder").mkdir()
        shutil.move(self.folder / "bench.py", self.folder / "folder/bench.py")
        (self.folder / "suite.toml").write_text(f"""
devices = ["emulated:{CARD}"]
[[programs]]
python = "bench.py:tiny"
folder = "folder"
strategies = ["sgd", "adam"]
batch_sizes = [8, 16]
""")
        self.run_it("suite.toml", out="base")
        self.assertEqual(len(self.cases("base")), 4)
        file = self.folder / "folder/bench.py"
        file.write_text(file.read_text().replace("return net, lambda", "net.kept = torch.zeros(1000)\n    return net, lambda"))
        self.run_it("suite.toml", out="head")
        said, _ = self.call(PEAKBENCH, "gate", "base", "head", code=4)
        self.assertIn("python/tiny/sgd/emulated:h100-80gb/b8", said)
        # The file is the cases' script: they are measured again.
        _, resumed = self.run_it("suite.toml", "--resume", out="base")
        self.assertEqual([case["memory"]["peak_allocated_bytes"] for case in self.cases("base").values()],
                         [case["memory"]["peak_allocated_bytes"] for case in self.cases("head").values()], resumed)  # fmt: skip

    # ---- promises ----

    def fit(self, stack, memory, code=0):
        card = f"t4-16gb,context=0,memory={memory}"
        (self.folder / "bench.py").write_text(BENCH + WIDE, encoding="utf-8")
        said, _ = self.call(PEAKBENCH, "fit", "--program", "bench.py:wide", "--strategy", stack, "--card", card, "--check", "1", "--no-report",
                            "--overwrite", "--out", "fit", code=code)  # fmt: skip
        (cell,) = json.loads((self.folder / "fit/fit.json").read_text())["cells"]
        return cell, said

    def test_fit_finds_what_a_run_of_each_batch_says(self):
        cell, _ = self.fit("sgd", "72MiB")
        largest = cell["largest"]
        self.assertEqual((cell["state"], cell["fails"]["value"]), ("fits", largest + 1))
        batches = range(largest - 1, largest + 3)
        self.run_it("--program", "bench.py:wide", "--strategy", "sgd", "--card", cell["card"], "--batch", ",".join(map(str, batches)), "--no-report")
        cases = list(self.cases().values())
        self.assertEqual([case["status"] for case in cases], ["ok", "ok", "out_of_memory", "out_of_memory"])
        self.assertEqual(cases[1]["id"], cell["id"])
        self.assertEqual(cases[1]["memory"]["peak_allocated_bytes"], cell["memory"]["peak_allocated_bytes"])

    def test_fit_begins_where_a_batch_can_be_split(self):
        for memory, state, code in (("72MiB", "fits", 0), ("36MiB", "does_not_fit", 3)):
            cell, said = self.fit("sgd+accumulation,steps=4", memory, code)
            self.assertEqual(cell["state"], state)
            self.assertEqual([(trial["value"], trial["status"]) for trial in cell["trials"]][:2], [(1, "unsupported"), (2, "unsupported")])
            self.assertEqual(cell["trials"][2]["value"], 4)
        self.assertIn("not even batch size 4; sgd+accumulation,steps=4 without a limit reserves", said)

    def test_promises_are_checked_on_the_cpu(self):
        (self.folder / "bench.py").write_text(BENCH + """
@peakbench.strategy(promise="bit_identical")
def twice_as_fast(model):
    return torch.optim.SGD(model.parameters(), lr=0.02)

@peakbench.strategy(promise="within_tolerance", tolerance=0.1)
def near(model):
    return torch.optim.SGD(model.parameters(), lr=0.02)

@peakbench.strategy(promise="within_tolerance", relative_tolerance=1e-9)
def too_far(model):
    return torch.optim.SGD(model.parameters(), lr=0.02)

@peakbench.strategy(promise="bit_identical")
def half(model):
    return torch.optim.SGD(list(model.parameters())[2:], lr=0.01)

@peakbench.strategy(promise="bit_identical", reference="adam")
def like_adam(model):
    return torch.optim.Adam(model.parameters(), foreach=False)

@peakbench.strategy(promise="bit_identical")
def more_parameters(model):
    model.more = torch.nn.Parameter(torch.zeros(2))
    return torch.optim.SGD(model.parameters(), lr=0.01)
""")
        said, _ = self.run_it("--program", "bench.py:tiny", "--device", "cpu")
        cases = {name.split("/")[2]: case for name, case in self.cases().items()}
        verdicts = {name: case["equivalence"]["verdict"] for name, case in cases.items()}
        self.assertEqual(verdicts, {"sgd": "not_checked", "one_by_one": "held", "adam": "not_checked", "twice_as_fast": "broken", "near": "held",
                                    "too_far": "broken", "half": "broken", "like_adam": "held", "more_parameters": "broken"})  # fmt: skip
        self.assertEqual(cases["sgd"]["losses"], self.by_hand("cpu", "sgd", "8", emulated=False))
        self.assertEqual(cases["like_adam"]["equivalence"]["reference_case"], "python/tiny/adam/cpu/b8")
        self.assertTrue(cases["like_adam"]["equivalence"]["different_problem"])
        self.assertIn("The training of twice_as_fast is not what it promises: differs most in ", said)
        self.assertIn("The training of more_parameters is not what it promises: trains other parameters than the reference case", " ".join(said.split()))
        self.assertRegex(said, r"(?m)^twice_as_fast .* not bit-identical$")
        # The steps' memory is not that of the check.
        self.assertEqual(cases["one_by_one"]["memory"]["peak_allocated_bytes"], cases["sgd"]["memory"]["peak_allocated_bytes"])
        self.assertEqual(sorted({file.name for file in self.folder.glob("out/cases/*/*")}), ["memory.job.json", "trace.sqlite", "worker.log"])

    def test_a_promise_without_its_reference_is_not_checked(self):
        self.run_it("--program", "bench.py:tiny", "--strategy", "one_by_one", "--device", "cpu")
        (case,) = self.cases().values()
        self.assertEqual(case["equivalence"]["verdict"], "not_checked")
        self.assertEqual(case["equivalence"]["reason"], "the run has no case sgd to compare with")

    # ---- what cannot be used ----

    def refused(self, *words, says, **more):
        with self.subTest(words):
            out, err = self.run_it(*words, "--card", CARD, code=2, **more)
            self.assertEqual((out, err), ("", f"peakbench: {says}\n"))
            self.assertFalse((self.folder / "out").exists())

    def test_what_is_typed_wrong_is_one_sentence(self):
        self.refused("--program", "nowhere.py:tiny", says="--program: there is no file nowhere.py; --program takes FILE.py:FUNCTION or MODULE:FUNCTION")
        self.refused("--program", "nowhere.at_all:tiny", says="--program: there is no module nowhere.at_all here; for a file: FILE.py:FUNCTION")
        self.refused("--program", "bench.py:tinny", says='--program: bench.py has no model "tinny"; did you mean "tiny"?')
        self.refused("--program", "bench.py:torch", says="--program: bench.py: torch is no model: put @peakbench.model above it")
        self.refused("--program", "bench.py:sgd", says="--program: bench.py: sgd is a strategy, and no model")
        self.refused("--program", "bench.py:tiny,widht=4", says='--program: bench.py: tiny takes no option "widht"; did you mean "width"?')
        self.refused("--program", "bench.py:tiny,width=wide", says='--program: bench.py: tiny: width: expected an integer, got "wide"')
        self.refused("--program", "bench.py:tiny", "--strategy", "sdg", says='--program: bench.py has no strategy "sdg", and peakbench.strategies has none; did you mean "sgd"?')  # fmt: skip
        self.refused("--program", "bench.py:tiny", "--strategy", "adam,lr=1", says='--program: bench.py: adam takes no option "lr"; it has none')
        self.refused("--program", "bench.py:tiny", "--dtype", "bf16", says='--program: bench.py: tiny takes no option "dtype"; there is width')
        self.refused("--program", "bench.py:tiny", "--allocator", "expandable_segments:True",
                     says="--allocator is for models of Peakbench; give the function of --program an option instead, and write it after a comma "
                          "(bench.py:tiny,key=value)")  # fmt: skip
        self.refused("--program", "bench.py:tiny", "--executor", "slurm",
                     says="--program: programs of a suite run on this machine: run it without --executor slurm (in a job of yours, where a node is to do it), "
                          "or take `programs` out")  # fmt: skip
        self.refused("--program", "bench.py:tiny", "--model", "vit-b-16", says="--model and --program both name a model; leave one of them out")

    def test_what_is_written_wrong_is_one_sentence(self):
        file = self.folder / "bench.py"
        for text, says in {
            "import nothing_like_it": "--program: bench.py cannot be imported: ModuleNotFoundError: No module named 'nothing_like_it' (line 1)",
            "\ndef (": "--program: bench.py cannot be imported: SyntaxError: invalid syntax (line 2)",
            "import sys\nsys.exit(0)": "--program: bench.py cannot be imported: SystemExit: 0 (line 2)",
            BENCH.replace("def adam(", "def sgd("): "--program: bench.py has two marked functions called sgd (lines 11 and 19): give each a name of its own",
            "x = 1": "--program: bench.py has no model \"tiny\": put @peakbench.model above the function that makes one",
            BENCH.replace('promise="bit_identical"', 'promise="bit_identcal"'): "--program: bench.py cannot be imported: ValueError: promise \"bit_identcal\": expected "
            "bit_identical, within_tolerance or different_problem; did you mean \"bit_identical\"? (line 15)",
            BENCH.replace('promise="bit_identical"', 'promise="bit_identical", reference="sdg"'):
            '--program: bench.py: one_by_one is held against "sdg", and there is no such strategy; did you mean "sgd"?',
        }.items():  # fmt: skip
            file.write_text(text)
            self.refused("--program", "bench.py:tiny", says=says)
        file.write_text(BENCH.replace("(batch=8, width=256)", "(width=256)").replace("(batch,", "(8,"))
        self.refused("--program", "bench.py:tiny", "--batch", "4",
                     says="--program: bench.py: tiny takes no batch: give the function a parameter `batch`, or leave the batch size out")  # fmt: skip
        self.run_it("--program", "bench.py:tiny", "--strategy", "sgd", "--card", CARD)
        self.assertEqual(list(self.cases()), [f"python/tiny/sgd/emulated:{CARD}"])

    def test_what_its_libraries_print_to_the_end_is_no_answer(self):
        """As experiment trackers do it: at exit, in a thread, and with an exit code of their own."""
        for more in ("atexit.register(print, 'goodbye')", "threading.Timer(0.1, print, ['{}']).start()", "atexit.register(os._exit, 3)"):
            with self.subTest(more):
                (self.folder / "bench.py").write_text(f"import atexit, os, threading\n{more}\n{BENCH}")
                said, _ = self.run_it("--program", "bench.py:tiny", "--dry-run")
                self.assertIn("python/tiny/one_by_one", said)

    def test_no_code_of_the_working_folder_runs_before_the_file_is_asked_for(self):
        (self.folder / "apart").mkdir()
        for name in ("importlib", "runpy", "json", "argparse", "peakbench"):
            (self.folder / "apart" / name).mkdir()
            (self.folder / "apart" / name / "__init__.py").write_text(f"open('ran', 'a').write('{name} ')")
        call = [PEAKBENCH, "run", "--program", "../bench.py:tiny", "--dry-run"]
        done = subprocess.run(call, cwd=self.folder / "apart", env=self.environment, capture_output=True, text=True)
        self.assertEqual((done.returncode, (self.folder / "apart/ran").exists()), (0, False), done.stderr)

    def test_a_python_that_cannot_run_it_is_one_sentence(self):
        bare = Path("/usr/bin/python3")
        if bare.exists() and subprocess.run([bare, "-c", "import torch"], capture_output=True).returncode != 0:
            self.refused("--program", "bench.py:tiny", PEAKBENCH_PYTHON=str(bare),
                         says="--program: /usr/bin/python3 has no PyTorch: install it there (pip install torch), or name another Python in PEAKBENCH_PYTHON")  # fmt: skip
        self.refused("--program", "bench.py:tiny", PYTHONPATH="",
                     says=f"--program: {WARM} has no package peakbench: install the wheel there, or name another Python in PEAKBENCH_PYTHON")  # fmt: skip

    def test_a_function_that_fails_is_a_case_that_failed(self):
        file = self.folder / "bench.py"
        for change, status, says in (
            (("net = torch", "raise ValueError('no width')\n    net = torch"), "crashed", "bench.py: tiny raised ValueError: no width (line 7)"),
            (("return net, lambda", "return lambda"), "crashed", "bench.py: tiny returned a function; expected a torch.nn.Module and a function that makes "
             "the loss of a step"),
            ((".mean()", ""), "crashed", "bench.py: the loss of tiny is a Tensor of shape (8, 256); expected a tensor of one value"),
            (("return torch.optim.SGD(model.parameters(), lr=lr)", "return 3"), "crashed", "bench.py: sgd returned an int; expected an optimizer, the model, a "
             "function of a step, or None where backward updates"),
            (("return torch.optim.SGD(model.parameters(), lr=lr)", "return torch.optim.SGD"), "crashed", "bench.py: sgd returned the class SGD itself; expected an optimizer"),
            (("return torch.optim.SGD(model.parameters(), lr=lr)", "return lambda loss: loss(1)"), "crashed", "bench.py: step 1 of sgd raised TypeError: "),
            (("return torch.optim.SGD(model.parameters(), lr=lr)", "return lambda loss: exit(0)"), "crashed", "bench.py: step 1 of sgd ended the program (SystemExit: 0 (line 13))"),
            (("inputs = torch.randn(batch, width)", "inputs = torch.randn(batch << 30, width)"), "out_of_memory", "asked for"),
        ):  # fmt: skip
            with self.subTest(change):
                self.assertIn(change[0], BENCH)
                file.write_text(BENCH.replace(change[0], change[1], 1))
                self.run_it("--program", "bench.py:tiny", "--strategy", "sgd", "--card", CARD, "--overwrite", code=3)
                (case,) = self.cases().values()
                self.assertEqual(case["status"], status, case["reason"])
                self.assertIn(says, case["reason"])

    def test_a_training_that_ends_before_its_last_step_is_none(self):
        change = "return torch.optim.SGD(model.parameters(), lr=lr)", "return lambda loss: __import__('os')._exit(0)"
        (self.folder / "bench.py").write_text(BENCH.replace(*change, 1))
        self.run_it("--program", "bench.py:tiny", "--strategy", "sgd", "--device", "cpu", code=3)
        (case,) = self.cases().values()
        self.assertEqual((case["status"], case["reason"]), ("crashed", "the program ended with exit code 0 before its last step was done"))

    def test_a_broken_decorator_says_so(self):
        said, _ = self.call(PYTHON, "-c", """
import peakbench
for wrong in (lambda: peakbench.model(3), lambda: peakbench.strategy(promise="within_tolerance"), lambda: peakbench.strategy(tolerance=1.0),
              lambda: peakbench.strategy(promise="within_tolerance", tolerance=-1.0), lambda: peakbench.strategy(reference="sgd")):
    try:
        wrong()
    except (TypeError, ValueError) as error:
        print(error)
import sys
assert "torch" not in sys.modules
""")
        self.assertEqual(said.splitlines(), [
            "@peakbench.model marks a function; it was given 3",
            "within_tolerance needs a tolerance or a relative_tolerance: by how much a value may differ",
            "different_problem has no tolerance: leave it out, or promise within_tolerance",
            "a tolerance is a number of 0 or more",
            "different_problem is compared with nothing: leave out the reference, or promise something",
        ])  # fmt: skip
