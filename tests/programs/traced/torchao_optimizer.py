"""An optimizer of torchao's, whose state has 8 bits."""

import torch
import torchao
from torch import nn

model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.GELU())], nn.Linear(1024, 8)).cuda()
optimizer = torchao.optim.AdamW8bit(model.parameters(), lr=1e-3)
for _step in range(3):
    loss = model(torch.randn(64, 1024).cuda()).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("peak", torch.cuda.max_memory_allocated())
