"""https://arxiv.org/abs/2309.01507, as torchao.optim.AdamW4bit lays its state out: adamw_8bit.py with other maps and blocks."""

import torch

from stock import adamw_8bit

STACKS = ["adamw-4bit", "adamw-4bit,lr=0.01,weight_decay=0.1,block_size=64", "checkpointing+fused-in-backward+adamw-4bit"]
BFLOAT16_STACKS = ["adamw-4bit"]
BYTES = adamw_8bit.BYTES


def install(step, options):
    linear = torch.linspace(0, 1, 17)[1:]
    adamw_8bit.install(step, options, 128, (adamw_8bit.dynamic_map(True, 4), linear))
