"""Training on the host's numbers until the accuracy of a validation no longer rises: counts decide, and the network is small enough to know.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (epochs and correct answers)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
centres = 3 * torch.randn(4, 8)
labels = torch.arange(400) % 4
points = (centres[labels] + torch.randn(400, 8)).to(device)
labels = labels.to(device)
model = torch.nn.Linear(8, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
best, patience, checkpoints = 0, 3, []
for epoch in range(100):
    for rows in torch.arange(300).split(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(points[rows.to(device)]), labels[rows.to(device)]).backward()
        optimizer.step()
    with torch.no_grad():
        correct = (model(points[300:]).argmax(1) == labels[300:]).sum().item()
    if correct > best:
        best, patience = correct, 3
        checkpoints.append({name: value.clone() for name, value in model.state_dict().items()})
    else:
        patience -= 1
    if not patience:
        break
print("size epochs", epoch, best, len(checkpoints))
