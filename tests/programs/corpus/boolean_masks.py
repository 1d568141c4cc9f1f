"""Tables from the host, filtered, joined and grouped on the card by masks, unique and nonzero.

Expected: ends well, exact
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
ages, cities, incomes = (x.to(device) for x in (torch.randint(90, (3000,)), torch.randint(40, (3000,)), torch.rand(3000)))
adults = ages >= 18
print("size adults", ages[adults].numel(), torch.nonzero(adults & (cities == 7)).shape[0])
names, inverse, counts = torch.unique(cities[adults], return_inverse=True, return_counts=True)
print("size cities", names.numel(), inverse.numel(), counts.max().item())
rich = torch.where(incomes > 0.95)[0]
print("size rich", rich.numel(), incomes.masked_select(ages < 5).numel())
ages[ages < 18] = 0
print("size zeros", (ages == 0).sum().item(), torch.count_nonzero(ages).item())
print("size both", torch.isin(rich, torch.where(adults)[0]).sum().item(), torch.argwhere(incomes < 0.01).shape[0])
