"""Trainer of transformers with an evaluation each two steps, early stopping, and the best model kept on disk and loaded at the end.

Expected: ends well, exact if
Truth: none; how long a card trains is the condition
"""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, EarlyStoppingCallback, Trainer, TrainingArguments


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        tokens = torch.randint(1, 200, (32,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": index % 2}


config = BertConfig(vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, per_device_train_batch_size=4, max_steps=8, eval_strategy="steps", eval_steps=2, save_steps=2,
                                  save_total_limit=1, load_best_model_at_end=True, metric_for_best_model="eval_loss", report_to=[],
                                  disable_tqdm=True)  # fmt: skip
    trainer = Trainer(BertForSequenceClassification(config), arguments, train_dataset=Texts(), eval_dataset=Texts(),
                      callbacks=[EarlyStoppingCallback(2)])  # fmt: skip
    trainer.train()
