"""4-bit NormalFloat weights with a scale for each 64 of them, two in a byte, made whole for each product; adapters on top (QLoRA by hand).

Expected: ends well, exact
Truth: a closed form of the weights (asserted)
"""

import torch

CODES = torch.tensor([-1.0, -0.696, -0.525, -0.395, -0.284, -0.185, -0.091, 0.0, 0.080, 0.161, 0.246, 0.338, 0.441, 0.563, 0.723, 1.0])


class Linear4bit(torch.nn.Module):
    def __init__(self, weight, rank=8):
        super().__init__()
        blocks = weight.reshape(-1, 64)
        scale = blocks.abs().amax(1)
        nearest = (blocks[:, :, None] / scale[:, None, None] - CODES.to(weight.device)).abs().argmin(-1).to(torch.uint8).flatten()
        self.shape = weight.shape
        self.register_buffer("packed", nearest[0::2] << 4 | nearest[1::2])
        self.register_buffer("scale", scale)
        self.register_buffer("codes", CODES.to(weight.device))
        self.down = torch.nn.Parameter(torch.randn(rank, weight.shape[1], device=weight.device) / rank)
        self.up = torch.nn.Parameter(torch.zeros(weight.shape[0], rank, device=weight.device))

    def whole(self):
        pairs = torch.stack([self.packed >> 4, self.packed & 15], 1).flatten()
        return (self.codes[pairs.int()].view(-1, 64) * self.scale[:, None]).view(self.shape)

    def forward(self, x):
        return x @ self.whole().T + x @ self.down.T @ self.up.T


layers, before = [], torch.cuda.memory_allocated()
for _ in range(4):
    layers.append(Linear4bit(torch.randn(512, 512, device="cuda")))
taken = torch.cuda.memory_allocated() - before
assert taken == 4 * (512 * 512 // 2 + 512 * 512 // 64 * 4 + 512 + 2 * 8 * 512 * 4), taken
model = torch.nn.Sequential(*layers)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    model(torch.randn(16, 512).cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
