"""https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html"""

import torch

STACKS = ["clip", "clip,max_norm=0.01,norm_type=inf", "lora+clip", "accumulation+clip", "loss-scaling+clip"]
BFLOAT16_STACKS = ["clip"]


def install(step, options):
    numbers = {"max_norm": float(options.get("max_norm", 1)), "norm_type": float(options.get("norm_type", 2))}
    step.before_update.append(lambda: torch.nn.utils.clip_grad_norm_(step.parameters, **numbers) is not None)
