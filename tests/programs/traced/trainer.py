"""Hugging Face's Trainer on a small model of its class.

usage: trainer.py bert|gpt2|llama|t5 fp32|bf16|fp16 [checkpointing] [accumulate] [evaluate] [lora]
"""

import sys

import torch
import transformers
from torch.utils.data import Dataset

family, dtype, *options = sys.argv[1:]
WORDS = 8192
SIZE = {
    "bert": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024},
    "gpt2": {"n_embd": 256, "n_layer": 4, "n_head": 4},
    "llama": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 704},
    "t5": {"d_model": 256, "num_layers": 2, "num_heads": 4, "d_kv": 64, "d_ff": 1024, "decoder_start_token_id": 0},
}
MODEL = {
    "bert": transformers.AutoModelForSequenceClassification,
    "gpt2": transformers.AutoModelForCausalLM,
    "llama": transformers.AutoModelForCausalLM,
    "t5": transformers.AutoModelForSeq2SeqLM,
}
config = transformers.AutoConfig.for_model(family, vocab_size=WORDS, pad_token_id=0, eos_token_id=1, bos_token_id=2, **SIZE[family])
model = MODEL[family].from_config(config)
if "lora" in options:
    import peft

    model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))


class Texts(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        ids = torch.randint(3, WORDS, (128,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": torch.tensor(index % 2) if family == "bert" else ids}


kind, arguments = transformers.Trainer, transformers.TrainingArguments
more = {}
if "evaluate" in options:
    more = {"eval_strategy": "steps", "eval_steps": 2, "per_device_eval_batch_size": 8}
    if family == "t5":
        kind, arguments = transformers.Seq2SeqTrainer, transformers.Seq2SeqTrainingArguments
        more.update(predict_with_generate=True, generation_max_length=16)
trainer = kind(
    model,
    arguments(
        "out",
        per_device_train_batch_size=4,
        max_steps=4,
        report_to=[],
        save_strategy="no",
        logging_steps=2,
        disable_tqdm=True,
        bf16=dtype == "bf16",
        fp16=dtype == "fp16",
        gradient_checkpointing="checkpointing" in options,
        gradient_accumulation_steps=2 if "accumulate" in options else 1,
        **more,
    ),
    train_dataset=Texts(),
    eval_dataset=Texts(),
    compute_metrics=(lambda predictions: {}) if family == "t5" else None,
)
trainer.train()
print("peak", torch.cuda.max_memory_allocated())
