"""Ragged texts from the host packed into one row, with positions, cumulated lengths and a mask for each, as long-context training does.

Expected: ends well, exact
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
tokens = torch.randint(1, 100, (6, 30)).to(device)
lengths = torch.tensor([30, 4, 17, 9, 22, 1]).to(device)
present = torch.arange(30, device=device)[None] < lengths[:, None]
flat = tokens[present]
starts = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
print("size flat", flat.numel(), int(starts[-1]), starts.tolist())
document = torch.repeat_interleave(torch.arange(6, device=device), lengths)
position = torch.arange(flat.numel(), device=device) - starts[document]
print("size longest", int(position.max()) + 1, int(torch.bincount(document).max()))
parts = torch.split(flat, lengths.tolist())
padded = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
print("size padded", tuple(padded.shape), torch.equal(padded, tokens * present))
