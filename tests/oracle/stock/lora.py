"""https://huggingface.co/docs/peft/package_reference/lora"""

STACKS = [
    "lora", "lora,rank=3,alpha=5,targets=mlp", "lora,adapter_dtype=model", "lora,rslora=true,rank=3", "lora,targets=mlp=5,dropout=0.25",
    "lora+checkpointing", "lora,dropout=0.1+checkpointing",
]  # fmt: skip
GPT2_STACKS = ["lora,targets=qkv_proj=2:mlp"]
UNTIED_STACKS = ["lora,targets=output", "lora,targets=q_proj:output=2+checkpointing"]
BFLOAT16_STACKS = ["lora", "lora,adapter_dtype=model", "lora,dropout=0.1"]


def prepare(model, options, subject):
    return adapt(model, options, subject, lora_dropout=float(options.get("dropout", 0)))


def adapt(model, options, subject, **more):
    """`subject.lora_targets` gives the names of linear layers for each part (q_proj, ..., mlp, output), and the parts of auto."""
    import peft

    ranks = ranks_of(options.get("targets", "auto"), subject.lora_targets)
    config = peft.LoraConfig(
        r=int(options.get("rank", 8)),
        rank_pattern={pattern: int(rank) for pattern, rank in ranks.items() if rank},
        lora_alpha=float(options.get("alpha", 16)),
        use_rslora=options.get("rslora") == "true",
        target_modules=rf".*({'|'.join(ranks)})",
        **more,
    )
    return peft.get_peft_model(model, config, autocast_adapter_dtype=options.get("adapter_dtype", "fp32") == "fp32")


def ranks_of(text, targets):
    """"q_proj:mlp=4" -> {pattern of a layer's name: its part's own rank, or empty}"""
    ranks = {}
    for word in (targets["auto"] if text == "auto" else text).split(":"):
        part, _, rank = word.partition("=")
        if targets.get(part) is None:
            raise SystemExit(f"lora: this model has no target {part}")
        ranks |= dict.fromkeys(targets[part], rank)
    return ranks
