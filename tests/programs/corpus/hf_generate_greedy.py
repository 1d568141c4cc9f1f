"""Greedy generate() of a small Llama with random weights: it ends at max_new_tokens, or where an end token comes.

Expected: ends well, exact if (how a card rounds)
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=500, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, bos_token_id=1, eos_token_id=2, pad_token_id=0)  # fmt: skip
model = LlamaForCausalLM(config).cuda().eval()
out = model.generate(torch.randint(3, 500, (2, 16)).cuda(), max_new_tokens=12, do_sample=False)
assert out.shape[1] <= 28
print("tokens", out.shape[1])
