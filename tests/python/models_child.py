"""Run by the oracle's Python: what models_test.py asks of models by name, as a line of JSON for each of them.

    models_child.py count PLACE          parameters of each bundled configuration, which is made on `meta`
    models_child.py train PLACE:NAME...  a loss and its gradients of each, on the CPU, with two layers and narrow ones
"""

import copy
import json
import os
import sys
import tempfile
from pathlib import Path

import torch

from peakbench import models

# What a configuration says of widths, and how wide it is here. The number of heads of keys and values keeps its share.
NARROW = {
    "hidden_size": 64, "d_model": 64, "n_embd": 64, "intermediate_size": 128, "intermediate_size_mlp": 128, "moe_intermediate_size": 32,
    "d_ff": 128, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "num_attention_heads": 4, "n_head": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "head_dim": 16, "d_kv": 16, "vocab_size": 1024, "num_experts": 8,
    "num_local_experts": 8, "n_routed_experts": 8, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
    "projection_dim": 32, "max_source_positions": 50,
    # diffusers
    "block_out_channels": [32, 64, 64, 64], "joint_attention_dim": 64, "pooled_projection_dim": 64,
    "caption_projection_dim": 256, "pos_embed_max_size": 24,
}  # fmt: skip
BATCH = 4


def narrowed(config):
    narrow = {}
    for name, value in config.items():
        if isinstance(value, dict):
            narrow[name] = narrowed(value)
        elif name.endswith("_token_id"):
            narrow[name] = value % NARROW["vocab_size"]
        elif name == "num_key_value_heads":
            narrow[name] = max(1, NARROW["num_attention_heads"] * value // config["num_attention_heads"])
        elif isinstance(value, list) and name in NARROW:
            narrow[name] = NARROW[name][: len(value)] if isinstance(NARROW[name], list) else value
        else:
            narrow[name] = min(value, NARROW[name]) if name in NARROW else value
    return narrow


def counted(place):
    library = models.load(place)
    for name in models.bundled(place):
        found = models.find(library, place, name)
        with torch.device("meta"):
            net, _ = found.function(**found.options, batch=1)
        yield name, {"parameters": sum(one.numel() for one in net.parameters()), "form": form_of(place, name)}


def form_of(place, name):
    """As transformers says; the bundled configurations say it without transformers."""
    if place != "hf":
        return None
    from peakbench.models import _transformers

    return _transformers.form_of(name, _transformers.configured(name, models.bundled(place)[name]["config"]))


def trained(typed):
    place, _, name = typed.partition(":")
    library = models.load(place)
    if name in models.bundled(place):
        own = models.bundled(place)[name]
        Path("config.json").write_text(json.dumps(narrowed(copy.deepcopy(own["config"]))), encoding="utf-8")
        name = "config.json"
        defaults = library.model(name).defaults
        wanted = {"layers": 2, "seq": 16, "image": 128 if place == "diffusers" else None, "loss": "features"}
        name += "".join(f",{key}={value}" for key, value in wanted.items() if key in defaults and value)
    found = models.find(library, place, name)
    torch.manual_seed(0)
    net, loss = found.function(**found.options, batch=BATCH)
    value = loss()
    value.backward()
    differ = 0.0
    if "rcnn" not in name:  # it has no loss without its random choice of boxes
        with torch.no_grad():
            net.eval()
            halves = [loss(slice(begin, begin + BATCH // 2)) for begin in (0, BATCH // 2)]
            differ = abs(loss() - sum(halves) / 2).item()
    yield typed, {
        "class": type(net).__name__,
        "loss": value.item(),
        "without_gradient": [name for name, one in net.named_parameters() if one.grad is None],
        "halves_differ_by": differ,
    }


def main(what, *names):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="peakbench-models-") as folder:
        os.chdir(folder)
        for name in names:
            for one, said in counted(name) if what == "count" else trained(name):
                print(json.dumps({"name": one, **said}), flush=True)
        os.chdir("/")


if __name__ == "__main__":
    main(*sys.argv[1:])
