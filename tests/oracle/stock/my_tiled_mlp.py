"""DeepSpeed's TiledMLP, as https://github.com/deepspeedai/DeepSpeed has it in runtime/sequence_parallel/ulysses_sp.py, without what it
does for ZeRO: https://arxiv.org/abs/2506.13996."""

import functools

import torch

FAMILIES = ("decoder", "vit")  # GPT-2's Conv1D takes a view, which a tile of several sequences does not have, here or there
# Promised within a tolerance of the baseline; equal to this to the bit.
STACKS = ["my-tiled-mlp,tiles=3", "my-tiled-mlp,tiles=7", "lora,targets=mlp+my-tiled-mlp,tiles=2", "checkpointing+my-tiled-mlp,tiles=2"]
BFLOAT16_STACKS = ["my-tiled-mlp,tiles=3"]


class TiledMLP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, x, shards):
        ctx.fn, ctx.shards = fn, shards
        ctx.save_for_backward(x)
        with torch.no_grad():
            output_shards = [fn(x_shard) for x_shard in torch.chunk(x, chunks=shards, dim=-2)]
        return torch.cat(output_shards, dim=-2)

    @staticmethod
    def backward(ctx, *grads):
        (x,) = ctx.saved_tensors
        x = x.detach()
        x_shape_orig = x.shape
        x = x.view(-1, x.shape[-1])
        incoming_grad = grads[0].view_as(x)
        x_grad = torch.zeros_like(x)
        shard_offset = 0
        for x_shard in torch.chunk(x, chunks=ctx.shards, dim=0):
            shard_step = x_shard.shape[0]
            x_shard.requires_grad_(True)
            x_shard.grad = x_grad.narrow(0, shard_offset, shard_step)
            incoming_grad_shard = incoming_grad.narrow(0, shard_offset, shard_step)
            shard_offset += shard_step
            with torch.enable_grad():
                output = ctx.fn(x_shard)
            torch.autograd.backward(output, incoming_grad_shard)
        return None, x_grad.view(x_shape_orig), None


def prepare(model, options, subject):
    for block in subject.blocks(subject.base):
        block.mlp.forward = functools.partial(tiled, block.mlp.forward, int(options.get("tiles", 4)))
    return model


def tiled(forward, tiles, x):
    # The first block's input may need no gradient, where little is trained.
    return TiledMLP.apply(forward, x, tiles) if x.requires_grad or not torch.is_grad_enabled() else forward(x)
