"""A filter in the frequency domain with a gradient of its own: conjugates are copied, and the sign of what comes out chooses the rows.

Expected: ends well, exact
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
generator = torch.Generator().manual_seed(0)
weight = torch.randn(64, dtype=torch.complex64, generator=generator).to(device)
signal = torch.randn(64, dtype=torch.complex64, generator=generator).to(device)
gradient, rows = torch.empty_like(weight), torch.zeros(2, 64, dtype=torch.complex64, device=device)
gradient.copy_(signal.conj())
rows[0] = weight.conj()
rows[1].copy_(gradient)
print("size positive", rows[rows.imag > 0].numel(), torch.nonzero(gradient.imag > 0).shape[0])
