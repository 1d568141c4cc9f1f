"""https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html: foreach=False"""

STACKS = BFLOAT16_STACKS = ["foreach-off", "lora+foreach-off", "checkpointing+foreach-off"]


def install(step, options):
    step.optimizer_options["foreach"] = False
