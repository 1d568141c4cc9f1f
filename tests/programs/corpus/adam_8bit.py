"""Adam whose moments are 8-bit codes in blocks of 256, as bitsandbytes keeps them, written in PyTorch.

Expected: ends well, exact
Truth: a closed form of the state (asserted)
"""

import torch

BLOCK = 256


class Adam8bit(torch.optim.Optimizer):
    def __init__(self, parameters, lr=1e-3):
        super().__init__(parameters, {"lr": lr})
        ramp = torch.linspace(0, 1, 128) ** 3
        self.codes = torch.cat([-ramp.flip(0)[:-1], ramp, torch.ones(1)]).cuda()

    def quantised(self, values):
        blocks = torch.nn.functional.pad(values.flatten(), (0, -values.numel() % BLOCK)).view(-1, BLOCK)
        scale = blocks.abs().amax(1, keepdim=True).clamp_min_(1e-12)
        middles = (self.codes[1:] + self.codes[:-1]) / 2
        return torch.bucketize(blocks / scale, middles).to(torch.uint8), scale

    def values(self, codes, scale, like):
        return (self.codes[codes.long()] * scale).flatten()[: like.numel()].view_as(like)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                first = self.values(*state["first"], p) if state else torch.zeros_like(p)
                second = self.values(*state["second"], p) if state else torch.zeros_like(p)
                first.mul_(0.9).add_(p.grad, alpha=0.1)
                second.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                p.sub_(group["lr"] * first / (second.sqrt() + 1e-8))
                state["first"], state["second"] = self.quantised(first), self.quantised(second)


model = torch.nn.Linear(1024, 1000, bias=False).cuda()
optimizer = Adam8bit(model.parameters())
for step in range(3):
    model(torch.randn(8, 1024).cuda()).square().mean().backward()
    before = torch.cuda.memory_allocated()
    optimizer.step()
    if step == 0:
        blocks = 1024 * 1000 // BLOCK
        assert torch.cuda.memory_allocated() - before == 2 * (blocks * BLOCK + blocks * 4 + -blocks * 4 % 512)
    optimizer.zero_grad()
