"""Batches of growing length under expandable segments, which virtual memory gives.

Expected: ends well, exact
"""

import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch  # noqa: E402  after the allocator's settings

model = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True).cuda()
for length in (64, 128, 256, 512):
    model(torch.randn(4, length, 128, device="cuda")).square().mean().backward()
    model.zero_grad()
assert torch.cuda.memory_reserved() >= torch.cuda.max_memory_allocated()
