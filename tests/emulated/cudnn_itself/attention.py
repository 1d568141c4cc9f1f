"""Prints what PyTorch allocates for attention by cuDNN: for each configuration a line of JSON with its name and the sizes of all allocations
forward and backward, or why cuDNN does not do it.

usage: attention.py all|some        those below
       attention.py RECORD.json     those that a real card's record has
"""

import itertools
import json
import pathlib
import sys
import warnings

import torch

# What goes to cuDNN itself goes from one thread (forward.cpp).
torch.autograd.set_multithreading_enabled(False)
warnings.simplefilter("ignore")


def config(**given):
    wanted = {"batch": 2, "heads": 8, "kv_heads": 8, "queries": 128, "keys": 128, "features": 64, "value_features": 0, "dtype": "bfloat16",
              "mask": "", "causal": False, "dropout": 0.0, "grad": True, "layout": "BHSD"} | given
    return wanted | {"value_features": wanted["value_features"] or wanted["features"]}


def configs():
    for layout, mask, causal, dropout, kv_heads in itertools.product(("BHSD", "BSHD"), ("", "11QK", "B1QK", "BHQK"), (False, True), (0.0, 0.1), (8, 2, 1)):
        if not (mask and causal):
            yield config(layout=layout, mask=mask, causal=causal, dropout=dropout, kv_heads=kv_heads)
    for causal, kv_heads, (queries, keys) in itertools.product((False, True), (8, 2), ((128, 128), (2, 128), (2, 2), (64, 512))):
        if not causal or queries == keys:
            yield config(grad=False, causal=causal, kv_heads=kv_heads, queries=queries, keys=keys, layout="BSHD")
    yield config(grad=False, mask="11QK", queries=2, kv_heads=2)
    yield config(grad=False, mask="B1QK")
    sizes = (64, 128), (128, 64), (192, 128), (128, 128), (32, 32), (8, 8), (96, 96), (160, 160), (256, 256), (40, 40)
    for (features, value_features), kv_heads in itertools.product(sizes, (8, 2)):
        yield config(features=features, value_features=value_features, kv_heads=kv_heads, causal=True)
    lengths = (2, 1), (2, 64), (3, 512), (5, 64), (17, 33), (4096, 4096), (3, 3)
    for (queries, keys), kv_heads, dtype in itertools.product(lengths, (8, 2), ("bfloat16", "float16")):
        yield config(queries=queries, keys=keys, kv_heads=kv_heads, dtype=dtype, layout="BSHD")
    for keys, queries, kv_heads in itertools.product((1024, 2048, 8192, 32768), (2, 16), (8, 2)):
        yield config(queries=queries, keys=keys, kv_heads=kv_heads, features=128, grad=queries == 2, layout="BSHD")
    for length, kv_heads in itertools.product((8192, 32768), (8, 2)):
        yield config(queries=length, keys=length, kv_heads=kv_heads, features=128, causal=True, layout="BSHD")
    for mask, layout, kv_heads in itertools.product(("B11K", "1HQK", "11QK expanded", "BHQK expanded"), ("packed", "expanded", "BSHD"), (8, 2)):
        yield config(mask=mask, layout=layout, kv_heads=8 if layout == "packed" else kv_heads)
    for batch, (heads, kv_heads), queries, features in itertools.product((1, 16), ((1, 1), (8, 2), (32, 8)), (2, 3, 8, 16), (64, 256)):
        yield config(batch=batch, heads=heads, kv_heads=kv_heads, queries=queries, keys=4096, features=features, grad=queries == 3, layout="BSHD")
    for (heads, kv_heads), batch in itertools.product(((32, 8), (14, 2), (64, 8), (12, 12), (1, 1), (128, 1)), (1, 3)):
        yield config(heads=heads, kv_heads=kv_heads, batch=batch, features=128, causal=True, layout="BSHD", queries=1000, keys=1000)


def some_configs():
    yield config(layout="BSHD", causal=True, dropout=0.1, kv_heads=2)
    yield config(layout="BSHD", grad=False, queries=2, keys=2048, kv_heads=2)
    yield config(dtype="float16", queries=17, keys=33, kv_heads=1)
    yield config(layout="BSHD", mask="BHQK", features=192, value_features=128)


def recorded(path):
    """B=2,H=14,H_kv=2,S_q=128,S_kv=128,D=64,bfloat16,mask -> its configuration"""
    keys = {"B": "batch", "H": "heads", "H_kv": "kv_heads", "S_q": "queries", "S_kv": "keys", "D": "features"}
    for name in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["cudnn_workspaces_of_attention"]:
        *sizes, dtype = [part for part in name.split(",") if part not in ("causal", "mask")]
        given = {keys[key]: int(value) for key, value in (size.split("=") for size in sizes)}
        yield name, config(**given, dtype=dtype, causal=name.endswith(",causal"), mask="B1QK" if name.endswith(",mask") else "")


def sizes_of(do):
    torch.cuda.memory._record_memory_history(max_entries=10000)
    did = do()
    sizes = [event["size"] for event in torch.cuda.memory._snapshot()["device_traces"][0] if event["action"] == "alloc"]
    torch.cuda.memory._record_memory_history(None)
    return did, sizes


def inputs(c):
    def random(*shape):
        return torch.randn(shape, device="cuda", dtype=getattr(torch, c["dtype"]), requires_grad=c["grad"])

    def laid_out(heads, length, features):
        if c["layout"] == "BHSD":
            return random(c["batch"], heads, length, features)
        if c["layout"] == "expanded":
            return random(c["batch"], 1, length, features).expand(-1, heads, -1, -1)
        return random(c["batch"], length, heads, features).transpose(1, 2)

    if c["layout"] == "packed":
        return [each.transpose(1, 2) for each in random(c["batch"], c["queries"], 3, c["heads"], c["features"]).unbind(2)]
    query = laid_out(c["heads"], c["queries"], c["features"])
    return query, laid_out(c["kv_heads"], c["keys"], c["features"]), laid_out(c["kv_heads"], c["keys"], c["value_features"])


def mask_of(c, dtype):
    if not c["mask"]:
        return None
    size_of = {"1": 1, "B": c["batch"], "H": c["heads"], "Q": c["queries"], "K": c["keys"]}
    shape, *expanded = c["mask"].split()
    sizes = [size_of[letter] for letter in shape]
    if expanded:
        return torch.zeros([1, 1, 1, c["keys"]], device="cuda", dtype=dtype).expand(sizes)
    return torch.zeros(sizes, device="cuda", dtype=dtype)


def measure(c):
    query, key, value = inputs(c)
    mask = mask_of(c, query.dtype)
    attention = torch.nn.functional.scaled_dot_product_attention
    out, forward = sizes_of(lambda: attention(query, key, value, attn_mask=mask, is_causal=c["causal"], dropout_p=c["dropout"],
                                              enable_gqa=c["heads"] != c["kv_heads"]))
    if not c["grad"]:
        return forward, []
    gradient = torch.ones_like(out)
    return forward, sizes_of(lambda: out.backward(gradient))[1]


def named(configs):
    return [(",".join(f"{key}={value}" for key, value in c.items()), c) for c in configs]


for name, c in {"all": lambda: named(configs()), "some": lambda: named(some_configs())}.get(sys.argv[1], lambda: recorded(sys.argv[1]))():
    try:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
            forward, backward = measure(c)
        print(json.dumps({"name": name, "forward": forward, "backward": backward}), flush=True)
    except RuntimeError as error:
        torch.cuda.memory._record_memory_history(None)
        print(json.dumps({"name": name, "error": str(error).strip().splitlines()[0]}), flush=True)
