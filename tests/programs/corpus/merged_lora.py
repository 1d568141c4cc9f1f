"""LoRA written by hand: adapters are trained, merged into the weights in place, and thrown away.

Expected: ends well, exact
Truth: a closed form of what stays (asserted)
"""

import torch


class LoRA(torch.nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = torch.nn.Parameter(torch.randn(rank, base.in_features, device="cuda"))
        self.up = torch.nn.Parameter(torch.zeros(base.out_features, rank, device="cuda"))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T

    @torch.no_grad()
    def merged(self):
        self.base.weight.addmm_(self.up, self.down)
        return self.base


torch.backends.cuda.matmul.allow_tf32 = True
torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
before = torch.cuda.memory_allocated()
model = torch.nn.Sequential(*(LoRA(torch.nn.Linear(1024, 1024, bias=False, device="cuda"), 16) for _ in range(4)))
whole = torch.cuda.memory_allocated() - before
assert whole == 4 * (1024 * 1024 * 4 + 2 * 16 * 1024 * 4), whole
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
for step in range(2):
    model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
trained = torch.cuda.memory_allocated() - before
merged = torch.nn.Sequential(*(layer.merged() for layer in model))
del model, optimizer
assert trained - (torch.cuda.memory_allocated() - before) == 4 * 2 * 16 * 1024 * 4
