"""A network that solves a differential equation: second derivatives by create_graph, and Jacobians by torch.func, with L-BFGS.

Expected: ends well, exact
"""

import torch

net = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).cuda()
optimizer = torch.optim.Adam(net.parameters())
for step in range(3):
    x = torch.linspace(0, 1, 200).cuda()[:, None].requires_grad_()
    u = net(x)
    first = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), x, create_graph=True)[0]
    loss = (second + u).square().mean() + (u[0] - 1).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
slopes = torch.func.vmap(torch.func.jacrev(net))(torch.rand(8, 1, device="cuda"))
curves = torch.func.vmap(torch.func.hessian(lambda x: net(x).sum()))(torch.rand(8, 1, device="cuda"))
assert slopes.shape == (8, 1, 1) and curves.shape == (8, 1, 1)
