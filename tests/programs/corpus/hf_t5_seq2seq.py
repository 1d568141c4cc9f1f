"""A T5 of transformers: two steps of a translation's training, with padding in the labels, by Adafactor.

Expected: ends well, exact if (numbers that nobody knows are read)
"""

import torch
from transformers import T5Config, T5ForConditionalGeneration

config = T5Config(vocab_size=400, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config).cuda()
optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-3)
for step in range(2):
    source, target = torch.randint(1, 400, (4, 24)), torch.randint(1, 400, (4, 12))
    target[:, 9:] = -100
    model(input_ids=source.cuda(), labels=target.cuda()).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
