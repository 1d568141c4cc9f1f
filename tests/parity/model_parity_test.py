"""The models' plugins against their reference implementations, tiny and on the CPU: the same weights and batch give the same
outputs, loss and gradients to the bit; forward and backward make the same allocations in the same order, and have the same peaks
to the byte: in training, with matrices frozen, and without gradients (where the lifetimes of temporaries alone decide).
"""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import memory
import torch
import training
from given import EXAMPLES, FAMILY, MODEL_DRIVER as DRIVER, PLUGINS
from safetensors.torch import load_file, save_file

# What other threads allocate for a moment is different each time, and the profiler does not see it.
torch.set_num_threads(1)
FOLDER, SOURCES = (EXAMPLES, "examples") if FAMILY == "moe" else (PLUGINS, "models")
PLUGIN, MANIFEST = FOLDER / f"{FAMILY}.so", pathlib.Path(__file__).resolve().parents[2] / SOURCES / FAMILY / "plugin.json"

# Sizes: (our option, the oracle's), value. Heads of 8 features: Llama's scaling meets short, middle and long waves.
DECODER = {"layers": 2, "width": 32, "mlp": 48, "heads": 4, "kv_heads": 2, "vocabulary": 97}
GPT2 = {"layers": 2, "width": 32, "mlp": 48, "heads": 4, "positions": 64, "vocabulary": 97}
RESNET = {"blocks": "1:2:1:1", "width": 8, "image": 64}
MOE = {"layers": 2, "width": 32, "mlp": 48, "heads": 4, "experts": 4, "top_k": 2, "vocabulary": 97}
VIT = {"layers": 2, "width": 32, "heads": 2, "mlp": 48, "image": 32}
ORACLE_NAMES = {"mlp": "mlp-width", "kv_heads": "kv-heads", "top_k": "top-k"} | ({"image": "image-size"} if FAMILY == "vit" else {})
# name -> (model, sizes, arguments that both understand)
CASES = {
    "decoder": {
        "tied, biases, grouped heads": ("qwen2.5-0.5b", DECODER, ["--batch", "2", "--seq", "24"]),
        "tied, scaled rotation": ("llama-3.2-1b", DECODER, ["--batch", "1", "--seq", "64"]),
        "untied, scaled rotation": ("llama-3.1-8b", DECODER, ["--batch", "2", "--seq", "64"]),
        "every head its own key": ("qwen2.5-1.5b", DECODER | {"kv_heads": 4}, ["--batch", "3", "--seq", "17"]),
        "one key for all heads": ("llama-3.2-3b", DECODER | {"kv_heads": 1}, ["--batch", "2", "--seq", "40"]),
        "bfloat16, tied": ("qwen2.5-0.5b", DECODER, ["--batch", "2", "--seq", "24", "--dtype", "bf16"]),
        "bfloat16, untied": ("llama-3.1-70b", DECODER, ["--batch", "1", "--seq", "64", "--dtype", "bf16"]),
        "plain rotation, grouped heads": ("tinyllama-1.1b", DECODER, ["--batch", "2", "--seq", "24"]),
        "plain rotation, every head its own key": ("llama-2-7b", DECODER | {"kv_heads": 4}, ["--batch", "2", "--seq", "40"]),
        "plain rotation, bfloat16": ("llama-2-13b", DECODER | {"kv_heads": 4}, ["--batch", "1", "--seq", "24", "--dtype", "bf16"]),
        "plain rotation, long waves": ("llama-3-8b", DECODER, ["--batch", "2", "--seq", "64"]),
        "untied, biases": ("qwen2.5-7b", DECODER, ["--batch", "2", "--seq", "24"]),
        "plain rotation, a window": ("mistral-7b-v0.1", DECODER, ["--batch", "2", "--seq", "40"]),
        "long waves, no window": ("mistral-7b-v0.3", DECODER, ["--batch", "1", "--seq", "64"]),
        "scaled by Granite": ("powerlm-3b", DECODER | {"kv_heads": 4}, ["--batch", "2", "--seq", "24"]),
        "bfloat16, scaled by Granite": ("powerlm-3b", DECODER, ["--batch", "2", "--seq", "24", "--dtype", "bf16"]),
        "wider than long": ("llama-3.1-8b", DECODER | {"width": 128, "mlp": 200}, ["--batch", "1", "--seq", "8"]),
        "a large vocabulary": ("qwen2.5-0.5b", DECODER | {"vocabulary": 3001}, ["--batch", "1", "--seq", "50"]),
    },
    "gpt2": {
        "dropout": ("gpt2", GPT2, ["--batch", "2", "--seq", "24"]),
        "no dropout": ("gpt2-xl", GPT2 | {"dropout": 0}, ["--batch", "2", "--seq", "64"]),
        "a row": ("gpt2-medium", GPT2 | {"dropout": 0.25}, ["--batch", "1", "--seq", "17"]),
        "bfloat16": ("gpt2-large", GPT2, ["--batch", "3", "--seq", "24", "--dtype", "bf16"]),
    },
    "moe": {
        "two experts a token": ("my-moe", MOE, ["--batch", "2", "--seq", "24"]),
        "one of eight": ("my-moe", MOE | {"experts": 8, "top_k": 1, "layers": 3}, ["--batch", "1", "--seq", "40"]),
        "bfloat16": ("my-moe", MOE, ["--batch", "3", "--seq", "17", "--dtype", "bf16"]),
    },
    "resnet": {
        "one image": ("resnet-50", RESNET, ["--batch", "1"]),
        "three odd images": ("resnet-50", RESNET | {"image": 51}, ["--batch", "3"]),
        "channels last": ("resnet-50", RESNET | {"channels_last": "true"}, ["--batch", "2"]),
        "bfloat16": ("resnet-50", RESNET, ["--batch", "2", "--dtype", "bf16"]),
    },
    "vit": {
        "patches of 14": ("vit-h-14", VIT | {"image": 42}, ["--batch", "2"]),
        "one image": ("vit-l-16", VIT, ["--batch", "1"]),
        "three images": ("vit-b-16", VIT | {"image": 48, "heads": 4}, ["--batch", "3"]),
        "bfloat16": ("vit-b-16", VIT, ["--batch", "2", "--dtype", "bf16"]),
    },
}  # fmt: skip
# Models whose logits are not compared, as one of the two sides shows none: the loss and the gradients alone say that they are the same.
NO_OUTPUT = {"my-moe", "powerlm-3b", "resnet-50"}
# Models whose values decide on sizes (how many tokens an expert has): bytes, too, are compared with the same weights and batch.
SIZES_FOLLOW_VALUES = {"my-moe"}
# What the plugin fixes and the oracle's script lets one choose.
FIXED = {"decoder": [], "gpt2": [], "moe": [], "resnet": [], "vit": ["--classes", "1000"]}


