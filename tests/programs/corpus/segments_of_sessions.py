"""Clicks from the host by session: repeated, split, reduced and counted by their lengths, the longest session padded.

Expected: ends well, exact
Truth: the CPU's run (all shapes)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
lengths = torch.randint(0, 9, (40,)).to(device)
session = torch.repeat_interleave(lengths)
clicks = torch.rand(int(lengths.sum())).to(device)
print("size clicks", len(clicks), session.max().item())
starts = lengths.cumsum(0) - lengths
position = torch.arange(len(clicks), device=device) - starts[session]
table = torch.zeros(len(lengths), int(lengths.max()), device=device)
table[session, position] = clicks
print("size table", tuple(table.shape), (table != 0).sum().item())
sums = torch.segment_reduce(clicks, "sum", lengths=lengths)
highest = torch.zeros(40, device=device).scatter_reduce(0, session, clicks, "amax", include_self=False)
parts = clicks.split(lengths.tolist())
busy = torch.nonzero(lengths > lengths.float().mean()).squeeze(1)
print("size parts", len(parts), tuple(sums.shape), len(busy), (highest > 0.9).sum().item(), torch.histc(lengths.float(), 9, 0, 9).tolist())
runs, back, counts = torch.unique_consecutive(session[clicks > 0.5], return_inverse=True, return_counts=True)
print("size runs", len(runs), len(back), counts.tolist())
edges = torch.searchsorted(clicks.sort().values, torch.linspace(0, 1, 11).to(device))
print("size deciles", edges.diff().tolist())
