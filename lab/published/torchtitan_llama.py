"""A training of torchtitan's (github.com/pytorch/torchtitan), written after its train.py and model on the day of a figure: Llama over several ranks under FSDP, in
bf16 with fp32 parameters and gradients, on random tokens. Prints what its GPU memory monitor says of rank 0: the peak of active or of reserved bytes.

--as-of 2024-03: pull request 165 (Llama 2, tokenizer of 32,000), which has FSDP and FSDP2 side by side.
--as-of 2024-12: commit 9dec370 (Llama 3.1, 128,256), FSDP2. Its run_llama_train.sh asks for expandable segments, with which 3.9% and 3.1% less are
reserved than published; without them, as here, 0.3% and 0.6% more.

usage: torchtitan_llama.py --as-of 2024-03 --fsdp 1 --checkpoint full --batch 8 --length 2048 --ranks 8 --kind active
       torchtitan_llama.py --as-of 2024-12 --fsdp 2 --checkpoint op --batch 2 --length 8192 --world 128 --kind reserved
"""

import argparse
import collections
import gc
import json
import os

import torch
from torch import nn
from torch.distributed import fsdp
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper, checkpoint_wrapper
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

import trainer

WIDTH, LAYERS, HEADS = 4096, 32, 32
MODELS = {
    "2024-03": dict(tokens=32_000, kv_heads=32, hidden=11_008, positions=2 * 32_768, parameters=6_738_415_616),
    "2024-12": dict(tokens=128_256, kv_heads=8, hidden=14_336, positions=8_192, parameters=8_030_261_248),
}
# Of a block with selective checkpointing: what is kept, of every second matrix product only.
KEPT = {torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_efficient_attention.default,
        torch.ops.aten._scaled_dot_product_flash_attention.default, torch.ops._c10d_functional.reduce_scatter_tensor.default}  # fmt: skip


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--as-of", choices=MODELS, required=True)
    parser.add_argument("--fsdp", type=int, choices=[1, 2], required=True)
    parser.add_argument("--checkpoint", choices=["full", "op", "none"], required=True)
    parser.add_argument("--batch", type=int, required=True, help="sequences a rank")
    parser.add_argument("--length", type=int, required=True)
    ranks = parser.add_mutually_exclusive_group(required=True)
    ranks.add_argument("--ranks", type=int, help="processes, each with a card")
    ranks.add_argument("--world", type=int, help="of so many ranks the first alone, the others taken to be like it")
    parser.add_argument("--kind", choices=["active", "reserved"], required=True)
    parser.add_argument("--steps", type=int, default=11, help="more take no more")
    return parser.parse_args()


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(WIDTH))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


