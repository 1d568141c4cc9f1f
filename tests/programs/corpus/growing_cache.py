"""A cache of keys and values that is doubled when it is full, and one that is joined anew for each token.

Expected: ends well, exact
Truth: a closed form of what is allocated (asserted)
"""

import torch

heads, width = 8, 128
row = heads * width * 2
layer = torch.nn.Linear(heads * width, 3 * heads * width, bias=False, device="cuda", dtype=torch.half)
kept, length = torch.zeros(2, 64, heads, width, dtype=torch.half, device="cuda"), 0
base = torch.cuda.memory_allocated() - kept.nbytes
with torch.no_grad():
    for token in range(1000):
        if length == kept.shape[1]:
            kept = torch.cat([kept, torch.zeros_like(kept)], 1)
        kept[:, length] = 1
        length += 1
assert torch.cuda.memory_allocated() - base == 2 * 1024 * row, torch.cuda.memory_allocated() - base
assert torch.cuda.max_memory_allocated() - base == 2 * row * (512 + 512 + 1024)
del kept
joined = torch.empty(2, 0, heads, width, dtype=torch.half, device="cuda")
torch.cuda.reset_peak_memory_stats()
for token in range(256):
    joined = torch.cat([joined, torch.ones(2, 1, heads, width, dtype=torch.half, device="cuda")], 1)
assert torch.cuda.memory_allocated() - base == 2 * 256 * row
assert torch.cuda.max_memory_allocated() - base == 2 * row * (255 + 1 + 256)
