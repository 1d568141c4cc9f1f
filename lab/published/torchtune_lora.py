"""torchtune's recipe lora_finetune_single_device (torchtune 0.1) on Llama 2 7B in bf16: its own model, checkpointing of every layer, AdamW,
micro-batches of two. Prints the peak of reserved bytes, which is what the recipe logs: of the training, or of building the model.

usage: torchtune_lora.py [--all-layers] [--rank 8] [--quantized] [--build] [--varied SEED]
"""

import argparse
import json
import random
import sys
from unittest import mock

import torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

import trainer

# torchtune imports them for its data and its command line, which are not used here.
for name in ("blobfile", "datasets", "omegaconf", "pkg_resources", "sentencepiece", "tiktoken", "tiktoken.load"):
    sys.modules.setdefault(name, mock.MagicMock())

MICRO_BATCH, LONGEST = 2, 512  # alpaca_cleaned_dataset cuts samples there


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all-layers", action="store_true", help="adapters on every linear layer; otherwise on q_proj and v_proj")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--quantized", action="store_true", help="QLoRA, whose recipe has adapters on all but the output layer")
    parser.add_argument("--build", action="store_true", help="prints what is reserved when the model has been built and loaded")
    parser.add_argument("--varied", type=int, metavar="SEED", help="64 micro-batches of random lengths, as the recipe accumulates; "
                                                                   "otherwise two whose samples are as long as they are cut")
    return parser.parse_args()


def layers_of(given):
    most = given.all_layers or given.quantized
    attention = ["q_proj", "k_proj", "v_proj", "output_proj"] if most else ["q_proj", "v_proj"]
    return {"lora_attn_modules": attention, "apply_lora_to_mlp": most, "apply_lora_to_output": given.all_layers}


def built(given):
    from torchtune import modules, utils
    from torchtune.models import llama2
    from torchtune.modules.peft import peft_utils

    build = llama2.qlora_llama2_7b if given.quantized else llama2.lora_llama2_7b
    with utils.set_default_dtype(torch.bfloat16), torch.device("cuda"):
        model = build(**layers_of(given), lora_rank=given.rank, lora_alpha=2 * given.rank)
    peft_utils.set_trainable_params(model, peft_utils.get_adapter_params(model))
    apply_activation_checkpointing(model, auto_wrap_policy=ModuleWrapPolicy({modules.TransformerDecoderLayer}))
    # A checkpoint on the host that takes no memory there.
    weights = {name: torch.zeros((), dtype=torch.bfloat16).expand(value.shape) for name, value in model.state_dict().items() if "lora" not in name}
    model.load_state_dict(weights, strict=False)
    return model


def lengths_of(given):
    """Of a step's micro-batches, in tokens."""
    if given.varied is None:
        return [LONGEST] * 2
    draw = random.Random(given.varied)
    return [min(LONGEST, max(int(draw.lognormvariate(5.2, 0.6)) for _ in range(MICRO_BATCH))) for _ in range(64)]


def train(model, given, phases):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)
    entropy = torch.nn.CrossEntropyLoss()
    for _ in range(2):
        for length in (lengths := lengths_of(given)):
            tokens = torch.randint(32000, (MICRO_BATCH, length)).to("cuda")
            labels = tokens
            logits = model(tokens)
            logits = logits[..., :-1, :].contiguous()
            labels = labels[..., 1:].contiguous()
            logits = logits.transpose(1, 2)
            loss = entropy(logits, labels)
            loss.item()
            phases.end("forward")
            loss = loss / len(lengths)
            loss.backward()
            phases.end("backward")
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        phases.end("optimizer_step")


def main():
    given = arguments()
    phases = trainer.Phases(torch.cuda.max_memory_reserved)
    model = built(given)
    phases.end("build")
    if not given.build:
        train(model, given, phases)
    print(json.dumps({"bytes": phases.peak, "phase": phases.of_peak}), flush=True)


if __name__ == "__main__":
    main()
