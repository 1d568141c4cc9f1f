"""The most frequent words by topk, where several are as frequent: PyTorch does not say which of them are taken.

Expected: ends well, exact if (which of equal counts are taken)
"""

import torch

words = torch.arange(1000).cuda() % 100
counts = torch.bincount(words)
chosen = counts.topk(10).indices
first = int(chosen.min())
table = torch.zeros(first + 1, 64, device="cuda")
