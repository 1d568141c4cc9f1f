"""A server sizes its cache of keys and values as vLLM does: a profiling run, then as many blocks as nine tenths of the card leave.

Expected: ends well, exact if
Truth: a closed form of the number of blocks (asserted)
"""

import torch

LAYERS, HEADS, WIDTH, BLOCK = 8, 8, 64, 16
layers = torch.nn.ModuleList(torch.nn.Linear(512, 3 * 512, bias=False) for _ in range(LAYERS)).half().cuda()
torch.cuda.reset_peak_memory_stats()
with torch.no_grad():
    hidden = torch.randn(2048, 512, device="cuda").half()
    for layer in layers:
        hidden = layer(hidden).chunk(3, -1)[0].contiguous()
del hidden
torch.cuda.empty_cache()
free, total = torch.cuda.mem_get_info()
peak = torch.cuda.max_memory_allocated()
bytes_a_block = 2 * LAYERS * HEADS * WIDTH * BLOCK * 2
blocks = int((total * 0.9 - peak) // bytes_a_block)
cache = [torch.empty(2, blocks, BLOCK, HEADS, WIDTH, dtype=torch.half, device="cuda") for _ in range(LAYERS)]
print("blocks", blocks)
assert torch.cuda.mem_get_info()[0] <= total - blocks * bytes_a_block
table = torch.randperm(blocks)[:64].cuda()
slots = torch.arange(64 * BLOCK, device="cuda")
with torch.no_grad():
    hidden = torch.randn(64 * BLOCK, 512, device="cuda").half()
    for layer, kept in zip(layers, cache):
        query, key, value = layer(hidden).view(-1, 3, HEADS, WIDTH).unbind(1)
        kept[0, table[slots // BLOCK], slots % BLOCK] = key
        kept[1, table[slots // BLOCK], slots % BLOCK] = value
        hidden = query.reshape(-1, 512)
