#!/usr/bin/env python3
"""Makes docs/evidence/strategies-in-python.md: peaks of each strategy that is both a plugin and in peakbench.strategies, on one model.

usage: strategies_page.py PEAKBENCH [--from FOLDER]    PEAKBENCH_ORACLE names the Python of ci/oracle
                                                       --from: results of an earlier call, in place of runs; else they are left in results/strategies-page
"""

import argparse
import json
import os
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
PAGE = SOURCE / "docs/evidence/strategies-in-python.md"
CARD = "emulated:h100-80gb"
BATCH = 4
STACKS = [
    "baseline", "foreach-off", "fused-optimizer", "adamw-8bit", "adamw-4bit", "fused-in-backward", "accumulation", "checkpointing",
    "checkpointing,every=2", "checkpointing,keep=matmuls_and_attention", "save-on-cpu", "autocast", "lora", "dora", "lora+checkpointing",
    "foreach-off+checkpointing",
]  # fmt: skip
# peft's own choice for Llama is two of the plugin's four layers.
TARGETS = ",targets=q_proj:k_proj:v_proj:o_proj"
# TinyLlama 1.1B with two blocks: https://huggingface.co/TinyLlama/TinyLlama_v1.1/blob/main/config.json.
MODEL = "tinyllama-1.1b,layers=2"
PROGRAM = '''import peakbench
import torch
from transformers import LlamaConfig, LlamaForCausalLM


@peakbench.model
def tinyllama(batch=4, layers=2, tokens=256):
    config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=layers, num_attention_heads=32,
                         num_key_value_heads=4, max_position_embeddings=2048, rms_norm_eps=1e-5, tie_word_embeddings=False, use_cache=False)
    net = LlamaForCausalLM(config)
    ids = torch.randint(0, config.vocab_size, (batch, tokens))
    labels = ids.clone()
    return net, lambda rows=slice(None): net(input_ids=ids[rows], labels=labels[rows]).loss
'''
# Strategy -> why its peaks differ.
CAUSES = {
    "adamw-8bit": "torchao compiles its update, and the plugin computes what the compiled one does. Here it ran uncompiled, as compiling needs Triton: "
    "each operator of the update has a result of its own.",
    "adamw-4bit": "the same as `adamw-8bit`.",
    "dora": "allocated bytes are equal. A likely cause, not tested here: peft computes the lengths of the adapted weights while it attaches the adapters, "
    "so the allocator has other free blocks later ([parity](parity.md#what-differs-and-why)).",
}
KINDS = ("requested", "allocated", "reserved")


def run(peakbench, folder, name, *words):
    """The peaks of each stack in bytes, and its status where it has none."""
    python = os.environ["PEAKBENCH_ORACLE"]
    apart = [str(path) for path in Path(python).parents[1].glob("apart")]  # torchao
    environment = os.environ | {"PEAKBENCH_PYTHON": python, "PYTHONPATH": ":".join([str(SOURCE / "python"), *apart]), "TORCHDYNAMO_DISABLE": "1"}
    typed = [stack if name == "plugins" else "+".join(one + TARGETS * (one in ("lora", "dora")) for one in stack.split("+")) for stack in STACKS]
    stacks = [word for stack in typed for word in ("--strategy", stack)]
    if peakbench:
        done = subprocess.run([peakbench, "run", *words, *stacks, "--batch", str(BATCH), "--device", CARD, "--out", name, "--overwrite"], cwd=folder,
                              env=environment)  # fmt: skip
        if done.returncode not in (0, 1):
            raise SystemExit(f"strategies_page: peakbench run {name}: exit code {done.returncode}")
    cases = json.loads((folder / name / "run.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == len(STACKS)
    return dict(zip(STACKS, cases))


def row(stack, plugin, python):
    cells = [f"`{stack}`"]
    if {plugin["status"], python["status"]} != {"ok"}:
        return cells + [plugin["status"], python["status"], "", ""], False
    ours, theirs = ([case["memory"][f"peak_{kind}_bytes"] for kind in KINDS] for case in (plugin, python))
    cells += [f"{ours[1]:,}", f"{theirs[1]:,}"]
    cells += ["none" if one == other else f"{other - one:+,}" for one, other in list(zip(ours, theirs))[::2]]
    return cells, ours == theirs


def page(plugins, python):
    rows = {stack: row(stack, plugins[stack], python[stack]) for stack in STACKS}
    same = [stack for stack, (_, is_same) in rows.items() if is_same]
    others = [stack for stack in STACKS if stack not in same]
    causes = "\n".join(f"- `{stack}`: {CAUSES.get(stack, 'not explained yet')}" for stack in others)
    table = "\n".join("| " + " | ".join(cells) + " |" for cells, _ in rows.values())
    return f"""# Strategies in Python and as plugins

Does a strategy in Python take the same memory as the plugin of its name?

```sh
python3 tests/python/strategies_page.py build/release/bin/peakbench
```

The script runs both on the same model and the same emulated card, and writes this page. Set `PEAKBENCH_ORACLE` to the Python that `ci/oracle` makes.

Of {len(STACKS)} stacks, {len(same)} have the same requested, allocated and reserved peak, to the byte.

## The runs

- Plugins: `peakbench run --model {MODEL} --seq 256 --batch {BATCH} --device {CARD}`.
- Python: `peakbench run --program bench.py:tinyllama --batch {BATCH} --device {CARD}`, with transformers' `LlamaForCausalLM` of the same configuration.
- Both in fp32, three steps.
- The labels are a tensor of their own, as in the plugin's batch.
- Adapters are beside the four layers of attention, which are the plugin's default (`lora{TARGETS}` in Python).

| stack | plugin, allocated peak | Python, allocated peak | difference of requested bytes | difference of reserved bytes |
|---|---|---|---|---|
{table}

## Differences
{chr(10) + causes if others else chr(10) + "None."}

`paged` and `qlora` need bitsandbytes, whose kernels are not emulated on this page. The other plugins have no strategy of the same name in Python.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peakbench", type=Path)
    parser.add_argument("--from", dest="folder", type=Path)
    asked = parser.parse_args()
    folder = (asked.folder or SOURCE / "results/strategies-page").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.py").write_text(PROGRAM, encoding="utf-8")
    peakbench = None if asked.folder else asked.peakbench.resolve()
    plugins = run(peakbench, folder, "plugins", "--model", MODEL, "--seq", "256")
    python = run(peakbench, folder, "python", "--program", "bench.py:tinyllama")
    PAGE.write_text(page(plugins, python), encoding="utf-8")


main()
