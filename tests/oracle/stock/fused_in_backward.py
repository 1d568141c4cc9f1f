"""https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html"""

STACKS = ["fused-in-backward", "lora+checkpointing+fused-in-backward", "checkpointing,every=2+fused-in-backward"]
BFLOAT16_STACKS = ["lora+checkpointing+fused-in-backward"]


def install(step, options):
    step.optimizer_options["foreach"] = False
    step.make_update = in_backward


def in_backward(step):
    optimizers = {parameter: step.make_optimizer([parameter]) for parameter in step.parameters}

    def update_one(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in step.parameters:
        parameter.register_post_accumulate_grad_hook(update_one)
    return lambda: None
