"""Sampled generate() with temperature, top-k and top-p, in half precision, with no end token: it ends at max_new_tokens.

Expected: ends well, lower bound (cuDNN's attention has a workspace)
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(vocab_size=500, n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None)
model = GPT2LMHeadModel(config).cuda().half().eval()
prompt = torch.randint(500, (3, 8)).cuda()
out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=10, do_sample=True, temperature=0.8, top_k=50,
                     top_p=0.9, pad_token_id=0)  # fmt: skip
print("tokens", tuple(out.shape))
