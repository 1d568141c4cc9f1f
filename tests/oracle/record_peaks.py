"""Records what stock PyTorch takes on the CPU for the full-size cases that the parity tests compare with, so that a test run
need not run stock PyTorch's 6 GB steps every time.

usage: oracle-python record_peaks.py [PATTERN...]    rewrites cpu_peaks.json beside it, the cases that match (vit-b*) or all

Needs 16 GiB of memory for the largest. A case whose bytes depend on the CPU has more than one record: LibTorch multiplies bf16 matrices
through oneDNN where there is AVX-512 and by itself elsewhere, with other temporaries. What differs from the first record stands under
`by_cpu_capability`, by the name that torch has for it; so run this on a machine of each kind.
"""

import fnmatch
import json
import pathlib
import subprocess
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parents[1] / "lab"))
import record_file  # noqa: E402

FILE = HERE / "cpu_peaks.json"
STACKS = [
    "baseline",
    "foreach-off",
    "fused-in-backward",
    "checkpointing",
    "lora",
    "checkpointing+fused-in-backward",
    "lora+checkpointing",
]
# case id -> arguments without the stack
MODELS = {
    "vit-l-16/{}/cpu/fp32/b1": ["vit.py", "--model", "vit-l-16"],
    "vit-b-16/{}/cpu/fp32/b1": ["vit.py", "--model", "vit-b-16"],
    "vit-b-16/{}/cpu/bf16/b2": ["vit.py", "--model", "vit-b-16", "--dtype", "bf16", "--batch", "2"],
    "qwen2.5-0.5b/{}/cpu/fp32/b1/s256": ["decoder.py", "--model", "qwen2.5-0.5b", "--seq", "256"],
    "qwen2.5-0.5b,layers=2/{}/cpu/fp32/b2/s128": ["decoder.py", "--model", "qwen2.5-0.5b", "--layers", "2", "--batch", "2", "--seq", "128"],
    "llama-3.1-8b,layers=2,vocabulary=4096/{}/cpu/fp32/b1/s256": ["decoder.py", "--model", "llama-3.1-8b", "--layers", "2", "--vocabulary", "4096"],
}


def keep(cases, case, found):
    """As the case's record, or beside it where the CPU makes the difference."""
    known = cases.get(case)
    capability = torch.backends.cpu.get_cpu_capability()
    if known is None or known.get("cpu_capability") == capability:
        cases[case] = {**found, "cpu_capability": capability, **{k: known[k] for k in ("by_cpu_capability",) if known and k in known}}
    elif found != {key: known[key] for key in found}:
        differs = {key: value for key, value in found.items() if value != known[key]}
        known.setdefault("by_cpu_capability", {})[capability] = differs


def main(patterns):
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {"cases": {}}
    for shape, command in MODELS.items():
        for stack in STACKS:
            case = shape.format(stack)
            if patterns and not any(fnmatch.fnmatch(case, pattern) for pattern in patterns):
                continue
            print(case, file=sys.stderr, flush=True)
            done = subprocess.run([sys.executable, HERE / command[0], *command[1:], "--strategy", stack], capture_output=True, text=True)
            if done.returncode:
                print(done.stderr[-500:], file=sys.stderr)
                continue
            result = json.loads(done.stdout)
            memory = result["memory"]
            recorded["torch"] = result["torch"]
            keep(recorded["cases"], case, {
                "arguments": [*command, "--strategy", stack],
                "parameters": result["parameters"],
                "trainable_parameters": result["trainable_parameters"],
                **{key: memory[key] for key in ("base_bytes", "peak_allocated_bytes", "peak_phase", "peak_step", "phases", "steps")},
            })  # fmt: skip
            record_file.write(FILE, recorded)


if __name__ == "__main__":
    main(sys.argv[1:])
