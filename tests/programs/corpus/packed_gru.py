"""A GRU over sequences of different lengths, packed and padded again: sizes that the CPU's own run has too.

Expected: ends well, lower bound (cuDNN's workspaces)
"""

import os

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
texts = [torch.randn(length, 32) for length in (17, 5, 11, 3)]
lengths = torch.tensor([len(text) for text in texts])
gru = torch.nn.GRU(32, 48, batch_first=True).to(device)
packed = pack_padded_sequence(pad_sequence(texts, batch_first=True).to(device), lengths, batch_first=True, enforce_sorted=False)
print("size packed", tuple(packed.data.shape), packed.batch_sizes.tolist())
out, state = gru(packed)
padded, found = pad_packed_sequence(out, batch_first=True)
print("size padded", tuple(padded.shape), found.tolist())
(padded.sum() + state.sum()).backward()
