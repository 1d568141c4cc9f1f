"""A Mixtral of transformers: its router sends tokens to experts by what the network says.

Expected: ends well, unreliable (how many tokens an expert gets rests on the network's output)
"""

import torch
from transformers import MixtralConfig, MixtralForCausalLM

config = MixtralConfig(vocab_size=500, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, output_router_logits=True)  # fmt: skip
model = MixtralForCausalLM(config).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    tokens = torch.randint(500, (2, 64)).cuda()
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
