"""Scaled dot product attention by each kernel that can be chosen, causal, with grouped queries, forward and backward.

Expected: ends well, exact (the workspace of cuDNN's attention is known of PyTorch's own graphs)
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

for backend in (SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
    q, k, v = (torch.randn(2, 8, 256, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with sdpa_kernel(backend):
        torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    print(backend.name, torch.cuda.max_memory_allocated() - before)
