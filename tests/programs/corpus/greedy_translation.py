"""A small transformer from the host's weights translates until every sentence has ended, one token at a time.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (tokens)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(1)
words, begin, end = 12, 1, 2
model = torch.nn.Transformer(32, 2, 1, 1, 64, dropout=0.0, batch_first=True)
embed, head, places = torch.nn.Embedding(words, 32), torch.nn.Linear(32, words), torch.randn(24, 32)
model, embed, head, places = model.to(device).eval(), embed.to(device), head.to(device), places.to(device)
source = torch.randint(3, words, (6, 9)).to(device)
with torch.no_grad():
    memory = model.encoder(embed(source))
    tokens = torch.full((6, 1), begin, device=device)
    ended = torch.zeros(6, dtype=torch.bool, device=device)
    while not ended.all() and tokens.shape[1] < 24:
        mask = torch.nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=device)
        following = head(model.decoder(embed(tokens) + places[: tokens.shape[1]], memory, tgt_mask=mask))[:, -1].argmax(-1)
        following = torch.where(ended, 0, following)
        ended |= following == end
        tokens = torch.cat([tokens, following[:, None]], 1)
print("size tokens", tuple(tokens.shape), ended.sum().item(), tokens.unique().numel())
