"""A training that does not fit: out of memory, which nobody catches.

Expected: exit code 1, lower bound (the program did not end well)
"""

import torch

kept = []
for layer in range(1000):
    kept.append(torch.empty(256 << 20, dtype=torch.float32, device="cuda"))
