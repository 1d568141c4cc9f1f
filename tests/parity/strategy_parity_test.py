"""The strategies against stock PyTorch's own, alone and stacked, on tiny models on the CPU. Three steps from the same weights on the
same batch: losses, first-step gradients and parameters equal to the bit; every phase of every step has the same peak to the byte, from
the same allocations in the same order.
"""

import gc
import importlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import given
import memory
import peft  # noqa: F401  (importing it makes tensors that stay)
import strategies
import torch
import training
from given import FAMILY, STRATEGY_DRIVER as DRIVER
from safetensors.torch import load_file, save_file

# What other threads allocate for a moment is different each time, and the profiler does not see it.
torch.set_num_threads(1)
# The libraries' own objects stay: looking through them for garbage would take a quarter of a second each time.
gc.freeze()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
ORACLE = SOURCE / "tests/oracle"
PLUGINS = [given.PLUGINS, given.EXAMPLES, given.PLANTED.parent]
STEPS = 3
NUMBER = 8  # bytes of a Python number as a tensor
CHOSEN = os.environ.get("PEAKBENCH_PARITY_STACK", "")  # only stacks that hold this text
# Every stack takes a quarter of an hour: a night's. Otherwise the first of each strategy in fp32, and every stack of these.
ALL = os.environ.get("PEAKBENCH_PARITY_ALL") or CHOSEN
EVERY_STACK_OF = ("strategies", "stock.foreach_off", "stock.fused_in_backward")

DECODER = {"layers": 3, "width": 32, "mlp": 48, "heads": 4, "kv_heads": 2, "vocabulary": 97}
GPT2 = {"layers": 3, "width": 32, "mlp": 48, "heads": 4, "positions": 16, "vocabulary": 97}
RESNET = {"blocks": "1:1:1:1", "width": 8, "image": 64}
VIT = {"layers": 3, "width": 32, "heads": 2, "mlp": 48, "image": 32}
ORACLE_NAMES = {"mlp": "mlp-width", "kv_heads": "kv-heads"} | ({"image": "image-size"} if FAMILY == "vit" else {})
FIXED = {"decoder": [], "gpt2": [], "resnet": [], "vit": ["--patch-size", "16", "--classes", "1000"]}
# name -> (model, sizes, arguments of the oracle). Batches of three: two micro-batches of them are uneven, three are even.
MODELS = {
    "decoder": {
        "tied": ("qwen2.5-0.5b", DECODER, ["--batch", "3", "--seq", "16"]),
        "untied": ("llama-3.1-8b", DECODER, ["--batch", "3", "--seq", "16"]),
        "tied, bfloat16": ("qwen2.5-0.5b", DECODER, ["--batch", "3", "--seq", "16", "--dtype", "bf16"]),
    },
    "gpt2": {
        "gpt2": ("gpt2", GPT2, ["--batch", "3", "--seq", "16"]),
        "gpt2, bfloat16": ("gpt2", GPT2, ["--batch", "3", "--seq", "16", "--dtype", "bf16"]),
    },
    "resnet": {
        "resnet": ("resnet-50", RESNET, ["--batch", "3"]),
        "channels last, bfloat16": ("resnet-50", RESNET | {"channels_last": "true"}, ["--batch", "3", "--dtype", "bf16"]),
    },
    "vit": {
        "vit": ("vit-b-16", VIT, ["--batch", "3"]),
        "vit, bfloat16": ("vit-b-16", VIT, ["--batch", "3", "--dtype", "bf16"]),
    },
}


def subject(model, sizes, arguments, stack):
    """The subject of the oracle's script and its arguments, as its command line would give them."""
    script = importlib.import_module(FAMILY)
    given = [text for name, value in sizes.items() for text in (f"--{ORACLE_NAMES.get(name, name)}", str(value))]
    command = [FAMILY, "--model", model, "--tiny", "--steps", str(STEPS), "--strategy", stack, *FIXED[FAMILY], *given, *arguments]
    with mock.patch.object(sys, "argv", command), mock.patch.object(training, "main") as run:
        script.main()
    return run.call_args.args


