"""The real worker, run on jobs of the tests' own: one process each, with a tiny model, on the CPU where no device is named."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from given import PLANTED, PLUGINS, WORKER

SOURCE = pathlib.Path(__file__).parents[2]

# id -> the library and its manifest
LIBRARIES = {
    "vit-b-16": (PLUGINS / "vit.so", SOURCE / "models/vit/plugin.json"),
    "qwen2.5-0.5b": (PLUGINS / "decoder.so", SOURCE / "models/decoder/plugin.json"),
    "checkpointing": (PLUGINS / "checkpointing.so", SOURCE / "plugins/checkpointing/plugin.json"),
    "baseline": (PLUGINS / "baseline.so", SOURCE / "plugins/baseline/plugin.json"),
    "fused-in-backward": (PLUGINS / "fused_in_backward.so", SOURCE / "plugins/fused_in_backward/plugin.json"),
    "lora": (PLUGINS / "lora.so", SOURCE / "plugins/lora/plugin.json"),
    "gradient-offload": (PLUGINS / "gradient_offload.so", SOURCE / "plugins/gradient_offload/plugin.json"),
    "loss-scaling": (PLUGINS / "loss_scaling.so", SOURCE / "plugins/loss_scaling/plugin.json"),
    "ema": (PLUGINS / "ema.so", SOURCE / "plugins/ema/plugin.json"),
    "sam": (PLUGINS / "sam.so", SOURCE / "plugins/sam/plugin.json"),
}
# Libraries beside PLANTED, whose entries are known by their ids.
for _name in ("around_inputs", "blamed", "inputs", "losses", "passes", "replays", "unfilled", "unlike_baseline"):
    _manifest = SOURCE / f"tests/worker/planted/{_name}.json"
    for _entry in json.loads(_manifest.read_text())["entries"]:
        LIBRARIES[_entry["id"]] = (PLANTED.with_name(f"{_name}.so"), _manifest)
LAYERS = 2
MODEL = f"vit-b-16,layers={LAYERS},width=48,mlp=64,image=32"  # its loss is a sum over samples
DECODER = "qwen2.5-0.5b,layers=1,width=28,mlp=32,vocabulary=64"  # its loss is a mean


def use(text):
    """`NAME,key=value,...` as a job has it: the options typed are chosen, the others have their defaults."""
    name, *typed = text.split(",")
    path, manifest = LIBRARIES.get(name, (PLANTED, SOURCE / "tests/worker/planted/plugin.json"))
    entry = next(one for one in json.loads(manifest.read_text())["entries"] if one["id"] == name)
    defaults = {option["name"]: option["default"] for option in entry["options"]}
    chosen = {}
    for item in typed:
        key, value = item.split("=")
        chosen[key] = type(defaults[key])(value) if isinstance(defaults[key], (int, float)) else value
    return {"selection": {"id": name, "options": chosen}, "options": {**defaults, **chosen}, "path": str(path)}


class WorkerTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_worker(self, *stack, mode="memory", steps=3, warmup=0, batch=4, promise=None, write="", read="",
                   model=MODEL, memory_limit=0, device="cpu", length=None):  # fmt: skip
        """The worker's result; its stderr is `self.log`, what it said of its progress `self.progress`."""
        job = {
            "mode": mode, "case_id": "case", "model": use(model), "strategies": [use("baseline"), *map(use, stack)],
            "device": device, "dtype": "fp32", "batch_size": batch, "sequence_length": 8 if model == DECODER else length, "seed": 0,
            "steps": steps, "warmup": warmup, "threads": 1, "memory_limit_bytes": memory_limit, "result_path": str(self.folder / "result.json"),
            "trace_path": str(self.folder / "trace.sqlite") if mode == "memory" else "",
            "write_parameters_path": str(write), "read_parameters_path": str(read),
            "promise": {"promise": "bit_identical", "reference_case": "", "verdict": "not_checked", **(promise or {})},
        }  # fmt: skip
        path = self.folder / "job.json"
        path.write_text(json.dumps(job))
        progress = self.folder / "progress"
        with open(progress, "wb") as file:
            done = subprocess.run([WORKER, path], capture_output=True, text=True, timeout=120,
                                  pass_fds=[file.fileno()], env={**os.environ, "PEAKBENCH_PROGRESS_FD": str(file.fileno())})  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.log = done.stderr
        self.progress = [json.loads(line) for line in progress.read_text().splitlines()]
        return json.loads((self.folder / "result.json").read_text())
