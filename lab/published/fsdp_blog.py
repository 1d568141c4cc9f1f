"""GPT-2 Large or XL as in Hugging Face's "Accelerate Large Model Training using PyTorch Fully Sharded Data Parallel" (April 2022,
huggingface.co/blog/pytorch-fsdp), run_clm_no_trainer.py there: which batch fits a Titan RTX. Started by torchrun, a process a card.

What the transformers of that month did (4.18) is done here in place of today's: attention without a fused kernel, a copy of the logits for the
loss, an AdamW that takes one parameter after another.
"""

import argparse
import functools
import math
import os

import torch
from torch import distributed
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy
from torch.nn.parallel import DistributedDataParallel
from transformers import AttentionInterface, GPT2Config, GPT2LMHeadModel
from transformers.initialization import no_init_weights

SIZES = {"large": dict(n_embd=1280, n_layer=36, n_head=20), "xl": dict(n_embd=1600, n_layer=48, n_head=25)}
METHODS = ("ddp", "ddp-fp16", "shard-grad-op", "full-shard")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=SIZES, required=True)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--batch", type=int, required=True, help="sequences a rank")
    parser.add_argument("--block", type=int, required=True, help="tokens of a sequence (--block_size)")
    parser.add_argument("--min-num-params", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=2)
    return parser.parse_args()


def attention_of_2022(module, query, key, value, attention_mask, dropout=0.0, **_):
    """(B, heads, T, d) each; gives (B, T, heads, d)."""
    weights = torch.matmul(query, key.transpose(-1, -2))
    weights = weights / (value.size(-1) ** 0.5)
    length = query.size(-2)
    causal = torch.tril(torch.ones(length, length, dtype=torch.uint8, device=query.device)).view(1, 1, length, length).bool()
    weights = torch.where(causal, weights, torch.tensor(-1e4, dtype=weights.dtype, device=weights.device))
    if attention_mask is not None:
        weights = weights + attention_mask
    weights = torch.nn.functional.softmax(weights, dim=-1).type(value.dtype)
    weights = torch.nn.functional.dropout(weights, p=dropout, training=module.training)
    return torch.matmul(weights, value).transpose(1, 2), weights


class AdamWOf2022(torch.optim.Optimizer):
    """As transformers.AdamW was: exp_avg and exp_avg_sq, a parameter at a time."""

    def __init__(self, parameters, lr=5e-5, eps=1e-6):
        super().__init__(parameters, dict(lr=lr, eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                state["exp_avg"].mul_(0.9).add_(p.grad, alpha=0.1)
                state["exp_avg_sq"].mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                denominator = state["exp_avg_sq"].sqrt().add_(group["eps"])
                size = group["lr"] * math.sqrt(1 - 0.999 ** state["step"]) / (1 - 0.9 ** state["step"])
                p.addcdiv_(state["exp_avg"], denominator, value=-size)


def build(given):
    AttentionInterface.register("of_2022", attention_of_2022)
    with no_init_weights():
        return GPT2LMHeadModel(GPT2Config(**SIZES[given.model], attn_implementation="of_2022"))


def wrapped(model, given, device):
    if given.method.startswith("ddp"):
        model = model.to(device)
        return DistributedDataParallel(model, device_ids=[device.index]) if distributed.is_initialized() else model
    strategy = ShardingStrategy.SHARD_GRAD_OP if given.method == "shard-grad-op" else ShardingStrategy.FULL_SHARD
    return FullyShardedDataParallel(
        model, sharding_strategy=strategy, backward_prefetch=None, limit_all_gathers=False,
        auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, min_num_params=given.min_num_params),
    ).to(device)  # fmt: skip


def main():
    given = arguments()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    if "RANK" in os.environ:
        distributed.init_process_group("nccl")
    half = given.method == "ddp-fp16"
    model = wrapped(build(given), given, device)
    model.train()
    optimizer = AdamWOf2022(model.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=half)
    for _ in range(given.steps):
        tokens = torch.randint(0, 50257, (given.batch, given.block)).to(device)
        mask = torch.ones(given.batch, given.block, dtype=torch.int64).to(device)
        with torch.autocast("cuda", torch.float16, enabled=half):
            logits = model(input_ids=tokens, attention_mask=mask, use_cache=False).logits
            shifted = logits[..., :-1, :].contiguous()
            loss = torch.nn.functional.cross_entropy(shifted.view(-1, shifted.size(-1)), tokens[..., 1:].contiguous().view(-1))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=False)
    if int(os.environ.get("RANK", 0)) == 0:
        print(torch.cuda.max_memory_allocated())
    if distributed.is_initialized():
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
