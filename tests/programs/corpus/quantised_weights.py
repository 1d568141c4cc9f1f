"""Weights kept as int8 with a scale a row, made whole for each layer: inference of a large linear stack.

Expected: ends well, exact
"""

import torch


class Int8Linear(torch.nn.Module):
    def __init__(self, linear):
        super().__init__()
        scale = linear.weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("weight", (linear.weight / scale).round().clamp(-128, 127).to(torch.int8))
        self.register_buffer("scale", scale.to(torch.float16))

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight.to(x.dtype) * self.scale)


model = torch.nn.Sequential(*[Int8Linear(torch.nn.Linear(512, 512, bias=False)) for _ in range(8)]).cuda()
assert torch.cuda.memory_allocated() == 8 * (512 * 512 + 512 * 2)
with torch.inference_mode():
    out = model(torch.randn(32, 512, device="cuda", dtype=torch.float16))
assert out.dtype == torch.float16
