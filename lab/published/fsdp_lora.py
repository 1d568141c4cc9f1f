"""A run of Answer.AI's fsdp_qlora (github.com/AnswerDotAI/fsdp_qlora, train.py) on its dummy data: LoRA or QLoRA on Llama-2 7B under FSDP,
two ranks. Prints the published figure of rank 0 as the last line: the peak of reserved bytes of the training, or that of allocated ones.

usage: fsdp_lora.py --batch 4 --length 2048 [--quantized] [--sharding NO_SHARD] [--allocated]
"""

import argparse
import functools
import json
import os

import torch
from torch import distributed
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, apply_activation_checkpointing, checkpoint_wrapper
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.wrap import _or_policy, lambda_auto_wrap_policy, transformer_auto_wrap_policy

import trainer

LLAMA_2_7B = dict(
    vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32,
    max_position_embeddings=4096, rms_norm_eps=1e-5, tie_word_embeddings=False, use_cache=False,
)  # fmt: skip
TARGETS = ["k_proj", "q_proj", "v_proj", "up_proj", "down_proj", "gate_proj"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, required=True, help="sequences a rank and step")
    parser.add_argument("--length", type=int, required=True, help="tokens of a sequence")
    parser.add_argument("--quantized", action="store_true", help="QLoRA")
    parser.add_argument("--sharding", default="FULL_SHARD", choices=["FULL_SHARD", "NO_SHARD"])
    parser.add_argument("--allocated", action="store_true", help="prints the peak of allocated bytes")
    parser.add_argument("--steps", type=int, default=3)
    return parser.parse_args()


def build(quantized):
    from transformers import AutoModelForCausalLM, LlamaConfig
    from transformers.modeling_utils import no_init_weights

    with no_init_weights():
        built = AutoModelForCausalLM.from_config(LlamaConfig(**LLAMA_2_7B), attn_implementation="sdpa", torch_dtype=torch.bfloat16)
    return trainer.quantized(built, sharded=True)[0] if quantized else built


def with_adapters(built):
    from peft import LoraConfig, get_peft_model

    return get_peft_model(built, LoraConfig(task_type="CAUSAL_LM", r=64, lora_alpha=16, lora_dropout=0.1, target_modules=TARGETS))


def is_adapter(module):
    return not list(module.named_children()) and getattr(module, "weight", None) is not None and module.weight.requires_grad


def shard(built, given):
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer

    policies = [
        functools.partial(lambda_auto_wrap_policy, lambda_fn=is_adapter),
        functools.partial(transformer_auto_wrap_policy, transformer_layer_cls=(LlamaDecoderLayer,)),
    ]
    model = FullyShardedDataParallel(
        built, sharding_strategy=ShardingStrategy[given.sharding], auto_wrap_policy=functools.partial(_or_policy, policies=policies),
        use_orig_params=False, limit_all_gathers=True,
        device_id=torch.cuda.current_device(), sync_module_states=True,
    )  # fmt: skip
    model.enable_input_require_grads()
    apply_activation_checkpointing(
        model, checkpoint_wrapper_fn=functools.partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.REENTRANT),
        check_fn=lambda module: isinstance(module, LlamaDecoderLayer),
    )  # fmt: skip
    return model


def peak(given):
    return torch.cuda.max_memory_allocated() if given.allocated else torch.cuda.max_memory_reserved()


def main():
    given = arguments()
    if "RANK" not in os.environ:
        trainer.launch(2)
    distributed.init_process_group("nccl")
    rank = distributed.get_rank()
    torch.cuda.set_device(rank)
    model = shard(with_adapters(build(given.quantized)), given)
    distributed.barrier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.95), eps=1e-5, weight_decay=0.1, fused=False)
    torch.cuda.reset_peak_memory_stats()
    phases = trainer.Phases(lambda: peak(given))
    model.train()
    for _ in range(given.steps):
        tokens = torch.randint(LLAMA_2_7B["vocab_size"], (given.batch, given.length))
        loss = (output := model(tokens.to(rank), labels=tokens.to(rank), attention_mask=None)).loss
        phases.end("forward")
        loss.backward()
        loss.item()
        phases.end("backward")
        optimizer.step()
        optimizer.zero_grad()
        phases.end("optimizer_step")
        output = loss = None
    distributed.barrier()
    if rank == 0:
        print(json.dumps({"bytes": phases.peak, "phase": phases.of_peak}), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
