"""LSTM and GRU on packed texts with cuDNN switched off: PyTorch's own cells, step by step, with as many rows as are still there.

Expected: ends well, exact
Truth: the CPU's run (packed and padded shapes)
"""

import os

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.backends.cudnn.enabled = False
torch.manual_seed(0)
lengths = torch.randint(3, 40, (24,))
texts = torch.randn(24, int(lengths.max()), 32).to(device)
for kind in (torch.nn.LSTM, torch.nn.GRU):
    network = kind(32, 64, 2, bidirectional=True, batch_first=True, dropout=0.1).to(device)
    out, _ = network(pack_padded_sequence(texts, lengths, batch_first=True, enforce_sorted=False))
    padded, back = pad_packed_sequence(out, batch_first=True)
    print("size packed", tuple(out.data.shape), tuple(padded.shape), back.tolist())
    padded.square().mean().backward()
