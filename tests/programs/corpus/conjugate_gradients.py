"""A linear system by conjugate gradients until the residual is small, in a form that counts on the card and one that asks each round.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (rounds)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
M = torch.randn(40, 40, dtype=torch.float64)
A = (M @ M.T / 40 + torch.eye(40)).to(device)
b = torch.randn(40, dtype=torch.float64).to(device)
x, r = torch.zeros_like(b), b.clone()
p, rounds, kept = r.clone(), 0, []
while torch.linalg.vector_norm(r) > 1e-6 * torch.linalg.vector_norm(b):
    Ap = A @ p
    alpha = r.dot(r) / p.dot(Ap)
    x += alpha * p
    before = r.dot(r)
    r -= alpha * Ap
    p = r + r.dot(r) / before * p
    kept.append(x.clone())
    rounds += 1
print("size rounds", rounds, torch.allclose(A @ x, b, atol=1e-4))

y, done, count = torch.zeros_like(b), torch.zeros((), dtype=torch.bool, device=device), torch.zeros((), dtype=torch.long, device=device)
for _ in range(300):
    y = torch.where(done, y, y + 0.3 * (b - A @ y))
    count += ~done
    done |= (b - A @ y).norm() < 0.5
print("size count", count.item(), done.item())
