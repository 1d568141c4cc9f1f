"""Regression by a Gaussian process: a Cholesky factorisation, triangular solves, and its hyperparameters by gradient descent.

Expected: ends well, lower bound (cuSOLVER's workspaces)
"""

import torch

x = torch.linspace(0, 6, 300).cuda()
y = torch.sin(x) + 0.1 * torch.randn(300).cuda()
length, noise = (torch.tensor(value, device="cuda", requires_grad=True) for value in (1.0, 0.3))
optimizer = torch.optim.Adam([length, noise], lr=0.05)
for step in range(3):
    kernel = torch.exp(-0.5 * (x[:, None] - x[None]) ** 2 / length**2) + noise**2 * torch.eye(300, device="cuda")
    factor = torch.linalg.cholesky(kernel)
    alpha = torch.cholesky_solve(y[:, None], factor)
    loss = 0.5 * (y @ alpha).sum() + factor.diagonal().log().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
