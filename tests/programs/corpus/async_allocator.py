"""CUDA's own memory pools in place of PyTorch's allocator: thousands of small tensors, and a training step beside them.

Expected: ends well, exact if
"""

import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")


def in_pieces(*tensors):
    """What a pool hands out for them: multiples of 512 bytes (CUDA's alignment, which cudaMemPoolAttrUsedMemCurrent counts)."""
    return sum(-(-tensor.nbytes // 512) * 512 for tensor in tensors)


def allocated(*tensors):
    return torch.cuda.max_memory_allocated() if device == "cuda" else in_pieces(*tensors)


# One tensor at a time, so that nothing else is there at the peak.
small = [torch.empty(3 + i % 300, device=device) for i in range(3000)]
large = torch.empty(20 << 20, device=device)
print("size small and large", allocated(*small, large))
if device == "cuda":
    assert torch.cuda.memory_reserved() - torch.cuda.memory_allocated() < 64 << 20
del large
if device == "cuda":
    torch.cuda.reset_peak_memory_stats()
seven = torch.empty(7, device=device)
print("size after", allocated(*small, seven))

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 16)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    model(torch.randn(64, 256, device=device)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
if device == "cuda":
    torch.cuda.empty_cache()
