"""https://docs.pytorch.org/docs/stable/checkpoint.html, non-reentrant; a model that has a way of its own is asked for it. Segments are a
function that runs several blocks, checkpointed as one; what is kept is chosen with create_selective_checkpoint_contexts."""

import functools
import math

import torch
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

STACKS = ["checkpointing", "checkpointing,every=2", "checkpointing,segments=sqrt", "checkpointing,keep=matmuls_and_attention",
          "lora+checkpointing,segments=sqrt,keep=attention+fused-in-backward",
          "checkpointing,parts=mlp,every=2,keep=matmuls", "lora,targets=mlp+checkpointing,parts=mlp+fused-in-backward"]  # fmt: skip
BFLOAT16_STACKS = ["checkpointing", "checkpointing,parts=attention", "checkpointing,segments=sqrt,keep=matmuls"]
NUMBERS_TWICE = "keep="  # by the dispatch mode that sees the operators

aten = torch.ops.aten
MATMULS = [aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default]
ATTENTION = [
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten._scaled_dot_product_flash_attention.default,
    aten._scaled_dot_product_efficient_attention.default,
    aten._scaled_dot_product_cudnn_attention.default,
]
# What a block calls them: transformers, GPT-2 there, torchvision.
PARTS = {"attention": ("self_attn", "attn", "self_attention"), "mlp": ("mlp",)}
KEPT = {"matmuls": MATMULS, "attention": ATTENTION, "matmuls_and_attention": MATMULS + ATTENTION}


def prepare(model, options, subject):
    blocks, extra = subject.blocks(subject.base), {}
    if options.get("keep", "nothing") != "nothing":
        extra["context_fn"] = functools.partial(create_selective_checkpoint_contexts, KEPT[options["keep"]])
    if options.get("parts", "none") != "none":
        for block in blocks[:: int(options.get("every", 1))]:
            checkpoint_part(block, PARTS[options["parts"]], extra)
    elif options.get("segments", "blocks") == "sqrt":
        in_segments(blocks, math.ceil(math.sqrt(len(blocks))), extra)
    else:
        subject.checkpoint(subject.base, blocks, int(options.get("every", 1)), **extra)
    return model


def checkpoint_part(block, names, extra):
    (part,) = (getattr(block, name) for name in names if hasattr(block, name))
    part.forward = functools.partial(checkpoint, part.forward, use_reentrant=False, **extra)


def in_segments(blocks, segments, extra):
    """The model goes on calling block after block: a segment's first runs all of it, the others hand on what they are given."""
    for places in torch.arange(len(blocks)).tensor_split(segments):
        segment = [blocks[place] for place in places]
        forwards = [block.forward for block in segment]
        segment[0].forward = functools.partial(run_segment, forwards, extra)
        for block in segment[1:]:
            block.forward = lambda x, *_, **__: x


def run_segment(forwards, extra, x, *others, **named):
    def run(x):
        for forward in forwards:
            x = forward(x, *others, **named)
        return x

    return checkpoint(run, x, use_reentrant=False, **extra)
