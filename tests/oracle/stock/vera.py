"""https://huggingface.co/docs/peft/package_reference/vera"""

from stock import lora

STACKS = ["vera,rank=5", "vera,rank=4,targets=mlp", "vera+checkpointing+fused-in-backward", "qlora+vera,rank=5"]
BFLOAT16_STACKS = ["vera,rank=5"]


def prepare(model, options, subject):
    import peft

    patterns = lora.ranks_of(options.get("targets", "auto"), subject.lora_targets)
    config = peft.VeraConfig(
        r=int(options.get("rank", 256)),
        d_initial=float(options.get("d_initial", 0.1)),
        target_modules=rf".*({'|'.join(patterns)})",
    )
    return peft.get_peft_model(model, config)
