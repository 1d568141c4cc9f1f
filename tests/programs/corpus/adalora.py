"""AdaLoRA of peft: ranks are taken away from adapters whose importance is small, by a threshold that is read from the card.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (how many ranks of each adapter are masked)
"""

import os

import torch
from peft import AdaLoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
config = LlamaConfig(vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
adapters = AdaLoraConfig(init_r=8, target_r=4, tinit=1, tfinal=1, deltaT=1, total_step=5, target_modules=["q_proj", "v_proj"])
model = get_peft_model(LlamaForCausalLM(config), adapters).to(device)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for step in range(5):
    tokens = torch.randint(300, (4, 32)).to(device)
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    model.base_model.update_and_allocate(step)
    optimizer.zero_grad()
    masked = [int((part == 0).sum()) for name, part in model.named_parameters() if "lora_E" in name]
    print("size masked", *masked)
