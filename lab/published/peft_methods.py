"""PEFT's method comparison (method_comparison/MetaMathQA in its repository): a step of Llama 3.2 3B in bf16 by one of its experiments, with
batches of four. Prints the peak of reserved bytes, as the publisher takes it.

usage: peft_methods.py EXPERIMENT --length TOKENS

The lengths of the samples are not published. A run reserves the most where its longest samples meet: the publisher sorts each eighty samples by
their length and empties the allocator's cache every tenth step, so that such a batch comes first in an empty cache. --length is theirs.
"""

import argparse
import json

import torch
from peft import PeftType, get_peft_model
from peft.mapping import PEFT_TYPE_TO_CONFIG_MAPPING
from transformers import LlamaConfig, LlamaForCausalLM

import trainer

BATCH = 4
# What the tokens of a run amount to, by its record: 4,198,051 in 5,000 batches.
USUAL = 4_198_051 // 5000 // BATCH

Q_V = {"target_modules": ["q_proj", "v_proj"]}
MLP = {"target_modules": ["up_proj", "gate_proj", "down_proj"]}
ADAMW = {"lr": 1e-4, "weight_decay": 0.1}
# Each experiment's adapter_config.json, and where it has them its optimizer's settings.
EXPERIMENTS = {
    "boft/llama-3.2-3B-default": ("BOFT", Q_V | {"boft_block_size": 4, "boft_n_butterfly_factor": 1}, ADAMW),
    "delora/llama-3.2-3B-rank32": ("DELORA", Q_V | {"r": 32, "delora_lambda": 15}, {"lr": 1e-3}),
    "fourierft/llama-3.2-3B-default": ("FOURIERFT", Q_V | {"n_frequency": 1000, "scaling": 300, "random_loc_seed": 777}, ADAMW),
    "full-finetuning/llama-3.2-3B-lr_0.00001": (None, {}, {"lr": 1e-5}),
    "gralora/llama-3.2-3B-rank32": ("GRALORA", Q_V | {"r": 32, "alpha": 64, "gralora_k": 2}, {"lr": 2e-4}),
    "hira/llama-3.2-3B-rank32-lr4.5e-3": ("HIRA", Q_V | {"r": 32}, {"lr": 4.5e-3, "weight_decay": 0.0}),
    "ia3/llama-3.2-3B-default": ("IA3", {"target_modules": ["down_proj", "v_proj", "k_proj"], "feedforward_modules": ["down_proj"]}, ADAMW),
    "ln_tuning/llama-3.2-3B-default": ("LN_TUNING", {"target_modules": ["input_layernorm", "norm", "post_attention_layernorm"]}, ADAMW),
    "loha/llama-3.2-3B-rank32": ("LOHA", Q_V | {"r": 32, "alpha": 64}, ADAMW),
    "lora/llama-3.2-3B-rank10-target-mlp": ("LORA", MLP | {"r": 10, "lora_alpha": 20}, ADAMW),
    "lora/llama-3.2-3B-rank32": ("LORA", Q_V | {"r": 32, "lora_alpha": 64}, ADAMW),
    "lora/llama-3.2-3B-rank32-dora": ("LORA", Q_V | {"r": 32, "lora_alpha": 64, "use_dora": True}, ADAMW),
    "lora/llama-3.2-3B-rank64": ("LORA", Q_V | {"r": 64, "lora_alpha": 128}, ADAMW),
    "lora/llama-3.2-3B-rank64-rslora": ("LORA", Q_V | {"r": 64, "lora_alpha": 64, "use_rslora": True}, ADAMW),
    "miss/llama-3.2-3B-default": ("MISS", Q_V | {"r": 64, "mini_r": 1}, ADAMW),
    "miss/llama-3.2-3B-mini": ("MISS", Q_V | {"r": 64, "mini_r": 64, "init_weights": "mini"}, ADAMW),
    "oft/llama-3.2-3B-rank32": ("OFT", Q_V | {"r": 32, "oft_block_size": 0, "use_cayley_neumann": True, "num_cayley_neumann_terms": 5}, ADAMW),
    "prompt_tuning/llama-3.2-3B-default": ("PROMPT_TUNING", {"num_virtual_tokens": 200}, ADAMW),
    "ptuning/llama-3.2-3B-default": ("P_TUNING", {"num_virtual_tokens": 20, "encoder_hidden_size": 3072}, ADAMW),
    "prefixtuning/llama-3.2-3B-lr_0.001": ("PREFIX_TUNING", {"num_virtual_tokens": 200}, {"lr": 1e-3}),
    "randlora/llama-3.2-3B-default": ("RANDLORA", Q_V | {"r": 32, "randlora_alpha": 640}, ADAMW),
    "road/llama-3.2-3B-lr_0.001": ("ROAD", Q_V | {"variant": "road_2", "group_size": 64}, {"lr": 1e-3}),
    "vblora/llama-3.2-3B-default": ("VBLORA", Q_V | {"r": 4, "num_vectors": 256, "vector_length": 256, "topk": 2}, ADAMW),
    "vera/llama-3.2-3B-default": ("VERA", Q_V | {"r": 256, "d_initial": 0.1}, {"lr": 1e-3}),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=EXPERIMENTS, metavar="EXPERIMENT")
    parser.add_argument("--length", type=int, required=True, help="tokens of the longest sample")
    return parser.parse_args()


def base_model():
    config = LlamaConfig(vocab_size=128256, hidden_size=3072, intermediate_size=8192, num_hidden_layers=28, num_attention_heads=24,
                         num_key_value_heads=8, head_dim=128, max_position_embeddings=131072, tie_word_embeddings=True, rms_norm_eps=1e-5,
                         rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0,
                                          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})  # fmt: skip
    with torch.device("cuda"):
        return LlamaForCausalLM._from_config(config, dtype=torch.bfloat16)


def batch_of(length):
    """The longest sample, and three that are padded to it."""
    ids = torch.zeros(BATCH, length, dtype=torch.int64)
    mask = torch.ones(BATCH, length, dtype=torch.int64)
    mask[1:, length - 1] = 0
    return {"input_ids": ids.cuda(), "attention_mask": mask.cuda()}


def main():
    given = arguments()
    method, options, optimizer_options = EXPERIMENTS[given.experiment]
    torch.nn.Linear(1, 1).cuda()
    torch.cuda.reset_peak_memory_stats()
    at_first = torch.cuda.max_memory_reserved()

    model = base_model()
    if method:
        config = PEFT_TYPE_TO_CONFIG_MAPPING[PeftType(method)](task_type="CAUSAL_LM", **options)
        model = get_peft_model(model, config)
    optimizer = torch.optim.AdamW(model.parameters(), **optimizer_options)
    model.train()
    for step in range(1, 12):
        batch = batch_of(given.length if step == 11 else USUAL)
        batch["labels"] = batch["input_ids"].clone()
        optimizer.zero_grad()
        torch.cuda.reset_peak_memory_stats()
        phases = trainer.Phases()
        loss = model(**batch, num_items_in_batch=batch["attention_mask"].sum().item()).loss
        phases.end("forward")
        loss.backward()
        phases.end("backward")
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        phases.end("optimizer_step")
        if step % 10 == 0:
            torch.cuda.empty_cache()
    print(json.dumps({"bytes": torch.cuda.max_memory_reserved() - at_first, "phase": phases.of_peak}))


main()
