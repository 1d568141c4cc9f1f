"""Trainer of transformers on a small Qwen2, with gradient accumulation and checkpointing, bf16 and logging.

Expected: ends well, exact if (how a card rounds)
"""

import tempfile

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        tokens = torch.randint(500, (64,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


config = Qwen2Config(vocab_size=500, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=3, bf16=True,
                                  gradient_checkpointing=True, logging_steps=1, report_to=[], save_strategy="no")  # fmt: skip
    Trainer(Qwen2ForCausalLM(config), arguments, train_dataset=Tokens()).train()
