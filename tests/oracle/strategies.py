"""The strategies as a user of stock PyTorch writes them: each the way its tutorial or documentation does.

A stack ("lora+checkpointing,every=2") is applied in a fixed order whatever the typing order: checkpointing (the model's own way,
see training.Subject), adapters, then the optimizer.
"""

KNOWN = {"baseline", "foreach-off", "fused-in-backward", "checkpointing", "lora"}


def parse(stack):
    """"a,k=v+b" -> {"a": {"k": "v"}, "b": {}}"""
    parsed = {}
    for part in stack.split("+"):
        name, *options = part.split(",")
        if name not in KNOWN:
            raise SystemExit(f"unknown strategy {name}; one of {', '.join(sorted(KNOWN))}")
        parsed[name] = dict(option.split("=", 1) for option in options)
    return parsed


def apply_lora(model, options, targets):
    """peft's own; `targets` gives the names of its linear layers for each part (q_proj, ..., mlp, output), and the parts of auto."""
    import peft

    asked = options.get("targets", "auto")
    asked = (targets["auto"] if asked == "auto" else asked).split(":")
    patterns = []
    for word in asked:
        if targets.get(word) is None:
            raise SystemExit(f"lora: this model has no target {word}")
        patterns += targets[word]
    config = peft.LoraConfig(
        r=int(options.get("rank", 8)),
        lora_alpha=float(options.get("alpha", 16)),
        lora_dropout=0.0,
        target_modules=rf".*({'|'.join(patterns)})",
    )
    adapted = peft.get_peft_model(model, config, autocast_adapter_dtype=options.get("adapter_dtype", "fp32") == "fp32")
    return adapted


def make_update(model, optimizer_class, strategies, **optimizer_options):
    """Returns what is called after `loss.backward()`."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if "fused-in-backward" in strategies:
        # https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html
        optimizers = {p: optimizer_class([p], foreach=False, **optimizer_options) for p in parameters}

        def update_one(parameter):
            optimizers[parameter].step()
            optimizers[parameter].zero_grad()

        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(update_one)
        return lambda: None

    optimizer = optimizer_class(parameters, foreach="foreach-off" not in strategies, **optimizer_options)

    def update():
        optimizer.step()
        optimizer.zero_grad()

    return update