def oracle_memory(case, args):
    """Base, the peak of each phase of each step, and every allocation of this thread from the first step on, in order."""
    stack = strategies.parse(args.strategy)
    gc.collect()  # what an earlier test left in cycles must not go while this one is recorded
    with memory.CpuMemory() as recorder:
        with recorder.phase("build"):
            model = training.prepare(case, args, stack)
            batch = case.batch()
            step = strategies.Step(case, model, stack)
            gc.collect()  # and what building left goes now, not some time during the steps
        for number in range(STEPS):
            step(number, batch, recorder.phase)
    events = recorder.events()
    marks = sorted((e.start_ns(), e.name().split(":")[1]) for e in events if e.name().startswith(memory.MARK))
    changes = sorted(((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"), key=lambda change: change[0])
    return follow(marks, changes)


def follow(marks, changes):
    alive, base, phases, allocations = 0, None, [], []
    remaining = iter(changes)
    change = next(remaining, None)
    for (_, name), until in zip(marks, [*(start for start, _ in marks[1:]), float("inf")]):
        if name != "build" and base is None:
            base = alive
        peak = alive
        while change is not None and change[0] < until:
            alive += change[1]
            peak = max(peak, alive)
            if name != "build" and change[1] > 0:
                allocations.append((name, change[1]))
            change = next(remaining, None)
        if phases and phases[-1][0] == name:  # the beginning of a step, and its first forward
            phases[-1][1] = max(phases[-1][1], peak)
        elif name != "build":
            phases.append([name, peak])
    return {"base_bytes": base, "phases": phases}, allocations


def our_name(name):
    """Of the oracle's plain names (see tensors.py)."""
    name = name.replace("prompt_encoder.embedding.weight", "prompt")
    name = re.sub(r"\.(lora_\w+)\.", r".lora.\1.default.", name)
    return re.sub(r"\.(vera_\w+)\.", r".vera.\1.", name)


def plugin_use(text, manifest):
    """NAME,key=value with every option, typed and with the manifest's defaults."""
    name, *given = text.split(",")
    entry = next(entry for entry in json.loads((SOURCE / manifest).read_text())["entries"] if entry["id"] == name)
    given = dict(option.split("=", 1) for option in given)
    options = {}
    for option in entry["options"]:
        value = given.pop(option["name"], option["default"])
        read = {"integer": int, "number": float, "boolean": lambda text: text in (True, "true")}
        options[option["name"]] = read.get(option["type"], str)(value)
    assert not given, given
    return {"selection": {"id": name, "options": {}}, "options": options, "path": str(library_of(pathlib.Path(manifest)))}


def library_of(manifest):
    """A plugin is called as its folder, and a planted one, of which a folder has many, as its manifest."""
    name = manifest.parent.name if manifest.name == "plugin.json" else manifest.stem
    return next(path for folder in PLUGINS if (path := folder / f"{name}.so").exists())


def job(model, sizes, args):
    model = ",".join([model, *(f"{name}={value}" for name, value in sizes.items())])
    stack = dict.fromkeys(["baseline", *args.strategy.split("+")])
    # In the canonical order, as the planner hands it over.
    order = list(strategies.parse("+".join(stack)))
    uses = sorted(stack, key=lambda text: order.index(text.split(",")[0]))
    manifests = strategies.manifests()
    return {
        "mode": "memory", "case_id": "parity", "device": "cpu", "dtype": args.dtype, "batch_size": args.batch,
        "sequence_length": getattr(args, "seq", None), "seed": 0, "steps": STEPS, "warmup": 0, "result_path": "",
        "promise": {"promise": "bit_identical", "reference_case": "", "verdict": "not_checked"},
        "model": plugin_use(model, f"models/{FAMILY}/plugin.json"),
        "strategies": [plugin_use(text, manifests[text.split(",")[0]]["manifest"]) for text in uses],
    }  # fmt: skip


class Parity(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    @classmethod
    def setUpClass(cls):
        environment = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
        cls.server = subprocess.Popen([DRIVER, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    @classmethod
    def tearDownClass(cls):
        cls.server.communicate(timeout=60)

    def driver(self, case, *arguments):
        job_file, told = self.folder / "job.json", self.folder / "told"
        job_file.write_text(json.dumps(case))
        told.unlink(missing_ok=True)
        self.server.stdin.write(json.dumps([str(job_file), "--told", str(told), *arguments]) + "\n")
        self.server.stdin.flush()
        status = self.server.stdout.readline().strip()
        said = told.read_text() if told.exists() else ""
        if status != "0":
            raise AssertionError(f"{case['strategies']}: exit status {status or 'of nobody: the driver is gone'}\n{said}")
        return json.loads(said)

    def same_numbers(self, model, sizes, arguments, stack):
        weights, theirs, ours, batch = (str(self.folder / name) for name in ("weights", "theirs", "ours", "batch"))
        given = [*arguments, "--randomise", "--save-weights", weights, "--save", theirs]
        case, args = subject(model, sizes, given, stack)
        facts = training.run(case, args)
        reference = load_file(theirs)
        save_file({our_name(name): tensor for name, tensor in load_file(weights).items()}, weights)
        names = {"input.x": "input", "input.input_ids": "input", "input.labels": "target"}
        save_file({names[name]: reference.pop(name) for name in names if name in reference}, batch)
        told = self.driver(job(model, sizes, args), "--weights", weights, "--input", batch, "--save", ours)
        result = load_file(ours)

        tolerance = tolerance_of(stack)
        for own, other in zip(told["losses"], facts["losses"], strict=True):
            self.assertTrue(close(torch.tensor(own), torch.tensor(other), tolerance), f"losses {told['losses']}, {facts['losses']}")
        expected = {our_name(name): tensor for name, tensor in reference.items() if name.startswith(("grad.", "after.", "running."))}
        self.assertEqual(sorted(expected), sorted(result))
        for name, tensor in expected.items():
            # Not "close", unless its module says so: the same kernels in the same order round alike.
            self.assertTrue(close(result[name], tensor, tolerance), f"{name}: {self.distance(result[name], tensor)}")
            self.assertTrue((tensor != 0).any(), f"{name} shows nothing")

    @staticmethod
    def distance(a, b):
        return f"largest difference {(a.double() - b.double()).abs().max().item()} of {b.abs().max().item()}"

    def same_bytes(self, model, sizes, arguments, stack):
        case, args = subject(model, sizes, arguments, stack)
        theirs, allocations = oracle_memory(case, args)
        changes = self.folder / "changes"
        told = self.driver(job(model, sizes, args), "--changes", str(changes))
        self.assertEqual(told["base_bytes"], theirs["base_bytes"], "parameters, buffers and batch")
        lines = [line.split() for line in changes.read_text().splitlines()]
        own = [(phase, int(size)) for phase, size, _, _ in lines if phase != "build" and int(size) > 0]
        twice = wraps_numbers_twice(stack)
        if twice:
            own, allocations = ([pair for pair in pairs if pair[1] != NUMBER] for pairs in (own, allocations))
        if any(hasattr(module, "ORDER") for module in modules_of(stack)):
            own, allocations = (in_any_order(pairs) for pairs in (own, allocations))
        first = next((i for i, pair in enumerate(zip(own, allocations)) if pair[0] != pair[1]), None)
        if first is not None:
            around = slice(max(first - 3, 0), first + 4)
            self.fail(f"allocation {first}: {own[around]}, expected {allocations[around]}")
        self.assertEqual(len(own), len(allocations))
        if twice and len(told["phases"]) == len(theirs["phases"]):
            theirs["phases"] = [mine if mine[0] == their[0] and their[1] - mine[1] in (0, NUMBER) else their
                                for mine, their in zip(told["phases"], theirs["phases"])]  # fmt: skip
        self.assertEqual(told["phases"], theirs["phases"])


def wraps_numbers_twice(stack):
    """Where operators go through a Python dispatch mode, a number is taken out of its tensor for the mode and wrapped again: while the
    operator runs, there is one more tensor of 8 bytes, on the host. Such tensors are not compared then."""
    return any(getattr(module, "NUMBERS_TWICE", stack + ".") in stack for module in modules_of(stack))


def in_any_order(allocations):
    """Those of a phase by size."""
    return [pair for _, phase in itertools.groupby(allocations, key=lambda pair: pair[0]) for pair in sorted(phase)]


def close(own, other, tolerance):
    if tolerance is None:
        return ((own == other) | (own.isnan() & other.isnan())).all()  # a step that is skipped has such gradients
    return torch.allclose(own.double(), other.double(), atol=tolerance["absolute"], rtol=tolerance["relative"])


def modules_of(stack):
    return [module for module, _ in strategies.modules(strategies.parse(stack))]


def tolerance_of(stack):
    """Of the part that needs the largest; None: equal to the bit."""
    found = [module.NUMBERS for module in modules_of(stack) if hasattr(module, "NUMBERS")]
    return {key: max(one.get(key, 0) for one in found) for key in ("absolute", "relative")} if found else None


def bytes_differ(module, stack):
    why = getattr(module, "BYTES", None)
    return why.get(stack) if isinstance(why, dict) else why


def applies(stack, model):
    """Whether the model has what the manifests of the stack's strategies need."""
    entries = json.loads((SOURCE / "models" / FAMILY / "plugin.json").read_text())["entries"]
    facts = next(entry.get("facts", []) for entry in entries if entry["id"] == model)
    return all(need in facts for part in strategies.parse(stack) for need in strategies.manifests()[part].get("needs", []))


def stacks(name):
    """What is compared on this model: of the strategies that stock PyTorch's own are written down of."""
    listed = [strategies, *(strategies.module_of(name.stem) for name in sorted((ORACLE / "stock").glob("[a-z]*.py")))]
    found = {}
    for module in listed:
        if FAMILY not in getattr(module, "FAMILIES", (FAMILY,)):
            continue
        lists = ["BFLOAT16_STACKS"] if "bfloat16" in name else ["STACKS", f"{FAMILY.upper()}_STACKS"] + (["UNTIED_STACKS"] if name == "untied" else [])
        listed_stacks = [stack for key in lists for stack in getattr(module, key, []) if applies(stack, MODELS[FAMILY][name][0])]
        if not ALL and module.__name__ not in EVERY_STACK_OF:
            listed_stacks = listed_stacks[: 0 if "bfloat16" in name else 1]
        found |= dict.fromkeys(listed_stacks)
    # PyTorch's flash kernel for the CPU has no dropout, which GPT-2 has by default: both sides refuse it.
    refused = "backend=flash" if name == "gpt2" else None
    return [stack for stack in found if CHOSEN in stack and not (refused and refused in stack)]


def add_tests():
    for name, case in MODELS[FAMILY].items():
        for stack in stacks(name):
            kinds = ["same_numbers"]
            if not any(bytes_differ(module, stack) for module in modules_of(stack)):
                kinds.append("same_bytes")
            for kind in kinds:
                test = lambda self, kind=kind, case=case, stack=stack: getattr(self, kind)(*case, stack)  # noqa: E731
                setattr(Parity, f"test {kind}: {stack}, {name}", test)


add_tests()
