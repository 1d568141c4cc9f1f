"""A batch size found by trying: out of memory is caught, and a smaller batch is tried until one fits.

Expected: ends well, exact if
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(8192, 8192), torch.nn.ReLU(), torch.nn.Linear(8192, 8192)).cuda()
batch = 1 << 20
while batch:
    try:
        model(torch.empty(batch, 8192, device="cuda")).sum().backward()
        break
    except torch.OutOfMemoryError:
        model.zero_grad()
        torch.cuda.empty_cache()
        batch //= 2
print("batch", batch)
assert batch == 1 << 18, batch
