"""Prints the workspace of each pass of a convolution: for each configuration a line of JSON as in a card's file.

usage: convolution.py RECORD.json         those that a real card's record has, with its name
       convolution.py COUNT SEED           some at random
"""

import json
import pathlib
import random
import sys

import torch

# What goes to cuDNN itself goes from one thread (forward.cpp).
torch.autograd.set_multithreading_enabled(False)
PASSES = ("forward", "backward_data", "backward_weight")


def workspace_of(do, result_bytes):
    torch.cuda.memory._record_memory_history(max_entries=10000)
    did = do()
    sizes = [event["size"] for event in torch.cuda.memory._snapshot()["device_traces"][0] if event["action"] == "alloc"]
    torch.cuda.memory._record_memory_history(None)
    sizes.remove(result_bytes)
    return did, sum(sizes)


def measure(one):
    torch.backends.cudnn.allow_tf32 = one.get("tf32", False)
    layout = torch.channels_last if one["layout"] == "channels last" else torch.contiguous_format
    made = {"device": "cuda", "dtype": getattr(torch, one["dtype"])}
    image, weight = (torch.zeros(one[name], **made).to(memory_format=layout) for name in ("input", "weight"))
    how, groups = (one["stride"], one["padding"], one["dilation"]), one["input"][1] // one["weight"][1]
    result = torch.nn.functional.conv2d(image, weight, None, *how, groups)
    _, forward = workspace_of(lambda: torch.nn.functional.conv2d(image, weight, None, *how, groups), result.nbytes)
    found = {"forward": forward}
    for name, of, mask in (("backward_data", image, [True, False, False]), ("backward_weight", weight, [False, True, False])):
        backward = torch.ops.aten.convolution_backward
        _, found[name] = workspace_of(lambda: backward(result, image, weight, None, *how, False, [0, 0], groups, mask), of.nbytes)
    return found


def recorded(path):
    """N=8,C=64,H=W=56,K=64,3x3,stride=1,padding=1,float32[,channels_last] -> its convolution"""
    for name in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["cudnn_workspaces_of_convolution"]:
        n, c, h, k, size, stride, padding, dtype, *layout = name.replace("H=W=", "H=").split(",")
        n, c, h, k, stride, padding = (int(part.split("=")[1]) for part in (n, c, h, k, stride, padding))
        yield name, {"input": [n, c, h, h], "weight": [k, c, *map(int, size.split("x"))], "stride": [stride] * 2, "padding": [padding] * 2,
                     "dilation": [1, 1], "dtype": dtype, "layout": "channels last" if layout else "channels first", "tf32": dtype == "float32"}  # fmt: skip


def at_random(count, seed):
    pick = random.Random(seed).choice
    while count:
        size, stride, channels, outputs, edge = (pick(of) for of in ((1, 1, 3, 3, 3, 5, 7), (1, 1, 1, 2), (1, 3, 4, 16, 24, 64, 100, 256, 512, 1024),
                                                                     (1, 8, 21, 64, 128, 255, 512, 1000), (7, 14, 28, 56, 112, 224)))  # fmt: skip
        batch, dtype = pick((1, 2, 8, 32)), pick(("float32", "bfloat16", "float16"))
        depthwise = pick((False, False, False, True)) and channels > 1
        if size <= edge and batch * max(channels, outputs) * edge * edge < 2**27:
            count -= 1
            yield "", {"input": [batch, channels, edge, edge], "weight": [channels if depthwise else outputs, 1 if depthwise else channels, size, size],
                       "stride": [stride] * 2, "padding": [size // 2] * 2, "dilation": [1, 1], "dtype": dtype,
                       "layout": pick(("channels first", "channels last")), "tf32": dtype == "float32"}  # fmt: skip


for name, one in recorded(sys.argv[1]) if sys.argv[1].endswith(".json") else at_random(int(sys.argv[1]), int(sys.argv[2])):
    print(json.dumps({**one, **measure(one), "name": name}), flush=True)
