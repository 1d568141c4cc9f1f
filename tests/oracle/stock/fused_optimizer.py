"""https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html: fused=True"""

STACKS = BFLOAT16_STACKS = ["fused-optimizer", "lora+fused-optimizer", "checkpointing+fused-optimizer"]


def install(step, options):
    step.optimizer_options |= {"foreach": False, "fused": True}
