"""A small GPT-2 of transformers, trained from random weights on random tokens with AdamW and a warm-up.

Expected: ends well, exact if (numbers that nobody knows are read)
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=128, n_embd=128, n_layer=3, n_head=4)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
schedule = get_linear_schedule_with_warmup(optimizer, 2, 10)
for step in range(3):
    tokens = torch.randint(1000, (4, 128)).cuda()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    print(f"step {step}: {loss.item():.3f}")
