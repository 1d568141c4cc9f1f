"""FakeGPU's measurements of training on real cards: one step of a Qwen3.5 text model in bf16 from random tokens, by transformers without the
kernels for linear attention, AdamW with foreach=False. Full, with LoRA on every linear layer, under FSDP, or with LoRA under FSDP2. Prints the
peak of allocated bytes as the publisher takes it: of the forward and backward pass and of the optimizer step, without building the model.

usage: qwen_sft.py [--model 0.8b] [--lora] [--checkpoint] [--accumulate 1] [--length 16] [--ranks 1] [--graph]
"""

import argparse
import functools
import json
import os
import sys

import torch
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig
from transformers.initialization import no_init_weights

import trainer

# Their sizes amount to the parameters that the publisher counts: 752,393,024 and 1,881,825,088, and 5,411,328 and 8,409,600 of LoRA.
MODELS = {"0.8b": {"hidden_size": 1024, "intermediate_size": 3584}, "2b": {"hidden_size": 2048, "intermediate_size": 6144}}
PARAMETERS = {"0.8b": (752_393_024, 5_411_328), "2b": (1_881_825_088, 8_409_600)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="0.8b")
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--graph", action="store_true", help="without the optimizer step")
    return parser.parse_args()


def on_the_host(given):
    config = Qwen3_5TextConfig(vocab_size=248_320, num_hidden_layers=24, num_attention_heads=8, num_key_value_heads=2, head_dim=256,
                               linear_num_key_heads=16, linear_num_value_heads=16, linear_key_head_dim=128, linear_value_head_dim=128,
                               linear_conv_kernel_dim=4, tie_word_embeddings=True, **MODELS[given.model])  # fmt: skip
    with no_init_weights():  # what is in them moves no memory
        model = Qwen3_5ForCausalLM._from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
    model.tie_weights()
    model.config.use_cache = False
    if given.lora:
        from peft import LoraConfig, get_peft_model

        adapters = LoraConfig(r=8, lora_alpha=16, lora_dropout=0.0, bias="none", task_type="CAUSAL_LM", target_modules="all-linear")
        model = get_peft_model(model, adapters)
    parameters = tuple(sum(each.numel() for each in model.parameters() if each.requires_grad is trained) for trained in (not given.lora, given.lora))
    expected = PARAMETERS[given.model] if given.lora else (PARAMETERS[given.model][0], 0)
    if parameters != expected:
        sys.exit(f"it has {parameters} parameters of the model and of LoRA; the publisher has {expected}")
    if given.checkpoint:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if given.lora:
            model.enable_input_require_grads()
    return model.train()


def sharded(model, given):
    """As the publisher does it: FSDP for full training, FSDP2 for LoRA, a unit for each layer, nothing gathered ahead."""
    if not given.lora:
        from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        policy = ModuleWrapPolicy({type(model.model.layers[0])})
        return FullyShardedDataParallel(model, auto_wrap_policy=policy, device_id=torch.cuda.current_device(), backward_prefetch=None,
                                        forward_prefetch=False, sharding_strategy=ShardingStrategy.FULL_SHARD, limit_all_gathers=True,
                                        use_orig_params=False)  # fmt: skip
    from torch.distributed.fsdp import fully_shard

    model.cuda()
    for layer in model.get_base_model().model.layers:
        fully_shard(layer, reshard_after_forward=True)
    return fully_shard(model, reshard_after_forward=True)


def batch_of(length, vocabulary):
    tokens = torch.randint(100, vocabulary, (1, length))
    labels = tokens.clone()
    labels[:, : length // 2] = -100
    positions = torch.arange(length).view(1, 1, length).expand(3, 1, length).clone()
    return {name: each.cuda() for name, each in {"input_ids": tokens, "labels": labels, "position_ids": positions}.items()}


def step(model, given):
    """-> the phases that count"""
    vocabulary = model.config.vocab_size if hasattr(model, "config") else model.module.config.vocab_size
    batches = [batch_of(given.length, vocabulary) for _ in range(given.accumulate)]
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-5, foreach=False)
    phases = trainer.Phases()

    def measured(phase, what):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        result = what()
        torch.cuda.synchronize()
        phases.end(phase)
        return result

    for number, batch in enumerate(batches, 1):
        outputs = measured("forward", functools.partial(model, **batch, use_cache=False))
        loss = outputs.loss / given.accumulate
        measured("backward", loss.backward)
        loss.detach().float().cpu().item()
        if number < given.accumulate:
            del outputs, loss
    if given.graph:
        optimizer.step()
    else:
        measured("optimizer_step", optimizer.step)
    return phases


def main():
    given = arguments()
    if given.ranks > 1 and "RANK" not in os.environ:
        trainer.launch(given.ranks, OMP_NUM_THREADS="1")
    if given.ranks > 1:
        torch.cuda.set_device(int(os.environ["RANK"]))
        torch.distributed.init_process_group("nccl")
        model = sharded(on_the_host(given), given)
    else:
        model = on_the_host(given).cuda()
    phases = step(model, given)
    if int(os.environ.get("RANK", 0)) == 0:
        print(json.dumps({"bytes": phases.peak, "phase": phases.of_peak}))
    if given.ranks > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


main()
