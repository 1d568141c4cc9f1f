"""Strategies by name (peakbench.strategies): what each promises is kept on the CPU, each has figures on the emulated card, stacks, several ranks by
torchrun, and what is said of what cannot be used.
"""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

SOURCE = Path(__file__).resolve().parents[2]
APART = next(Path(PYTHON).parents[1].glob("apart"), None)  # torchao
# The last is as torchrun sets it, so that its ranks are forked, too.
ENVIRONMENT = os.environ | {"PYTHONPATH": ":".join(filter(None, [str(SOURCE / "python"), os.environ.get("PYTHONPATH"), APART and str(APART)])),
                            "PATH": f"{PEAKBENCH.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1",
                            "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}  # fmt: skip
CARD = "h100-80gb"

LLAMA = """
import peakbench
import torch
from transformers import LlamaConfig, LlamaForCausalLM

@peakbench.model
def llama(batch=4, layers=2, dtype="fp32", tied=False):
    config = LlamaConfig(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=layers, num_attention_heads=4,
                         num_key_value_heads=2, use_cache=False, tie_word_embeddings=tied)
    torch.set_default_dtype({"fp32": torch.float32, "fp64": torch.float64}[dtype])
    net = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    ids = torch.randint(0, 128, (batch, 16))
    return net, lambda rows=slice(None): net(input_ids=ids[rows], labels=ids[rows]).loss

@peakbench.model
def plain(batch=4):
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    inputs = torch.randn(batch, 64)
    return net, lambda: net(inputs).square().mean()
"""

OWN = LLAMA + """
@peakbench.strategy
def sgd(model, lr=0.01):
    return torch.optim.SGD(model.parameters(), lr=lr)

@peakbench.strategy(promise="bit_identical")
def checked(model):
    model.checked = True
    return model

@peakbench.strategy
def doubled(model, loss, by=2.0):
    return lambda: loss() * by

@peakbench.strategy
def clipped(model, optimizer, most=1.0):
    def step(loss):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), most)
        optimizer.step()
        return value
    return step

@peakbench.strategy
def wrapped(model):
    return torch.nn.Sequential(model)

@peakbench.strategy
def in_backward(model):
    pass
"""

# Each of one rank, in the order of the package's documentation.
SINGLE = ["baseline", "foreach-off", "fused-optimizer", "adamw-8bit", "adamw-4bit", "fused-in-backward", "accumulation", "checkpointing", "save-on-cpu",
          "autocast", "lora", "dora"]  # fmt: skip
STACKS = ["checkpointing,every=2", "checkpointing,keep=matmuls_and_attention", "lora+checkpointing", "lora+fused-in-backward",
          "foreach-off+checkpointing", "adamw-8bit+fused-in-backward", "accumulation,steps=3+checkpointing"]  # fmt: skip


def setUpModule():
    global WARM
    WARM = warm_python.served(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"], []], ENVIRONMENT, [*warm_python.TRAINING, "transformers", "peft"])


class Strategies(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench-strategies-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "bench.py").write_text(LLAMA, encoding="utf-8")
        self.environment = ENVIRONMENT | {"PEAKBENCH_PYTHON": str(WARM)}

    def call(self, *words, code=0, **more):
        done = subprocess.run(list(map(str, words)), cwd=self.folder, env=self.environment | more, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def cases(self, *words, out="out", code=0, program="bench.py:llama"):
        self.call(PEAKBENCH, "run", "--program", program, *words, "--out", out, "--overwrite", code=code)
        return {case["id"].split("/")[2]: case for case in json.loads((self.folder / out / "run.json").read_text())["cases"]}

    def test_each_keeps_its_promise_on_the_cpu(self):
        words = [word for strategy in SINGLE + STACKS for word in ("--strategy", strategy)]
        cases = self.cases(*words, "--device", "cpu")
        self.assertEqual(list(cases), SINGLE + STACKS)
        for name, case in cases.items():
            with self.subTest(name):
                self.assertEqual((case["status"], len(case["losses"])), ("ok", 3), case["reason"])
                self.assertLess(case["losses"][-1], case["losses"][0])
        verdicts = {name: (case["equivalence"]["promise"], case["equivalence"]["verdict"]) for name, case in cases.items()}
        same, near, other = ("bit_identical", "held"), ("within_tolerance", "held"), ("different_problem", "not_checked")
        self.assertEqual(verdicts, {
            "baseline": ("bit_identical", "not_checked"), "foreach-off": same, "fused-optimizer": near, "adamw-8bit": other, "adamw-4bit": other,
            "fused-in-backward": same, "accumulation": near, "checkpointing": same, "save-on-cpu": near, "autocast": other, "lora": other, "dora": other,
            "checkpointing,every=2": same, "checkpointing,keep=matmuls_and_attention": same, "lora+checkpointing": same,
            "lora+fused-in-backward": same, "foreach-off+checkpointing": same, "adamw-8bit+fused-in-backward": same,
            "accumulation,steps=3+checkpointing": near,
        })  # fmt: skip
        against = {name: case["equivalence"]["reference_case"].split("/")[2] for name, case in cases.items() if case["equivalence"]["verdict"] == "held"}
        self.assertEqual(against["foreach-off+checkpointing"], "baseline")
        self.assertEqual(against["lora+checkpointing"], "lora")
        self.assertEqual(against["adamw-8bit+fused-in-backward"], "adamw-8bit")
        # What is promised to the bit is equal to the bit, and what trains otherwise does.
        for name, case in cases.items():
            if verdicts[name] == same:
                self.assertEqual(case["equivalence"]["max_abs_difference"], 0)
            if verdicts[name] == other:
                self.assertNotEqual(case["losses"], cases["baseline"]["losses"])

    def test_each_has_figures_on_the_emulated_card(self):
        words = [word for strategy in SINGLE + STACKS for word in ("--strategy", strategy)]
        cases = self.cases(*words, "--card", CARD, "--batch", "256")
        for name, case in cases.items():
            with self.subTest(name):
                # What save_on_cpu copies to the host holds integers, which the emulated card does not know.
                expected = "unreliable" if name == "save-on-cpu" else "exact"
                self.assertEqual((case["status"], case["emulation"]["verdict"]["kind"]), ("ok", expected), case["reason"])
        memory = {name: case["memory"]["at_peak"] for name, case in cases.items()}
        peak = {name: case["memory"]["peak_allocated_bytes"] for name, case in cases.items()}
        parameters = 4 * (2 * 128 * 64 + 64 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128 + 2 * 64))
        self.assertEqual((memory["baseline"]["parameter"], memory["baseline"]["optimizer_state"]), (parameters, 2 * parameters))
        adapters = 4 * 2 * 8 * (64 + 64 + 64 + 32)  # q_proj and v_proj
        self.assertEqual((memory["lora"]["parameter"], memory["lora"]["optimizer_state"]), (parameters + adapters, 2 * adapters))
        self.assertLess(memory["adamw-8bit"]["optimizer_state"], 0.4 * 2 * parameters)  # small tensors keep 32 bits
        self.assertLess(memory["adamw-4bit"]["optimizer_state"], memory["adamw-8bit"]["optimizer_state"])
        for less, more in (("checkpointing", "checkpointing,keep=matmuls_and_attention"), ("checkpointing,keep=matmuls_and_attention", "baseline"),
                           ("checkpointing", "checkpointing,every=2"), ("accumulation", "baseline"), ("accumulation,steps=3+checkpointing", "accumulation"),
                           ("save-on-cpu", "checkpointing"), ("lora+checkpointing", "lora")):  # fmt: skip
            self.assertLess(peak[less], peak[more], f"{less} < {more}")

    def test_each_promises_what_the_plugin_of_its_name_does(self):
        told = """
import json
from peakbench import _objects, strategies
found = _objects.marked_in(strategies, "strategy")
assert [one.__name__ for one in found.values()] and {one.__name__ for one in found.values()} == set(strategies.__all__)
print(json.dumps({name: [one.__peakbench__.promise.promise, one.__peakbench__.promise.tolerance, one.__peakbench__.promise.relative_tolerance,
                         one.__peakbench__.offer.aliases, one.__doc__] for name, one in found.items()}))
"""
        ours = json.loads(self.call(WARM, "-c", told)[0])
        plugins = {entry["id"]: entry for path in SOURCE.glob("plugins/*/plugin.json") for entry in json.loads(path.read_text())["entries"]}
        both = ours.keys() & plugins.keys()
        self.assertEqual(len(both), 14, both)
        for name, (promise, absolute, relative, aliases, text) in ours.items():
            with self.subTest(name):
                self.assertIn("https://", text)
                if name in both:
                    tolerance = plugins[name].get("tolerance") or {}
                    # bitsandbytes' kernels are its own.
                    self.assertEqual([promise, absolute, relative],
                                     ["different_problem" if name == "paged" else plugins[name]["promise"], tolerance.get("absolute"), tolerance.get("relative")])  # fmt: skip
                    self.assertEqual(aliases, plugins[name].get("aliases", []))

    def test_a_compiled_model_trains_within_its_tolerance(self):
        """By hand: on the CPU the compiler starts processes that import PyTorch and are not traced, so that a run does not check the promise."""
        self.environment |= {"TORCHDYNAMO_DISABLE": "0", "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "compiled")}
        for name in ("baseline", "compile"):
            self.trained(name, name, 4, model="plain")
        self.assertLess(self.difference("compile", "baseline"), 0.006)
        code = [path for path in (self.folder / "compiled").rglob("*.py") if "async_compile" in path.read_text()]
        self.assertTrue(code, "nothing was compiled")  # libraries are there anyway, of the compiler's tests

    def test_own_strategies_stack_as_well(self):
        (self.folder / "bench.py").write_text(OWN)
        names = ["sgd", "checked+sgd", "checkpointing+sgd,lr=0.1", "clipped+lora", "doubled,by=3.0+autocast", "checkpointing+doubled+clipped,most=0.5"]
        cases = self.cases(*[word for name in names for word in ("--strategy", name)], "--strategy", "sgd,lr=0.1", "--device", "cpu")
        self.assertEqual(list(cases), [*names, "sgd,lr=0.1"])
        self.assertEqual({case["status"] for case in cases.values()}, {"ok"})
        self.assertEqual(cases["checked+sgd"]["equivalence"]["verdict"], "held")
        self.assertEqual(cases["checkpointing+sgd,lr=0.1"]["equivalence"]["reference_case"].split("/")[2], "sgd,lr=0.1")
        self.assertEqual(cases["checkpointing+sgd,lr=0.1"]["equivalence"]["max_abs_difference"], 0)
        self.assertAlmostEqual(cases["doubled,by=3.0+autocast"]["losses"][0] / cases["sgd"]["losses"][0], 3, 1)

    def test_a_file_without_strategies_is_trained_under_the_baseline(self):
        cases = self.cases("--device", "cpu")
        self.assertEqual([name for name in cases], ["baseline"])
        (self.folder / "bench.py").write_text(LLAMA + "\nfrom peakbench.strategies import foreach_off, lora\n")
        self.assertEqual(list(self.cases("--device", "cpu")), ["foreach-off", "lora"])

    def test_underscores_aliases_and_the_baseline_of_a_stack(self):
        said, _ = self.call(PEAKBENCH, "run", "--program", "bench.py:llama", "--strategy", "foreach_off", "--strategy", "baseline+gradient-checkpointing",
                            "--strategy", "adamw", "--dry-run")  # fmt: skip
        self.assertEqual(re.findall("python/llama/([^/]*)/", said), ["foreach-off", "checkpointing", "baseline"])

    # ---- what cannot be used ----

    def test_what_cannot_be_combined_is_one_sentence(self):
        (self.folder / "bench.py").write_text(OWN)
        for typed, says in {
            "lora+dora": '"lora+dora": lora and dora are not combined: both put adapters beside the same layers',
            "fused-in-backward+accumulation": '"fused-in-backward+accumulation": fused-in-backward and accumulation are not combined: the backward pass of each '
            "part of a batch would update the parameters",
            "foreach-off+fused-optimizer": '"foreach-off+fused-optimizer": foreach-off and fused-optimizer both choose the optimizer',
            "lora+": '"lora+": expected NAME+NAME',
            "lora+lora,rank=4": '"lora+lora,rank=4": lora is there twice',
            "lora+loar": 'bench.py has no strategy "loar", and peakbench.strategies has none; did you mean "lora"?',
            "lora,rnak=4": 'peakbench.strategies: lora takes no option "rnak"; did you mean "rank"?',
            "lora,rank=many": 'peakbench.strategies: lora: rank: expected an integer, got "many"',
            "clipped,optimizer=3": 'bench.py: clipped takes no option "optimizer"; there is most',
            "fsdp": "fsdp trains on several ranks: say on how many with --ranks N",
            "liger": "liger needs the package liger-kernel: pip install liger-kernel",
            "qlora+lora": "qlora needs the package bitsandbytes: pip install bitsandbytes",
        }.items():
            with self.subTest(typed):
                out, err = self.call(PEAKBENCH, "run", "--program", "bench.py:llama", "--strategy", typed, "--card", CARD, "--out", "none", code=2)
                self.assertEqual((out, err), ("", f"peakbench: --program: {says}\n"))

    def test_what_shows_when_it_is_called_is_one_sentence(self):
        (self.folder / "bench.py").write_text(OWN)
        for program, typed, says in (
            ("llama", "sgd+foreach-off", "bench.py: sgd and foreach-off both update the parameters: leave one of them out"),
            ("llama", "sgd+lora", "bench.py: lora changes the model after sgd has taken its parameters: put it before"),
            ("llama", "in_backward+clipped", "bench.py: clipped needs an optimizer, and in_backward has none"),
            ("llama", "clipped+accumulation", "bench.py: accumulation needs an optimizer, and clipped has none"),
            ("llama", "wrapped", "bench.py: wrapped returned another module, which the loss does not call: change the model, or take `loss` and wrap it"),
            ("llama", "autocast,dtype=fp8", 'autocast: dtype: expected bf16 or fp16, got "fp8"'),
            ("llama", "accumulation,steps=9", "accumulation: steps: expected 2 to 4, the samples of a batch, got 9"),
            ("plain", "accumulation", "bench.py: accumulation trains parts of a batch: give the model's function a parameter `batch`, and its loss `rows`, "
             "a slice of it"),
            ("plain", "checkpointing", "checkpointing: Sequential has no list of blocks"),
        ):  # fmt: skip
            with self.subTest(typed):
                done = subprocess.run([WARM, "-m", "peakbench.bench", "bench.py", "--model", program, "--strategy", typed, "--device", "cpu"], cwd=self.folder,
                                      env=self.environment, capture_output=True, text=True)  # fmt: skip
                self.assertEqual((done.returncode, done.stderr.splitlines()[-1:]), (2, [f"peakbench: {says}"]))

    def test_a_package_that_is_too_old(self):
        for name, text in {"bitsandbytes/__init__.py": "", "bitsandbytes-0.9.1.dist-info/METADATA": "Name: bitsandbytes\nVersion: 0.9.1\n"}.items():
            (self.folder / "old" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "old" / name).write_text(text)
        path = f"{self.folder / 'old'}:{self.environment['PYTHONPATH']}"
        done = subprocess.run([PYTHON, "-m", "peakbench.bench", "bench.py", "--model", "plain", "--strategy", "paged"], cwd=self.folder,
                              env=self.environment | {"PYTHONPATH": path}, capture_output=True, text=True)  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (2, "peakbench: paged needs bitsandbytes 0.43 or later, and 0.9.1 is installed: pip install --upgrade "
                                                             "bitsandbytes\n"))  # fmt: skip

    # ---- ranks ----

    def trained(self, name, strategy, batch, *before, model="llama,dtype=fp64", code=0):
        """Three steps on the CPU; what they trained is left in NAME."""
        where = json.dumps({"losses": f"{name}.json", "parameters": name})
        return self.call(WARM, *before, "-m", "peakbench.bench", "bench.py", "--model", model, "--strategy", strategy, "--batch", batch, "--device", "cpu",
                         PEAKBENCH_TRAINED=where, code=code)  # fmt: skip

    def on_ranks(self, *words, ranks=2, **more):
        return self.trained(*words[:3], "-m", "torch.distributed.run", "--nproc-per-node", ranks, "--standalone", "--no-python", WARM, *words[3:], **more)

    def compared(self, ours, theirs):
        asked = json.dumps({"ours": ours, "theirs": theirs, "promise": {"promise": "within_tolerance", "tolerance": 1e9, "relative_tolerance": 0}})
        return json.loads(self.call(WARM, "-m", "peakbench.bench", "--compare", asked)[0])

    def difference(self, ours, theirs):
        told = self.compared(ours, theirs)
        self.assertEqual(told["verdict"], "held", told)
        return told["max_abs_difference"]

    def test_two_ranks_train_what_one_process_does_with_the_whole_batch(self):
        """In fp64, but for transformers' loss, which is computed in fp32. A rank that trained by itself would be off by AdamW's step, 1e-3."""
        self.trained("whole", "baseline", 8)
        self.trained("lora", "lora", 8)
        for strategy, batch in (("ddp", 4), ("zero-1", 4), ("fsdp", 4), ("fsdp,reshard=false,offload=true", 4), ("tensor-parallel", 8),
                                ("checkpointing+fsdp", 4), ("fsdp+fused-in-backward", 4), ("accumulation+ddp", 4), ("lora+fsdp", 4)):  # fmt: skip
            with self.subTest(strategy):
                self.on_ranks("ranks", strategy, batch)
                self.assertLess(self.difference("ranks", "lora" if "lora" in strategy else "whole"), 2e-6)
        self.trained("tied", "baseline", 8, model="llama,dtype=fp64,tied=true")
        self.on_ranks("ranks", "tensor-parallel", 8, model="llama,dtype=fp64,tied=true")
        self.assertLess(self.difference("ranks", "tied"), 2e-6)
        # The comparison tells ranks that do not tell each other anything.
        self.on_ranks("ranks", "baseline", 4)
        told = self.compared("ranks", "whole")
        self.assertEqual(told["verdict"], "broken")
        self.assertRegex(told["reason"], r"^its parameters are off the reference's by \d+% of what training moved them$")
        self.assertGreater(told["max_abs_difference"], 1e-4)

    def test_forked_ranks_train_what_one_process_does(self):
        """As the test above, by ranks that are forked from one process. Ring attention merges its parts in fp32."""
        two, four = "llama,dtype=fp64", "llama,dtype=fp64,layers=4"
        whole = ("baseline", 8)
        asked = [
            (4, two, "hsdp,size=2", 2, *whole),
            (4, two, "fsdp,size=2+tensor-parallel,size=2", 4, *whole),
            (2, two, "pipeline", 8, *whole),
            (4, four, "checkpointing+pipeline,parts=8", 8, *whole),
            (2, four, "pipeline,stages=2", 8, *whole),
            (2, two, "lora+pipeline", 8, "lora", 8),
            (4, two, "tensor-parallel,size=2+pipeline", 8, *whole),
            (2, two, "checkpointing+context-parallel", 8, *whole),
            (4, two, "context-parallel", 8, *whole),
            (4, two, "fsdp,size=2+context-parallel,size=2", 4, *whole),
            (2, two, "baseline", 4, *whole),  # does not, so that the comparison is one
        ]
        path = f"{self.environment['PYTHONPATH']}:{SOURCE / 'tests/support'}"
        out, err = self.call(PYTHON, SOURCE / "tests/python/ranks_child.py", json.dumps(asked), PYTHONPATH=path)
        told = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([strategy for strategy, _, _ in told], [one[2] for one in asked], err)
        for strategy, difference, reason in told[:-1]:
            with self.subTest(strategy):
                self.assertEqual(reason, "", err)
                self.assertLess(difference, 5e-6)
        self.assertGreater(told[-1][1], 1e-4)

    def test_degrees_that_do_not_multiply_are_one_sentence(self):
        says = {
            (4, "fsdp,size=3"): '"fsdp,size=3": the 4 ranks are not 3',
            (8, "fsdp,size=2+tensor-parallel,size=2"): '"fsdp,size=2+tensor-parallel,size=2": the 8 ranks are not 2 x 2',
            (8, "fsdp+tensor-parallel,size=3"): '"fsdp+tensor-parallel,size=3": the 8 ranks are no multiple of 3',
            (8, "fsdp+tensor-parallel"): '"fsdp+tensor-parallel": fsdp and tensor-parallel both go over the rest of the ranks: say over how many, '
            "tensor-parallel,size=N",
            (4, "hsdp"): '"hsdp": hsdp shards over some of the ranks, and copies over the rest: say over how many it shards, hsdp,size=N',
            (4, "tensor-parallel,size=-2"): "tensor-parallel: size: expected 1 or more, got -2",
            (4, "fsdp+tensor-parallel,size=2"): {"fsdp": 2, "tensor-parallel": 2},
            (64, "tensor-parallel,size=8+hsdp,size=4"): {"replicas": 2, "hsdp": 4, "tensor-parallel": 8},
            (8, "pipeline+tensor-parallel,size=2"): {"pipeline": 4, "tensor-parallel": 2},
            (4, "lora"): {},
            (4, "fsdp+hsdp,size=2"): '"fsdp+hsdp,size=2": fsdp and hsdp are not combined: both decide what each rank has of the model',
            (4, "ddp+tensor-parallel,size=2"): '"ddp+tensor-parallel,size=2": ddp and tensor-parallel are not combined: DistributedDataParallel is given the '
            "whole model, and every rank a batch of its own",
            (4, "fsdp,size=2+pipeline"): '"fsdp,size=2+pipeline": fsdp and pipeline are not combined: a rank of a pipeline runs a part of the model\'s '
            "forward, and does the whole step",
            (4, "accumulation+context-parallel"): '"accumulation+context-parallel": accumulation and context-parallel are not combined: context-parallel '
            "does the whole step, and averages gradients after backward",
            (4, "pipeline+lora"): '"pipeline+lora": lora changes the model, and stands before pipeline',
        }  # fmt: skip
        program = """
import json, sys
from peakbench import _degrees, _objects, _stacks, bench
module = bench._load("bench.py")
for ranks, typed in json.loads(sys.argv[1]):
    try:
        told = _degrees.degrees(_stacks.stacks(module, "bench.py", [typed], True)[0], ranks)
    except _objects.Refused as refused:
        told = str(refused)
    print(json.dumps(told))
"""
        out, _ = self.call(WARM, "-c", program, json.dumps(list(says)), WORLD_SIZE="4")
        for asked, told in zip(says, out.splitlines(), strict=True):
            with self.subTest(asked):
                self.assertEqual(json.loads(told), says[asked])

    def test_which_part_of_the_batch_a_rank_trains(self):
        program = """
import json
from peakbench import _degrees, _stacks, bench
module = bench._load("bench.py")
def parts(typed, ranks):
    stack = _stacks.stacks(module, "bench.py", [typed], True)[0]
    return [_degrees.share_of_batch(stack, _degrees.degrees(stack, ranks), rank) for rank in range(ranks)]
print(json.dumps([parts("ddp", 2), parts("hsdp,size=2", 4), parts("fsdp,size=2+tensor-parallel,size=2", 4), parts("pipeline", 2), parts("lora", 2)]))
"""
        out, _ = self.call(WARM, "-c", program, WORLD_SIZE="4")
        self.assertEqual(json.loads(out), [[[0, 2], [1, 2]], [[0, 4], [1, 4], [2, 4], [3, 4]], [[0, 2], [0, 2], [1, 2], [1, 2]], [[0, 1], [0, 1]],
                                           [[0, 1], [0, 1]]])  # fmt: skip

    def test_the_page_has_every_strategy_and_option(self):
        program = """
import inspect, json
from peakbench import _objects, strategies
found = _objects.marked_in(strategies, "strategy")
found = {name: function for want in strategies.__all__ for name, function in found.items() if function.__name__ == want}
print(json.dumps({name: {key: one.default for key, one in _objects._options_of(function, "strategy").items()} for name, function in found.items()}))
"""
        known = json.loads(self.call(WARM, "-c", program)[0])
        tables = [[[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]
                  for table in re.findall(r"(?:^\|.*\n)+", (SOURCE / "docs/reference/python-strategies.md").read_text(), re.MULTILINE)]  # fmt: skip
        named = [name for row in tables[0] for name in re.findall("`([^`]+)`", row[0])]
        self.assertEqual(named, list(known))
        options = {(name, option): default for names, of_them, defaults, _ in tables[1] for name in re.findall("`([^`]+)`", names)
                   for option, default in zip(re.findall("`([^`]+)`", of_them), defaults.split(", "), strict=True)}  # fmt: skip
        ours = {(name, option): f"{default:g}" if isinstance(default, float) else str(default).lower()
                for name, of_it in known.items() for option, default in of_it.items()}  # fmt: skip
        self.assertEqual({key: default.strip("`") for key, default in options.items()}, ours)

    def test_liger_of_a_package_with_kernels_for_one_architecture_in_a_sentence(self):
        (self.folder / "stub/liger_kernel").mkdir(parents=True)
        (self.folder / "stub/liger_kernel/__init__.py").write_text("")
        (self.folder / "stub/liger_kernel/transformers.py").write_text("""
import torch

def apply_liger_kernel_to_llama(model):
    assert model.config.model_type == "llama"
    for one in model.modules():
        if type(one).__name__ == "LlamaRMSNorm":
            one.forward = lambda x, one=one: torch.nn.functional.rms_norm(x.double(), x.shape[-1:], None, one.variance_epsilon).to(x.dtype) * one.weight
""")
        self.environment["PYTHONPATH"] = f"{self.folder / 'stub'}:{self.environment['PYTHONPATH']}"
        cases = self.cases("--strategy", "baseline,liger", "--device", "cpu")
        self.assertEqual((cases["liger"]["status"], cases["liger"]["equivalence"]["verdict"]), ("ok", "held"), cases["liger"]["reason"])
        self.assertNotEqual(cases["liger"]["equivalence"]["max_abs_difference"], 0)
        done = subprocess.run([WARM, "-m", "peakbench.bench", "bench.py", "--model", "plain", "--strategy", "liger", "--device", "cpu"], cwd=self.folder,
                              env=self.environment, capture_output=True, text=True)  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (2, "peakbench: liger: Liger has no kernels for Sequential\n"))

    def test_ranks_that_cannot_train_say_why(self):
        for strategy, model, says in (
            ("fsdp+lora", "llama", 'peakbench: "fsdp+lora": lora changes the model, and stands before fsdp'),
            ("pipeline", "llama,layers=1", "peakbench: pipeline: 2 stages need as many blocks, and LlamaForCausalLM has 1"),
            ("pipeline", "llama,tied=true", "peakbench: pipeline: LlamaForCausalLM uses a parameter twice, such as an output head that is the embedding: "
             "its stages have no copy of it"),
            ("pipeline,parts=3", "llama", "peakbench: pipeline: parts: expected 2 or more that divide the 4 samples of a batch, got 3"),
            ("context-parallel", "llama", "peakbench: context-parallel: PyTorch splits attention on cards alone"),
            ("ddp+fsdp", "llama", 'peakbench: "ddp+fsdp": ddp and fsdp are not combined: both decide what each rank has of the model'),
            ("ddp", "plain", "peakbench: bench.py: ranks on the CPU train parts of one batch: give the loss of plain a parameter `rows`, a slice of it"),
            ("tensor-parallel", "plain", "peakbench: tensor-parallel: there is a plan for models like Llama (layers q_proj to down_proj), and Sequential is none"),
        ):  # fmt: skip
            with self.subTest(strategy):
                _, err = self.on_ranks("ranks", strategy, 4, model=model, code=1)
                self.assertIn(says, err.splitlines())
        _, err = self.on_ranks("ranks", "tensor-parallel", 4, ranks=3, code=1)
        self.assertIn("peakbench: tensor-parallel: 3 ranks do not divide the 4 of num_attention_heads", err.splitlines())
