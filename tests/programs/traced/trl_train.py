"""TRL's trainers on a small Llama, with a tokenizer made here.

usage: trl_train.py sft|dpo|grpo
"""

import sys

import datasets
import tokenizers
import torch
import transformers
import trl

WORDS = [f"w{i}" for i in range(2000)]
raw = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<pad>": 0, "<eos>": 1, "<unk>": 2, **{word: i + 3 for i, word in enumerate(WORDS)}}, "<unk>"))
raw.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
config = transformers.LlamaConfig(vocab_size=len(tokenizer), hidden_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
                                  intermediate_size=704, pad_token_id=0, eos_token_id=1, bos_token_id=1)  # fmt: skip
model = "model"  # a folder: some load a second one, as a reference
transformers.LlamaForCausalLM(config).save_pretrained(model)
tokenizer.save_pretrained(model)


def words(start, count):
    return " ".join(WORDS[(start * 37 + i) % len(WORDS)] for i in range(count))


common = {"output_dir": "out", "per_device_train_batch_size": 4, "max_steps": 3, "report_to": [], "save_strategy": "no", "disable_tqdm": True, "bf16": False}
which = sys.argv[1]
if which == "sft":
    rows = [{"text": words(i, 100)} for i in range(16)]
    trainer = trl.SFTTrainer(model, args=trl.SFTConfig(max_length=128, **common), train_dataset=datasets.Dataset.from_list(rows), processing_class=tokenizer)
elif which == "dpo":
    rows = [{"prompt": words(i, 20), "chosen": words(i + 1, 60), "rejected": words(i + 2, 60)} for i in range(16)]
    trainer = trl.DPOTrainer(model, args=trl.DPOConfig(max_length=128, **common), train_dataset=datasets.Dataset.from_list(rows), processing_class=tokenizer)
else:
    rows = [{"prompt": words(i, 20)} for i in range(16)]
    arguments = trl.GRPOConfig(num_generations=4, max_completion_length=32, beta=0.04, **common)
    trainer = trl.GRPOTrainer(model, reward_funcs=lambda completions, **_: [float(len(text)) for text in completions], args=arguments,
                              train_dataset=datasets.Dataset.from_list(rows), processing_class=tokenizer)  # fmt: skip
trainer.train()
print("peak", torch.cuda.max_memory_allocated())