def oracle(model, sizes, arguments):
    """The subject of the oracle's script and its arguments, as its command line would give them."""
    script = importlib.import_module(FAMILY)
    patch = ["--patch-size", model.split("-")[-1]] if FAMILY == "vit" else []
    given = [text for name, value in sizes.items() for text in (f"--{ORACLE_NAMES.get(name, name)}", str(value))]
    command = [FAMILY, "--model", model, "--tiny", "--steps", "1", *FIXED[FAMILY], *patch, *given, *arguments]
    with mock.patch.object(sys, "argv", command), mock.patch.object(training, "main") as run:
        script.main()
    return run.call_args.args


def oracle_memory(subject, args, mode, given):
    """One forward and backward: names of parameters, bytes (of build, then each phase's peak), allocations. `given`: values of
    parameters and the batch, by their names there; or empty."""
    with memory.CpuMemory() as recorder:
        with recorder.phase("build"):
            model, batch = training.prepare(subject, args, {}), subject.batch()
            with torch.no_grad():
                for name, tensor in [*model.named_parameters(), *((f"input.{name}", tensor) for name, tensor in batch.items())]:
                    if name in given:
                        tensor.copy_(given[name])
            if mode == "frozen":
                freeze_matrices(model)
        with recorder.phase("forward", 0), torch.set_grad_enabled(mode != "no-grad"):
            loss = subject.forward(model, batch)[1]
        if loss.requires_grad:
            with recorder.phase("backward", 0):
                loss.backward()
    events = recorder.events()
    forward = next(event.start_ns() for event in events if event.name().startswith("peakbench:forward"))
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]" and e.start_ns() >= forward]
    allocations = [size for _, size in sorted(changes, key=lambda change: change[0]) if size > 0]
    return [name for name, _ in model.named_parameters()], recorder.result(), allocations


