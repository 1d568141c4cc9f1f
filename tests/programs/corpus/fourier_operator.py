"""A Fourier neural operator: real FFTs, weights in frequencies, and back, trained for two steps.

Expected: ends well, lower bound (cuFFT's workspaces)
"""

import torch


class Spectral(torch.nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weight = torch.nn.Parameter(torch.randn(width, width, modes, dtype=torch.cfloat) / width)
        self.mix = torch.nn.Linear(width, width)

    def forward(self, x):
        frequencies = torch.fft.rfft(x)
        out = torch.zeros_like(frequencies)
        out[..., : self.modes] = torch.einsum("bim,iom->bom", frequencies[..., : self.modes], self.weight)
        return torch.nn.functional.gelu(torch.fft.irfft(out, x.shape[-1]) + self.mix(x.mT).mT)


model = torch.nn.Sequential(Spectral(16, 12), Spectral(16, 12)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(2):
    x = torch.randn(8, 16, 128).cuda()
    loss = (model(x) - x.roll(1, -1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
