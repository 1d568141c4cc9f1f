"""Attention over windows with a key-value cache that grows: one token at a time, with rotary positions, in fp16.

Expected: ends well, lower bound (cuDNN's attention has a workspace)
"""

import torch

heads, width, window = 4, 32, 16
project, out = (torch.nn.Linear(heads * width, n * heads * width, dtype=torch.float16, device="cuda") for n in (3, 1))
keys = values = torch.empty(1, heads, 0, width, dtype=torch.float16, device="cuda")
x = torch.randn(1, 1, heads * width, dtype=torch.float16, device="cuda")
frequencies = 1.0 / 10000 ** (torch.arange(0, width, 2, device="cuda") / width)


def rotate(t, position):
    angle = (position * frequencies).repeat(2)
    half = torch.cat([-t[..., width // 2 :], t[..., : width // 2]], -1)
    return (t * angle.cos() + half * angle.sin()).to(t.dtype)


with torch.inference_mode():
    for position in range(40):
        q, k, v = project(x).view(1, 1, 3, heads, width).permute(2, 0, 3, 1, 4)
        keys, values = torch.cat([keys, rotate(k, position)], 2)[:, :, -window:], torch.cat([values, v], 2)[:, :, -window:]
        x = out(torch.nn.functional.scaled_dot_product_attention(rotate(q, position), keys, values).transpose(1, 2).flatten(2))
assert keys.shape[2] == window
