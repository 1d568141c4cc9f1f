"""A small DCGAN: two networks and two optimizers, spectral norm, losses that are printed.

Expected: ends well, estimate (cuDNN's workspaces)
"""

import torch
from torch import nn

generator = nn.Sequential(nn.ConvTranspose2d(32, 64, 4), nn.BatchNorm2d(64), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 4), nn.Tanh()).cuda()
first = nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 32, 4, 2, 1))
critic = nn.Sequential(first, nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(2048, 1)).cuda()
optimizers = [torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (generator, critic)]
loss_of = nn.BCEWithLogitsLoss()
for step in range(3):
    real, ones = torch.rand(16, 3, 16, 16).cuda(), torch.ones(16, 1, device="cuda")
    fake = generator(torch.randn(16, 32, 1, 1, device="cuda"))
    optimizers[1].zero_grad()
    loss = loss_of(critic(real), ones) + loss_of(critic(fake.detach()), torch.zeros_like(ones))
    loss.backward()
    optimizers[1].step()
    optimizers[0].zero_grad()
    fool = loss_of(critic(fake), ones)
    fool.backward()
    optimizers[0].step()
    print(f"{loss.item():.3f} {fool.item():.3f}")
