"""generate() by beam search over a small GPT-2: the beams are reordered by indices that the network's output gives.

Expected: ends well, exact if (which of equal values are taken)
"""

import os

import torch
from transformers import GPT2Config, GPT2LMHeadModel

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
config = GPT2Config(vocab_size=300, n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=1, pad_token_id=1)
model = GPT2LMHeadModel(config).to(device).eval()
prompt = torch.randint(2, 300, (2, 8)).to(device)
out = model.generate(prompt, attention_mask=torch.ones_like(prompt), num_beams=4, max_new_tokens=8, do_sample=False)
print("size tokens", out.tolist())
