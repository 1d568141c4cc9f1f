"""Series from the host in sliding windows: outliers by a median's deviation, where runs begin and end, and windows without a gap.

Expected: ends well, exact
Truth: the CPU's run (outliers, runs and windows)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
series = torch.randn(600).cumsum(0)
series[torch.randint(600, (9,))] += 30
series[torch.randint(600, (20,))] = torch.nan
series = series.to(device)
seen = ~series.isnan()
windows = series.unfold(0, 24, 6)
whole = windows[~windows.isnan().any(1)]
print("size windows", tuple(windows.shape), len(whole), int(seen.sum()))
steps = series[seen].diff()
middle = steps.median()
deviation = (steps - middle).abs().median()
outliers = torch.argwhere((steps - middle).abs() > 8 * deviation)
print("size outliers", len(outliers), outliers.flatten().tolist())
rising = torch.nn.functional.pad((steps > 0).int(), (1, 1)).diff()
begins, ends = (rising == 1).nonzero().squeeze(1), (rising == -1).nonzero().squeeze(1)
lengths = ends - begins
print("size runs", len(begins), int(lengths.max()), torch.bincount(lengths).tolist())
padded = torch.nn.utils.rnn.pad_sequence([steps[b:e] for b, e in zip(begins.tolist(), ends.tolist())])
print("size padded", tuple(padded.shape), torch.nansum(series.isnan()).item())
