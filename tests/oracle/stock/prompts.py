"""https://huggingface.co/docs/peft/package_reference/prompt_tuning: peft's own forward, as it is."""

FAMILIES = ("decoder",)
STACKS = ["prompts", "prompts+checkpointing", "prompts+fused-in-backward"]
BFLOAT16_STACKS = ["prompts"]
ORDER = "peft looks the tokens up before it puts labels before them; a wrapper is asked for the labels first"


def prepare(model, options, subject):
    import peft

    # Which vectors they start from: peft's default.
    return peft.get_peft_model(model, peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3))
