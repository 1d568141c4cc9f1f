"""LoRA adapters of peft on a small Llama in bf16, trained with gradient checkpointing, then merged.

Expected: ends well, exact (the workspace of cuDNN's attention is known of PyTorch's own graphs)
"""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=500, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4)
model = get_peft_model(LlamaForCausalLM(config).to(torch.bfloat16), LoraConfig(r=8, target_modules=["q_proj", "v_proj"])).cuda()
model.enable_input_require_grads()
model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for step in range(3):
    tokens = torch.randint(500, (2, 64)).cuda()
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.merge_and_unload()
