"""https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu"""

import functools

from torch.autograd.graph import save_on_cpu

STACKS = ["save-on-cpu", "lora+checkpointing+save-on-cpu,pin_memory=true"]
BFLOAT16_STACKS = ["save-on-cpu"]


def install(step, options):
    step.around_forward.append(functools.partial(save_on_cpu, pin_memory=options.get("pin_memory", "true") == "true"))
