"""https://docs.pytorch.org/docs/stable/amp.html#autocasting"""

import torch

STACKS = ["autocast", "lora+autocast", "autocast+checkpointing", "autocast+fused-in-backward"]
# Not on the ViT, whose fp32 hidden states go before its loss: the head has kept a cast of them. Here they live until the loss is there,
# as a decoder's do; at the end of forward that makes two bytes.
DECODER_STACKS = ["autocast,dtype=fp16"]
BFLOAT16_STACKS = ["autocast"]


def install(step, options):
    device = next(step.model.parameters()).device.type
    dtype = torch.float16 if options.get("dtype") == "fp16" else torch.bfloat16
    step.around_forward.append(lambda: torch.autocast(device, dtype=dtype))
