"""A deep transformer encoder with gradient checkpointing and dropout, in bf16 autocast, against the same without.

Expected: ends well, exact (the workspace of cuDNN's attention is known of PyTorch's own graphs)
"""

import torch
from torch.utils.checkpoint import checkpoint

layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True) for _ in range(8)).cuda()


def peak(checkpointed):
    torch.cuda.reset_peak_memory_stats()
    x = torch.randn(8, 128, 128, device="cuda", requires_grad=True)
    with torch.autocast("cuda", torch.bfloat16):
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False) if checkpointed else layer(x)
    x.float().square().mean().backward()
    layers.zero_grad()
    return torch.cuda.max_memory_allocated()


plain, saved = peak(False), peak(True)
assert saved < plain, (saved, plain)
