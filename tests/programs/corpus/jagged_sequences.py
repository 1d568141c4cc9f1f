"""Nested tensors in the jagged layout: a linear layer over texts of different lengths without padding, and a padded form at the end.

Expected: ends well, exact
Truth: the CPU's run (rows and padded shape)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
rows = [torch.randn(length, 32) for length in torch.randint(3, 30, (16,)).tolist()]
texts = torch.nested.nested_tensor([row.to(device) for row in rows], layout=torch.jagged)
layer = torch.nn.Linear(32, 64).to(device)
hidden = torch.nn.functional.relu(layer(texts))
print("size rows", tuple(hidden.values().shape), len(hidden.offsets()))
hidden.values().square().mean().backward()
padded = torch.nested.to_padded_tensor(hidden, 0.0)
print("size padded", tuple(padded.shape))
