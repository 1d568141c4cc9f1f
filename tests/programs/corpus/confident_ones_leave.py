"""Inference with early exits: after each block those rows that are sure leave the batch, and the rest goes on.

Expected: ends well, exact
Truth: the CPU's run (rows of each block)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
blocks = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()) for _ in range(5)).to(device)
exits = torch.nn.ModuleList(torch.nn.Linear(16, 3) for _ in range(5)).to(device)
for head in exits:
    head.weight.data.mul_(4)
x = 2 * torch.randn(300, 16).to(device)
answers, open_ = torch.full((300,), -1, device=device), torch.arange(300, device=device)
with torch.inference_mode():
    for at, (block, head) in enumerate(zip(blocks, exits)):
        x = block(x) + x
        sure, label = head(x).softmax(-1).max(-1)
        leaves = sure > 0.8
        answers[open_[leaves]] = label[leaves]
        x, open_ = x[~leaves], open_[~leaves]
        print("size block", at, int(leaves.sum()), tuple(x.shape))
        if not len(open_):
            break
print("size answers", torch.bincount(answers + 1, minlength=4).tolist())
