"""A step that is skipped where a gradient is not finite, as DeepSpeed looks for it: whether it is, is a condition.

Expected: ends well, exact if (gradients are taken to be finite)
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)).half().cuda()
optimizer = torch.optim.Adam(model.parameters(), eps=1e-4)
skipped = 0
for step in range(3):
    torch.nn.functional.cross_entropy(model(torch.rand(64, 1024).half().cuda()).float(), torch.randint(10, (64,)).cuda()).backward()
    invalid = torch.zeros(1, device="cuda")
    for parameter in model.parameters():
        gradient = parameter.grad.float()
        invalid += gradient.isnan().logical_or(gradient.isinf()).float().max()
    if invalid.bool().item():
        skipped += 1
    else:
        optimizer.step()
    optimizer.zero_grad()
assert not skipped
