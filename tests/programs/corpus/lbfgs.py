"""L-BFGS with a line search: its loops end by numbers that are read from the card.

Expected: ends well, exact if (how a card rounds)
"""

import torch

torch.manual_seed(0)
x = torch.linspace(-1, 1, 50).cuda()
y = 3 * x**2 - x + 0.5
w = torch.zeros(3, device="cuda", requires_grad=True)
optimizer = torch.optim.LBFGS([w], max_iter=10, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = (w[0] * x**2 + w[1] * x + w[2] - y).square().mean()
    loss.backward()
    return loss


for step in range(3):
    optimizer.step(closure)
print("loss", closure().item())
