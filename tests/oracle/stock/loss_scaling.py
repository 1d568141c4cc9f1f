"""https://docs.pytorch.org/docs/stable/notes/amp_examples.html: scale, unscale_, step, update."""

import torch

# A scale that overflows: steps are skipped, on decoders the first.
STACKS = ["loss-scaling", "loss-scaling,growth_interval=1", "loss-scaling,init_scale=1e38", "loss-scaling+accumulation"]
BYTES = {"loss-scaling,init_scale=1e38": "which steps are skipped depends on the weights, and those of the two are not the same there"}
DECODER_STACKS = ["autocast,dtype=fp16+loss-scaling"]


def install(step, options):
    device = next(step.model.parameters()).device.type
    numbers = {"init_scale": float(options.get("init_scale", 65536)), "growth_interval": int(options.get("growth_interval", 2000))}
    scaler = torch.amp.GradScaler(device, **numbers)
    step.objectives.append(scaler.scale)
    step.make_update = lambda step: scaled_update(step, scaler)


def scaled_update(step, scaler):
    optimizer = step.make_optimizer(step.parameters)

    def update():
        scaler.unscale_(optimizer)
        for function in step.before_update:
            function()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    return update
