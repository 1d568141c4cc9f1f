"""https://huggingface.co/docs/peft/package_reference/ia3: keys, values and the last layer of each MLP, as peft's own choice for
Llama and, where they come from one layer with the queries, for GPT-2"""

STACKS = ["ia3", "ia3,targets=mlp", "ia3+checkpointing+fused-in-backward", "qlora+ia3"]
BFLOAT16_STACKS = ["ia3"]


def prepare(model, options, subject):
    import peft

    targets = subject.lora_targets
    asked = options.get("targets", "auto")
    parts = [part for part in ("k_proj", "v_proj", "qkv_proj", "mlp") if part in targets] if asked == "auto" else asked.split(":")
    last = [targets["mlp"][-1]] if "mlp" in parts else []
    patterns = [pattern for part in parts if part != "mlp" for pattern in targets[part]] + last
    config = peft.IA3Config(
        target_modules=rf".*({'|'.join(patterns)})",
        feedforward_modules=rf".*({'|'.join(last)})" if last else [],
    )
    return peft.get_peft_model(model, config)
