"""https://arxiv.org/abs/2305.17333, algorithm 1, as https://github.com/princeton-nlp/MeZO has it in large_models/trainer.py (zo_step,
zo_update), in place and with a generator of its own; the projected gradient is not read from the device."""

import torch

STACKS = ["mezo", "lora+mezo,eps=0.01,seed=3", "accumulation,steps=2+mezo,lr=0.001", "autocast+mezo"]
BFLOAT16_STACKS = ["mezo"]


def install(step, options):
    lr, eps = float(options.get("lr", 1e-6)), float(options.get("eps", 1e-3))
    seed, now = int(options.get("seed", 0)), {}

    @torch.no_grad()
    def along(use):
        generator = torch.Generator(step.parameters[0].device).manual_seed(seed + now["step"])
        for parameter in step.parameters:
            if parameter.requires_grad:
                z = torch.normal(0.0, 1.0, size=parameter.shape, generator=generator, dtype=parameter.dtype, device=parameter.device)
                use(parameter, z)
                del z

    def move(by):
        along(lambda parameter, z: parameter.add_(z, alpha=by))

    def two_forwards(_):
        with step.phase("forward"):
            move(eps)
        up = step.forward_only()
        with step.phase("optimizer_step"):
            move(-2 * eps)
        down = step.forward_only()
        with step.phase("optimizer_step"):
            move(eps)
            projected = (up - down).div_(2 * eps)
            along(lambda parameter, z: parameter.sub_(z.mul_(projected), alpha=lr))
        return up

    step.before_step.append(lambda number: now.update(step=number))
    step.passes = two_forwards
    step.make_update = lambda step: lambda: None
