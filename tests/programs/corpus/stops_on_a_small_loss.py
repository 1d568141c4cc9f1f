"""Training until the loss is small, and a learning rate that falls when it no longer does: floats that are compared on the host.

Expected: ends well, exact if (a card may take fewer steps; the bytes are those of any of them)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
kept, steps = [], 0
for step in range(8):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.rand(64, 784).to(device)), torch.randint(10, (64,)).to(device))
    loss.backward()
    optimizer.step()
    kept.append(torch.zeros(1 << 20, device=device))
    steps += 1
    if loss.item() < 1e-3:
        break
print("size steps", steps, len(kept))
