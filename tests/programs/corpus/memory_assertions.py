"""A test as a library writes it: what a tensor, a gradient and Adam's state take, asserted to the byte.

Expected: ends well, exact if
"""

import torch

MIB = 1 << 20
assert torch.cuda.memory_allocated() == 0
weight = torch.nn.Parameter(torch.empty(1024, 1024, device="cuda"))
assert torch.cuda.memory_allocated() == 4 * MIB
weight.sum().backward()
assert torch.cuda.memory_allocated() == 8 * MIB
optimizer = torch.optim.Adam([weight], foreach=False)
optimizer.step()
assert torch.cuda.memory_allocated() == 16 * MIB
assert torch.cuda.max_memory_allocated() >= 16 * MIB
optimizer.zero_grad()
assert torch.cuda.memory_allocated() == 12 * MIB
torch.cuda.reset_peak_memory_stats()
kept = torch.empty(100, dtype=torch.uint8, device="cuda")
assert torch.cuda.max_memory_allocated() == 12 * MIB + 512
assert torch.cuda.memory_reserved() <= torch.cuda.mem_get_info()[1] - torch.cuda.mem_get_info()[0]
del weight, optimizer, kept
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 0
