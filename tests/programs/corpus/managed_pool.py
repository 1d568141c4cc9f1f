"""Memory pools of one's own, freed memory that is cached, and a collection under pressure.

Expected: ends well, exact
"""

import gc

import torch

pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    kept = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
waste = [torch.empty(size << 20, dtype=torch.uint8, device="cuda") for size in (10, 20, 30)]
waste.append(waste)
del waste
gc.collect()
assert torch.cuda.memory_reserved() > torch.cuda.memory_allocated()
torch.cuda.empty_cache()
del kept
print(torch.cuda.memory_stats()["num_alloc_retries"])
