"""https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu"""

from torch.autograd.graph import save_on_cpu

STACKS = ["save-on-cpu", "lora+checkpointing+save-on-cpu,pin_memory=true"]
BFLOAT16_STACKS = ["save-on-cpu"]


def install(step, options):
    hooks = save_on_cpu(pin_memory=options.get("pin_memory", "true") == "true")
    step.saved_tensors["offload"] = (hooks.pack_hook, hooks.unpack_hook)