def turned(x, turns):
    """x (B, T, heads, d) by turns (T, d / 2), complex."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns[: x.shape[1]].view(1, x.shape[1], 1, -1)).flatten(3).type_as(x)


def turns_of(positions, dimension, device):
    each = 10_000.0 ** -(torch.arange(0, dimension, 2, device=device).float() / dimension)
    angles = torch.outer(torch.arange(positions, device=device), each).float()
    return torch.polar(torch.ones_like(angles), angles)


class Attention(nn.Module):
    def __init__(self, kv_heads):
        super().__init__()
        self.kv_heads, self.d = kv_heads, WIDTH // HEADS
        self.wq = nn.Linear(WIDTH, WIDTH, bias=False)
        self.wk = nn.Linear(WIDTH, kv_heads * self.d, bias=False)
        self.wv = nn.Linear(WIDTH, kv_heads * self.d, bias=False)
        self.wo = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x, turns):
        q, k, v = (layer(x).view(*x.shape[:2], -1, self.d) for layer in (self.wq, self.wk, self.wv))
        q, k = turned(q, turns), turned(k, turns)
        k, v = self.repeated(k), self.repeated(v)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        output = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(output.transpose(1, 2).contiguous().view(x.shape))

    def repeated(self, x):
        """For each query's head its own copy."""
        if self.kv_heads == HEADS:
            return x
        return x[:, :, :, None].expand(*x.shape[:3], HEADS // self.kv_heads, self.d).reshape(*x.shape[:2], HEADS, self.d)


class FeedForward(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.w1 = nn.Linear(WIDTH, hidden, bias=False)
        self.w2 = nn.Linear(hidden, WIDTH, bias=False)
        self.w3 = nn.Linear(WIDTH, hidden, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.attention, self.feed_forward = Attention(model["kv_heads"]), FeedForward(model["hidden"])
        self.attention_norm, self.ffn_norm = RMSNorm(), RMSNorm()

    def forward(self, x, turns):
        h = x + self.attention(self.attention_norm(x), turns)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    def __init__(self, model, wide_logits):
        super().__init__()
        self.wide_logits = wide_logits
        self.tok_embeddings = nn.Embedding(model["tokens"], WIDTH)
        self.register_buffer("turns", turns_of(model["positions"], WIDTH // HEADS, "meta"))
        self.layers = nn.ModuleList(Block(model) for _ in range(LAYERS))
        self.norm = RMSNorm()
        self.output = nn.Linear(WIDTH, model["tokens"], bias=False)

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, self.turns)
        logits = self.output(self.norm(h))
        return logits.float() if self.wide_logits else logits


def selective():
    """The policy of a block: forward and recomputation count their own products."""
    counts = collections.Counter()

    def policy(context, function, *_, **__):
        counts[context.is_recompute, function] += 1
        second = function == torch.ops.aten.mm.default and counts[context.is_recompute, function] % 2 == 0
        return CheckpointPolicy.MUST_SAVE if function in KEPT and not second else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def checkpointed(block, how):
    if how == "none":
        return block
    return checkpoint_wrapper(block, preserve_rng_state=False, **({"context_fn": selective} if how == "op" else {}))


def with_fsdp(model, given):
    precision = fsdp.MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    blocks = (Block,) if given.checkpoint == "none" else (CheckpointWrapper,)
    return fsdp.FullyShardedDataParallel(
        model, sharding_strategy=fsdp.ShardingStrategy.FULL_SHARD, backward_prefetch=fsdp.BackwardPrefetch.BACKWARD_PRE, mixed_precision=precision,
        use_orig_params=True, param_init_fn=lambda module: module.to_empty(device="cuda", recurse=False), device_id=torch.cuda.current_device(),
        auto_wrap_policy=fsdp.wrap.ModuleWrapPolicy(blocks),
    )  # fmt: skip


def with_fsdp2(model):
    """The last block is not sharded again after forward, as its parameters are needed at once."""
    precision = fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for number, block in enumerate(model.layers, 1):
        fsdp.fully_shard(block, mp_policy=precision, reshard_after_forward=number < LAYERS)
    fsdp.fully_shard(model, mp_policy=precision)
    model.to_empty(device="cuda")
    return model


def built(given):
    sizes = MODELS[given.as_of]
    with torch.device("meta"):
        model = Llama(sizes, wide_logits=given.as_of == "2024-03")
    assert sum(each.numel() for each in model.parameters()) == sizes["parameters"]
    model.layers = nn.ModuleList(checkpointed(block, given.checkpoint) for block in model.layers)
    model = with_fsdp(model, given) if given.fsdp == 1 else with_fsdp2(model)
    with torch.no_grad():
        for each in model.parameters():
            each.zero_()
    return model.train()


def train(model, given):
    """-> the phases by the peak of the kind"""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)
    early = given.as_of == "2024-03"
    phases = trainer.Phases(lambda: torch.cuda.memory_stats()[f"{given.kind}_bytes.all.peak"])
    gc.disable()
    for _ in range(given.steps):
        tokens, labels = (torch.zeros(given.batch, given.length, dtype=torch.int64).cuda() for _ in range(2))
        optimizer.zero_grad()
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1) if early else logits.flatten(0, 1).float(), labels.flatten(0, 1))
        if not early:
            del logits
        phases.end("forward")
        loss.backward()
        phases.end("backward")
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        phases.end("optimizer_step")
    return phases


def connect(given):
    torch.backends.cuda.enable_cudnn_sdp(False)  # PyTorch's choice was flash attention then
    if given.world:
        os.environ["PEAKBENCH_EMULATED_RANKS"] = "alone"
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("nccl", rank=0, world_size=given.world, store=store)
    else:
        torch.cuda.set_device(int(os.environ["RANK"]))
        torch.distributed.init_process_group("nccl")


def main():
    given = arguments()
    if given.ranks and "RANK" not in os.environ:
        trainer.launch(given.ranks, OMP_NUM_THREADS="1")
    connect(given)
    phases = train(built(given), given)
    if int(os.environ.get("RANK", 0)) == 0:
        print(json.dumps({"bytes": phases.peak, "phase": phases.of_peak}), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
