"""A buffer for the positive ones of numbers that are drawn on the card: their count is a sum of floats, made an integer.

Expected: ends well, unreliable (an integer that rests on random numbers of the card)
"""

import torch

drawn = torch.randn(1 << 21, device="cuda")
rows = int((drawn > 0).float().sum())
buffer = torch.empty(rows, 16, device="cuda")
