"""Counts the FLOPs of stock PyTorch's own training steps by torch.utils.flop_counter, several cases of the oracle's scripts in one
process tree. Prints a JSON list: {"flops": of all steps, "operators": {name: FLOPs}} of each case, or {"error": ...}.

usage: [peakbench emulate --card h100-80gb --] ORACLE-PYTHON flops_cases.py CASES.json     [["vit", "--strategy", "lora"], ...]
"""

import contextlib
import io
import json
import pathlib
import sys

import torch
from torch.utils import flop_counter
from torch.utils.flop_counter import FlopCounterMode

import stock_cases

aten = torch.ops.aten


def repeated(shape, heads):
    """Of a key or value that several heads share; PyTorch's formulas refuse such ones."""
    return (shape[0], heads, *shape[2:])


def forward(query, key, value, *args, **kwargs):
    return flop_counter.sdpa_flop_count(query, repeated(key, query[1]), repeated(value, query[1]))


def backward(gradient, query, key, value, *args, **kwargs):
    return flop_counter.sdpa_backward_flop_count(gradient, query, repeated(key, query[1]), repeated(value, query[1]))


GROUPED = {aten._scaled_dot_product_flash_attention: forward, aten._scaled_dot_product_flash_attention_backward: backward,
           aten._scaled_dot_product_cudnn_attention: forward, aten._scaled_dot_product_cudnn_attention_backward: backward}  # fmt: skip


class Counted:
    """A script of the oracle whose steps are counted; what it prints is not asked for."""

    def __init__(self, script):
        self.script = script

    def main(self):
        mode = FlopCounterMode(display=False, custom_mapping=GROUPED)
        with contextlib.redirect_stdout(io.StringIO()), mode:
            self.script.main()
        json.dump({"flops": mode.get_total_flops(),
                   "operators": {str(name): flops for name, flops in mode.get_flop_counts()["Global"].items()}}, sys.stdout)  # fmt: skip


if __name__ == "__main__":
    stock_cases.SCRIPTS = {name: Counted(script) for name, script in stock_cases.SCRIPTS.items()}
    cases = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    json.dump([stock_cases.run(*case) for case in cases], sys.stdout)
    print()
