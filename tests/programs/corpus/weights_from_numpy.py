"""Arrays of NumPy and of DLPack as tensors and back: masks made on the host of the host's numbers, and a sum that NumPy takes of the card's.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (rows)
"""

import os

import numpy as np
import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
random = np.random.default_rng(0)
table = torch.from_numpy(random.standard_normal((500, 8)).astype(np.float32)).to(device)
norms = table.square().sum(1).sqrt().cpu().numpy()
far = torch.as_tensor(np.flatnonzero(norms > 3.0), device=device)
print("size far", len(far), table[far].shape[0])
again = torch.from_dlpack(table)
again[far] = 0
print("size zeros", (table == 0).all(1).sum().item(), again.data_ptr() == table.data_ptr())
order = np.argsort(table[:, 0].cpu().numpy(), kind="stable")
half = table[torch.from_numpy(order[: len(order) // 2].copy()).to(device)]
print("size half", len(half), int((half[:, 0] <= table[:, 0].median()).sum()))
