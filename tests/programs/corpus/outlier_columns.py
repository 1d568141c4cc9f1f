"""LLM.int8 by hand: columns of activations above six stay in half precision, the rest is multiplied in 8 bits.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (columns)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
weight = torch.randn(96, 128).to(device)
activations = torch.randn(64, 128)
activations[:, torch.randperm(128)[:7]] *= 6
activations = activations.to(device)
outliers = (activations.abs() > 6).any(0)
columns, rest = torch.where(outliers)[0], torch.where(~outliers)[0]
print("size columns", len(columns), len(rest), columns.tolist())
scale = activations[:, rest].abs().amax(1, keepdim=True) / 127
weight_scale = weight[:, rest].abs().amax(1, keepdim=True) / 127
left, right = (activations[:, rest] / scale).round().to(torch.int8), (weight[:, rest] / weight_scale).round().to(torch.int8)
product = (left.float() @ right.float().T) * scale * weight_scale.T + activations[:, columns] @ weight[:, columns].T
error = (product - activations @ weight.T).abs()
print("size error", (error > 1.0).sum().item(), (left.abs() == 127).sum().item() >= 64)