def freeze_matrices(model):
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and "embed" not in name:
            parameter.requires_grad_(False)


def driver(model, sizes, arguments):
    command = [DRIVER, "--plugin", PLUGIN, "--manifest", MANIFEST, "--model", model, *arguments]
    command += [text for name, value in sizes.items() for text in ("--option", f"{name}={value}")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout)


def batch_for_driver(reference):
    names = {"input.x": "input", "input.input_ids": "input", "input.labels": "target"}
    return {ours: reference[theirs] for theirs, ours in names.items() if theirs in reference}


class Parity(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def same_numbers(self, model, sizes, arguments):
        weights, theirs, ours, batch = (str(self.folder / name) for name in ("weights", "theirs", "ours", "batch"))
        subject, args = oracle(model, sizes, [*arguments, "--randomise", "--save-weights", weights, "--save", theirs])
        facts = training.run(subject, args)
        reference = load_file(theirs)
        save_file(batch_for_driver(reference), batch)
        driver(model, sizes, [*arguments, "--option", f"weights={weights}", "--input", batch, "--save", ours])
        result = load_file(ours)
        if model in NO_OUTPUT:
            result.pop("output", None)

        shown = ("grad.",) if model in NO_OUTPUT else ("grad.", "output")
        expected = {name: tensor for name, tensor in reference.items() if name.startswith(shown)}
        self.assertEqual(sorted(expected.keys() | {"loss"}), sorted(result.keys()))
        self.assertEqual(result["loss"].double().item(), facts["losses"][0])
        for name, tensor in expected.items():
            # Not "close": the same kernels in the same order round alike.
            self.assertTrue(torch.equal(result[name], tensor), f"{name}: {self.distance(result[name], tensor)}")
            self.assertGreater(tensor.abs().max().item(), 0, f"{name} shows nothing")

    @staticmethod
    def distance(a, b):
        return f"largest difference {(a.double() - b.double()).abs().max().item()} of {b.abs().max().item()}"

    def values(self, model, sizes, arguments):
        """Of a model whose sizes follow them: as oracle_memory takes them, and the driver's arguments; nothing for others."""
        if model not in SIZES_FOLLOW_VALUES:
            return {}, []
        weights, saved, batch = (str(self.folder / name) for name in ("weights", "saved", "batch"))
        subject, args = oracle(model, sizes, [*arguments, "--randomise", "--save-weights", weights, "--save", saved])
        training.run(subject, args)
        save_file(batch_for_driver(load_file(saved)), batch)
        return load_file(weights) | load_file(saved), ["--option", f"weights={weights}", "--input", batch]

    def same_bytes(self, model, sizes, arguments):
        given, values = self.values(model, sizes, arguments)
        for mode in ("train", "frozen", "no-grad"):
            with self.subTest(mode):
                names, theirs, allocations = oracle_memory(*oracle(model, sizes, arguments), mode, given)
                changes = self.folder / "changes"
                ours = driver(model, sizes, [*arguments, *values, "--mode", mode, "--changes", str(changes)])
                self.assertEqual(ours["parameters"], names)
                self.assertEqual(ours["base_bytes"], theirs["base_bytes"], "parameters, buffers and batch")
                for phase in ours["phases"]:
                    self.assertEqual(ours["phases"][phase], theirs["phases"][phase], phase)
                lines = [line.split() for line in changes.read_text().splitlines()]
                ours_allocated = [int(size) for phase, size, *_ in lines if phase != "build"]
                self.assertEqual([size for size in ours_allocated if size > 0], allocations)

def add_tests():
    for name, case in CASES[FAMILY].items():
        for kind in ("same_numbers", "same_bytes"):
            setattr(Parity, f"test {kind}: {name}", lambda self, kind=kind, case=case: getattr(self, kind)(*case))


add_tests()
