"""https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation: the usual loop, which Step has."""

STACKS = ["accumulation", "accumulation,steps=3", "lora+checkpointing+accumulation"]
BFLOAT16_STACKS = ["accumulation"]


def install(step, options):
    step.micro_batches = int(options.get("steps", 2))
