"""https://huggingface.co/docs/peft/developer_guides/lora#weight-decomposed-low-rank-adaptation-dora"""

from stock import lora

STACKS = ["dora", "dora,rank=3,alpha=5,targets=mlp", "dora,rslora=true,adapter_dtype=model", "dora+checkpointing+fused-in-backward"]
UNTIED_STACKS = ["dora,targets=q_proj:output=2"]
BFLOAT16_STACKS = ["dora", "dora,adapter_dtype=model"]


def prepare(model, options, subject):
    return lora.adapt(model, options, subject, use_dora=True)
