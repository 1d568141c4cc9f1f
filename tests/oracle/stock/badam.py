"""https://arxiv.org/abs/2404.02827, algorithm 1, with the blocks of https://github.com/Ledzy/BAdam: one for each transformer layer."""

from stock.lisa import train_only

STACKS = ["badam,interval=1", "checkpointing+badam,interval=2,order=ascending+fused-in-backward"]
BFLOAT16_STACKS = ["badam,interval=1"]


def prepare(model, options, subject):
    inside = {parameter for block in subject.blocks(subject.base) for parameter in block.parameters()}
    for parameter in model.parameters():
        parameter.requires_grad_(parameter in inside)
    return model


def install(step, options):
    interval = int(options.get("interval", 50))
    blocks = [list(block.parameters()) for block in step.subject.blocks(step.model)]
    if options.get("order", "descending") == "descending":
        blocks.reverse()
    step.before_step.append(lambda number: number % interval or train_only(step, set(), blocks, [number // interval % len(blocks)]))
